# gpu-check.sh without a GPU. Stand-ins replace the clock and all programs that need a GPU. Cases:
# good, bad and missing results, a second call, and programs that hang. Then check-cuda-device with
# the host as its device. gpu-rehearsal.sh has the results of the real programs, and a budget that
# runs out.
# In make check-all only: it runs all kernels on the host, as a GPU would.
. "$ROOT/tests/cli/clock.inc"
check=$ROOT/tools/gpu-check.sh
table='versions first profile ab products ablation compile cases curves last'

# ---- no GPU ----

run 77 "$check"
stdout_lines 11
stdout_has 'SKIP ablation: no CUDA device (the chain of techniques)'
stdout_has '0 passed, 0 failed, 10 skipped'
stderr_is ''
absent gpu-check.jsonl
run 2 "$check" fast
stderr_matches '^gpu-check.sh: fast: no such part or option \(gpu-check.sh \[--budget N\] .*\[versions\|.*\|more\]\.\.\.\)$'
run 2 "$check" -o
stderr_matches '^gpu-check.sh: -o needs a value '
for n in 9m 0; do
    run 2 "$check" --budget $n
    stderr_matches "^gpu-check.sh: --budget $n: not a number of seconds "
done
run_prints 'Exit code 0: everything that ran passed' "$check" --help
stdout_has '    ablation   60  the chain of techniques'

# ---- stand-ins for programs that need a GPU; SAY chooses their fault ----

bundle
mkdir -p b/tests/data/fixtures b/tests/peers b/tests/gpu-results b/data/shards
cp -r "$ROOT/tests/data/fixtures/curve" b/tests/data/fixtures
echo '{"result": "pass", "name": "kernel old"}' > b/tests/gpu-results/a.json
export CURVE="$PWD/b/tests/data/fixtures/curve/f64.tsv" SAY=''

stand stand/nvidia-smi << 'END'
case "$SAY $*" in *-lms*) echo '1500, 2600, 300, 50' && exit ;; *clocks*) printf 'clocks.sm [MHz]\n1500 MHz\n' ;;
*gpu=name*) [ "$SAY" = other ] && echo 'other, 1.2, 5 MiB' || echo 'An "H100", 1.2, 5 MiB' ;; esac
END
stand stand/compute-sanitizer << 'END'
[ "$SAY" != virtual ] || { echo '========= Error: Device not supported' && exit 1; }
echo '========= ERROR SUMMARY: 0 errors'
END
stand b/bin/check-cuda-device << 'END'
case "$*" in *--list*) printf '%s\n' gelu old wrapper_mma large card_heads && exit 0 ;; esac
case "$SAY $*" in
kernel*gelu*) printf '  out: element 3 is 1, not 2\nFAIL gelu\n0 passed, 1 failed, 0 skipped\n' && exit 1 ;;
*large*) echo 'SKIP large: it needs a card' && exit 77 ;;
esac
printf 'CUDA kernels on it\nok   it 34\n1 passed, 0 failed, 0 skipped\n'
END
stand b/bin/sgt-train << 'END'
all=$*
case "$*" in *--self-check*)
    i=0 # until the clocks are there
    until [ -s gpu-check.jsonl.clocks ] || [ $((i += 1)) -gt 600 ]; do sleep 0.1; done
    [ "$SAY" != out ] || printf '{"device": "it", "libraries": {"driver": "13.1"}, "paths": [{"verdict": "out"}]}\n'
    [ "$SAY" != out ] || { echo 'sgt-train: self-check: 1 of 1 paths did not pass' >&2 && exit 1; }
    echo '{"device": "it", "libraries": {"driver": "13.0.0", "cudnn": "9.19.0"},'
    echo '"paths": [{"path": "a", "verdict": "ok"}, {"path": "b", "verdict": "ok"}]}' && exit 0 ;;
esac
while [ $# -gt 0 ]; do [ "$1" = --run ] && run=$2; [ "$1" = --steps ] && steps=$2; shift; done
mkdir "$run"
awk -F '\t' -v say="$SAY" -v steps="$steps" -v all="$all" 'NR > 1 && NR <= steps + 1 {
    split(say, fault, "=")
    if (fault[1] == "loss" && NR < 42 && all ~ /bf16/) $2 += fault[2]
    if (fault[1] == "norm" && NR < 42 && all ~ /bf16/) $3 *= fault[2]
    if (fault[1] == "one-loss" && NR == 150 && all ~ /bf16/) $2 += fault[2]
    if (fault[1] == "one-norm" && NR == 150 && all ~ /bf16/) $3 *= fault[2]
    if (say == "short" && NR == 150 && all ~ /fp32/) $2 = "null"
    if (say == "chance" && NR == 77 && all ~ /deterministic/) $2 = "1.0000" '$$'
    printf "{\"step\":%d,\"loss\":%s,\"lr\":1,\"grad_norm\":%s,\"ms_per_step\":50}\n", $1, $2, $3 }' \
    "$CURVE" > "$run/log.jsonl"
