# train-vocab.sh: a set with the user's own vocabulary. sgt-train takes its size and its end of text from the set, and
# copies it into checkpoints.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"

run 0 sgt-tokenize --quiet --train-vocab 300 "$ROOT/tests/data/vocab/text.txt" v
run 0 sgt-tokenize --quiet --vocab v "$ROOT/tests/data/vocab/text.txt" d
run 0 sgt-train --quiet $small --steps 2
stderr_is ''
c=run/step-00000002
check 'as many rows as tokens' [ "$(field vocab_size $c/config.json)" = 300 ]
check 'its end of text' [ "$(field eos_token_id $c/config.json)" = 0 ]
same $c/tokenizer.json d/tokenizer.json
same $c/tokenizer.json v/tokenizer.json

# Ids beyond the vocabulary are found, and the message names the shard.
cp -r d hurt
chmod u+w hurt/train_000000.bin
patch hurt/train_000000.bin 2000 44 # makes an id of 11308
patch hurt/train_000000.bin 2001 44
run 1 sgt-inspect hurt --decode 0:2000
stderr_matches '^sgt-inspect: hurt/train_000000.bin: .*11308'
