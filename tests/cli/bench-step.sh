# sgt-bench step: its table, its JSON, the comparison with a peer, several batch sizes, and the
# options that it refuses. Speeds are not checked.
# In make check-all only: it measures for half a minute.
. "$ROOT/tests/cli/bench.inc"
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/wide.inc"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
tiny="--model 1x16x2 --batch-size 2 --seq-len 16 --threads 1 --steps 3 --warmup 1"
cpu="$tiny --device cpu"

run_silent sgt-bench step $cpu
stdout_matches '^1x16x2, fp32, steps of 1 x 2 x 16 tokens; medians of 3 steps$'
stdout_matches '^\* sgt +[0-9.]+ +[0-9]+ +[0-9.]+ +[0-9.]+ % +[0-9.]+ +[0-9.]+ MiB$'
table 'peak speed, measured with a large matrix product: '

run_silent sgt-bench step $cpu --grad-accum 2 --json
for name in tokens_per_s ms_per_step mfu peak_bytes open_s first_step_s peak_tflops tflops; do
    stdout_matches "\"$name\": [0-9.e-]*[1-9]"
done
stdout_matches '"data_wait_ms": [0-9.e-]+,$'
for name in launches_forward launches_step mfu_datasheet peer kernels; do
    grep -q "\"$name\"" .stdout && fail "a CPU has no $name"
done
# A step has 2 x 2 x 16 tokens, to the six digits printed.
check 'tokens of a step' awk -v ms="$(field ms_per_step .stdout)" -v rate="$(field tokens_per_s .stdout)" \
    'BEGIN { x = rate * ms / 64000; exit !(x > 1 - 2e-5 && x < 1 + 2e-5) }'
# The loss of an untrained model is close to log(50257).
check 'a loss' awk -v loss="$(field loss .stdout)" 'BEGIN { exit !(loss > 10.5 && loss < 11.2) }'

run_says '' sgt-bench step $cpu --quiet --warmup 0 --steps 1
stderr_is ''

# ---- shards instead of random tokens: the vocabulary size is read from their headers ----
data d
run 0 sgt-bench step $cpu --data d --loader mmap --json
check 'a loss of 256 ids' awk -v loss="$(field loss .stdout)" 'BEGIN { exit !(loss > 5.3 && loss < 5.8) }'
cp .stdout with
run 0 sgt-bench step $cpu --data d --no-overlap --json
check 'the same rows' test "$(field loss .stdout)" = "$(field loss with)"

wide_vocabulary merges.txt # ids of 4 bytes
run 0 sgt-tokenize --quiet --pattern gpt2 --vocab merges.txt "$ROOT/README.md" wide
run 0 sgt-bench step $cpu --data wide --json
check 'a loss of 100,945 ids' awk -v loss="$(field loss .stdout)" 'BEGIN { exit !(loss > 11.4 && loss < 11.7) }'

# ---- the peer: a stand-in for the interpreter that stores its arguments ----
cat > python <<'END'
#!/bin/sh
cat "$1" > script
shift
echo "$*" >> asked
echo "$GLIBC_TUNABLES" > tunables
n=$(wc -l < asked)
echo '{"peer": "torch 0 default", "ms_per_step": '$((1000 * n))', "tokens_per_s": '$((n * 7))','
echo '"first_steps_s": 2.5, "peak_bytes": 4096}'
END
chmod +x python
run_silent sgt-bench step $cpu --peer ./python --turns 3 --grad-accum 4 --json
same script "$ROOT/tests/peers/torch_step.py"
check 'three turns' test "$(wc -l < asked)" -eq 3
check 'the same step' test "$(head -1 asked)" = \
    '1x16x2 2 16 --precision fp32 --device cpu --mode default --steps 3 --accum 4'
grep -q mmap_threshold tunables || fail 'the allocator is not as PyTorch likes it'
check "the median's turn" test "$(sed -n '/"peer"/,$p' .stdout | grep ms_per_step)" = '    "ms_per_step": 2000.0,'
check 'its ratio' awk -v ms="$(field ms_per_step .stdout)" -v ratio="$(field ratio .stdout)" \
    'BEGIN { x = ratio * ms / 2000; exit !(x > 1 - 2e-5 && x < 1 + 2e-5) }'
rm asked
run 0 sgt-bench step $cpu --peer ./python --peer-mode eager
table 'peak speed, measured with a large matrix product: '
stdout_matches '^  torch 0 default +1500\.000 +[0-9]+ +- +- +- +4\.0 KiB$'
stdout_matches '^sgt is [0-9.]+ times as fast, with [0-9.]+ times the memory; medians of 2 turns$'
grep -q -- '--mode eager' asked || fail 'the mode was not passed on'
printf '#!/bin/sh\necho hello\n' > python
run_failure '--peer ./python: no ms_per_step in its output: hello' sgt-bench step $cpu --peer ./python
run_interrupted sgt-bench step $cpu --steps 100000

