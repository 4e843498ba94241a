# tokenize/examples: compiled as their first lines say, against both libraries.
. "$ROOT/tests/cli/lib.sh"
LIB=$BIN/../lib
CC=$(sed 's/ .*//' "$BIN/../flags")
san=$(grep -o -e '-fsanitize=[a-z,]*' "$BIN/../flags" | head -1)
static="$LIB/libsgt-tokenize.a -lutf8proc -lpcre2-8 -lxxhash -ljansson -lz -lzstd $(codecs_of "${CC:-cc}") -lm"
shared="-L$LIB -Wl,-rpath,$LIB -lsgt-tokenize"
mkdir text text/a text/b text/c
for part in a b c; do texts text/$part 400000; done
run 0 sgt-tokenize --json --split 1% --shard-tokens 1M text expected
cp .stdout set.json
[ "$(field val_tokens set.json)" -gt 0 ] || fail 'nothing for validation'

compile() { # NAME
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -D_POSIX_C_SOURCE=200809 -Wall -Wextra -Wshadow -pedantic -Werror -O2 $san "-I$ROOT/loader" \
        "-I$ROOT/tokenize" -o "$1" "$ROOT/tokenize/examples/$1.c" $library -pthread
}
for library in "$static" "$shared"; do
    compile encode
    printf 'Hello, world!\n\nna\303\257ve \377\n' > lines
    run 0 ./encode < lines
    stderr_is ''
    stdout_is '15496 Hello | 11 , | 995  world | 0 !

2616 na | 38776 ïve | 220   | 187 \xff'
    printf 'Hello, world!\n' > lines
    run 0 ./encode "$ROOT/tests/data/vocab/trained" < lines
    stdout_matches '^[0-9]+ [^|]+ \| '
    run 1 ./encode nowhere < lines
    stderr_is "encode: nowhere: No such file or directory (name gpt2, or a vocabulary's file or folder)"

    compile corpus
    rm -rf out
    run 0 ./corpus out text
    stdout_is "out: $(field tokens set.json) tokens of 240 documents in $(field shards set.json) shards, \
$(field val_tokens set.json) for validation"
    same_folders out expected
    run 0 ./corpus out text
    stdout_matches ', which were there$'
    run 1 ./corpus other nowhere
    stderr_is 'corpus: nowhere: No such file or directory'
    absent other
done
