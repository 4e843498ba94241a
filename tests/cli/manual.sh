# sgt_loader.3 and sgt_tokenize.3 name every function that the libraries' headers declare, and the
# programs that check pages find no fault. The example of sgt_loader.3 works; that of sgt_tokenize.3
# is its header's (examples.sh).
LIB=$BIN/../lib
compiler

for library in loader tokenize; do
    page=$ROOT/$library/sgt_$library.3
    sed -n '/^\.SH SEE/q; s/^\.BR* \(sgt_[a-z0-9_]*\).*/\1/p' "$page" | LC_ALL=C sort > named
    sed -n 's/^\(sgt_.*\)@@.*/\1/p' "$ROOT/tests/data/symbols/$library" | LC_ALL=C sort | diff - named > difference ||
        fail "$page does not name the functions of sgt_$library.h: $(cat difference)"
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning "$page"
    elif command -v groff > /dev/null; then
        run_silent groff -man -Tutf8 -ww -rCHECKSTYLE=3 -z "$page"
    fi
done

sed -n '/^\.SH EXAMPLE/,$p' "$ROOT/loader/sgt_loader.3" | sed -n '/^\.EX/,/^\.EE/p' |
    sed '1d;$d; s/\\e/\\/g; s/\\-/-/g; s/\\&//g' > example.c
# In C++, initializers must be in the order of the header.
run 0 "$CC" -x c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -pedantic -Werror -fsyntax-only \
    "-I$ROOT/loader" example.c
# shellcheck disable=SC2086
run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror $san "-I$ROOT/loader" -o example example.c \
    "$LIB/libsgt-loader.a" -luring -lxxhash -ljansson -pthread
texts text 100000
run 0 sgt-tokenize --quiet text out
run_silent ./example out
stdout_lines 10
stdout_matches '^batch 9: [0-9]+\.[0-9]$'
run 1 ./example nowhere
stderr_is 'nowhere: No such file or directory (make a folder of shards with sgt-tokenize)'

command -v mandoc > /dev/null || command -v groff > /dev/null ||
    skip 'the manuals were read by no program: neither mandoc nor groff is there'
