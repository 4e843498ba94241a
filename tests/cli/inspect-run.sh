# sgt-inspect on a checkpoint and on a run, both assembled by this script, and on a run of
# sgt-train.

model=$ROOT/tests/data/fixtures/curve
[ -f "$model/model.safetensors" ] || fail "no fixture at $model"

# A checkpoint that holds a model but no state of a run.
run_prints "$model: a GPT-2 checkpoint without a run's state (for --init, but not for --resume)" sgt-inspect "$model"
fact model 'layers [0-9]+, channels [0-9]+, heads [0-9]+, positions [0-9]+, vocabulary [0-9]+, gelu (tanh|erf)'
fact parameters '[0-9,]+' bytes '[0-9.]+ .iB' tensors '[0-9]+'
stderr_is ''
run_prints '"kind": "checkpoint"' sgt-inspect "$model" --json
stdout_has '"resumable": false' '"state": null'
stdout_has 'wte.weight"'
run_says '' sgt-inspect "$model" --quiet

# In a run, only complete checkpoints and complete lines of the log count.
mkdir -p run/step-00000010 run/step-00000020 run/step-00000030.tmp run/step-00000040
for step in 10 20; do
    cp "$model/config.json" "$model/model.safetensors" run/step-000000$step
    echo "{\"step\": $step, \"tokens\": 640}" > run/step-000000$step/state.json
    : > run/step-000000$step/optimizer.safetensors
done
echo step-00000020 > run/latest
{
    echo '{"step": 0, "loss": 5.5, "lr": 0.001}'
    echo '{"step": 1, "loss": 5.25, "val_loss": 5.375, "lr": 0.001}'
    echo '{"step": 2, "loss": 4.5, "lr": 0.001}'
    printf '{"step": 3, "lo'
} > run/log.jsonl
echo '{"model": "2x32x2", "lr": 0.001, "steps": 20}' > run/options.json
run 0 sgt-inspect run
stdout_is 'run: a training run
  steps               3
  loss                4.5
  first loss          5.5
  val loss            5.375
  evaluated           2
  latest              step-00000020
  checkpoints         step-00000010, step-00000020
  options             model 2x32x2, lr 0.001, steps 20'
stderr_is ''
run_prints '"kind": "run"' sgt-inspect run --json
stdout_has '"steps": 3' '"latest": "step-00000020"' '"loss": 4.5'
run_prints 'run/step-00000020: a GPT-2 checkpoint' sgt-inspect run/step-00000020
fact state 'step 20, tokens 640'

# A run that has no checkpoint yet.
mkdir young
echo '{"model": "2x32x2"}' > young/options.json
run 0 sgt-inspect young
stdout_is 'young: a training run
  options             model 2x32x2'

# A loss that is not a number is shown as such.
cp -r run lost
echo '{"step": 3, "loss": null, "val_loss": null}' >> lost/log.jsonl
sed 's/.*lo{/{/' lost/log.jsonl > lost/log && mv lost/log lost/log.jsonl
run_prints 'lost: a training run whose last loss is NaN or infinite' sgt-inspect lost
fact steps 4 'first loss' 5.5 evaluated 4

# Messages about damaged files name the file.
cp -r run hurt
echo 'not JSON' > hurt/log.jsonl
run_failure 'hurt/log.jsonl: line 1: expected a JSON object' sgt-inspect hurt
rm hurt/log.jsonl
echo '[1]' > hurt/options.json
run_failure 'hurt/options.json: line 1: expected a JSON object' sgt-inspect hurt
truncate -s 100 hurt/step-00000010/model.safetensors
run_failure_about 'hurt/step-00000010/model.safetensors: ' sgt-inspect hurt/step-00000010
echo '{"model_type": "llama"}' > hurt/step-00000020/config.json
run_failure_about 'hurt/step-00000020/config.json: ' sgt-inspect hurt/step-00000020
rm hurt/step-00000010/model.safetensors
run_failure 'hurt/step-00000010/model.safetensors: No such file or directory' sgt-inspect hurt/step-00000010

for option in '--verify' '--decode 0:1' '--batch 0' '--sampling packed' '--split train' '--raw 16'; do
    run_usage 'run is a run: options such as --verify, --batch and --sampling need shards' sgt-inspect run $option
done
run_usage 'run/step-00000010 is a checkpoint: options such as --verify, --batch and --sampling need shards' \
    sgt-inspect run/step-00000010 --verify

# A run and a checkpoint that sgt-train writes.
repeated 20 "$ROOT/README.md" > text
run 0 sgt-tokenize --quiet text out
run 0 sgt-train --quiet --data out --run trained --model 1x16x2 --seq-len 8 --batch-size 2 --steps 4 --save-every 2 \
    --eval-every 0 --device cpu
run_prints 'trained: a training run' sgt-inspect trained
fact checkpoints 'step-00000002, step-00000004' latest step-00000004 steps 4 loss '[0-9.]+'
run_prints 'trained/step-00000004: a GPT-2 checkpoint' sgt-inspect trained/step-00000004
fact model 'layers 1, channels 16, heads 2, positions 1024, vocabulary 50257, gelu tanh' parameters '[0-9,]+'
fact state '.*step 4, tokens 64.*'
run_prints '"resumable": true' sgt-inspect trained/step-00000004 --json
