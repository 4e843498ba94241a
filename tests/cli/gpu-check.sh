# gpu-check.sh without a GPU: its plan. With stand-ins for all programs that need a GPU: good, bad and missing figures,
# an early end, and a second call. Then check-cuda-device, with the host as its device.
# In make check-all only: it runs all kernels on the host, as a GPU would.
. "$ROOT/tests/cli/lib.sh"
[ ! -e /dev/nvidia0 ] || skip 'there is a GPU here: tools/gpu-check.sh itself shows more'
check=$ROOT/tools/gpu-check.sh
TMPDIR=$PWD # files left by a killed run are removed with this folder
CUDA_HOME=$PWD/toolkit
export TMPDIR CUDA_HOME

# ---- no GPU ----

run 77 "$check"
stdout_lines 9
stdout_matches '^SKIP conformance: no CUDA device; it would '
stdout_has '0 passed, 0 failed, 8 skipped'
stderr_is ''
absent gpu-check.json
run 77 "$check" speed -o f.json
stdout_lines 2
absent f.json
run 0 "$check" --dry-run --max-autotune
[ "$(grep -c '^== ' .stdout)" -eq 8 ] || fail 'eight parts'
[ "$(grep '^== ' .stdout | head -1 | cut -c 1-9)" = '== smoke:' ] || fail 'smoke is first'
for p in fp32 tf32 bf16 fp16; do stdout_matches "^  .*/bin/sgt-train .* --device cuda .* --precision $p\\b"; done
stdout_matches '^  .*/bin/sgt-bench step --device cuda --model gpt2 --batch-size 12 --seq-len 1024 --precision bf16 '\
'--json$'
stdout_matches '^  .* --batch-size 8 .* --attention naive --no-graphs --no-fuse --steps 12 --warmup 3 --json$'
stdout_matches '^  compute-sanitizer --tool racecheck .*/check-cuda-device --one-process'
stdout_matches '^  .*torch_step.py 12x768x12 64 1024 --precision bf16 --mode default --sdpa cudnn --device cuda$'
stdout_matches '^  .*torch_step.py .* --mode max-autotune '
stderr_is ''
absent gpu-check.json
absent gpu-check.json.log
run 0 "$check" --dry-run peer
! grep -q autotune .stdout || fail 'max-autotune takes minutes, and is only done when asked for'
run 0 "$check" --dry-run speed --skip ablation --skip 'first step, the'
stdout_matches '^left ablation: --skip ablation$'
stdout_has 'left start to first step, the second time: '
! grep -q 'sgt-bench ablation' .stdout || fail 'ablation was to be left out'
run 2 "$check" fast
stderr_matches '^gpu-check.sh: fast: no such part or option \(gpu-check.sh \[-o FILE\] .*\[smoke\|.*\|ranks\]\.\.\.\)$'
run 2 "$check" -o
stderr_matches '^gpu-check.sh: -o needs a value '
run 2 "$check" --seconds 9m
stderr_matches '^gpu-check.sh: --seconds 9m: not a number '
run 0 "$check" --help
stdout_has 'Exit 0: what ran passed'

# ---- stand-ins for programs that need a GPU; SAY chooses their fault ----

mkdir -p b/bin b/tools b/tests/data/fixtures b/tests/peers b/data/shards stand toolkit/lib64
cp -r "$check" "$ROOT/tools/gpu" b/tools
cp -r "$ROOT/tests/data/fixtures/curve" b/tests/data/fixtures
echo 0123456789ab > b/commit
: > toolkit/lib64/libcudnn.so.9
export CURVE="$PWD/b/tests/data/fixtures/curve/f64.tsv" SAY='' RAN="$PWD/ran"

