# sgt-train: a whole run, its files, and its output.
. "$ROOT/tests/cli/train.inc"
data d

# With --quiet nothing is printed; the run directory has its documented files.
run_says '' sgt-train --quiet $small --steps 6 --save-every 2 --keep 2
stderr_is ''
[ "$(cat run/latest)" = step-00000006 ] || fail 'latest names another checkpoint'
is "$(ls -A run | grep -v '^tb$' | xargs)" \
    'latest log.jsonl memory.jsonl options.json starts.jsonl step-00000004 step-00000006'
is "$(ls -A run/step-00000006 | xargs)" \
    'config.json generation_config.json model.safetensors optimizer.safetensors state.json'
[ "$(wc -l < run/log.jsonl)" -eq 6 ] || fail 'a line a step'
sed -n 3p run/log.jsonl > line
for name in step loss lr grad_norm loss_scale skipped tokens epoch tokens_per_s ms_per_step data_wait_ms mfu \
    peak_bytes; do
    [ -n "$(field $name line)" ] || fail "a step's line lacks $name"
done
[ "$(field loss_scale line),$(field skipped line)" = 1,0 ] || fail 'fp32 has no loss scale and skips nothing'
[ "$(field step line)" = 2 ] || fail 'steps count from 0'
[ "$(field tokens line)" = 96 ] || fail 'three steps of 2 x 16 tokens are 96'
grep -q '"eos_token_id": 10' run/step-00000006/config.json || fail 'the end of text comes from the shard'

# starts.jsonl has a line for each start of the run: when, where and how.
[ "$(wc -l < run/starts.jsonl)" -eq 1 ] || fail 'a line a start'
is "$(field command run/starts.jsonl)" "sgt-train --quiet $small --steps 6 --save-every 2 --keep 2"
[ "$(field host run/starts.jsonl)" = "$(uname -n)" ] || fail "the host is $(field host run/starts.jsonl)"
field time run/starts.jsonl | grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$' || fail 'no time'
cp -r run longer
run 0 sgt-train --quiet --run longer --resume --steps 8
[ "$(wc -l < longer/starts.jsonl)" -eq 2 ] && head -1 longer/starts.jsonl | cmp -s - run/starts.jsonl ||
    fail 'a start is not appended'
[ "$(sed 1d longer/starts.jsonl > line && field step line)" = 6 ] || fail 'it went on at step 6'
run_notes 'sgt-train: longer has completed all of its 8 steps' sgt-train --run longer --resume # the run is complete
! grep '^memory:' .stdout || fail 'memory of no step'
[ "$(wc -l < longer/starts.jsonl)" -eq 2 ] || fail 'a start without a step'
run 0 sgt-train --quiet $small --steps 1 --run "it's \"odd\" $(printf '\377')"
python3 -c 'import json, shlex; words = shlex.split(json.load(open("it\x27s \"odd\" \udcff/starts.jsonl"))["command"])
assert words[-1] == "it\x27s \"odd\" \\xff", words' || fail 'a command that a shell does not read'

run 0 sgt-train --quiet $small --steps 6 --save-every 2 --keep 0 --run all
[ "$(ls all | grep -c '^step-')" -eq 3 ] || fail "--keep 0 keeps all: $(ls all)"

