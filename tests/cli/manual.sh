# sgt_loader.3 and sgt_tokenize.3: every function, option and code of the header is in its page, which says nothing
# twice; the example works; and no reader of manuals has anything against it.
. "$ROOT/tests/cli/lib.sh"
LIB=$BIN/../lib
CC=$(sed 's/ .*//' "$BIN/../flags")
san=$(grep -o -e '-fsanitize=[a-z,]*' "$BIN/../flags" | head -1)

# The synopsis is C, which the compiler holds against the header; every function is there, and explained below; so is
# every name that the header defines.
names_of() { # LIBRARY
    header=$ROOT/$1/sgt_$1.h
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$page" | sed -n 's/^\.BI* //p' | tr -d '"' > synopsis.c
    sed -n '/^\.SH DESCRIPTION/,$p' "$page" > body
    run 0 "$CC" -std=c11 -Wall -Wextra -Werror -fsyntax-only "-I$ROOT/loader" "-I$ROOT/tokenize" synopsis.c
    while read -r function; do
        [ "$(grep -cE "\b$function\(" synopsis.c)" -eq 1 ] || fail "$function is not in the synopsis once"
        grep -qE "^\.(BR|B|RB) .*\b$function\b" body || fail "$function is not explained"
    done < "$ROOT/$1/sgt_$1.symbols"
    for name in $(sed 's|//.*||' "$header" "$ROOT/loader/base/error.h" | grep -oE '\bSGT_[A-Z0-9_]+\b' | sort -u); do
        case $name in *_H | SGT_E | SGT_OK | SGT_PRINTF | SGT_READERS | SGT_SAMPLINGS) continue ;; esac
        grep -qE "\b$name\b" "$page" || fail "$name is not in the page"
    done
}

# fields_of STRUCT...: every field is in the page, in italics, but for what a function of the field before it is given
fields_of() {
    for struct in "$@"; do
        sed -n "/typedef struct $struct {/,/^} $struct/p" "$header" | sed 's|/\*.*||; s|^ \* .*||' |
            sed -nE 's/^ +[a-z0-9_ ]+[ *(]([a-z_, 0-9]+)(\)\(.*)?(\[[0-9]+\])?; *$/\1/p' | tr -d ' ' |
            tr ',' '\n' > fields
        [ -s fields ] || fail "$struct has no fields in $header"
        while read -r field; do
            [ "$field" = ctx ] || [ "$field" = making_ctx ] || grep -qE "^\.I[R]? (.*[, \"]+)?$field\b" body ||
                fail "$field of $struct is not in the page"
        done < fields
    done
}

reads_well() {
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning "$page"
    elif command -v groff > /dev/null; then
        run 0 groff -man -Tutf8 -ww -rCHECKSTYLE=3 -z "$page"
        stderr_is ''
    fi
}

# example_of LIBRARY WHAT IT NEEDS...: in C and C++
example_of() {
    library=$1
    shift
    sed -n '/^\.EX/,/^\.EE/p' "$page" | sed '1d;$d; s/\\e/\\/g; s/\\-/-/g; s/\\&//g' > example.c
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror $san "-I$ROOT/loader" "-I$ROOT/tokenize" -o example \
        example.c "$LIB/libsgt-$library.a" "$@" -lxxhash -ljansson -pthread
}

page=$ROOT/loader/sgt_loader.3
names_of loader
fields_of sgt_loader_options sgt_loader_set sgt_loader_info sgt_loader_set_info sgt_loader_state sgt_row_documents \
    sgt_stream_options sgt_stream_batch
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
stderr_is 'nowhere: No such file or directory'

page=$ROOT/tokenize/sgt_tokenize.3
names_of tokenize
fields_of sgt_tokenize_options sgt_tokenize_result sgt_train_result
reads_well
example_of tokenize -lutf8proc -lpcre2-8 -lz -lzstd -lm
run 0 ./example 'Hello, world!' '' 'naïve'
stderr_is ''
stdout_is "4 tokens, the last is '!'
0 tokens, the last is ''
2 tokens, the last is 'ïve'"

command -v mandoc > /dev/null || command -v groff > /dev/null ||
    skip 'the manuals were read by no program: neither mandoc nor groff is there'
