# For aarch64 (needs only the compiler gcc-aarch64-linux-gnu): every source of loader and tokenize compiles without
# a warning, and the object that holds GPT-2's tables contains them.
# In make check-all only: it compiles the library and sgt-tokenize for another machine.
CC=aarch64-linux-gnu-gcc
command -v $CC > /dev/null || skip "no $CC (tools/deps.sh all)"
echo '#include <stdio.h>' | $CC -E - > /dev/null 2>&1 || skip "$CC has no headers of C (libc6-dev-arm64-cross)"

# Use this machine's headers of the libraries: they are the same on every machine.
mkdir include
for name in xxhash.h pcre2.h utf8proc.h jansson.h jansson_config.h zlib.h zconf.h zstd.h zstd_errors.h liburing.h \
    liburing; do
    for folder in /usr/include /usr/include/*-linux-gnu; do
        [ ! -e "$folder/$name" ] || [ -e "include/$name" ] || ln -s "$folder/$name" include
    done
done
for name in xxhash.h pcre2.h utf8proc.h jansson.h zlib.h zstd.h liburing.h; do
    [ -e "include/$name" ] || skip "no /usr/include/$name"
done
compile() {
    (cd "$ROOT" && $CC -std=c11 -D_GNU_SOURCE -I. -Iloader "-isystem$here/include" -Wall -Wextra -Wshadow \
        -Wconversion -Wpedantic -Wno-overlength-strings -Werror -fPIC "$@")
}
here=$PWD
for folder in loader loader/base loader/shards loader/sample loader/read loader/rows tokenize tokenize/text \
    tokenize/vocab tokenize/bpe tokenize/input tokenize/out tokenize/parts \
    tokenize/learn; do
    sources=$(cd "$ROOT" && ls "$folder"/*.c 2> /dev/null) || continue
    # shellcheck disable=SC2086
    run 0 compile -fsyntax-only $sources
done
run 0 compile -fsyntax-only -DSGT_FOR_wide tokenize/bpe/pieces.c tokenize/bpe/words.c
run 0 compile -O2 -c -o "$here/vocab.o" tokenize/vocab/vocab.c
run_prints 'R_AARCH64_ADR_PREL_PG_HI21' aarch64-linux-gnu-objdump -r vocab.o
! grep -q 'GOT.*rodata' .stdout ||
    fail "a place in .rodata by the table of other libraries': $(grep 'GOT.*rodata' .stdout)"