# Standard output and standard error.
validation d
run 0 sgt-train $small --run said --steps 4 --eval-every 2 --verbose
stdout_matches '^tokens seen: 128 training, [0-9,]+ validation, [0-9,]+ in all$'
stdout_matches '^documents begun: [0-9]+$'
stdout_matches '^memory: .* MiB in steps, .* MiB in all, of .* GiB \([0-9.]+ %\)$'
stdout_matches '^checkpoint: said/step-00000004$'
stderr_matches '^sgt-train: model: 1x16x2, 23,792 parameters; (fp32|bf16) on the CPU$'
stderr_has 'sgt-train: model: 1 layer, 16 channels, 2 heads, vocabulary 256: 23792 parameters; '
stderr_matches ' parameters; [a-z0-9/]+ kernels, own matrix products$'
stderr_has 'sgt-train: data: d, 153,601 tokens in 1 shard'
# mfu: a token takes 6 operations for each of 12 x 16 x 16 + 256 x 16 weights, and 12 x 16 x 16
# operations for attention. mfu is the share of the peak speed.
peak=$(sed -nE 's/.* reach ([0-9.e-]+) TFLOP\/s as measured \(mfu\)$/\1/p' .stderr)
awk -v mfu="$(field mfu said/log.jsonl)" -v rate="$(field tokens_per_s said/log.jsonl)" -v peak="$peak" \
    'BEGIN { x = 46080 * rate / (peak * 1e12); x = x < 1 ? x : 1; exit !(peak > 0 && mfu > x * 0.99 && mfu < x * 1.01) }' ||
    fail "mfu is not the part of $peak TFLOP/s"
grep -q 'is above what models' .stderr && fail 'what is too high for so small a model nobody knows'
stderr_matches '^step 2: loss [0-9.]+, validation [0-9.]+, 64 tokens, [0-9.]+ (ms|s), [0-9]+ tokens/s, '\
'[0-9a-z. ]+ per epoch$'
stderr_matches '^step 4: loss '
[ "$(grep -c val_loss said/log.jsonl)" -eq 2 ] || fail 'two steps of four are evaluated'
sed -n 2p said/log.jsonl | grep -q val_loss || fail 'the second step is evaluated'

# mfu is relative to one peak per machine, which is kept in the cache folder. The peak is measured
# again if the kept value is far too low or not a number, or if nothing can be kept.
peak_is() { # PATTERN [FOLDER]
    run 0 env XDG_CACHE_HOME="$PWD/${2:-kept}" sgt-train --verbose $small --run peak --force --steps 2
    stderr_matches " reach $1 TFLOP/s as measured \(mfu\)\$"
}
measured='([0-9]+|[0-9]\.[0-9]+e\+[0-9]+|[0-9]+\.[0-9]+)'
peak_is "$measured"
sed -i 's/": [0-9.e+]*$/": 1e21/' kept/sgt/peaks.json
peak_is '1e\+09'
for damage in 's/": 1e21$/": 1.0/' '1s/.*/{"damaged/'; do
    sed -i "$damage" kept/sgt/peaks.json
    peak_is "$measured"
done
: > plain
peak_is "$measured" plain

# --json prints one JSON document.
run 0 sgt-train --json $small --run json --steps 3
stdout_lines 1
for name in step loss lr grad_norm tokens epoch tokens_per_s ms_per_step data_wait_ms peak_bytes documents seconds; do
    [ -n "$(field $name .stdout)" ] || fail "--json lacks $name"
done
stdout_has '"checkpoint": "json/step-00000003"' '"run": "json"'

# Epochs: the shard of 2,048 tokens has 31 windows of 64 tokens. Two epochs are eight steps of 8
# rows.
run 0 sgt-train $small --data d/val_000000.bin --seq-len 64 --batch-size 8 --run epochs --epochs 2 --warmup 0
stderr_matches '^Epoch 1, Loss: [0-9.]+, [0-9.]+ s$'
stderr_matches '^Epoch 2, Loss: [0-9.]+, [0-9.]+ s$'
[ "$(wc -l < epochs/log.jsonl)" -eq 8 ] || fail 'two epochs of 31 windows in steps of 8 are eight steps'

# A rate outside the usual range for the model gives a notice.
run 0 sgt-train $small --lr 1e-5 --steps 1 --run low
stderr_has 'lr 1e-05 is below the usual rates for models of about 0.0238 million parameters (0.0003 to 0.01)'
run 0 sgt-train $small --lr 0.1 --steps 1 --optimizer sgd --run sgd
! grep -q 'the usual rates for' .stderr || fail 'these are no rates of SGD'