END
stand b/bin/sgt-bench << 'END'
# What FILE has when the part versions is over: the versions.
[ -e "$RAN.first" ] || ! grep '"libraries"' gpu-check.jsonl > "$RAN.first" 2> /dev/null
tokens=700000 level="cuDNN's attention"
case "$SAY $*" in
*--variants*) printf '%s\tit\n' rows pdl bulk && exit 0 ;;
*"size 12 "*) tokens=800000 ;;
fast*'--variant default,bulk'*) tokens=770000 ;;
slow*) tokens=500000 ;;
cudnn*) level='our attention' && echo 'attention: own (cuDNN: no)' >&2 ;;
fault*'--variant default,bulk'*) echo 'sgt-bench step: a kernel failed' >&2 && exit 1 ;;
esac
case "$1 $*" in
*--parts*)
    echo '{"kernels": [{"name": "fc dW", "launches": 12, "ms": 9, "tflops": 700},'
    echo ' {"name": "update", "launches": 1, "ms": 1.5, "gb_per_s": 3000}], "idle_ms": 0.5, "step_ms": 93.5}' ;;
step*)
    echo '{"tokens_per_s": '$tokens', "ms_per_step": 90, "mfu": 0.6, "loss": 10.9, "variants": "rows", "open_s": 1,'
    echo ' "first_step_s": 0.5, "level": "sm_90, '$level'", "peak_bytes": 2147483648, "data_wait_ms": 0.01}' ;;
ablation*)
    for row in $(echo "$*" | sed 's/.*--rows \([^ ]*\) .*/\1/' | tr , ' '); do
        ms=100 && [ "$row" != text ] || ms=2000
        echo "sgt-bench ablation: $row: $ms.500 ms/step" >&2
    done
    echo '{"results": [{"name": "text", "ms": 1}]}' ;;
*)
    [ "$SAY" = none ] && echo '{"results": []}' || echo '{"results": [{"shape": "a", "us": 1}, {"shape": "b", "us": 2}]}' ;;
esac
END
stand stand/python << 'END'
case "$SAY $*" in
torch*.py*) echo "ModuleNotFoundError: No module named 'torch'" >&2 && exit 1 ;;
*torch_curve*half*) awk -F '\t' 'NR > 1 { printf "%d\t%.9f\t%.9f\n", $1, $2 + 2e-4, $3 * 1.002 }' "$CURVE" ;;
*torch_curve*) awk -F '\t' 'NR > 1 { printf "%d\t%.9f\t%.9f\n", $1, $2 + 1e-4, $3 * 1.001 }' "$CURVE" ;;
*torch_step*) echo '{"tokens_per_s": 500000, "ms_per_step": 131, "first_steps_s": 20, "peak_bytes": 3000000000}' ;;
esac
END
again() { # EXIT SAY OPTION...: run it again with the existing JSON
    want=$1 SAY=$2
    shift 2
    gpu_check "$want" gpu-check.jsonl b/tools/gpu-check.sh "$@"
}
gpu() { # EXIT SAY OPTION...
    rm -f gpu-check.jsonl gpu-check.jsonl.* ran.first
    again "$@"
}
json_has() { grep -qF -e "$1" gpu-check.jsonl || fail "gpu-check.jsonl lacks: $1"; }
log_has() { grep -qF -e "$1" gpu-check.jsonl.log || fail "gpu-check.jsonl.log lacks: $1"; }

# ---- all checks pass ----

gpu 0 '' --budget 560 -o gpu-check.jsonl
# ends: print each part of a run of ten minutes, most valuable first, and the second by which it
# must end
ends() { sed -n 's/^== \([a-z]*\), until \([0-9]*\) s: .*/\1 \2/p' .stdout | xargs; }
check 'the parts' test "$(ends)" = \
    'versions 20 first 35 profile 75 ab 165 products 215 ablation 275 compile 395 cases 455 curves 495 last 560'
