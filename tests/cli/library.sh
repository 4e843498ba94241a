# The public libraries export the functions of their headers, and nothing else.
LIB=$BIN/../lib
compiler
for name in loader tokenize; do
    exists "$LIB/libsgt-$name.a"
    exists "$LIB/libsgt-$name.so"
    header=$ROOT/$name/sgt_$name.h list=$ROOT/tests/data/symbols/$name

    # The list of names and their versions may only grow, because compiled programs depend on them.
    nm -gD --defined-only "$LIB/libsgt-$name.so" | sed 's/^[0-9a-f]* [ATW] //' | LC_ALL=C sort > shared
    LC_ALL=C comm -23 "$list" shared > gone
    [ ! -s gone ] || fail "libsgt-$name.so lacks what programs link: $(cat gone)"
    LC_ALL=C comm -13 "$list" shared > new
    [ ! -s new ] || fail "libsgt-$name.so exports what $list lacks (a new name belongs there): $(cat new)"
    readelf -d "$LIB/libsgt-$name.so" > dynamic
    check "libsgt-$name.so has no soname of its own" grep -qF "soname: [libsgt-$name.so.1]" dynamic

    # The names that the header declares: those followed by a parenthesis in the preprocessed text,
    # except inline functions.
    "$CC" -E -P "-I$ROOT/loader" "$header" | tr '\n' ' ' | sed 's/static inline[^}]*}//g' |
        grep -oE '\bsgt_[a-z0-9_]+\(' | tr -d '(' | sort -u > declared
    [ "$(wc -l < declared)" -gt 10 ] || fail "found only $(wc -l < declared) functions in $header"
    sed -n 's/^\(sgt_.*\)@@.*/\1/p' "$list" | sort > names
    check "$list is not what $header declares: $(diff declared names)" cmp -s declared names

    nm -g "$LIB/libsgt-$name.a" > symbols
    sed -n 's/^[0-9a-f]* [A-TV-Z] //p' symbols | sort > static
    check "libsgt-$name.a has other global names: $(diff names static)" cmp -s names static
    ! grep -E ' [Uw] sgt_' symbols || fail "libsgt-$name.a lacks names of its own"

    # The header by itself compiles as C and as C++ without a warning.
    for how in 'c -std=c99' 'c -std=c11' 'c++ -std=c++11' 'c++ -std=c++20'; do
        # shellcheck disable=SC2086
        run 0 "$CC" -x $how -Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only "-I$ROOT/loader" \
            -include "$header" /dev/null
    done
done

# Check the names that libsgt-loader imports, and its global state: the CPU's features, whether
# Linux allows AMX (x86-64), and the guard against SIGBUS. A sanitizer adds names and state to both.
if [ -z "$san" ]; then
    objdump -t "$LIB/libsgt-loader.a" | sed -nE 's/.* O \.t?(data|bss)[^.[:alnum:]].* ([a-zA-Z_][a-zA-Z0-9_.]*)$/\2/p' |
        sort | tr '\n' ' ' > globals
    [ "$(sed 's/^allowed //' globals)" = 'detected guard limit ' ] || fail "libsgt-loader keeps $(cat globals)"
    readelf -d "$LIB/libsgt-loader.so" | sed -n 's/.*NEEDED.*\[\(lib[a-z-]*\).*/\1/p' | sort | tr '\n' ' ' > needed
    [ "$(cat needed)" = 'libc libjansson liburing libxxhash ' ] || fail "libsgt-loader.so needs $(cat needed)"
fi

# Link both libraries into one program, in either order, and each library by itself.
own_program
codecs=$(codecs_of "$CC")
need_loader='-lxxhash -luring -ljansson -pthread' need_tokenize="-lutf8proc -lpcre2-8 -lz -lzstd $codecs -lm"
for order in 'loader tokenize' 'tokenize loader'; do
    # shellcheck disable=SC2086
    set -- $order
    # shellcheck disable=SC2086
    run 0 "$CC" $san "-I$ROOT/loader" "-I$ROOT/tokenize" -o own own.c "$LIB/libsgt-$1.a" "$LIB/libsgt-$2.a" \
        $need_tokenize $need_loader
    run_says "$own" ./own
    # shellcheck disable=SC2086
    run 0 "$CC" $san "-I$ROOT/loader" "-I$ROOT/tokenize" -o own own.c "-L$LIB" "-Wl,-rpath,$LIB" "-lsgt-$1" "-lsgt-$2"
    run_says "$own" ./own
done
