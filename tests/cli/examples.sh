# loader/examples and tokenize/examples: compile them as their first lines say, against the shared
# and the static library.
LIB=$BIN/../lib
compiler
shared="-L$LIB -Wl,-rpath,$LIB"

# ---- loader/examples ----
texts short 100000
run 0 sgt-tokenize --quiet --shard-tokens 20k short set

# as_cxx FILE: compile a C example as C++ too, where initializers must be in the order of the header
as_cxx() {
    run 0 "$CXX" -x c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Wshadow -pedantic -Werror \
        -fsyntax-only "-I$ROOT/loader" "-I$ROOT/tokenize" "$1"
}
as_cxx "$ROOT/loader/examples/train.c"

# The header begins with an example too: a block of statements for main, in C and C++.
{
    printf '#include <stdio.h>\n\n#include "sgt_loader.h"\n\nint main(void)\n{\n'
    sed -n '/^ \*     static/,/^ \*$/s/^ \*//p' "$ROOT/loader/sgt_loader.h"
    printf '    return rc < 0;\n}\n'
} > header.c
as_cxx header.c
ln -s set out

for library in "$LIB/libsgt-loader.a -lxxhash -luring -ljansson" "$shared -lsgt-loader"; do
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror -O2 $san "-I$ROOT/loader" -o train \
        "$ROOT/loader/examples/train.c" $library -lm -pthread
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -Wall -Wextra -Wshadow -pedantic -Werror $san "-I$ROOT/loader" -o header header.c $library -pthread
    run_prints_like '^[0-9]+ is followed by [0-9]+$' ./header
    stdout_lines 3
    run_silent ./train set 100
    stdout_lines 100
    # An untrained model gives each of 128 classes the same probability, so its loss is ln 128. Then
    # the loss falls.
    [ "$(head -1 .stdout)" = 'batch 0 loss 4.8520' ] || fail "the first is $(head -1 .stdout)"
    stdout_matches '^batch 99 loss [0-3]\.'
    run_prints_like '^batch 123456790 loss' ./train set 2 123456789
    run 1 ./train nowhere 1
    stderr_is 'train: nowhere: No such file or directory (make a folder of shards with sgt-tokenize)'
    stdout_is ''
done

# ---- tokenize/examples ----
mkdir text text/a text/b text/c
for part in a b c; do texts text/$part 400000; done
run 0 sgt-tokenize --json --split 1% --shard-tokens 1M text expected
cp .stdout set.json
[ "$(field val_tokens set.json)" -gt 0 ] || fail 'nothing for validation'

build() { # NAME FILE
    # shellcheck disable=SC2086
    run 0 "$CC" -std=c11 -D_POSIX_C_SOURCE=200809 -Wall -Wextra -Wshadow -pedantic -Werror -O2 $san "-I$ROOT/loader" \
        "-I$ROOT/tokenize" -o "$1" "$2" $library -pthread
}
mkdir whole # the header's program reads corpus and writes out
ln -s ../text whole/corpus
sed -n '/^#ifndef/q; s/^ \*     //p' "$ROOT/tokenize/sgt_tokenize.h" > header.c
as_cxx header.c
for library in "$LIB/libsgt-tokenize.a -lutf8proc -lpcre2-8 -lxxhash -ljansson -lz -lzstd $(codecs_of "${CC:-cc}") -lm" \
    "$shared -lsgt-tokenize"; do
    build header header.c
    rm -rf whole/out out
    run_silent sh -c 'cd whole && ../header'
    exists whole/out/train_000000.bin
    stdout_is '15496
11
995
0'
    build corpus "$ROOT/tokenize/examples/corpus.c"
    run 0 ./corpus out text
    stdout_is "out: $(field tokens set.json) tokens from 240 documents in $(field shards set.json) shards, \
$(field val_tokens set.json) for validation"
    same_folders out expected
    run_prints_like ', already complete$' ./corpus out text
    run 1 ./corpus other nowhere
    stderr_is 'corpus: nowhere: No such file or directory'
    absent other
done
