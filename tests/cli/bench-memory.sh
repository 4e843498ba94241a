# sgt-bench memory: the estimate beside the measured peak, by batch size; its JSON, the options it refuses.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
tiny="--model 2x64x2 --seq-len 64 --threads 1 --device cpu"
holds() { jq -e "$1" .stdout > .jq; }

run 0 sgt-bench memory $tiny --batch-size 2,64
stderr_is 'sgt-bench memory: 2 rows done
sgt-bench memory: 64 rows done'
stdout_matches '^2x64x2 on the CPU, fp32, rows of 64 tokens$'
for rows in 2 64; do stdout_matches "^ +$rows +[0-9.]+ [KM]iB +[0-9.]+ MiB +[0-9.]+ MiB +[0-9.]+$"; done
check '100 columns' test "$(awk 'length > 100' .stdout | wc -l)" -eq 0

# The rows that the measured peak grows by are those that the estimate foresees.
run 0 sgt-bench memory --quiet --json $tiny --batch-size 2,64
stderr_is ''
check 'two rows' holds '[.results[].batch] == [2, 64] and .model == "2x64x2" and .seq == 64'
check 'the estimate grows' holds '.results | .[0].estimate_bytes < .[1].estimate_bytes'
check 'what grows with the rows' holds '.results | .[1].activation_bytes > 3 * .[0].activation_bytes'
check 'beside the peak' holds '.results | all(.fits and .estimate_bytes / .peak_bytes > .7 and
    .estimate_bytes / .peak_bytes < 1.4)'
# as sgt-train says, but for the size of the program itself
kinds=$(sgt-train --estimate-memory --json $tiny --precision fp32 --batch-size 64 | jq '[.kinds[] |
    select(.name != "loader" and .name != "checkpoint").bytes] | add')
check 'as sgt-train says' holds ".results[1].estimate_bytes - $kinds | fabs < 16777216"

# fewer activations with recomputation; what does not fit is not measured
run 0 sgt-bench memory --quiet --json $tiny --model 8x64x2 --batch-size 1M --recompute block
jq '.results[0].activation_bytes' .stdout > block
run 0 sgt-bench memory --quiet --json $tiny --model 8x64x2 --batch-size 1M
check 'less' test "$(cat block)" -lt "$(jq '.results[0].activation_bytes' .stdout)"
check 'not measured' holds '.results[0] | (.fits | not) and .peak_bytes == null and .why == "more than the free memory"'

run_usage '--batch-size 4,x: not a list of at most 32 numbers, such as 16,32' sgt-bench memory --batch-size 4,x
run_usage 'out: no operands here, only options' sgt-bench memory out
run_interrupted sgt-bench memory --quiet $tiny --batch-size "$(seq -s , 1 32)"
