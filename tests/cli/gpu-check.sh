# gpu-check.sh without a GPU: what it would do; and with programs that stand in for everything a GPU is needed for, what
# it makes of good figures, bad ones, none, and of being cut short. Then check-cuda-device, with the host as its device.
# In make check-all only: it runs all kernels on the host, as a GPU would.
. "$ROOT/tests/cli/lib.sh"
[ ! -e /dev/nvidia0 ] || skip 'there is a GPU here: tools/gpu-check.sh itself shows more'
check=$ROOT/tools/gpu-check.sh
TMPDIR=$PWD # what a killed run leaves goes with this folder
export TMPDIR

# ---- no GPU ----

run 77 "$check"
stdout_lines 6
stdout_matches '^SKIP conformance: no CUDA device; it would '
stdout_has '0 passed, 0 failed, 5 skipped'
stderr_is ''
absent gpu-check.json
run 77 "$check" speed -o f.json
stdout_lines 2
absent f.json
run 0 "$check" --dry-run
[ "$(grep -c '^== ' .stdout)" -eq 5 ] || fail 'five parts'
for p in fp32 tf32 bf16 fp16; do stdout_matches "^  .*/bin/sgt-train .* --device cuda .* --precision $p\\b"; done
stdout_matches '^  .*/bin/sgt-bench step --device cuda --model gpt2 --batch-size 12 --seq-len 1024 --precision bf16 '\
'--json$'
stdout_matches '^  compute-sanitizer --tool racecheck .*/check-cuda-device --one-process'
stdout_matches '^  .*torch_step.py 12x768x12 64 512 --precision bf16 --mode max-autotune --device cuda$'
stderr_is ''
absent gpu-check.json
run 2 "$check" fast
stderr_is 'gpu-check.sh: fast: no such part or option (gpu-check.sh '\
'[-o FILE] [--dry-run] [conformance|kernels|parity|speed|peer]...)'
run 2 "$check" -o
run 0 "$check" --help
stdout_has 'Exit 0: what ran passed'

# ---- stand-ins: SAY holds what is to go wrong ----

mkdir -p b/bin b/tools b/tests/data/fixtures b/tests/peers b/data/shards stand
cp "$check" b/tools
cp -r "$ROOT/tests/data/fixtures/curve" b/tests/data/fixtures
echo 0123456789ab > b/commit
export CURVE="$PWD/b/tests/data/fixtures/curve/f64.tsv" SAY=''

stand() { # FILE: a program from stdin
    { echo '#!/bin/sh' && cat; } > "$1"
    chmod +x "$1"
}
stand stand/nvidia-smi << 'END'
case $1 in *name) echo 'A "card"' ;; *driver_version) echo 1.2 ;; *) echo '5 MiB' ;; esac
END
stand stand/compute-sanitizer << 'END'
case "$SAY $*" in race*racecheck*) echo '========= RACECHECK SUMMARY: 1 hazard' && exit 9 ;; esac
echo '========= ERROR SUMMARY: 0 errors'
END
stand b/bin/check-cuda-device << 'END'
echo "CUDA kernels on it"
case "$SAY $*" in bits*managed) echo 'ok   gelu 12' ;; *) echo 'ok   gelu 34' ;; esac
case "$SAY" in kernel) echo 'FAIL gelu' && echo '0 passed, 1 failed, 0 skipped' && exit 1 ;; slow) sleep 15 ;; esac
echo '1 passed, 0 failed, 0 skipped'
END
stand b/bin/check-step << 'END'
echo '9 passed, 0 failed, 0 skipped'
END
stand b/bin/sgt-train << 'END'
all=$*
while [ $# -gt 0 ]; do [ "$1" = --run ] && run=$2; [ "$1" = --steps ] && steps=$2; shift; done
mkdir "$run"
awk -F '\t' -v say="$SAY" -v steps="$steps" -v all="$all" 'NR > 1 && NR <= steps + 1 {
    if (say == "curve" && NR == 150 && all ~ /bf16/) $2 += 1
    if (say == "short" && NR == 150 && all ~ /fp32/) $2 = "null"
    if (say == "chance" && NR == 77 && all ~ /deterministic/) $2 = "1.0000" '$$'
    printf "{\"step\":%d,\"loss\":%s,\"lr\":1,\"grad_norm\":%s,\"ms_per_step\":50,\"data_wait_ms\":%s}\n", $1, $2, $3,
        say == "wait" ? 5 : 0.01 }' "$CURVE" > "$run/log.jsonl"
END
stand b/bin/sgt-bench << 'END'
tokens=700000
case "$SAY $*" in fp16*fp16*) tokens=600000 ;; peer*" 12 "*) tokens=10 ;; esac
case $1 in
step) echo '{"tokens_per_s": '$tokens', "ms_per_step": 93.6, "mfu": 0.6, "mfu_datasheet": 0.5,'
    echo ' "peak_bytes": 2147483648, "launches_forward": 109, "data_wait_ms": 0}' ;;
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
*torch_curve*) awk -F '\t' 'NR > 1 { printf "%d\t%.9f\t%.9f\n", $1, $2 + 1e-4, $3 * 1.001 }' "$CURVE" ;;
*torch_step*) echo '{"tokens_per_s": 500000, "ms_per_step": 131, "peak_bytes": 3000000000}' ;;
*torch_attention*) echo '{"results": [{"path": "cudnn", "us": 1}]}' ;;
esac
END
gpu() { # EXIT SAY PART...
    want=$1 SAY=$2
    shift 2
    rm -f gpu-check.json
    run "$want" env PATH="$PWD/stand:$PATH" PYTHON="$PWD/stand/python" b/tools/gpu-check.sh "$@"
    stderr_is ''
    is_json
}
is_json() {
    exists gpu-check.json
    absent gpu-check.json.part
    ! command -v python3 > /dev/null || check 'the file is JSON' python3 -m json.tool gpu-check.json .json
}
json_has() { grep -qF -e "$1" gpu-check.json || fail "gpu-check.json lacks: $1"; }

