# sgt_loader.3: every function, option and code of the header is in it, its example works, and no reader of manuals has
# anything against it.
. "$ROOT/tests/cli/lib.sh"
page=$ROOT/loader/sgt_loader.3
LIB=$BIN/../lib
CC=$(sed 's/ .*//' "$BIN/../flags")
san=$(grep -o -e '-fsanitize=[a-z,]*' "$BIN/../flags" | head -1)

# The synopsis is C, which the compiler holds against the header; every function is there, and explained below.
sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$page" | sed -n 's/^\.BI* //p' | tr -d '"' > synopsis.c
sed -n '/^\.SH DESCRIPTION/,$p' "$page" > body
run 0 "$CC" -std=c11 -Wall -Wextra -Werror -fsyntax-only "-I$ROOT/loader" synopsis.c
while read -r function; do
    [ "$(grep -cE "\b$function\(" synopsis.c)" -eq 1 ] || fail "$function is not in the synopsis once"
    grep -qE "^\.(BR|B|RB) .*\b$function\b" body || fail "$function is not explained"
done < "$ROOT/loader/sgt_loader.symbols"
for name in $(grep -oE '\bSGT_(E[A-Z]+|READER_[A-Z]+|SAMPLING_[A-Z]+|OUTPUT_[A-Z0-9]+|IGNORED)\b' \
        "$ROOT/loader/sgt_loader.h" "$ROOT/loader/base/error.h" -h | sort -u); do
    grep -qE "\b$name\b" "$page" || fail "$name is not in the page"
done
for struct in sgt_loader_options sgt_stream_options; do
    for field in $(sed -n "/typedef struct $struct {/,/^} $struct/p" "$ROOT/loader/sgt_loader.h" |
            sed 's|/\*.*||; s|^ \* .*||' | sed -nE 's/^ +.*[ *(]([a-z_]+)(\)\(.*)?(\[[0-9]+\])?; *$/\1/p'); do
        [ "$field" = ctx ] || [ "$field" = making_ctx ] || grep -qE "^\.I[R]? (.*[, \"]+)?$field\b" body ||
            fail "option $field of $struct is not in the page"
    done
done

# Its example.
sed -n '/^\.EX/,/^\.EE/p' "$page" | sed '1d;$d; s/\\e/\\/g; s/\\-/-/g; s/\\&//g' > example.c
mkdir text
texts text 100000
run 0 sgt-tokenize --quiet text out
# shellcheck disable=SC2086
run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror $san "-I$ROOT/loader" -o example example.c \
    "$LIB/libsgt-loader.a" -lxxhash -luring -ljansson -pthread
run 0 "$CC" -x c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -pedantic -Werror -fsyntax-only \
    "-I$ROOT/loader" example.c
run 0 ./example out
stderr_is ''
stdout_lines 10
stdout_matches '^batch 9: [0-9]+\.[0-9]$'
run 1 ./example nowhere
stderr_is 'nowhere: No such file or directory'

if command -v mandoc > /dev/null; then
    run 0 mandoc -Tlint -Wwarning "$page"
elif command -v groff > /dev/null; then
    run 0 groff -man -Tutf8 -ww -rCHECKSTYLE=3 -z "$page"
    stderr_is ''
else
    skip 'the manual was read by no program: neither mandoc nor groff is there'
fi
