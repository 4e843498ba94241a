# loader/examples, compiled as its first lines say, against both libraries.
. "$ROOT/tests/cli/lib.sh"
LIB=$BIN/../lib
CC=$(sed 's/ .*//' "$BIN/../flags") CXX=$(sed 's/ .*//' "$BIN/../flags-cxx" 2> /dev/null || echo c++)
san=$(grep -o -e '-fsanitize=[a-z,]*' "$BIN/../flags" | head -1)
static="$LIB/libsgt-loader.a -lxxhash -luring -ljansson" shared="-L$LIB -Wl,-rpath,$LIB -lsgt-loader"
mkdir text
texts text 100000
run 0 sgt-tokenize --quiet --shard-tokens 20k text out
sgt-inspect out --json > set.json
tokens=$(field tokens set.json)
[ "$tokens" -gt 20000 ] || fail "$tokens tokens"

# Compile the C example as C++ too, where initializers must be in the header's order; C++ also warns of missing
# fields.
run 0 "$CXX" -x c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Wshadow -pedantic -Werror -fsyntax-only \
    "-I$ROOT/loader" "$ROOT/loader/examples/train.c"

for library in "$static" "$shared"; do
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror -O2 $san "-I$ROOT/loader" -o train \
        "$ROOT/loader/examples/train.c" $library -lm -pthread
    run 0 ./train out 100
    stderr_is ''
    stdout_lines 100
    # An untrained model gives each of 128 classes the same probability, so its loss is ln 128. Then
    # the loss falls.
    [ "$(head -1 .stdout)" = 'batch 0 loss 4.8520' ] || fail "the first is $(head -1 .stdout)"
    stdout_matches '^batch 99 loss [0-3]\.'
    run 0 ./train out 2 123456789
    [ "$(head -1 .stdout)" = 'batch 123456789 loss 4.8520' ] || fail "the first is $(head -1 .stdout)"
    stdout_matches '^batch 123456790 loss'
    run 1 ./train nowhere 1
    stderr_is 'train: nowhere: No such file or directory (sgt-tokenize makes a folder of shards)'
    stdout_is ''
done