# ---- all is well ----

gpu 0 ''
stdout_matches '^pass wrappers: 1 passed, 0 failed, 0 skipped'
stdout_has 'pass the same bits in both: 1 cases'
stdout_has 'pass compute-sanitizer racecheck: ERROR SUMMARY: 0 errors'
stdout_has 'pass curve in tf32: loss off by at most 0, norm by 0 of itself; PyTorch 0.0001, 0.001'
stdout_has 'pass deterministic: the same losses and norms twice'
stdout_matches '^info step, B=64 T=1024 bf16: 700000 tokens/s, 93.6 ms, mfu 0.6 .* 2.00 GiB, 109 launches forward$'
stdout_has 'pass fp16 with scaler against bf16: 1.000 times (floor >= 0.97, goal >= 1: goal met)'
stdout_matches '^pass start to first step, the second time: [0-9.]+ s \(floor <= 10, goal <= 2: goal '
stdout_has 'pass data wait, of a step: 0.0200 % (floor <= 1, goal <= 0.1: goal met)'
stdout_has 'pass ablation, first row to last: 70.000 times (floor >= 16, goal >= 40: goal met)'
stdout_has '     shape: b, us: 2'
stdout_has 'pass B=12 T=1024 bf16 against torch.compile: 1.400 times (floor >= 1.3, goal >= 1.8: goal not met)'
stdout_has 'pass peak memory against torch.compile, B=64 T=1024: 0.716 times'
stdout_matches '^[0-9]+ passed, 0 failed, 0 skipped$'
json_has '"card": "A \"card\"", "driver": "1.2", "memory": "5 MiB"'
json_has '"commit": "0123456789ab", "complete": true'
json_has '"value": 1.400, "floor": 1.3, "goal": 1.8'
json_has '"document": {"results": [{"shape": "a", "us": 1}, {"shape": "b", "us": 2}]}'
gpu 0 '' conformance
stdout_has '1 passed, 0 failed, 0 skipped'

# ---- what is not, each by itself; the rest goes on ----

gpu 1 kernel conformance kernels
stdout_has 'fail wrappers: exit 1: 0 passed, 1 failed, 0 skipped'
stdout_has 'pass compute-sanitizer memcheck'
json_has '"conformance": {"status": "fail"'
gpu 1 bits kernels
stdout_has 'fail the same bits in both: '
gpu 1 race kernels
stdout_has 'fail compute-sanitizer racecheck: exit 9'
gpu 1 curve parity
stdout_matches '^fail curve in bf16: loss off by at most 1, '
stdout_matches '^pass curve in fp16: '
gpu 1 short parity
stdout_has 'fail curve in fp32: the log does not hold 200 steps of numbers'
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
stdout_matches '^pass B=64 T=512 bf16 against torch.compile'

# without PyTorch: skipped and counted; float32 is held to float64 all the same
gpu 0 torch parity peer
stdout_has 'no PyTorch in'
stdout_matches '^pass curve in fp32: '
stdout_matches '^info curve in bf16: .*no PyTorch to hold it to$'
stdout_matches '^[0-9]+ passed, 0 failed, 1[0-9] skipped$'
rm b/bin/check-step
gpu 0 '' parity
stdout_matches '^skip steps of the fixtures in fp32: .*check-step is not there$'

# ---- cut short: by a part's time, by a signal ----

PART_SECONDS=15 # where less than 6 are left nothing is begun
export PART_SECONDS
gpu 1 slow conformance kernels
stdout_matches "^cut  wrappers: the part's 15 s were over after (1[0-5]|[6-9]) s of it$"
stdout_has "cut  kernels, managed memory: the part's 15 s are over"
json_has '"complete": true'
PART_SECONDS=60
rm -f gpu-check.json .stdout
SAY=slow PATH=$PWD/stand:$PATH PYTHON=$PWD/stand/python b/tools/gpu-check.sh speed kernels > .stdout 2> .stderr &
pid=$!
i=0
until grep -q '^== kernels' .stdout; do
    sleep 0.1
    i=$((i + 1))
    [ $i -lt 600 ] || fail 'the part did not begin'
done
kill -KILL $pid
wait $pid 2> /dev/null
is_json
json_has '"complete": false'
json_has 'ablation, first row to last'

# ---- check-cuda-device itself ----

pretend=$BIN/../tests/check-cuda-pretend
[ -x "$pretend" ] || exit 0
run 0 "$pretend" --conformance
stdout_matches '^ok   wrapper_wgmma [0-9a-f]{16}$'
grep '^ok' .stdout > mapped
run 0 "$pretend" --conformance --managed --exact --one-process
grep '^ok' .stdout > managed
same mapped managed
run 0 env PRETEND_ARCH=80 "$pretend" --conformance
stdout_has 'SKIP wrapper_wgmma: it needs sm_90a'
stdout_matches '^[0-9]+ passed, 0 failed, 2 skipped$'
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