# ---- several batch sizes: the estimated memory next to the measured peak ----
several="--model 2x64x2 --seq-len 64 --threads 1 --device cpu --steps 2 --warmup 1"
run 0 sgt-bench step $several --batch-size 64,2
stderr_lines 2
stderr_matches '^sgt-bench step: 64 rows: [0-9.]+ ms/step$'
stdout_matches '^2x64x2 on the CPU, fp32, rows of 64 tokens$'
for rows in 2 64; do
    stdout_matches "^[* ] $rows rows +[0-9.]+ [KM]iB +[0-9.]+ MiB +[0-9.]+ +[0-9]+ +[0-9.]+ MiB +[0-9.]+$"
done
table 'estimate: from sgt-train --estimate-memory'
# The estimate grows with the number of rows, and is close to the measured peak.
run_silent sgt-bench step --quiet --json $several --batch-size 64,2 --data d
run_silent sgt-bench step --quiet --json $several --batch-size 64,2
check 'two sizes' holds '[.results[].batch] == [64, 2] and .model == "2x64x2" and .seq == 64'
check 'the estimate grows' holds '.results | .[1].estimate_bytes < .[0].estimate_bytes'
check 'what grows with the rows' holds '.results | .[0].activation_bytes > 3 * .[1].activation_bytes'
check 'beside the peak' holds '.results | all(.fits and .estimate_bytes / .peak_bytes > .7 and
    .estimate_bytes / .peak_bytes < 1.4 and .ms_per_step > 0 and .tokens_per_s > 0)'
# The estimate equals that of sgt-train --estimate-memory, except for the size of the program.
kinds=$(sgt-train --estimate-memory --json --model 2x64x2 --seq-len 64 --threads 1 --device cpu --precision fp32 \
    --batch-size 64 | jq '[.kinds[] | select(.name != "loader" and .name != "checkpoint").bytes] | add')
check 'as sgt-train says' holds ".results[0].estimate_bytes - $kinds | fabs < 16777216"
# Recomputation lowers the estimate for activations. A batch size that does not fit is not measured.
run 0 sgt-bench step --quiet --json $several --model 8x64x2 --batch-size 1M,1M --recompute block
jq '.results[0].activation_bytes' .stdout > block
run 0 sgt-bench step --quiet --json $several --model 8x64x2 --batch-size 1M,1M
check 'less' test "$(cat block)" -lt "$(jq '.results[0].activation_bytes' .stdout)"
check 'not measured' holds '.results[0] | (.fits | not) and .peak_bytes == null and .why == "needs more than the free memory"'
for bad in x 4,x 0 1,,2; do
    run_usage "--batch-size $bad: expected a number from 1 to 1048576, or a list of up to 32, such as 16,32" \
        sgt-bench step --batch-size $bad
done
run_usage '--peer: needs a single --batch-size' sgt-bench step --batch-size 1,2 --peer ./python
run_usage '--parts: needs a single --batch-size' sgt-bench step --batch-size 1,2 --parts
run_interrupted sgt-bench step --quiet $several --steps 100000 --batch-size 1,2

# ---- wrong usage ----
run_failure_like '^sgt-bench step: the model and its step need [0-9.]+ GiB of memory, but only [0-9.]+ GiB is free \(.*--batch-size.*\)$' \
    sgt-bench step --device cpu --model gpt2-xl --batch-size 100000 --seq-len 1024
run_failure '--no-fuse: needs --device cuda' sgt-bench step $cpu --no-fuse
run_failure '--parts: needs --device cuda (on a CPU, sgt-train --profile trace.json shows the parts of a step)' \
    sgt-bench step $cpu --parts
run_failure '--variant all: needs --device cuda' sgt-bench step $cpu --variant all
run 2 sgt-bench step $cpu --variant head-chunks,faster
stderr_matches "^sgt-bench step: --variant head-chunks,faster: unknown variant 'faster' \(all, none, default, head-chunks,bias-room,norm-bias,early-launch\)"
run_silent sgt-bench step --variants
check 'a name, a tab, what it does' test "$(grep -cE "^[a-z0-9-]+	[A-Za-z].*[^.]$" .stdout)" -eq "$(wc -l < .stdout)"
cut -f1 .stdout > variants