stand() { # FILE: make a program from standard input that also records its calls in $RAN
    { echo '#!/bin/sh' && printf '%s\n' 'printf "%s\n" "$(basename "$0") $*" | head -1 >> "$RAN"' && cat; } > "$1"
    chmod +x "$1"
}
stand stand/nvidia-smi << 'END'
case "$*" in *gpu=name*) [ "$SAY" = other ] && echo other || echo 'An "H100"' ;; *driver_version*) echo 1.2 ;;
*total*) echo '5 MiB' ;; -L) echo 'GPU 0: it' ;; esac
END
stand stand/compute-sanitizer << 'END'
case "$SAY $*" in
race*racecheck*) echo '========= RACECHECK SUMMARY: 1 hazard' && exit 9 ;;
virtual*) echo '========= Error: Device not supported' && exit 1 ;;
esac
echo '========= ERROR SUMMARY: 0 errors'
END
stand stand/ldconfig << 'END'
END
stand b/bin/check-cuda-device << 'END'
case "$*" in *--list*) echo gelu && echo wrapper_mma && echo large && exit 0 ;; esac
case "$SAY $*" in
kernel*gelu*) printf '  out: element 3 is 1, not 2\nFAIL gelu\n0 passed, 1 failed, 0 skipped\n' && exit 1 ;;
hang*gelu*) printf '  gelu: no end after 55 s\nFAIL gelu\n0 passed, 1 failed, 0 skipped\n' && exit 1 ;;
late*large*) i=0 && until [ -e "$RAN.go" ] || [ $((i += 1)) -gt 900 ]; do sleep 0.1; done ;;
slow*) sleep 15 && echo "$*" >> "$RAN.late" ;;
*large*) echo 'SKIP large: it needs a card' && exit 77 ;;
esac
printf 'CUDA kernels on it\nok   it 34\n1 passed, 0 failed, 0 skipped\n'
END
stand b/bin/check-step << 'END'
echo '9 passed, 0 failed, 0 skipped'
END
stand b/bin/sgt-train << 'END'
all=$*
case "$SAY $*" in
self*--help*) echo '      --self-check   look at each path' && exit 0 ;;
self*--self-check*) printf 'own attention ok\ncudnn attention out\n' && exit 0 ;;
esac
while [ $# -gt 0 ]; do [ "$1" = --run ] && run=$2; [ "$1" = --steps ] && steps=$2; shift; done
mkdir "$run"
awk -F '\t' -v say="$SAY" -v steps="$steps" -v all="$all" 'NR > 1 && NR <= steps + 1 {
    if (say == "curve" && NR == 150 && all ~ /bf16/) $2 += 1
    split(say, fault, "=")
    if (fault[1] == "loss" && NR < 42 && all ~ /bf16/) $2 += fault[2]
    if (fault[1] == "norm" && NR < 42 && all ~ /bf16/) $3 *= fault[2]
    if (fault[1] == "one-loss" && NR == 150 && all ~ /bf16/) $2 += fault[2]
    if (fault[1] == "one-norm" && NR == 150 && all ~ /bf16/) $3 *= fault[2]
    if (say == "short" && NR == 150 && all ~ /fp32/) $2 = "null"
    if (say == "chance" && NR == 77 && all ~ /deterministic/) $2 = "1.0000" '$$'
    printf "{\"step\":%d,\"loss\":%s,\"lr\":1,\"grad_norm\":%s,\"ms_per_step\":50,\"data_wait_ms\":%s}\n", $1, $2, $3,
        say == "wait" ? 5 : 0.01 }' "$CURVE" > "$run/log.jsonl"
END
stand b/bin/sgt-bench << 'END'
tokens=700000 level="cuDNN's attention" loss=10.9
case "$*" in *own*) level='our attention' ;; *naive*) level='naive attention' ;; esac
case "$SAY $*" in
fp16*fp16*) tokens=600000 ;;
peer*" 12 "*) tokens=10 ;;
*"size 12 "*) tokens=800000 ;;
cudnn*) level='our attention' && echo 'attention: ours (cuDNN: no)' >&2 ;;
nan*own*) loss=20.5 ;;
fault*own*--no-graphs*) echo 'sgt-bench step: a kernel failed' >&2 && exit 1 ;;
endless*own*--no-graphs*) sleep 100 ;;
variants*--variants*) printf 'pdl\tlaunches overlap\nbulk\tcopies by rows\n' && exit 0 ;;
variants*'--variant bulk'*) tokens=770000 ;;
*--variants*) echo 'sgt-bench step: unknown option --variants' >&2 && exit 2 ;;
esac
case $1 in
step) echo '{"tokens_per_s": '$tokens', "ms_per_step": 93.6, "mfu": 0.6, "mfu_datasheet": 0.5, "loss": '$loss','
    echo " \"level\": \"sm_90, $level\"," '"peak_bytes": 2147483648, "launches_forward": 109, "data_wait_ms": 0}' ;;
