# sgt_loader.3 and sgt_tokenize.3 are what `make man` writes from the headers. Every function, constant and field is
# described. The examples work, and the programs that check pages find no fault.
. "$ROOT/tests/cli/lib.sh"
LIB=$BIN/../lib
compiler

# generated_from_header LIBRARY: check that the page is up to date, that its synopsis is C that
# agrees with the header, and that each function of the library is in the synopsis once and has a
# text in the description
generated_from_header() { # LIBRARY
    header=$ROOT/$1/sgt_$1.h
    awk -f "$ROOT/tools/man3.awk" "$page" "$header" "$ROOT/loader/base/error.h" > generated
    cmp -s generated "$page" || fail "$page is not what make man writes: $(diff "$page" generated | head -6)"
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$page" | sed -n 's/^\.B //p' | sed 's/^"//; s/"$//; s/\\-/-/g' > synopsis.c
    sed -n '/^\.SH DESCRIPTION/,/^\.SH ABI/p' "$page" > body
    run 0 "$CC" -std=c11 -Wall -Wextra -Werror -fsyntax-only "-I$ROOT/loader" "-I$ROOT/tokenize" synopsis.c
    while read -r function; do
        [ "$(grep -cE "\b$function\(" synopsis.c)" -eq 1 ] || fail "$function is not in the synopsis once"
        grep -qE "^\.B .*\b$function\b" body || fail "$function is not explained"
    done < "$ROOT/$1/sgt_$1.symbols"
    # An item must be followed by its text (.RS), or by another item (.br) with the same text.
    awk '/^\.B /  { item = $0; next }
         item != "" && !/^\.(RS|br)$/ { print item; bad = 1 }
         { item = "" }
         END { exit bad }' body > bare || fail "without a text: $(cat bare)"
}

reads_well() {
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning "$page"
    elif command -v groff > /dev/null; then
        run 0 groff -man -Tutf8 -ww -rCHECKSTYLE=3 -z "$page"
        stderr_is ''
    fi
}

# example_of LIBRARY DEPENDENCY...: build the page's example
example_of() {
    library=$1
    shift
    sed -n '/^\.SH EXAMPLE/,$p' "$page" | sed -n '/^\.EX/,/^\.EE/p' | sed '1d;$d; s/\\e/\\/g; s/\\-/-/g; s/\\&//g' > example.c
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror $san "-I$ROOT/loader" "-I$ROOT/tokenize" -o example \
        example.c "$LIB/libsgt-$library.a" "$@" -lxxhash -ljansson -pthread
}

page=$ROOT/loader/sgt_loader.3
generated_from_header loader
reads_well
example_of loader -luring
mkdir text
texts text 100000
run 0 sgt-tokenize --quiet text out
run 0 "$CC" -x c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -pedantic -Werror -fsyntax-only \
    "-I$ROOT/loader" example.c
run 0 ./example out
stderr_is ''
stdout_lines 10
stdout_matches '^batch 9: [0-9]+\.[0-9]$'
run 1 ./example nowhere
stderr_is 'nowhere: No such file or directory (sgt-tokenize makes a folder of shards)'

page=$ROOT/tokenize/sgt_tokenize.3
generated_from_header tokenize
reads_well
# shellcheck disable=SC2046
example_of tokenize -lutf8proc -lpcre2-8 -lz -lzstd $(codecs_of "${CC:-cc}") -lm
run 0 ./example 'Hello, world!' '' 'naïve'
stderr_is ''
stdout_is "4 tokens, the last is '!'
0 tokens, the last is ''
2 tokens, the last is 'ïve'"

command -v mandoc > /dev/null || command -v groff > /dev/null ||
    skip 'the manuals were read by no program: neither mandoc nor groff is there'
