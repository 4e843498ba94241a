# RUN/tb as TensorBoard reads it, from a run that was killed some steps after its newest checkpoint,
# and resumed.
. "$ROOT/tests/cli/train.inc"
find_python tensorboard
[ -n "$python" ] || skip 'no python3 with tensorboard (PYTHON=... names one)'
data d
validation d
run 0 sgt-train --quiet $small --eval-every 4 --save-every 3 --steps 8 --run whole
run_prints_like '^1[0-9] scalars of 8 steps$' $python "$ROOT/tests/train/check_tensorboard.py" whole 1

# Put the run into the state after a kill at step 8: the log and the events are two steps ahead of
# the newest checkpoint.
cp -r whole cut
rm -r cut/step-00000008
run 0 sgt-train --quiet --run cut --resume
same_facts whole/log.jsonl cut/log.jsonl
run 0 $python "$ROOT/tests/train/check_tensorboard.py" cut 2
run 0 sgt-train --quiet $small --steps 4 --run cut --force
run 0 $python "$ROOT/tests/train/check_tensorboard.py" cut 1
