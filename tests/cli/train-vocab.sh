# train-vocab.sh: a set with the user's own vocabulary. sgt-train takes the vocabulary size and the
# end-of-text id from the set, and copies the vocabulary into checkpoints.
. "$ROOT/tests/cli/train.inc"

run 0 sgt-tokenize --quiet --train-vocab 300 "$ROOT/tests/data/vocab/text.txt" v
run 0 sgt-tokenize --quiet --vocab v "$ROOT/tests/data/vocab/text.txt" d
run_silent sgt-train --quiet $small --steps 2
c=run/step-00000002
check 'as many rows as tokens' [ "$(field vocab_size $c/config.json)" = 300 ]
check 'its end of text' [ "$(field eos_token_id $c/config.json)" = 0 ]
same $c/tokenizer.json d/tokenizer.json
same $c/tokenizer.json v/tokenizer.json

train="sgt-train --quiet --seq-len 16 --batch-size 2 --device cpu --threads 1 --eval-every 0 --steps 1"

# transformers' AutoTokenizer then uses tokenizer.json as it is, and adds no end-of-text token.
[ "$(cat $c/tokenizer_config.json)" = '{
  "tokenizer_class": "PreTrainedTokenizerFast",
  "bos_token": "<|endoftext|>",
  "eos_token": "<|endoftext|>",
  "clean_up_tokenization_spaces": false,
  "model_max_length": 1024
}' ] || fail "tokenizer_config.json is $(cat $c/tokenizer_config.json)"
mkdir named # an end-of-text token of another name
sed 's/<|endoftext|>/<\/s>/' v/tokenizer.json > named/tokenizer.json
run 0 sgt-tokenize --quiet --vocab named "$ROOT/tests/data/vocab/text.txt" n
run 0 $train --model 1x8x1 --data n --run named-run
c2=named-run/step-00000001
check 'its name' [ "$(field eos_token $c2/tokenizer_config.json)" = '</s>' ]
# Files without a header do not say which id ends a text. The tokenizer next to them names it. If it
# has several such names, the one that sgt-tokenize would choose is used.
mkdir bare
tail -c +1025 d/train_000000.bin > bare/train.bin
sed 's|"added_tokens":\[|&{"id":300,"content":"</s>","special":true},|' d/tokenizer.json > bare/tokenizer.json
run 0 $train --model 1x8x1 --data bare --run bare-run
check 'its name' [ "$(field eos_token bare-run/step-00000001/tokenizer_config.json)" = '<|endoftext|>' ]

# A model is trained further only on sets of its own vocabulary. Vocabularies are compared by the
# meaning of their ids, because a larger vocabulary may begin with all ids of a smaller one.
run 0 sgt-tokenize --quiet "$ROOT/tests/data/vocab/text.txt" g
run 1 $train --data g --run other --init $c
stderr_is "sgt-train: --init $c: its vocabulary is not that of --data g, so ids would mean other tokens (tokenize the text with sgt-tokenize --vocab $c)"
absent other
run 0 $train --model 1x8x1 --data g --run gpt2
run 0 sgt-inspect --quiet --export nanogpt d files # no headers: the manifest names the vocabulary
run 1 $train --data files --run other --init gpt2/step-00000001
stderr_has "sgt-train: --init gpt2/step-00000001: its vocabulary is not that of --data files, "
run 0 sgt-tokenize --quiet --vocab $c "$ROOT/tests/data/vocab/text.txt" again
run_silent $train --data again --run same --init $c
cp -r gpt2/step-00000001 padded
sed 's/,"<|endoftext|>":50256}/,"<|endoftext|>":50256,"<|pad|>":50257}/; s/"added_tokens":\[/&{"id":50257,'\
'"content":"<|pad|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},/' \
    gpt2/step-00000001/tokenizer.json > padded/tokenizer.json
grep -q pad padded/tokenizer.json || fail 'there is no token more'
run_silent $train --data g --run more --init padded
echo '{"model": 1}' > padded/tokenizer.json
run 0 $(echo "$train" | sed 's/--quiet//') --data g --run unread --init padded
stderr_matches "^sgt-train: padded: .*: it was not compared with the data's vocabulary$"
rm padded/tokenizer.json
run_silent $train --data g --run unknown --init padded

# A tokenizer.json or validation shards are refused if their vocabulary is not that of the training
# shards.
cp -r d mixed
cp g/tokenizer.json mixed
run_failure 'mixed/tokenizer.json: not the vocabulary of the shards in this folder (replace it by theirs, or remove it)' \
    $train --data mixed --run mixed-run --model 1x8x1
absent mixed-run
mkdir apart
cp d/train_* d/tokenizer.json apart
run 0 sgt-tokenize --quiet --train-vocab 290 "$ROOT/tests/data/vocab/text.txt" fewer
run 0 sgt-tokenize --quiet --vocab fewer "$ROOT/tests/data/vocab/text.txt" f
for file in f/train_*; do cp "$file" "apart/val_${file#f/train_}"; done
run_failure '--data apart: its val and train shards have different vocabularies (tokenize both with one --vocab)' \
    sgt-train --quiet --seq-len 16 --batch-size 2 --device cpu --threads 1 --steps 1 --data apart --run apart-run --model 1x8x1
absent apart-run