ablation) echo '{"results": [{"name": "all off", "tokens_per_s": 10000},'
    echo ' {"name": "all on", "tokens_per_s": 700000}]}' ;;
*) [ "$SAY" = none ] && echo '{"results": []}' ||
    echo '{"results": [{"shape": "a", "us": 1}, {"shape": "b", "us": 2}]}' ;;
esac
END
stand stand/python << 'END'
[ "$SAY" != torch ] || exit 1
case "$*" in
*'import torch'*) echo True ;;
*torch_curve*half*) awk -F '\t' 'NR > 1 { printf "%d\t%.9f\t%.9f\n", $1, $2 + 2e-4, $3 * 1.002 }' "$CURVE" ;;
*torch_curve*) awk -F '\t' 'NR > 1 { printf "%d\t%.9f\t%.9f\n", $1, $2 + 1e-4, $3 * 1.001 }' "$CURVE" ;;
*torch_step*)
    tokens=500000
    case "$SAY $*" in
    noflash*"sdpa flash"*) echo 'RuntimeError: no kernel' >&2 && exit 1 ;;
    *"sdpa flash"*) tokens=400000 ;;
    esac
    echo '{"tokens_per_s": '$tokens', "ms_per_step": 131, "first_steps_s": 20, "peak_bytes": 3000000000}' ;;
*torch_attention*) echo '{"results": [{"path": "cudnn", "us": 1}]}' ;;
esac
END
again() { # EXIT SAY OPTION...: run it again with the existing JSON
    want=$1 SAY=$2
    shift 2
    : > ran
    run "$want" env PATH="$PWD/stand:$PATH" PYTHON="$PWD/stand/python" b/tools/gpu-check.sh "$@"
    stderr_is ''
    is_json
}
gpu() { # EXIT SAY OPTION...
    rm -f gpu-check.json gpu-check.json.log
    again "$@"
}
is_json() {
    exists gpu-check.json
    absent gpu-check.json.part
    ! command -v python3 > /dev/null || check 'the file is JSON' python3 -m json.tool gpu-check.json .json
}
json_has() { grep -qF -e "$1" gpu-check.json || fail "gpu-check.json lacks: $1"; }
log_has() { grep -qF -e "$1" gpu-check.json.log || fail "gpu-check.json.log lacks: $1"; }

# ---- no fault ----

