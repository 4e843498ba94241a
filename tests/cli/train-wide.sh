# train-wide.sh: a model with more than 65,536 ids memorizes a text, resumes with the same bits, and
# generates the text again. sgt-train, sgt-eval, sgt-sample and sgt-inspect accept sets,
# checkpoints, examples and questions with such ids.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/wide.inc"

wide_vocabulary merges.txt
words='the model learns four words'
yes "$words" | head -600 > text.txt
run 0 sgt-tokenize --quiet --pattern gpt2 --vocab merges.txt --split none text.txt d
run 0 sgt-inspect d --batch 0 --batch-size 1 --seq-len 12 --sampling sequential --json
stdout_matches '"inputs": *\[\[100944,'
grep -qE '[^0-9](6[6-9]|[789][0-9])[0-9]{3},' .stdout || fail "no id above 65,535: $(cat .stdout)"

train="sgt-train --quiet --data d --device cpu --threads 1 --precision fp32 --model 1x32x2 --seq-len 16 --batch-size 4 \
--lr 1e-2 --min-lr 1e-2 --warmup 1 --schedule constant --eval-every 0"
run 0 $train --steps 60 --run whole
run 0 $train --steps 50 --run run
run 0 sgt-train --quiet --run run --resume --steps 60
same whole/step-00000060/model.safetensors run/step-00000060/model.safetensors
same whole/step-00000060/optimizer.safetensors run/step-00000060/optimizer.safetensors
c=run/step-00000060
check 'a row for each id' [ "$(field vocab_size $c/config.json)" = 100945 ]
check 'the end of text' [ "$(field eos_token_id $c/config.json)" = 100944 ]
check 'its name' [ "$(field eos_token $c/tokenizer_config.json)" = '<|endoftext|>' ]
same $c/tokenizer.json d/tokenizer.json
check 'learnt by heart' awk "BEGIN { exit !($(tail -1 run/log.jsonl | sed 's/.*"loss":\([^,]*\).*/\1/') < 0.2) }"
run_prints 'vocabulary 100945' sgt-inspect $c

run 0 sgt-eval run --data d --split train --seq-len 16 --json
check 'the same loss' awk "BEGIN { exit !($(sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' .stdout) < 0.2) }"
run_says 'the model learns four words' sgt-sample --quiet run --prompt 'the model' --temperature 0 --tokens 8

# Questions, and examples with and without padding.
echo '{"ctx": "the model learns four", "endings": ["the", "words"], "label": 1}' > endings.jsonl
echo '{"text": "the model learns four words"}' > last.jsonl
run 0 sgt-eval run --json endings.jsonl last.jsonl
check 'both are right' [ "$(grep -o '"acc": *1\.0' .stdout | wc -l)" -eq 2 ]
echo '{"prompt": "the model", "completion": " learns four words"}' > some.jsonl
tuned="sgt-train --quiet --device cpu --init $c --eval-every 0 --steps 1 --seq-len 16 --batch-size 1"
run_silent $tuned --data some.jsonl --run tuned
same $c/tokenizer.json tuned/step-00000001/tokenizer.json
run 0 $tuned --data d --sampling documents --pad-id 100000 --ignore-index 100944 --run padded
run_usage 'pad-id 100945: must be below 100945, like all ids of d' $tuned --data d --sampling documents --pad-id 100945 --run refused

# The memory that a step needs; sets of other vocabularies are refused.
run_prints '100945 ids' sgt-train --estimate-memory --data d --device cpu --model 1x32x2 --seq-len 16 --batch-size 1
run 0 sgt-tokenize --quiet text.txt g
run 1 sgt-eval run --data g --split train
stderr_has 'tokenized with a different vocabulary than the model'