# ran_like REGEX: fail unless a program was called with a command line that matches
ran_like() { grep -qE -e "^$1" ran || fail "no call matches: $1: $(cut -c 1-200 ran)"; }
ran_like 'nvidia-smi --query-gpu=clocks.sm,.*,power.limit,power.max_limit --format=csv$'
step='sgt-bench step --device cuda --model gpt2 --batch-size'
ran_like "$step 64 --seq-len 1024 --precision bf16 --variant default,pdl --json$"
ran_like "python .*/torch_step.py 12x768x12 64 1024 --precision bf16 --sdpa cudnn --device cuda --steps 20$"
ran_like 'check-cuda-device --limit 55 --case gelu$'
ran_like 'compute-sanitizer --tool racecheck .*/check-cuda-device --one-process .* --case cuda_attention_hopper_bf16$'
check 'the step again' test "$(grep -cE "^$step 64 .* --data .*/shards --json$" ran)" -eq 2
stdout_has 'info clocks and limits: clocks.sm [MHz];1500 MHz'
stdout_has 'pass self-check: 2 ok, of driver 13.0.0, cudnn 9.19.0'
stdout_has 'pass self-check, the time it takes: 1.00 s (floor <= 5, goal <= 3: goal met)'
check 'versions, from the first part on' grep -qF ' "libraries": {"driver": "13.0.0", "cudnn": "9.19.0"}' ran.first
stdout_has 'info clocks during versions: 1500 MHz at least, 1500 on average; 300 W and 50 C at most'
stdout_has "info step, B=64 T=1024 bf16: 700000 tokens/s, 90 ms, mfu 0.6, loss 10.9, sm_90, cuDNN's attention"
stdout_has 'pass data wait, of a step: 0.011 % (floor <= 0.1, goal <= 0.05: goal met)'
stdout_has 'pass start to first step: 1.50 s (floor <= 3, goal <= 2: goal met)'
stdout_has 'pass tokens a second: 700000 tokens/s (floor >= 625000, goal >= 680000: goal met)'
for b in 64 12; do
    stdout_has "info --variant default,pdl, B=$b, to base: 1.000 times"
    stdout_has "info --variant default,bulk, B=$b, to base: 1.000 times"
done
! grep -q 'default,rows' .stdout || fail 'the base has this variant already'
stdout_has 'info matrix products: 2 rows, as above'
stdout_has '     shape: b, us: 2'
stdout_has 'info row text: 2000.500 ms a step'
stdout_has 'pass ablation, from text to tied: 19.905 times (floor >= 16, goal >= 40: goal not met)'
stdout_has 'pass ours against torch.compile, B=64 T=1024 bf16: 1.400 times (floor >= 1.33, goal >= 1.45: goal not met)'
stdout_has 'pass ours against torch.compile, B=12 T=1024 bf16: 1.600 times (floor >= 1.36, goal >= 1.55: goal met)'
stdout_has '     kernels: 3 of 4 cases passed'
stdout_has 'skip kernel large: it needs a card'
! grep -q -- '--case old' ran || fail 'this case has passed on a card'
off() { echo "loss off by $1 in the first 40 steps, $1 at most; norm by $2, $2 of itself"; }
for a in cudnn own; do
    stdout_has "pass curve in bf16, $a attention: $(off 0 0); PyTorch: $(off 0.0002 0.002)"
