# sgt_loader.3 and sgt_tokenize.3 name every function that the libraries' headers declare. Their
# examples work, and the programs that check pages find no fault.
LIB=$BIN/../lib
compiler

# names_all LIBRARY: check that the page names each function of the library, and no other
names_all() { # LIBRARY
    sed -n '/^\.SH SEE/q; s/^\.BR* \(sgt_[a-z0-9_]*\).*/\1/p' "$page" | LC_ALL=C sort > named
    sed -n 's/^\(sgt_.*\)@@.*/\1/p' "$ROOT/tests/data/symbols/$1" | LC_ALL=C sort | diff - named > difference ||
        fail "$page does not name the functions of sgt_$1.h: $(cat difference)"
}

reads_well() {
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning "$page"
    elif command -v groff > /dev/null; then
        run_silent groff -man -Tutf8 -ww -rCHECKSTYLE=3 -z "$page"
    fi
}

# page_example: write the page's example to example.c
page_example() {
    sed -n '/^\.SH EXAMPLE/,$p' "$page" | sed -n '/^\.EX/,/^\.EE/p' | sed '1d;$d; s/\\e/\\/g; s/\\-/-/g; s/\\&//g' > example.c
}

# header_example LIBRARY: write the program in the first comment of the library's header to
# example.c
header_example() {
    sed -n '/^#ifndef/q; s/^ \*     //p' "$ROOT/$1/sgt_$1.h" > example.c
}

# build_example LIBRARY DEPENDENCY...: build example.c. Also check it as C++, where initializers
# must be in the order of the header.
build_example() {
    library=$1
    shift
    run 0 "$CC" -x c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -pedantic -Werror -fsyntax-only \
        "-I$ROOT/loader" "-I$ROOT/tokenize" example.c
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror $san "-I$ROOT/loader" "-I$ROOT/tokenize" -o example \
        example.c "$LIB/libsgt-$library.a" "$@" -lxxhash -ljansson -pthread
}

page=$ROOT/loader/sgt_loader.3
names_all loader
reads_well
page_example
build_example loader -luring
texts text 100000
run 0 sgt-tokenize --quiet text out
run_silent ./example out
stdout_lines 10
stdout_matches '^batch 9: [0-9]+\.[0-9]$'
run 1 ./example nowhere
stderr_is 'nowhere: No such file or directory (make a folder of shards with sgt-tokenize)'

page=$ROOT/tokenize/sgt_tokenize.3
names_all tokenize
reads_well
header_example tokenize
# shellcheck disable=SC2046
build_example tokenize -lutf8proc -lpcre2-8 -lz -lzstd $(codecs_of "${CC:-cc}") -lm
rm -rf out corpus
run 1 ./example
stdout_is '15496
11
995
0'
stderr_is 'corpus: No such file or directory'
cp -r text corpus
run_silent ./example
exists out/train_000000.bin

command -v mandoc > /dev/null || command -v groff > /dev/null ||
    skip 'the manuals were read by no program: neither mandoc nor groff is there'
