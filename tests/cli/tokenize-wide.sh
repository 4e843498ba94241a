# tokenize-wide.sh: --train-vocab makes a vocabulary of more than 65,536 ids, which gives sets of
# 4-byte ids. They have the same bytes for any threads and ranks, and after a kill. They are decoded
# to the text, and exported to other trainers' files.
. "$ROOT/tests/cli/corpus.inc"
. "$ROOT/tests/cli/shards.inc"
. "$ROOT/tests/cli/wide.inc"

work_in_memory
some_corpus corpus
# Random words, whose merges give many tokens.
awk 'BEGIN {
    for (i = 0; i < 25000; i++) {
        for (word = ""; length(word) < 9;) {
            seed = (seed * 16807 + 1234) % 2147483647
            word = word substr("etaoinshrdlucmfwypvbgkjqxz", int(seed / 65536) % 26 + 1, 1)
        }
        print word, word substr(word, 1, seed % 8)
    }
}' > corpus/words
touch -d @1700000000 corpus/*
run 0 sgt-tokenize --quiet --train-vocab 100000 corpus v
run 0 sgt-tokenize --quiet --train-vocab 100000 --threads 3 corpus again
same_folders v again

options='--quiet --vocab v --split 30%'
run 0 sgt-tokenize $options --shard-tokens 1k corpus one
check 'the header of llm.c for Llama 3' [ "$(od -An -td4 -w20 -N20 one/train_000000.bin | tr -s ' ')" = ' 20240801 7 1000 1 100000' ]
check '4 bytes an id' [ "$(wc -c < one/train_000000.bin)" -eq 5024 ]
cat one/*.bin | od -An -v -tu4 -w4 | awk '$1 > 65535 && $1 < 100000 { n++ } END { exit n < 1000 }' || fail 'no large ids'
run 0 sgt-inspect --verify one
fact verified yes
run 0 sgt-tokenize --quiet --vocab v corpus/words words
run 0 sgt-inspect --decode 1:1000000 words
same .stdout corpus/words

# The files of a vocabulary, threads and ranks all give the same bytes, also with --shuffle and
# --dedup, and with so many shards that documents are copied.
cp -r corpus/m corpus/twin
for more in '--shard-tokens 1k' '--shuffle 7 --dedup --shard-tokens 200'; do
    rm -rf whole
    run 0 sgt-tokenize $options $more corpus whole
    rm -rf out
    run 0 sgt-tokenize $options $more --threads 3 --vocab v/vocab.json corpus out
    same_folders -x manifest.json whole out
    rm -rf out
    for i in 1 0 2; do run 0 sgt-tokenize $options $more --rank $i --ranks 3 corpus out; done
    same_folders whole out
done
[ "$(ls whole/train*.bin | wc -l)" -gt 256 ] || fail 'too few shards to be copied'
check 'a duplicate was left out' grep -q '"dedup": true' whole/manifest.json

# A run that was killed is resumed in the middle of a shard.
rm -rf out whole
run 0 sgt-tokenize $options --shard-tokens 5k corpus whole
for n in 1 2 3 4 5 6 7 8; do
    rm -rf out
    killed_at out/train_00000$n.bin sgt-tokenize $options --threads 1 --shard-tokens 5k corpus out
    run 0 sgt-tokenize $options --threads 1 --shard-tokens 5k corpus out
    same_folders whole out
done

# Files of other trainers (loader/test_foreign.c reads such files with ids of 4 bytes).
for layout in megatron nanogpt npy; do
    run 0 sgt-tokenize $options --shards $layout corpus $layout
    check_layout whole $layout $layout
    run_prints_like '[( ]32-bit ids[, ;]' sgt-inspect --export $layout whole exported
    same_folders exported $layout
    rm -r exported
done

# --dry-run counts 4 bytes per token, plus 28 bytes in tokenizer.json for each token of the
# vocabulary.
run 0 sgt-tokenize --dry-run --json corpus
narrow=$(field disk_bytes .stdout)
run 0 sgt-tokenize --dry-run --json --vocab v corpus
more=$((2 * $(field tokens .stdout) + 28 * (100000 - 50257)))
check 'twice the bytes' [ "$(field disk_bytes .stdout)" -eq $((narrow + more)) ]