done
stdout_has 'pass compute-sanitizer racecheck, cuda_attention_hopper_backward_bf16: ERROR SUMMARY: 0 errors'
stdout_matches '^[0-9]+ passed, 0 failed, 1 skipped$'
json_has '{"card": "An \"H100\"", "commit": "0123456789ab", "driver": "1.2", "memory": "5 MiB", "date": "2'
json_has '{"complete": true, "passed": '
json_has '"value": 1.600, "floor": 1.36, "goal": 1.55'
json_has '"document": {"results": [{"shape": "a", "us": 1}, {"shape": "b", "us": 2}]}'
turns() { sed -n "s/.*size $1 .*--variant \([^ ]*\) .*/\1/p; s/.*sgt-bench step .*size $1 .*bf16 --json/base/p
    s/.*torch_step.py 12x768x12 $1 .*/torch/p" ran | xargs; }
check 'in turn' test "$(turns 12)" = 'base default,pdl base default,bulk base torch base torch'

gpu 0 fast ab bulk rows
stdout_has 'info --variant default,bulk, B=64, to base: 1.100 times'
stdout_has 'info --variant none, B=12, to base: 1.000 times' # the base, without the variant rows
! grep -q pdl .stdout || fail 'only bulk and rows were named'
gpu 0 '' --budget 120 curves first --skip 'attention own' --skip 'own attention'
check 'what is named, in the order of the table' test "$(ends)" = 'versions 32 first 56 curves 120'
json_has ' "libraries": {"driver": "13.0.0", "cudnn": "9.19.0"}' # of `versions`, which was not named
stdout_has 'skipped curve in bf16, own attention: --skip own attention'
gpu 0 '' more
ran_like 'sgt-bench step --device cpu .* --precision bf16 --steps 5 --json$'
ran_like 'python .*/torch_step.py 12x768x12 4 1024 --precision bf16 --device cpu '
ran_like 'compute-sanitizer --tool memcheck .*/check-cuda-device --one-process --once --exact --limit 0$'
for p in tf32 fp32; do stdout_has "pass curve in $p, auto attention: $(off 0 0); PyTorch: $(off 0.0001 0.001)"; done
stdout_has 'pass deterministic: the same losses and norms twice'
stdout_has 'info step with Muon, B=64: 700000 tokens/s'
stdout_has 'info step on the CPU, B=4 T=1024 bf16: 700000 tokens/s'
stdout_has 'info torch.compile on the CPU, B=4 T=1024 bf16: 500000 tokens/s'
stdout_has '     kernels: 4 of 5 cases passed'
stdout_has 'pass compute-sanitizer memcheck: ERROR SUMMARY: 0 errors'

# ---- a second call runs what is missing ----

gpu 0 '' first ablation cases
again 0 '' first ablation cases
stdout_has 'kept step, B=64 T=1024 bf16: 700000 tokens/s, '
stdout_has 'kept ablation, from text to tied: 19.905 times'
stdout_has '     kernels: 0 of 1 cases passed'
# Only skipped checks run again, and the calls that find out which checks can run.
! grep -vE 'nvidia-smi|python -c|check-cuda-device --list|--case large' ran | grep . || fail 'these ran again'
# A line that was cut off counts as missing.
sed -i '/"name": "ablation, from text to tied"/{h;d}; ${G;s/"part".*//}' gpu-check.jsonl
truncate -s -1 gpu-check.jsonl
again 0 '' first ablation cases
stdout_has 'kept step, B=64 T=1024 bf16: 700000 tokens/s, '
! grep -q 'kept ablation, from text to tied' .stdout || fail 'this line had no end'
run 2 env SAY=other PATH="$PWD/stand:$PATH" b/tools/gpu-check.sh
stderr_is 'gpu-check.sh: gpu-check.jsonl is from another GPU or commit (move it away, or name another file with -o)'
echo abc > b/commit
run 2 env PATH="$PWD/stand:$PATH" b/tools/gpu-check.sh
echo 0123456789ab > b/commit

# ---- one fault at a time; the other checks still run ----

gpu 1 kernel cases
stdout_has 'fail kernel gelu: exit 1: 0 passed, 1 failed, 0 skipped'
stdout_has '    |   out: element 3 is 1, not 2'
log_has 'out: element 3 is 1, not 2'
again 0 '' cases --again
stdout_has '     kernels: 1 of 2 cases passed'
gpu 0 virtual last
stdout_has 'skip compute-sanitizer racecheck, cuda_attention_hopper_bf16: ========= Error: Device not supported'
gpu 1 out versions
stdout_has 'fail self-check: exit 1: sgt-train: self-check: 1 of 1 paths did not pass'
json_has ' "libraries": {"driver": "13.1"}'
gpu 1 cudnn versions first
stdout_matches '^fail attention by cuDNN: it is installed, but was not used: .* sm_90, our attention; .* own \(cuDNN: no\)$'
gpu 1 slow first
stdout_has 'fail tokens a second: 500000 tokens/s (floor >= 625000'
gpu 1 none products
stdout_has 'fail matrix products: no results were printed'
gpu 1 fault ab
stdout_has 'fail --variant default,bulk, B=64: exit 1: sgt-bench step: a kernel failed'
stdout_has 'info --variant default,pdl, B=12, to base: 1.000 times'
gpu 1 one-loss=1 curves more --skip kernel --skip compute
stdout_matches '^fail curve in bf16, own attention: loss off by 0 in the first 40 steps, 1 at most; norm by 0, 0 '
stdout_matches '^pass curve in fp16, auto attention: '
for fault in loss=0.00042 norm=1.0062 one-loss=0.00082 one-norm=1.0162; do
    gpu 1 $fault curves --skip cudnn
    stdout_matches '^fail curve in bf16, own attention: '
done
for fault in loss=0.00038 norm=1.0058 one-loss=0.00078 one-norm=1.0158; do
    gpu 0 $fault curves --skip cudnn
    stdout_matches '^pass curve in bf16, own attention: '
done
gpu 1 short more --skip kernel
stdout_has 'fail curve in fp32, auto attention: fewer than 200 steps were logged'
gpu 1 chance more --skip kernel --skip curve
stdout_has 'fail deterministic: two runs differ from step 75 on'
stdout_has '     kernels: 0 of 0 cases passed' # cases excluded by --skip do not run

# Without PyTorch, float32 is still compared with float64.
gpu 0 torch more --skip kernel
stdout_matches '^pass curve in fp32, auto attention: '

# ---- time that runs out ----

# If each program takes as long as it may on an H100 and its host, the budget suffices for all parts.
cat > took << 'END'
sgt-bench*gemm*layer* 6
sgt-bench*gemm* 20
sgt-bench*ablation*text* 35
sgt-bench*ablation* 8
sgt-bench* 4
sgt-train* 5
*torch_step* 25
*torch_curve* 15
check-cuda-device*--case* 8
compute-sanitizer* 20
nvidia-smi* 2
END
gpu 0 '' --budget 560
[ "$(cat clock)" -le 1560 ] || fail 'more than 560 s'
# If all programs hang, the first result still comes within 20 s, and all parts end in time.
cat > took << 'END'
nvidia-smi*gpu=name* 4
* 10000
END
gpu 1 '' --budget 560
[ "$(sed -n 's/.*"at": \([0-9]*\).*/\1/p' gpu-check.jsonl | head -1)" -le 20 ] || fail 'the first result comes late'
[ "$(cat clock)" -le 1560 ] || fail 'more than 560 s'
for part in $table; do grep -q "\"part\": \"$part\"" gpu-check.jsonl || fail "$part has no result"; done
: > took

# ---- with the real clock: a case that hangs does not run on in the next part ----

mkdir real
for f in nvidia-smi python; do cp stand/$f real; done
cat > b/bin/check-cuda-device << 'END'
#!/bin/sh
case "$*" in *--list*) printf 'gelu\nlarge\n' && exit ;; *gelu*) echo 'ok   it 34' && exit ;; esac
echo $$ > "$RAN.pid"
exec sleep 1000
END
PATH=$PWD/real:$PATH PYTHON=$PWD/real/python b/tools/gpu-check.sh --budget 16 cases --skip versions -o real.jsonl > said 2>&1 &
# Each result is written as soon as it is known, so it survives if gpu-check.sh is killed.
until grep -qs '"pass", "name": "kernel gelu"' real.jsonl; do kill -0 $! || fail 'no result of gelu' && sleep 0.1; done
cp real.jsonl soon.jsonl
wait $! && fail 'it was cut'
check 'cut' grep -q "^cut  kernel cases: the part's time is over, 1 have not run: first large$" said
exists ran.pid
! kill -0 "$(cat ran.pid)" 2> /dev/null || fail 'the case goes on'
! grep -q 'kernel large\|complete' soon.jsonl || fail 'the run had not ended'