# ---- CUDA on the host: the number of launches ----
cuda_on_the_host
run 0 sgt-bench step $tiny --device cuda --data d --deterministic --json
for name in launches_forward launches_step cupti_kernels_step peak_bytes; do stdout_matches "\"$name\": [1-9]"; done
check 'memory of the device' test "$(field peak_bytes .stdout)" = "$(field backend_bytes .stdout)"
cp .stdout async
# CUPTI counts kernels after the measurement. If CUPTI is refused, the time is still reported.
run 0 env SGT_HOST_CUPTI=refuse sgt-bench step $tiny --device cuda --data d --deterministic --json
stderr_lines 1
stderr_matches '^sgt-bench step: could not count the kernels of a step: .*CUPTI: switching on: '
stdout_matches '"tokens_per_s": [1-9]'
check 'the same loss, uncounted' test "$(field loss .stdout)" = "$(field loss async)"
! grep -q cupti_kernels_step .stdout || fail 'a count that nobody made'
run 0 sgt-bench step $tiny --device cuda --data d --sync-metrics --deterministic --json
check 'the same numbers' test "$(field loss .stdout)" = "$(field loss async)"
run 0 env SGT_HOST_CUDNN=1 sgt-bench step $tiny --device cuda --data d --attention cudnn --json
stdout_matches '"library": "CUDA [0-9.]+, cuBLASLt [0-9.]+, cuDNN on the host"'
run 0 sgt-bench step $tiny --device cuda --data d --variant all --deterministic --json
check 'every variant' test "$(sed -n 's/.*"variants": "\([^"]*\)".*/\1/p' .stdout | tr , '\n')" = "$(cat variants)"

# ---- CUDA on the host: the table of kernels ----
parts="$tiny --device cuda --data d --precision bf16 --grad-accum 2 --parts"
run 0 sgt-bench step $parts
known='[0-9]+\.[0-9]' number='[0-9]+\.[0-9]{3} +[0-9]+\.[0-9] %'
for product in 'qkv forward' 'proj dX' 'fc dW' 'fcproj forward' 'head forward' 'head dW'; do
    stdout_matches "^  $product +2 +$number +- +$known$"
done
stdout_matches "^  attention_kernel +2 +$number +- +$known$"
stdout_matches "^  cross_entropy[a-z_]*_kernel +2 +$number +$known +-$"
stdout_matches "^  norm_[a-z_]*kernel +6 +$number +$known +-$"
stdout_matches "^  update_kernel +1 +$number +$known +-$"
stdout_matches "^  begin_micro_step_kernel +2 +$number +- +-$" # its operations and bytes are unknown
# The copies are inputs and targets of two micro-steps, and the metrics. This CUPTI does not report
# their bytes.
stdout_matches "^  copy +5 +$number +- +-$"
for row in overlap idle step; do
    stdout_matches "^  $row +- +-?[0-9]+\.[0-9]{3} +-?[0-9]+\.[0-9] % +- +-$"
done
grep -qE '^  (other|anything|product_|\()' .stdout && fail 'a row that does not say what it is'

# rows [NAME=VALUE]...: set $launches, $ms, $idle and $step from the JSON; each kernel has its own
# row there
rows() {
    run 0 env "$@" sgt-bench step $parts --json
    eval "$(tr '{},' '\n' < .stdout | awk '
        /"launches": / { launches += $2 }
        /"ms": / { ms += $2 }
        /"(idle|step)_ms": / { printf "%s=%s\n", substr($1, 2, 4), $2 }
        END { printf "launches=%d ms=%.9g\n", launches, ms }')"
}
rows SGT_HOST_CUPTI=
check 'one after another: rows and idle time are the step' awk -v a="$ms" -v b="$idle" -v c="$step" \
    'BEGIN { x = (a + b) / c; exit !(b > 0 && x > 1 - 1e-4 && x < 1 + 1e-4) }'
# Time in which two kernels overlap counts once. Five steps were traced; each kernel lasts 1 us and
# overlaps the next by a quarter of it.
rows SGT_HOST_CUPTI=overlap
check 'kernels at once' awk -v n="$launches" -v a="$ms" -v b="$idle" -v c="$step" 'BEGIN {
    x = c * 5000 / (.75 * (5 * n - 1) + 1)
    exit !(n > 50 && b == 0 && a > n * .99e-3 && a < n * 1.01e-3 && x > 1 - 1e-4 && x < 1 + 1e-4) }'
run 1 env SGT_HOST_CUPTI=refuse sgt-bench step $parts
stderr_has 'sgt-bench step: CUPTI: switching on: ERROR_35 (the driver lets only root profile: run as root)'
SGT_HOST_CUDNN=1 run 0 sgt-bench step $parts --attention cudnn
stdout_matches "^  cuDNN attention forward +2 +$number +- +$known$"
stdout_matches "^  cuDNN attention backward +2 +$number +- +$known$"
run 1 env SGT_HOST_DEVICE=memory=33M sgt-bench step --device cuda --batch-size 4096 --model 2x32x2 --seq-len 24
stderr_has 'sgt-bench step: out of GPU memory: '
