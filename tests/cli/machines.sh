# On a machine that sgt does not support, the first header that is compiled stops the build with one
# line.
compiler

# -ffreestanding: use the compiler's own headers, since the system has none for that machine
refused() { # TEXT OPTION...
    text=$1
    shift
    for header in base/error.h sgt_loader.h; do
        run 1 "$CC" -x c -ffreestanding -fsyntax-only -w "$@" "-I$ROOT/loader" "$ROOT/loader/$header"
        stderr_has "$text"
        [ "$(grep -c 'error:' .stderr)" -eq 1 ] || fail 'more than one error'
    done
    run 1 "$CC" -x c -ffreestanding -fsyntax-only -w "$@" "-I$ROOT/loader" "$ROOT/tokenize/sgt_tokenize.h"
    stderr_has "$text"
}
run 0 "$CC" -x c -ffreestanding -fsyntax-only "-I$ROOT/loader" "$ROOT/loader/sgt_loader.h"
refused 'sgt needs a little-endian machine' -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__
case $(uname -m) in x86_64) refused 'sgt needs a 64-bit machine' -m32 ;; esac
refused 'sgt needs a 64-bit machine' -U__SIZEOF_SIZE_T__ -D__SIZEOF_SIZE_T__=4