gpu 0 ''
stdout_has "info libraries: libcublasLt.so.13: not there; libcudnn.so.9: $PWD/toolkit/lib64/libcudnn.so.9; "
stdout_has 'skip self-check: this sgt-train has no --self-check'
[ "$(grep -c '^pass 15 steps, ' .stdout)" -eq 12 ] || fail 'not 12 ways of doing a step'
stdout_has 'pass 15 steps, naive, no graphs, not fused: 700000 tokens/s, 93.6 ms, mfu 0.6 '
stdout_has "pass first step, B=64 T=1024 bf16: "
stdout_has '     kernel: 2 of 3 cases passed'
stdout_has 'skip kernel large: it needs a card'
stdout_has 'pass compute-sanitizer racecheck: ERROR SUMMARY: 0 errors'
off() { echo "loss off by $1 in the first 40 steps, $1 at most; norm by $2, $2 of itself"; }
stdout_has "pass curve in tf32, auto attention: $(off 0 0); PyTorch: $(off 0.0001 0.001)"
stdout_has "pass curve in bf16, cudnn attention: $(off 0 0); PyTorch: $(off 0.0002 0.002)"
stdout_has "info PyTorch's curve in bf16, autocast: $(off 0.0001 0.001)"
stdout_has 'pass deterministic: the same losses and norms twice'
stdout_matches '^info step, B=64 T=1024 bf16: 700000 tokens/s, 93.6 ms, mfu 0.6 .* 2.00 GiB, loss 10.9, sm_90, cuDNN'
stdout_has 'pass tokens a second, B=64 T=1024 bf16: 700000 tokens/s (floor >= 600000, goal >= 680000: goal met)'
stdout_has 'pass fp16 with scaler against bf16: 1.000 times (floor >= 0.97, goal >= 1: goal met)'
stdout_matches '^info start to first step, the first time: [0-9.]+ s$'
stdout_matches '^pass start to first step, the second time: [0-9.]+ s \(floor <= 3, goal <= 2: goal '
stdout_has 'pass data wait, of a step: 0.0200 % (floor <= 0.1, goal <= 0.05: goal met)'
stdout_has 'pass ablation, first row to fastest: 70.000 times (floor >= 16, goal >= 40: goal met)'
stdout_has '     shape: b, us: 2'
stdout_has 'pass B=64 T=1024 bf16 against torch.compile: 1.400 times (floor >= 1.35, goal >= 1.5: goal not met)'
stdout_has 'pass B=12 T=1024 bf16 against torch.compile: 1.600 times (floor >= 1.5, goal >= 1.8: goal not met)'
stdout_has 'pass peak memory against torch.compile, B=64 T=1024 bf16: 0.716 times'
stdout_has 'skip variants: this sgt-bench step has no --variants'
stdout_has 'pass NCCL, one rank: ok   it 34'
stdout_matches '^[0-9]+ passed, 0 failed, 4 skipped$'
json_has '"card": "An \"H100\"", "driver": "1.2", "memory": "5 MiB"'
json_has '"commit": "0123456789ab", "complete": true'
json_has '"value": 1.600, "floor": 1.5, "goal": 1.8'
json_has '"document": {"results": [{"shape": "a", "us": 1}, {"shape": "b", "us": 2}]}'
log_has '---- kernels: kernel gelu: exit 0'
log_has 'ok   it 34'
# The programs alternate, two turns each: sgt, then PyTorch with each attention.
turns=$(grep -E '"name": "(ours|torch.compile).*B=12 ' gpu-check.json | sed 's/.*"name": "\([^,]*\),.*/\1/')
[ "$(echo $turns)" = \
    'ours torch.compile flash torch.compile cudnn ours torch.compile flash torch.compile cudnn' ] ||
    fail 'not in turn'

# ---- a second call runs what is missing ----

again 0 ''
stdout_has 'kept first step, B=64 T=1024 bf16: 700000 tokens/s, '
stdout_has 'kept B=64 T=1024 bf16 against torch.compile: 1.400 times'
stdout_matches '^[0-9]+ passed, 0 failed, 4 skipped$'
# Only skipped parts run again, and the checks that decide whether they can run.
! grep -vE 'nvidia-smi|ldconfig|python -c|check-cuda-device --(conformance --)?list|--case large|--help|--variants' ran | grep . ||
    fail 'these ran again'
run 2 env SAY=other PATH="$PWD/stand:$PATH" b/tools/gpu-check.sh
stderr_is 'gpu-check.sh: gpu-check.json is of another card or commit: move it away, or name another file with -o'
echo abc > b/commit
run 2 env PATH="$PWD/stand:$PATH" b/tools/gpu-check.sh
echo 0123456789ab > b/commit
gpu 0 '' conformance
stdout_has '2 passed, 0 failed, 1 skipped'

# ---- one fault at a time; the other parts run ----

