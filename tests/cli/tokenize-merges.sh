# tokenize-merges.sh: vocabularies with the same tokens but different merges are different. A set is
# not completed, resumed or mixed with another of them.

work_in_memory
D=$ROOT/tests/data/vocab

cp -r "$D/trained" whole
cp -r whole cut
head -300 whole/merges.txt > cut/merges.txt
cp "$D/text.txt" in.txt
run 0 sgt-tokenize --quiet --vocab whole in.txt a
run 0 sgt-tokenize --quiet --vocab cut in.txt b
good=$(field fingerprint a/manifest.json)
bad=$(field fingerprint b/manifest.json)
[ "$good" != "$bad" ] || fail 'the fingerprint leaves the merges out'

# merges.txt is truncated, which makes it another vocabulary, and then restored.
cp -r b set
mv cut short && cp -r whole cut
run 1 sgt-tokenize --vocab cut in.txt set
stdout_is ''
stderr_has "sgt-tokenize: set: made with a different vocabulary: fingerprint $bad, now $good (--force replaces it)"
same_folders set b
run 0 sgt-tokenize --quiet --force --vocab cut in.txt set
same set/train_000000.bin a/train_000000.bin
same set/tokenizer.json a/tokenizer.json

# A run that was begun with one vocabulary is not resumed with the other.
mkdir corpus
repeated 400 in.txt > corpus/large
printf 'bad \377' > corpus/stop
options='--quiet --threads 1 --invalid-utf8 fail --shard-tokens 50k'
run 1 sgt-tokenize $options --vocab short corpus begun
stderr_is 'sgt-tokenize: corpus/stop: offset 4: not UTF-8 (--invalid-utf8 keep or replace accepts it)'
exists begun/train_000002.bin
exists begun/.work/journal
printf 'good!' > corpus/stop
run 1 sgt-tokenize $options --vocab cut corpus begun
stderr_is "sgt-tokenize: begun: made with a different vocabulary: fingerprint $bad, now $good (--force replaces it)"
cp -r begun other
run 0 sgt-tokenize $options --vocab short corpus begun
run 0 sgt-tokenize $options --force --vocab cut corpus other
run 1 sgt-inspect --compare --quiet begun other

run 1 sgt-inspect --compare a b
stdout_has "a and b: have different vocabularies, and differ from token " "fingerprint $good" "fingerprint $bad"

# A vocabulary with GPT-2's tokens and fewer merges is not GPT-2's.
run 0 sgt-tokenize --quiet in.txt gpt2
mkdir gpt
sed -n 's/^"vocab":\(.*\),$/\1/p' gpt2/tokenizer.json > gpt/vocab.json
head -40001 "$ROOT/tokenize/vocab/gpt2.bpe" > gpt/merges.txt
run 0 sgt-tokenize --quiet --vocab gpt in.txt less
run 1 sgt-inspect --batch 0 --batch-size 1 --seq-len 8 gpt2,less
stderr_matches '^sgt-inspect: less/train_000000.bin: vocabulary [0-9a-f]{16}, but gpt2/train_000000.bin has '
