# sgt-train: a failure gives exit code 1 and one line that begins with the program's name. Checks
# come in this order: options, device, data, model.
. "$ROOT/tests/cli/train.inc"
data d

fails() { # MESSAGE OPTION...
    message=$1
    shift
    run_failure_about "$message" sgt-train --quiet --threads 1 --device cpu "$@"
    absent run
}

# The device is checked before the data, the data before the model.
if [ ! -e /dev/nvidia0 ]; then
    fails 'no CUDA d' --device cuda --data nowhere --init nowhere
fi
fails 'nowhere: No such file or directory' --data nowhere --init nowhere-either
fails 'nowhere: No such file or directory' --data d --init nowhere

# --init of a folder: the message names the file that is missing.
run 0 sgt-train --quiet $small --run whole --steps 4 --save-every 2
run 0 sgt-train --quiet --device cpu --data d --seq-len 16 --init whole/ --estimate-memory
rm -r whole/step-* whole/latest
fails 'sgt-train: whole: neither a checkpoint (it has no config.json) nor a run that holds one' \
    --data d --init whole

# The data.
mkdir empty
fails 'empty' --data empty --model 1x8x1
cp d/train_000000.bin cut.bin
truncate -s 10001 cut.bin
fails 'cut.bin: ' --data cut.bin --model 1x8x1
shard tiny.bin 1 2 3
fails 'tiny.bin' --data tiny.bin --model 1x8x1
shard high.bin 1 2 3 255 256 257 4 5 6
fails 'high.bin' --data high.bin --init "$curve" --seq-len 8 --batch-size 1

# A model to start from.
mkdir -p m
from() { rm -rf m && cp -r "$curve" m && chmod -R u+w m; }
from && rm m/model.safetensors
fails 'm/model.safetensors: No such file or directory' --data d --init m --seq-len 64
from && truncate -s 100000 m/model.safetensors
fails '(was it cut short?)' --data d --init m --seq-len 64
from && sed -i 's/"vocab_size": 256/"vocab_size": 300/' m/config.json
fails 'm/model.safetensors: tensor wte.weight has 2 dimensions, 256 x 128, but config.json says 300 x 128' \
    --device cpu --data d --init m --seq-len 64

# A model that is too large for this machine.
fails 'GiB of memory' --data d --model 1024x16384x16
stderr_has '(no --batch-size fits: use a smaller --model or --seq-len)'
# A batch that does not fit is reported before the training settings, with the largest batch that
# fits.
run 1 sgt-train --device cpu --data d --model 12x768x12 --seq-len 1024 --batch-size 1000000
stdout_is ''
largest='the largest --batch-size that fits is [1-9][0-9]*(, and --recompute auto allows more)?'
stderr_matches "^sgt-train: the model and its step need [0-9.]+ GiB of memory, but only [0-9.]+ GiB is free \\(($largest\
|no --batch-size fits(: use a smaller --model or --seq-len| without recomputation: use --recompute auto))\\)\$"
! grep -q 'lr ' .stderr || fail 'a learning rate for what does not fit'
absent run
# The run directory.
: > file
run_failure_about 'sgt-train: file: ' sgt-train --quiet $small --run file --steps 1
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed && chmod 555 closed
    run_failure_about 'Permission denied' sgt-train --quiet $small --run closed/run --steps 1
fi

if [ -w /dev/full ]; then
    run 1 sh -c 'sgt-train --device cpu --estimate-memory > /dev/full'
    stderr_is 'sgt-train: standard output: No space left on device'
fi

# ---- the disk ----
# Before step 0, a line states the size of the checkpoints and the free space. It counts one
# checkpoint more than --keep, but no more than will be written. A checkpoint of this model has 3 x
# 23,792 floats: parameters and two moments.
disk() { # SIZE OPTION...
    size=$1
    shift
    run_notes_like "^sgt-train: disk: [a-z]+: $size, [0-9.]+ [KMGTP]iB free\$" sgt-train $small "$@"
}
disk '278.8 KiB for 1 checkpoint' --run room --steps 2 --save-every 0
disk '1.1 MiB for 4 checkpoints' --run room --steps 40 --save-every 2 --force
disk '1.4 MiB for 5 checkpoints' --run room --steps 10 --save-every 2 --keep 0 --force
# Too little space gives a warning even with --quiet, and training begins.
rm -r room
run_stopped TERM room/latest sgt-train --quiet $small --model 1x256x2 --run room --steps 99999999 --save-every 1 --keep 0
stderr_matches '^sgt-train: disk: room: [0-9.]+ [TP]iB for 99999999 checkpoints, but only [0-9.]+ [KMGTP]iB free \(free '\
'some space, or keep fewer with --keep\)$'
rm -r room

# A full disk, imitated by a limit on file sizes: no incomplete checkpoint is left, training
# continues to its end, and each later save is tried.
unsaved() { # STEP WHAT
    stderr_matches "^sgt-train: full/\.step-0000000$1\.tmp/model\.safetensors: cannot write: File too large \(step $1 is not \
saved: $2\)\$"
}
again='training continues, and the next save tries again'
limited() { sh -c "ulimit -f 8; trap '' XFSZ; exec sgt-train --quiet $small --run full $*"; }
run 1 limited --steps 2 --save-every 1
stderr_lines 2
unsaved 1 "$again"
unsaved 2 'there is no checkpoint'
[ -z "$(ls -A full | grep step)" ] || fail "half a checkpoint is left: $(ls -A full)"
[ "$(wc -l < full/log.jsonl)" -eq 2 ] || fail 'two steps are in the log'

# Earlier checkpoints are kept too: none is removed before the next one is complete.
run 0 sgt-train --quiet $small --run full --steps 2 --force --keep 1 --save-every 1
run 1 limited --steps 4 --save-every 1 --keep 1 --resume
stderr_lines 2
unsaved 3 "$again"
unsaved 4 'full/step-00000002 is the newest checkpoint'
is "$(ls -A full | grep step) $(cat full/latest)" 'step-00000002 step-00000002'

# A save that fails for another reason does not end the run either. When the cause is gone, the next
# save succeeds.
begun broken/latest sgt-train --quiet $small --run broken --steps 1000000 --save-every 20 --keep 2
until rm -f broken/latest && mkdir broken/latest 2> /dev/null; do :; done
until [ -s .stderr ]; do sleep 0.02; done
rmdir broken/latest
until [ -s broken/latest ]; do sleep 0.02; done
kill -TERM $pid
ended 130 $pid
stderr_has 'sgt-train: broken/latest: cannot rename into place: Is a directory (step ' " is not saved: $again)"
[ -e "broken/$(cat broken/latest)/state.json" ] || fail 'the last step should be saved'