gpu 1 kernel conformance kernels
stdout_has 'fail wrapper gelu: exit 1: 0 passed, 1 failed, 0 skipped'
stdout_has '    |   out: element 3 is 1, not 2'
stdout_has 'pass compute-sanitizer memcheck'
json_has '"conformance": {"status": "fail"'
log_has 'out: element 3 is 1, not 2'
again 1 '' conformance kernels
stdout_has '     kernel: 1 of 3 cases passed'
again 0 '' conformance kernels --again
stdout_has '     kernel: 2 of 3 cases passed'
gpu 1 hang kernels
stdout_has '    |   gelu: no end after 55 s'
gpu 1 race kernels
stdout_has 'fail compute-sanitizer racecheck: exit 9'
gpu 0 virtual kernels
stdout_has 'skip compute-sanitizer memcheck: it does not support this device'
gpu 0 self smoke
stdout_has 'pass self-check: 2 lines, as above'
stdout_matches '^pass self-check, the time it takes: [0-9.]+ s \(floor <= 5, goal <= 3: goal (not )?met\)$'
gpu 1 cudnn smoke
stdout_matches '^fail 15 steps, cudnn, graphs, fused: it took sm_90, our attention: attention: ours \(cuDNN: no\)$'
stdout_matches '^fail first step, .*: cuDNN is there \(.*libcudnn.so.9\) and was not taken: .* ours \(cuDNN: no\)$'
gpu 1 nan smoke
stdout_has 'fail 15 steps, own, graphs, fused: loss 20.5'
gpu 1 fault smoke
stdout_has 'fail 15 steps, own, no graphs, fused: exit 1: sgt-bench step: a kernel failed'
stdout_has 'pass 15 steps, own, graphs, not fused: '
gpu 1 endless smoke --skip 'not fused'
stdout_has 'fail 15 steps, own, no graphs, fused: no end after 40 s'
stdout_has 'pass 15 steps, naive, no graphs, fused: '
stdout_has 'left 15 steps, own, graphs, not fused: --skip not fused'
gpu 1 curve parity
stdout_matches '^fail curve in bf16, own attention: loss off by 0 in the first 40 steps, 1 at most; norm by 0, 0 '
stdout_matches '^pass curve in fp16, own attention: '
for fault in loss=0.00042 norm=1.0062 one-loss=0.00082 one-norm=1.0162; do
    gpu 1 $fault parity
    stdout_matches '^fail curve in bf16, own attention: '
    stdout_matches '^pass curve in fp32, auto attention: '
done
for fault in loss=0.00038 norm=1.0058 one-loss=0.00078 one-norm=1.0158; do
    gpu 0 $fault parity
    stdout_matches '^pass curve in bf16, own attention: '
done
gpu 1 short parity
stdout_has 'fail curve in fp32, auto attention: the log does not hold 200 steps of numbers'
gpu 1 chance parity
stdout_has 'fail deterministic: two runs part at step 75'
gpu 1 fp16 speed
stdout_has 'fail fp16 with scaler against bf16: 0.857 times'
gpu 1 wait speed
stdout_has 'fail data wait, of a step: 10.0000 %'
gpu 1 none speed
stdout_has 'fail matrix products: no results came'
stdout_has 'pass ablation'
gpu 1 peer peer
stdout_matches '^fail B=12 T=1024 bf16 against torch.compile: 0.000 times'
stdout_matches '^pass B=64 T=1024 bf16 against torch.compile'
gpu 1 noflash peer
stdout_has 'fail torch.compile flash, B=64 T=1024 bf16, turn 1: exit 1: RuntimeError: no kernel'
stdout_has 'pass B=64 T=1024 bf16 against torch.compile: 1.400 times'
gpu 0 variants variants
stdout_has 'info variant bulk, B=64 T=1024 bf16: 1.100 times'
stdout_has 'info variant pdl, B=64 T=1024 bf16: 1.000 times'

# Without PyTorch its parts are skipped and counted; float32 is still compared with float64.
gpu 0 torch parity peer
stdout_has 'no PyTorch in'
stdout_matches '^pass curve in fp32, auto attention: '
stdout_matches '^info curve in bf16, own attention: .*no PyTorch to hold it to$'
stdout_has 'skip B=12 T=1024 bf16 against torch.compile: a figure is missing'
rm b/bin/check-step toolkit/lib64/libcudnn.so.9
gpu 0 '' parity smoke
stdout_matches '^skip steps of the fixtures in fp32: .*check-step is not there$'
stdout_has 'skip 15 steps, cudnn, graphs, fused: no libcudnn.so.9 on this machine'
! grep -q 'curve in bf16, cudnn' .stdout || fail 'there is no cuDNN to train with'

