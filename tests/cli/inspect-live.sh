# sgt-inspect on a run that sgt-train has just written, and on an OUT that is unfinished.
. "$ROOT/tests/cli/lib.sh"

i=0
while [ $i -lt 20 ]; do cat "$ROOT/README.md" && i=$((i + 1)); done > text
run 0 sgt-tokenize --quiet text out
run 0 sgt-train --quiet --data out --run run --model 1x16x2 --seq-len 8 --batch-size 2 --steps 4 --save-every 2 \
    --eval-every 0 --device cpu
run 0 sgt-inspect run
stdout_has 'run: a training run'
stdout_has '  checkpoints step-00000002, step-00000004 (latest)'
stdout_matches '^  log         4 steps, loss [0-9.]+ to [0-9.]+$'
stdout_has 'model 1x16x2'
run 0 sgt-inspect run/step-00000004
stdout_has 'run/step-00000004: a GPT-2 checkpoint'
stdout_has '  model       1 x 16 x 2 (layers, channels, heads), 1024 positions, 50,257 ids, tanh GELU'
stdout_matches '^  parameters  [0-9,]+$'
stdout_matches '^  state .*step 4, tokens 64'
run 0 sgt-inspect run/step-00000004 --json
stdout_has '"resumable": true'

# A whole shard beside .work without a manifest is reported as unfinished.
mkdir half half/.work
cp out/train_000000.bin out/train_000000.idx half
run 0 sgt-inspect half
stdout_has 'half: a set of shards, unfinished (the same command again finishes it)'
run 0 sgt-inspect half --json
stdout_has '"unfinished": true'
