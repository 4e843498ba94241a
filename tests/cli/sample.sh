# sgt-sample: text from a model, its options, and the options that it refuses.

run_usage "expected RUN/ | RUN/step-NNNNNNNN/ | GPT2/ | MODEL.bin (such as: sgt-sample run/ --prompt 'Once upon a time')" sgt-sample
for meant in --model:'RUN/ without an option' --length:--tokens --n:-n --samples:--num-samples \
    --ckpt:'RUN/ without an option' --load:'RUN/ without an option' --greedy:'--temperature 0' --start:--prompt; do
    run_usage "${meant%%:*}: no such option; did you mean ${meant#*:}?" sgt-sample "${meant%%:*}" run
done
# --device cuda is suggested only if the program can use a GPU.
for gpu in --gpu --cuda; do run_usage "$gpu: no such option" sgt-sample $gpu run; done
run_usage 'expected one model, not 2 arguments (pass the prompt with --prompt)' sgt-sample run 'Once upon'
run_usage '-: standard input can be used for only one prompt, not 2' sgt-sample run -p - --prompt-file -
run_usage '--device cuda: must be one of auto|cpu' sgt-sample run --device cuda
run_usage '--temperature -1: must be from 0 to 100' sgt-sample run --temperature -1
run_usage '--top-p 0: must be from 1e-09 to 1' sgt-sample run --top-p 0
run_usage '--tokens 0: must be from 1 to 1000000000' sgt-sample run --tokens 0
run_usage '--batch-size 65: must be from 1 to 64' sgt-sample run --batch-size 65
run_usage '--precision fp16: must be one of fp32|bf16' sgt-sample run --precision fp16

texts corpus 100000
run 0 sgt-tokenize --quiet corpus out
run 0 sgt-train --quiet --data out --device cpu --model 2x32x2 --batch-size 4 --seq-len 32 --steps 6 --lr 1e-3 \
    --save-every 3
model=run/step-00000006

run_prints_like '^Hello' sgt-sample run -p 'Hello' --tokens 20
stderr_matches '^sgt-sample: 20 tokens in [0-9.]+ (ms|s): [0-9.]+ k?tokens/s$'
cp .stdout first
run_silent sgt-sample $model --quiet -p 'Hello' --tokens 20 # the newest checkpoint, which `run` stands for
same .stdout first
run 0 sgt-sample run/latest --quiet -p 'Hello' --tokens 20 # this file names the newest checkpoint
same .stdout first
run 0 sgt-sample run/step-00000003 --quiet -p 'Hello' --tokens 20
! cmp -s .stdout first || fail 'both checkpoints say the same'
cp .stdout third
echo step-00000003 > run/best
run_same third sgt-sample run/best --quiet -p 'Hello' --tokens 20
rm run/best
run_failure 'run/best: no such file (a run has one after its first checkpoint with a validation loss: see --eval-every)' \
    sgt-sample run/best
run 0 sgt-sample run --quiet -p 'Hello' --tokens 20 --seed 2
! cmp -s .stdout first || fail 'both seeds say the same'
for o in '--threads 1' '--threads 3' '--batch-size 1' '--vocab gpt2'; do
    run_same first sgt-sample run --quiet -p 'Hello' --tokens 20 $o
done
run 0 sgt-sample run --quiet -p 'Hello' --tokens 20 --temperature 0
cp .stdout greedy
run_same greedy sgt-sample run --quiet -p 'Hello' --tokens 20 --top-k 1
run 0 sgt-sample run --quiet -p 'Hello' --tokens 20 --no-prompt
check 'without its prompt' [ "Hello$(cat .stdout)" = "$(cat first)" ]

# Prompts come from files and standard input. Each is continued as if it were the only one.
printf 'Hello\n' > hello
run_same first sgt-sample run --quiet --prompt-file hello --tokens 20
for o in '-p -' '--prompt-file -'; do
    run_same first sgt-sample run --quiet $o --tokens 20 < hello
done
run 0 sgt-sample run --quiet --tokens 20 --num-samples 2
cp .stdout alone
run 0 sgt-sample run --quiet -p 'Hello' -p '' --num-samples 2 --tokens 20 --batch-size 3
cat .stdout > all
run 0 sgt-sample run --quiet -p 'Hello' --num-samples 2 --tokens 20
cp .stdout two
{ cat two && printf '\n---\n' && cat alone; } > want
tr -d '\n' < want > want.1
tr -d '\n' < all > all.1 # a text may itself end with a newline
same all.1 want.1

run 0 sgt-sample run --quiet -p 'Hello' --tokens 20 --json
stdout_has '"prompt": "Hello", "sample": 0, "prompt_ids": [15496], "text": "'
stdout_has '"tokens": 20, "seconds": '
check 'one line' [ "$(wc -l < .stdout)" -eq 1 ]

# A text that exceeds the model's 1024 positions gives one notice.
run 0 sgt-sample run -p 'Hello' --tokens 1030
stderr_has "sgt-sample: the text fills the model's 1024 positions: the model continues from the last 512 tokens"
stderr_lines 2
head -c 9000 "$ROOT/tokenize/vocab/gpt2.bpe" > long
run 0 sgt-sample run --prompt-file long --tokens 1
stderr_matches '^sgt-sample: a prompt has [0-9]+ tokens: only its last 1024 are used, because the model has no more positions$'

# wrong usage
run_failure 'nowhere: No such file or directory' sgt-sample nowhere
run_failure 'corpus: neither a checkpoint (it has no config.json) nor a run that holds one' sgt-sample corpus
run_failure "hello: 6 bytes, but the header of llm.c's models has 1024" sgt-sample hello
run_failure 'nowhere: No such file or directory' sgt-sample run --prompt-file nowhere
mkdir small
cp "$ROOT/tests/data/fixtures/curve/config.json" "$ROOT/tests/data/fixtures/curve/model.safetensors" small/
hint='(pass it with --vocab FILE)'
run_usage "small: the model has 256 ids, not GPT-2's vocabulary, and no tokenizer.json next to it $hint" sgt-sample small
run_usage "gpt2 has 50257 ids, but the model small only 256: it was trained with a different vocabulary (pass it with --vocab FILE)" \
    sgt-sample small --vocab gpt2
run 0 sgt-tokenize --quiet --train-vocab 300 "$ROOT/tests/data/vocab/text.txt" other
run_usage "--vocab other: not the vocabulary in the model's folder, run/$(cat run/latest) (omit --vocab)" \
    sgt-sample run --vocab other
if [ -w /dev/full ]; then
    run 1 sh -c 'sgt-sample run --quiet --tokens 900 > /dev/full'
    stderr_is 'sgt-sample: standard output: No space left on device'
fi

# After an interrupt, the text printed so far stays.
rm -f .stdout
run_stopped INT .stdout sgt-sample run -p 'Hello' --tokens 100000000
stderr_matches '^sgt-sample: interrupted$'
stdout_matches '^Hello'
