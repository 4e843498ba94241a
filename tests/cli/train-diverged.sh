# A loss that rises above its initial value is reported once by sgt-train, and also in the log and
# in the report. --stop-diverged ends the run.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"

data d
run="sgt-train --quiet $small --schedule constant --warmup 0 --steps 120"
told='diverged: the loss is above its initial value: .* at the first step \(lower --lr, or let --lr auto choose it\)'
advice() { grep -c '"advice":' "$1/log.jsonl"; }
once() { [ "$(grep -c diverged "$1")" -eq 1 ] || fail "$1 has it $(grep -c diverged "$1") times, not once"; }

# The loss is compared with the mean of the first 20 steps, from step 20 on. The run has diverged
# when the loss has been above that mean for 50 steps.
run 0 $run --lr 20 --run lost
once .stderr
stderr_matches "^sgt-train: step 69: $told\$"
once lost/log.jsonl
grep -qE "^\{\"step\":68,.*\"advice\":\"step 69: $told\"\}\$" lost/log.jsonl || fail 'the log has it at its step'
run 0 sgt-report --quiet lost
sed 's/<\/*code>//g' lost/report.html | grep -qE "^<li class=\"grave\">step 69: $told</li>" || fail 'the report has it in red'
! grep -q 'class="fine"' lost/report.html || fail 'nothing about this run is fine'
run 0 sgt-train --quiet --json $small --lr 20 --warmup 0 --steps 30 --run short
stderr_matches "^sgt-train: step 30: $told\$"
stdout_has '"advice": "step 30: diverged: '

# A healthy run reports nothing, and --stop-diverged does not change its log.
run_silent $run --run well
[ "$(advice well)" -eq 0 ] || fail 'advice about a healthy run'
run_silent $run --run well2 --stop-diverged
same_facts well/log.jsonl well2/log.jsonl

# With --stop-diverged, the run saves and ends with one line and exit code 1. A resume with the
# option does so again. A resume without the option continues.
stopped='sgt-train: stop: diverged: the loss is above its initial value: [0-9.e+]* over the last 20 steps instead of '\
'[0-9.]*; saved and stopped after step 69 of 120 \(start again with a lower --lr\)'
run 1 $run --lr 20 --run stop --stop-diverged
once .stderr
stderr_matches "^$stopped\$"
stdout_is ''
[ -d stop/step-00000069 ] || fail 'no checkpoint of step 69'
[ "$(wc -l < stop/log.jsonl)" -eq 69 ] || fail 'it ends after step 69'
run 1 $run --lr 20 --run stop --resume --stop-diverged
once .stderr
stderr_matches "^$stopped\$"
[ "$(wc -l < stop/log.jsonl)" -eq 69 ] || fail 'not a step more'
run_silent $run --lr 20 --run stop --resume
same_facts lost/log.jsonl stop/log.jsonl
same lost/step-00000120/model.safetensors stop/step-00000120/model.safetensors

# An interrupted and resumed run reports the same as an undisturbed one, at the same step.
run 0 $run --lr 20 --run half --steps 15
run_notes_like "^sgt-train: step 69: $told\$" $run --lr 20 --run half --resume
same_facts lost/log.jsonl half/log.jsonl

# A loss that is not a number is reported as without --stop-diverged, and stops the run too.
run 1 $run --lr 1e30 --run nan --stop-diverged
stderr_lines 2
stderr_has 'sgt-train: step 2: the loss is not a number: start again with an lr 10 times lower'
stderr_has 'sgt-train: nan: diverged: the loss is not a number; saved and stopped after step 69 of 120 (start again '\
'with a lower --lr)'

# All ranks stop at the same step, with one line.
with_mpi 'all else passed'
two 1 $run --lr 20 --run ranks --stop-diverged
once .stderr
stderr_matches 'sgt-train: ranks: diverged: .*; saved and stopped after step 69 of 120'
[ -d ranks/step-00000069 ] || fail 'ranks save too'
