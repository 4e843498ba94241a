# sgt-train: the length and the learning rate of a run: compute budgets, schedules, rates by model
# size, and the lines that state them. Also --overfit-batch.
. "$ROOT/tests/cli/train.inc"
work_in_memory
data d

# The model 1x16x2 with 256 ids has 256 x 16 + 1024 x 16 + 3,280 + 32 = 23,792 parameters. A step
# has 2 x 16 tokens.
run 0 sgt-train $small --steps 40 --warmup 4 --min-lr 2e-4 --run cosine --verbose
stderr_has 'sgt-train: plan: 40 steps of 2 x 16 tokens, 0.0083 epochs; learning rate 0.001 after 4 steps of warm-up, '\
'cosine to 0.0002'
stderr_has 'sgt-train: cost: 2.11e-12 PF-days in all (6 N D with N = 2.379e+04 parameters and D = 1280 tokens)'
stdout_has 'compute: 2.11e-12 PF-days'
run 0 sgt-train $small --steps 40 --warmup 0 --schedule constant --run constant
stderr_matches '; learning rate 0\.001, constant$'
run 0 sgt-train $small --steps 40 --schedule wsd --run wsd
stderr_matches '; learning rate 0\.001 after 2 steps of warm-up, wsd to 0\.0001$'
# The schedule's learning rates (tests/train/test_schedule.c has the other schedules).
lr() { sed -n "$(($2 + 1))p" "$1/log.jsonl" > line && field lr line; }
is "$(lr wsd 0),$(lr wsd 32),$(lr wsd 36)" 0.0005,0.001,0.00055

# A budget determines the number of steps. 1e-12 PF-days are 8.64e7 operations, that is 18 steps of
# 6 x 23,792 x 32 operations and a fraction.
run 0 sgt-train $small --compute-budget 1e-12 --run budget
stderr_has 'sgt-train: --compute-budget 1e-12: 6 N D = 8.64e+07 operations, so D = 605.2 tokens for N = 2.379e+04 parameters: 18 steps of 32'
[ "$(wc -l < budget/log.jsonl)" -eq 18 ] || fail 'the budget pays for 18 steps'
grep -q '"steps": 18' budget/options.json || fail 'the steps that were decided are kept'
run 0 sgt-train --json --quiet --run budget --resume --compute-budget 1.1e-12
[ "$(wc -l < budget/log.jsonl)" -eq 20 ] || fail 'more of it goes on'
[ "$(field pf_days .stdout)" = 1.05742222e-12 ] || fail "20 steps took $(field pf_days .stdout)"
run_usage '--compute-budget 1e-14: enough for 0.189 steps of this model and batch, but it must be 1 to 99999999 steps (one takes '\
'5.29e-14 PF-days)' \
    sgt-train --quiet $small --compute-budget 1e-14 --run none
run_usage '--compute-budget: not together with --steps' sgt-train $small --compute-budget 1 --steps 2 --run none
run_usage '--compute-budget 0: must be from 1e-15 to 1000000000' sgt-train $small --compute-budget 0 --run none
absent none

# --overfit-batch trains only on the rows of step 0, until the loss is close to 0.
run 0 sgt-train $small --lr 1e-2 --batch-size 1 --grad-accum 2 --steps 120 --overfit-batch --run overfit
stderr_has 'sgt-train: --overfit-batch: every step trains on the 2 rows of step 0, to test whether the loss can fall (do not use the resulting model for anything else)'
stderr_matches '^sgt-train: --overfit-batch: the loss fell from 5\.[0-9]+ to [01]\.[0-9]+ in 120 steps$'
grep -q '"overfit-batch": true' overfit/options.json || fail 'it is an option of the run'
run 0 sgt-train --quiet $small --lr 1e-2 --batch-size 1 --grad-accum 2 --steps 2 --run plain
is "$(sed -n 's/.*"loss":\([^,]*\).*/\1/p' plain/log.jsonl | head -1)" "$(field loss overfit/log.jsonl)"
run 0 sgt-train --quiet $small --lr 0 --batch-size 1 --grad-accum 2 --steps 5 --overfit-batch --run still
[ "$(sed -n 's/.*"loss":\([^,]*\).*/\1/p' still/log.jsonl | sort -u | wc -l)" -eq 1 ] ||
    fail 'the rows are not the same ones'
stderr_matches '^sgt-train: --overfit-batch: the loss did not fall: it went from (5\.[0-9]+) to \1 in 5 steps '\
'\(check --lr and the data\)$'
# The same run, stopped and resumed.
run 0 sgt-train --quiet $small --lr 1e-2 --batch-size 1 --grad-accum 2 --steps 120 --save-every 50 --overfit-batch --run half
rm -r half/step-00000120
run 0 sgt-train --quiet --run half --resume
same_facts overfit/log.jsonl half/log.jsonl
run_failure '--overfit-batch: true here, but it was not set in the run to resume (leave it out, or start a new '\
'--run)' sgt-train --quiet --run plain --resume --steps 4 --overfit-batch
