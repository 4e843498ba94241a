# sgt-bench kernels: its table, its JSON, and the options it refuses. The test does not check speeds.
# In make check-all only: it measures for half a minute.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
small="--device cpu --model 1x16x2 --batch-size 1 --seq-len 8 --seconds .001"

run 0 sgt-bench kernels --device cpu --model 1x16x2 --batch-size 2 --seq-len 4 --seconds .001 --threads 1
stderr_is ''
stdout_matches '^1x16x2, fp32, 2 x 4 tokens$'
stdout_matches '^[* ] qkv +forward +none +8 +48 +16 .* %$'
stdout_matches '^[* ] fc +forward +bias +8 +64 +16 .* %$'
stdout_matches '^  fc +forward +gelu +8 +64 +16  a kernel of its own here$'
stdout_matches '^  fcproj +dx +dgelu-bgrad +8 +64 +16  a kernel of its own here$'
stdout_matches '^[* ] fcproj +dw +none +64 +16 +8 .* %$'
stdout_matches '^[* ] head +dw +none +50257 +16 +8 .* %$'
for pass in forward backward; do
    stdout_matches "^[* ] attention +$pass +own +- +- +- +[0-9.]+ +[0-9.]+ +[0-9.]+ %$"
done
table 'Peak, a large product of matrices: '
check 'one is the fastest' test "$(grep -cE '^\* [a-z]+ +(forward|backward|dx|dw) ' .stdout)" -eq 1
check 'of all' awk '/GFLOP/ && /pass/ { on = 1; next } on && $NF == "%" { if ($1 == "*") best = $(NF - 2)
        if ($(NF - 2) > most) most = $(NF - 2) }
    END { exit best + 0 != most + 0 || !best }' .stdout

run 0 sgt-bench kernels $small --json
stderr_is ''
check 'products and attention' holds '.results | map(select(.layer != "attention")) as $p |
    ($p | length == 23 and all(.epilogue and .m > 0 and .n > 0 and .k > 0)) and
    [.[] | select(.layer == "attention") | [.attention, .pass]] == [["own", "forward"], ["own", "backward"]]'
check 'each is timed' holds '[.results[] | select(.us > 0 and .tflops > 0 and .of_peak > 0)] | length == 21'
check '4 are not' holds '[.results[].why_not // empty] | length == 4 and all(. == "a kernel of its own here")'
check 'the head of it' holds '.rows == 8 and .batch == 1 and .seq == 8 and .heads == 2 and .head_size == 8 and
    .precision == "fp32" and .peak_tflops > 0'
# Operations: 2 m n k of a product. Attention has two products forward and five backward, each half masked: B H T T D
# multiplications.
check 'its operations' holds '.results | map(select(.us) | (.us * .tflops * 1e6) / (if .m then 2 * .m * .n * .k
    else 2 * 8 * 8 * 8 * (if .pass == "forward" then 2 else 5 end) end)) | all(. > .999 and . < 1.001)'

run 0 sgt-bench kernels $small --kind gemm --layer head --json
check 'three products' holds '[.results[].layer] == ["head", "head", "head"]'
run 0 sgt-bench kernels $small --kind attention --json
check 'attention alone' holds '[.results[].layer] == ["attention", "attention"] and .peak_tflops > 0'
run 0 sgt-bench kernels $small --kind gemm --quiet
stdout_is ''
stderr_is ''

# bf16 runs on a CPU that multiplies it; on others it is refused by name.
if grep -qw avx512_bf16 /proc/cpuinfo; then
    run 0 sgt-bench kernels $small --precision bf16 --json
    stderr_is ''
    check 'all timed in bf16' holds '.precision == "bf16" and ([.results[].us // empty] | length == 21)'
    refused='this CPU'"'"'s kernels are in fp32 or bf16'
else
    refused='this CPU'"'"'s kernels are in fp32'
    for kind in gemm attention; do
        run_usage "--precision bf16: $refused" sgt-bench kernels $small --kind $kind --precision bf16
    done
fi
for precision in tf32 fp16; do
    run_usage "--precision $precision: $refused" sgt-bench kernels $small --precision $precision
done
run 2 sgt-bench kernels --model 1x17x2
stderr_has 'sgt-bench kernels: '
run 2 sgt-bench kernels --device cpu --batch-size 65536 --seq-len 65536
stderr_has 'numbers are over the 2^32 that are measured'
run_usage 'out/: no operands here, only options' sgt-bench kernels out/
run_interrupted sgt-bench kernels --device cpu --seconds 100

# ---- CUDA on the host: every attention, and the reason if one cannot run ----
cuda_on_the_host
cuda='--device cuda --kind attention --batch-size 2 --seq-len 20'
run 0 env SGT_HOST_CUDNN=1 sgt-bench kernels $cuda --model 1x48x3
stderr_is ''
stdout_has '1x48x3, bf16, 2 x 20 tokens'
for name in own cudnn naive; do stdout_matches "^[* ] attention +forward +$name +[0-9.]+ +[0-9.]+"; done
table 'Peak, a large product of matrices: '
run 0 sgt-bench kernels $cuda --model 1x36x3 --precision fp32 --json
check 'by tiles, and naive' holds '[.results[] | select(.us) | .attention] == ["tiled", "tiled", "naive", "naive"]'
stdout_has '"why_not": "--attention own: heads of 12 numbers, it takes multiples of 8 to 128"'
stdout_matches '"why_not": "--attention cudnn: cuDNN: fused attention takes bf16 and fp16, not fp32"'
run 0 sgt-bench kernels --device cuda --kind gemm --model 1x16x2 --batch-size 1 --seq-len 8 --layer head --json
check 'products' holds '[.results[].layer] == ["head", "head", "head"] and .device != ""'
