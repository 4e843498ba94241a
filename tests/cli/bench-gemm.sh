# sgt-bench gemm: its table, its JSON, and the options it refuses. The test does not check speeds.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"

run 0 sgt-bench gemm --device cpu --model 1x16x2 --batch-size 2 --seq-len 4 --seconds .001 --threads 1
stderr_is ''
stdout_matches '^1x16x2, fp32, 8 rows; peak, a large square product: [0-9.]* GFLOP/s$'
stdout_matches '^[* ] qkv +forward +none +8 +48 +16 .* %$'
stdout_matches '^[* ] fc +forward +bias +8 +64 +16 .* %$'
stdout_matches '^  fc +forward +gelu +8 +64 +16  a kernel of its own here$'
stdout_matches '^  fcproj +dx +dgelu-bgrad +8 +64 +16  a kernel of its own here$'
stdout_matches '^[* ] fcproj +dw +none +64 +16 +8 .* %$'
stdout_matches '^[* ] head +dw +none +50257 +16 +8 .* %$'
table 'peak, a large square product: '
check 'one is the fastest' test "$(grep -cE '^\* [a-z]+ +(forward|dx|dw) ' .stdout)" -eq 1
check 'of all' awk '/GFLOP/ && /pass/ { on = 1; next } on && $NF == "%" { if ($1 == "*") best = $(NF - 2)
        if ($(NF - 2) > most) most = $(NF - 2) }
    END { exit best + 0 != most + 0 || !best }' .stdout

run 0 sgt-bench gemm --device cpu --model 1x16x2 --batch-size 1 --seq-len 8 --seconds .001 --json
stderr_is ''
check '23 products' test "$(grep -c '"layer"' .stdout)" -eq 23
check '19 of them timed' test "$(grep -c '"us"' .stdout)" -eq 19
check 'each with its share' test "$(grep -c '"of_peak"' .stdout)" -eq 19
check '4 of them not' test "$(grep -c '"why_not": "a kernel of its own here"' .stdout)" -eq 4
check 'none is zero' test "$(grep -cE '"(us|tflops|of_peak|peak_tflops)": (0\.0+|0),?$' .stdout)" -eq 0
stdout_has '"rows": 8'
stdout_has '"precision": "fp32"'

run 0 sgt-bench gemm --device cpu --model 1x16x2 --batch-size 1 --seq-len 8 --layer head --seconds .001 --json
check 'three products' test "$(grep -c '"layer": "head"' .stdout) $(grep -c '"layer"' .stdout)" = '3 3'

run 0 sgt-bench gemm --device cpu --model 1x16x2 --batch-size 1 --seq-len 1 --seconds .001 --quiet
stdout_is ''
stderr_is ''

# bf16 runs on a CPU that multiplies it; on others it is refused by name.
small="--device cpu --model 1x16x2 --batch-size 1 --seq-len 8 --seconds .001"
if grep -qw avx512_bf16 /proc/cpuinfo; then
    run 0 sgt-bench gemm $small --precision bf16 --json
    stderr_is ''
    stdout_has '"precision": "bf16"'
    check '19 of 22 timed' test "$(grep -c '"us"' .stdout)" -eq 19
    refused='this CPU'"'"'s products are in fp32 or bf16'
else
    refused='this CPU'"'"'s products are in fp32'
    run_usage "--precision bf16: $refused" sgt-bench gemm $small --precision bf16
fi
for precision in tf32 fp16; do
    run_usage "--precision $precision: $refused" sgt-bench gemm $small --precision $precision
done
run 2 sgt-bench gemm --model 1x17x2
stderr_has 'sgt-bench gemm: '
run_usage 'out/: no operands here, only options' sgt-bench gemm out/