# A loss that is not a number gives one line of advice, also with --quiet, and the log stays JSON.
validation d
run 0 sgt-train --quiet $small --lr 1e30 --steps 4 --run nan
stderr_is 'sgt-train: step 2: the loss is not a number: start again with an lr 10 times lower (--lr 1e+29); see '\
'grad_norm in log.jsonl and --grad-clip'
[ "$(field loss nan/log.jsonl)" != null ] || fail 'the first step has a loss'
sed -n 2p nan/log.jsonl > line
[ "$(field loss line)" = null ] || fail 'what is no number is null'
run_notes_like '^step 2: loss nan, validation nan, ' sgt-train $small --lr 1e30 --steps 4 --eval-every 2 --run nan2
[ "$(grep -c 'the loss is not a number' .stderr)" -eq 1 ] || fail 'it is said once'
sed -n 2p nan2/log.jsonl > line
[ "$(field val_loss line)" = null ] || fail 'an evaluation that gave no number is there all the same'
run_prints 'nan2: a training run whose last loss is NaN or infinite' sgt-inspect nan2
fact evaluated 4
rm d/val_000000.bin

# --lr auto chooses the learning rate by model size and rows; --scale-lr scales it.
run 0 sgt-train $small --lr auto --steps 1 --run auto --verbose
stderr_has 'sgt-train: learning rate 0.00169, chosen for you: 0.00402 for 0.0238 million parameters × (2/64 rows per '\
'step)^0.25 (set it with --lr)'
run 0 sgt-train $small --lr auto --lr-base-batch 1 --grad-accum 16 --steps 1 --run auto3 --verbose
stderr_has 'learning rate 0.01, chosen for you: 0.00402 for 0.0238 million parameters × 32/1 rows per step, at most 0.01 '
run 0 sgt-train $small --lr 3e-4 --scale-lr --lr-base-batch 1 --grad-accum 16 --steps 1 --run scaled
stderr_has 'Scaled learning rate: 0.00960'

# Without --data, ./out is used, with a notice.
cp -r d out
run 0 sgt-train --loader preload --model 1x16x2 --seq-len 16 --steps 1 --run found
stderr_has 'sgt-train: data: out/ (no --data was given), 153,601 tokens in 1 shard; '

# Without validation shards, there is one notice (train-talk.sh).
shard d/val_000000.bin 1 2 3
run 0 sgt-train $small --eval-every 1 --run short --steps 1
stderr_has '; the validation shards of d are shorter than 17 tokens: no evaluation'
rm d/val_000000.bin

# Any number of threads, and of prefetching threads, gives the same run.
run 0 sgt-train --quiet $small --steps 6 --run threads --threads 3 --workers 2
same_facts run/log.jsonl threads/log.jsonl
same run/step-00000006/model.safetensors threads/step-00000006/model.safetensors

# Evaluations use the same rows each time, so the validation loss and its noise depend neither on the
# step nor on the batch size: 256 of the 511 windows, or all documents or windows if they are fewer.
validation d
for rows in '--seq-len 4' '--seq-len 16' '--seq-len 16 --sampling documents'; do
    for batch in 1 3 16 300; do
        run 0 sgt-train --quiet $small $rows --batch-size $batch --lr 0 --steps 2 --eval-every 1 --precision fp32 --run val --force
        sed 's/.*"val_loss":\([0-9.]*\),"val_noise":\([0-9.]*\).*/\1 \2/' val/log.jsonl > val.$batch
        cat val.1 val.$batch | awk 'NR == 1 { loss = $1; noise = $2 } $1 < 5 || ($1 / loss - 1) ^ 2 > 1e-12 ||
            noise <= 0 || ($2 / noise - 1) ^ 2 > 1e-6 { exit 1 }' ||
            fail "$rows: $(cat val.1) in batches of 1 row, $(cat val.$batch) in batches of $batch"
    done
done