# ---- ended early: by a part's time limit, by a signal ----

gpu 1 slow conformance kernels --seconds 12 # no part begins if less than 6 s are left
stdout_has "cut  wrapper cases: the part's 12 s are over, 3 have not run: first gelu"
stdout_has "cut  kernel cases: the part's 12 s are over, 3 have not run: first gelu"
absent ran.late # no case of the first part went on in the second
json_has '"complete": true'
again 0 '' conformance kernels --seconds 60
stdout_has '     wrapper: 2 of 3 cases passed'
# killed WHEN FILE SAY OPTION...: run it, and kill it when FILE has a line with WHEN. Its subshells go on, and write to
# the file SAY.
killed() {
    when=$1 file=$2 SAY=$3
    shift 3
    PATH=$PWD/stand:$PATH PYTHON=$PWD/stand/python b/tools/gpu-check.sh "$@" > "$SAY" 2>&1 &
    pid=$!
    i=0
    until grep -qs -e "$when" "$file"; do
        sleep 0.1
        i=$((i + 1))
        [ $i -lt 600 ] || fail "$file has no line with $when"
    done
    kill -KILL $pid
    wait $pid 2> /dev/null
}
rm -f gpu-check.json
killed '^== kernels' slow slow speed kernels
is_json
json_has '"complete": false'
json_has 'ablation, first row to fastest'

# A result is kept as soon as its case ends.
killed '"pass", "name": "kernel wrapper_mma"' late.json late kernels -o late.json
grep -q '"pass", "name": "kernel gelu"' late.json || fail 'the case before it has no result'
! grep -q 'kernel large' late.json || fail 'this case had not ended'
touch ran.go

# ---- check-cuda-device itself ----

pretend=$BIN/../tests/check-cuda-pretend
[ -x "$pretend" ] || exit 0
run 0 "$pretend" --conformance
stdout_matches '^ok   wrapper_wgmma [0-9a-f]{16}$'
grep '^ok' .stdout > guarded
run 0 "$pretend" --conformance --exact --one-process
grep '^ok' .stdout > exact
same guarded exact
# The last three make tensor maps, which must be of addresses on the device.
for case in mirror nccl_one_rank cuda_attention_hopper_bf16 cuda_attention_hopper_backward_bf16 \
    cuda_attention_hopper_apart; do
    run 0 "$pretend" --case $case
done
for case in card_attention_heads card_attention_rows card_cross_entropy; do
    run 77 "$pretend" --case $case
    stdout_has "SKIP $case: its size needs a card"
done
run 0 env PRETEND_ARCH=80 "$pretend" --conformance
stdout_has 'SKIP wrapper_wgmma: it needs sm_90a'
stdout_matches '^[0-9]+ passed, 0 failed, 3 skipped$'
run 77 env PRETEND_ARCH=80 "$pretend" --case pipeline_wgmma
run 77 env PRETEND_NO_DEVICE=1 "$pretend"
stdout_is 'SKIP: no CUDA driver'
for fault in "overrun=wrote 37 bytes from the start of a buffer of 37 bytes" "underrun=wrote -1 bytes from the start" \
    "far_overrun=wrote 4159 bytes from" "other_bits=has other bits on turn 2 than in the first" \
    "wrong=not exactly" "error=a kernel failed: an illegal memory access" "crash=planted_crash: " \
    "hang=planted_hang: no end after 1 s"; do
    run 1 "$pretend" --limit 1 --case "planted_${fault%%=*}"
    stdout_has "${fault#*=}"
    stdout_has "FAIL planted_${fault%%=*}"
    stdout_has '0 passed, 1 failed, 0 skipped'
done
run 1 "$pretend" --one-process --once --case planted_overrun
run 2 "$pretend" --case nothing
run 2 "$pretend" --limit 1x