# ---- check-cuda-device itself ----

check_cuda=$BIN/../tests/check-cuda
[ -x "$check_cuda" ] || exit 0
run_prints_like '^ok   wrapper_wgmma [0-9a-f]{16}$' "$check_cuda" --case wrapper_wgmma
grep '^ok' .stdout > guarded
run 0 "$check_cuda" --case wrapper_wgmma --exact --one-process
grep '^ok' .stdout > exact
same guarded exact
run 77 "$check_cuda" --case card_attention_rows
stdout_has 'SKIP card_attention_rows: its size needs a card'
run 77 env SGT_HOST_DEVICE=arch=80 "$check_cuda" --case wrapper_wgmma
stdout_has 'SKIP wrapper_wgmma: it needs sm_90a'
stdout_has '0 passed, 0 failed, 1 skipped'
run 77 env SGT_HOST_DEVICE=nodriver "$check_cuda"
stdout_is 'SKIP: no CUDA driver: libcuda.so.1 was not found'
for fault in "overrun=wrote 37 bytes from the start of a buffer of 37 bytes" "underrun=wrote -1 bytes from the start" \
    "other_bits=has other bits than in the first run" "error=a kernel failed: an illegal memory access" "crash=planted_crash: " \
    "hang=planted_hang: no end after 1 s"; do
    run 1 "$check_cuda" --limit 1 --case "planted_${fault%%=*}"
    stdout_has "${fault#*=}"
    stdout_has "FAIL planted_${fault%%=*}"
    stdout_has '0 passed, 1 failed, 0 skipped'
done
run 1 "$check_cuda" --one-process --once --case planted_overrun
run 2 "$check_cuda" --case nothing
run 2 "$check_cuda" --limit 1x