# RUN/best names the checkpoint with the lowest validation loss, which is kept in addition to the
# newest ones. A resume keeps it, and writes the file again if it is missing. Without evaluations
# there is no such file. The learning rate of the resume makes the loss rise.
best="sgt-train --quiet $small --schedule constant --warmup 0 --save-every 2 --eval-every 1 --keep 2 --run best"
best_is() { # STEP CHECKPOINT...
    want=$(sed -n 's/^{"step":\([0-9]*\),.*"val_loss":\([0-9.]*\).*/\2 \1/p' best/log.jsonl | awk '$2 % 2 == 1' |
        sort -g | awk 'NR == 1 { print $2 + 1 }')
    [ "$want" = "$1" ] || fail "the best should be $1, not $want"
    sed -n "s/^{\"step\":$(($1 - 1)),.*\"val_loss\":\([0-9.]*\).*/\1/p" best/log.jsonl > best.loss
    [ "$(cat best/best)" = "$(printf 'step-%08d' "$1")" ] || fail "the best is $1, not $(cat best/best)"
    shift
    [ "$(ls best | grep step | xargs)" = "$*" ] || fail "the run holds $(ls best | xargs)"
}
run 0 $best --lr 0.01 --steps 8
best_is 8 step-00000006 step-00000008
run 0 $best --lr 3 --steps 14 --resume
best_is 8 step-00000008 step-00000012 step-00000014
rm best/best
run 0 $best --lr 3 --steps 16 --resume
best_is 8 step-00000008 step-00000014 step-00000016
run 0 sgt-inspect best
fact latest step-00000016 best step-00000008 'best val loss' "$(cut -c 1-6 best.loss)[0-9]*" \
    checkpoints 'step-00000008, step-00000014, step-00000016'
run 0 sgt-inspect best --json
awk -v a="$(field best_val_loss .stdout)" -v b="$(cat best.loss)" 'BEGIN { exit !(a > 0 && a - b < 1e-6 && b - a < 1e-6) }' ||
    fail 'not the loss of the best checkpoint'

# As the path of a model, each of these files stands for the checkpoint that it names, and a run
# stands for its newest checkpoint.
from() { # MODEL
    run 0 sgt-train --quiet --data d --device cpu --threads 1 --seq-len 16 --steps 1 --lr 0 --eval-every 0 --force \
        --run from --init "$1"
}
for pair in best/best=8 best/latest=16 best=16 best/=16; do
    from ${pair%=*}
    same "best/step-$(printf %08d ${pair#*=})/model.safetensors" from/step-00000001/model.safetensors
    grep -q "\"init\": \"${pair%=*}\"" from/options.json || fail 'the option is not kept as it was given'
done
(cd best && run 0 sgt-inspect best && stdout_matches '^step-00000008: a GPT-2 checkpoint')
run_prints 'best/step-00000016: a GPT-2 checkpoint' sgt-inspect best/latest
run_usage 'best/step-00000008 is a checkpoint: options such as --verify, --batch and --sampling need shards' \
    sgt-inspect best/best --verify
# A folder named `latest` is used itself, although the run it was copied from has a file of that
# name.
cp -r best/step-00000014 latest
run_prints 'latest: a GPT-2 checkpoint' sgt-inspect latest
from latest
refuses_best() { # MESSAGE
    run_failure "$1" sgt-train --quiet --data d --device cpu --run other --init best/best
    run_failure "$1" sgt-inspect best/best
}
for text in step-00000002 ../best/step-00000008 "$(printf 'step-\033[2J')" ''; do
    echo "$text" > best/best
    refuses_best "best/best names '$(echo "$text" | sed 's/\x1b/\\x1b/')', but there is no such checkpoint"
done
run 0 sgt-inspect best
! grep -q best.val .stdout || fail 'a checkpoint that is not there has a loss'

run 0 $best --lr 3 --steps 4 --force --eval-every 0
absent best/best
refuses_best 'best/best: no such file (a run has one after its first checkpoint with a validation loss: see --eval-every)'
run_failure 'nowhere/latest: No such file or directory' sgt-inspect nowhere/latest
absent other
run 0 sgt-inspect best
! grep -q best.val .stdout || fail 'a run without evaluations has a best checkpoint'
