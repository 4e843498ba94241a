#!/bin/sh
# gpu-check.sh [-o FILE] [--dry-run] [PART]...: what only a machine with an NVIDIA GPU can show. It runs in the
# repository after `make gpu-bundle`, or in the folder which that makes, on a machine that has nothing else of ours.
#
#     conformance  each wrapper of PTX against its host twin's answers, exact, on integers
#     kernels      every CUDA kernel against kernels/ref, twice, bits compared; memory and races by compute-sanitizer
#     parity       200 steps in every precision against float64; --deterministic gives the same bits again
#     speed        matrix products, attention, the step, the ablation chain, memory, data wait, start to first step
#     peer         PyTorch on the same shapes, and the ratios to it
#
# All parts by default, in this order, each within 9 minutes: what does not fit is "cut", the rest of the parts go on.
# Each figure is printed when it is there, and kept in FILE (gpu-check.json), which is whole at any moment.
# Exit 0: what ran passed; 1: something failed, missed its floor or was cut; 2: wrong usage; 77: nothing could run.
# PYTHON (python3) is the one that may hold PyTorch; B (build) is where the repository was built.
set -u
LC_ALL=C
export LC_ALL
PART_SECONDS=${PART_SECONDS:-540}
PYTHON=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
json=gpu-check.json dry=

usage() {
    echo "gpu-check.sh: $1 (gpu-check.sh [-o FILE] [--dry-run] [conformance|kernels|parity|speed|peer]...)" >&2
    exit 2
}

parts=
while [ $# -gt 0 ]; do
    case $1 in
    -o) [ $# -gt 1 ] || usage "-o needs a file" && json=$2 && shift ;;
    --dry-run) dry=1 ;;
    --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && exit 0 ;;
    conformance | kernels | parity | speed | peer) parts="$parts $1" ;;
    *) usage "$1: no such part or option" ;;
    esac
    shift
done
parts=${parts:-conformance kernels parity speed peer}

if [ -f "$root/commit" ]; then # the bundle
    bin=$root/bin checks=$root/bin commit=$(cat "$root/commit")
else
    B=${B:-$root/build}
    bin=$B/bin checks=$B/tests
    commit=$(git -C "$root" describe --always --dirty --abbrev=12 2> /dev/null || echo unknown)
fi
fixtures=$root/tests/data/fixtures
peers=$root/tests/peers

work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
: > "$work/out"
: > "$work/err"
passed=0 failed=0 skipped=0
part=

# ---- the machine ----

PATH=$PATH:/usr/local/cuda/bin # for compute-sanitizer
export PATH

# Folders with cuBLASLt and cuDNN: a toolkit's, or those PyTorch's wheels brought. Python's own libraries stay its own.
library_folders() {
    for d in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do [ ! -d "$d" ] || echo "$d"; done
    "$PYTHON" -c 'import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
for base in spec.submodule_search_locations or [] if spec else []:
    print("\n".join(sorted(glob.glob(os.path.join(base, "*", "lib")))))' 2> /dev/null
}
system_path=${LD_LIBRARY_PATH:-}
our_path="$root/lib${system_path:+:$system_path}$(library_folders | sed 's/^/:/' | tr -d '\n')"

smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2> /dev/null | head -1; }
card=$(smi name)
driver=$(smi driver_version)
memory=$(smi memory.total)
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
have_gpu() { [ -n "$card" ] || [ -e /dev/nvidia0 ]; }

# ---- what is kept ----

quote() { printf '%s' "$1" | tr '\n\t\r' '   ' | sed 's/[\\"]/\\&/g; s/.*/"&"/'; }

# One JSON document of what is known so far: a name that exists is complete.
write_json() { # COMPLETE
    [ -z "$dry" ] || return
    {
        printf '{"card": %s, "driver": %s, "memory": %s,\n' "$(quote "$card")" "$(quote "$driver")" "$(quote "$memory")"
        printf ' "date": "%s", "commit": %s, "complete": %s,\n' "$date" "$(quote "$commit")" "$1"
        printf ' "passed": %d, "failed": %d, "skipped": %d, "parts": {' $passed $failed $skipped
        comma=
        for each in $parts; do
            [ -f "$work/$each.status" ] || continue
            printf '%s\n  "%s": {"status": "%s", "seconds": %d, "results": [' "$comma" "$each" \
                "$(cat "$work/$each.status")" "$(cat "$work/$each.seconds")"
            [ ! -f "$work/$each.results" ] || sed 's/^/\n    /; $!s/$/,/' "$work/$each.results"
            printf '  ]}'
            comma=,
        done
        printf '\n }}\n'
    } > "$json.part" && mv "$json.part" "$json"
}

# Everything that is known of one thing goes through here: a line to read, a line of JSON, the counts.
result() { # pass|fail|skip|cut|info NAME TEXT [MORE-JSON]
    case $1 in
    pass) passed=$((passed + 1)) ;;
    fail | cut) failed=$((failed + 1)) && echo fail > "$work/$part.status" ;;
    skip) skipped=$((skipped + 1)) ;;
    esac
    printf '%-4s %s: %s\n' "$1" "$2" "$3"
    printf '{"result": "%s", "name": %s, "text": %s%s}\n' "$1" "$(quote "$2")" "$(quote "$3")" "${4:+, $4}" \
        >> "$work/$part.results"
    echo $(($(date +%s) - part_start)) > "$work/$part.seconds"
    write_json false
}

# A figure that has to be at least (>=) or at most (<=) its floor.
figure() { # NAME VALUE UNIT [SENSE FLOOR GOAL]
    [ -n "$2" ] || { result fail "$1" "no figure came" && return; }
    if [ $# -eq 3 ]; then
        result info "$1" "$2 $3" "\"value\": $2"
        return
    fi
    verdict=$(awk -v x="$2" -v sense="$4" -v floor="$5" -v goal="$6" 'BEGIN {
        better = sense == ">=" ? 1 : -1
        print (better * (x - floor) >= 0 ? "pass" : "fail"), (better * (x - goal) >= 0 ? "goal met" : "goal not met")
    }')
    result "${verdict%% *}" "$1" "$2 $3 (floor $4 $5, goal $4 $6: ${verdict#* })" \
        "\"value\": $2, \"floor\": $5, \"goal\": $6"
}

# ---- running things ----

left() { echo $((part_start + PART_SECONDS - $(date +%s))); }

# Runs it within what is left of the part; stdout and stderr to files. 0, or it was told why not: missing, failed, cut.
attempt() { # NAME COMMAND...
    name=$1
    shift
    if [ -n "$dry" ]; then
        echo "  $*"
        return 1
    fi
    command -v "$1" > /dev/null || { result skip "$name" "$1 is not there" && return 1; }
    seconds=$(left)
    [ "$seconds" -gt 5 ] || { result cut "$name" "the part's $PART_SECONDS s are over" && return 1; }
    code=0
    LD_LIBRARY_PATH=${libraries-$our_path} timeout -k 5 "$seconds" "$@" \
        > "$work/out" 2> "$work/err" < /dev/null || code=$?
    case $code in
    0) return 0 ;;
    77) result skip "$name" "$(cat "$work/out" "$work/err" | grep -m1 . | sed 's/^SKIP: //')" ;;
    124 | 137) result cut "$name" "the part's $PART_SECONDS s were over after $seconds s of it" ;;
    *) result fail "$name" "exit $code: $(cat "$work/out" "$work/err" | grep -vE '^(ok|SKIP)' | tail -1)" ;;
    esac
    return 1
}

# The same with Python's own libraries; without PyTorch it is a skip.
attempt_peer() { # NAME SCRIPT ARGUMENT...
    if [ -z "$dry" ] && ! have_torch; then
        result skip "$1" "no PyTorch in $PYTHON"
        return 1
    fi
    name=$1
    shift
    libraries=$system_path
    attempt "$name" "$PYTHON" "$@"
    code=$?
    unset libraries
    return $code
}

have_torch() {
    [ -n "${torch-}" ] ||
        torch=$("$PYTHON" -c 'import torch; print(torch.cuda.is_available())' 2> /dev/null || echo no)
    [ "$torch" = True ]
}

# The first number of that name in the JSON document that came; the document itself on a line, where it is one.
number() { # NAME [FILE]
    tr '{},[]' '\n' < "${2:-$work/out}" | sed -n "s/^ *\"$1\": *\(-\{0,1\}[0-9][0-9.eE+-]*\) *$/\1/p" | head -1
}
document() { tr '\n' ' ' < "$work/out" | sed -n 's/^ *\({.*}\) *$/"document": \1/p'; }

# ---- conformance, kernels ----

# The program's last line is its sum; what it says of failures is part of the result.
tell_sum() { # NAME
    sum=$(tail -1 "$work/out")
    grep -E '^(  |FAIL|SKIP)' "$work/out"
    result pass "$1" "$sum ($(head -1 "$work/out"))"
}

part_conformance() {
    attempt "wrappers" "$checks/check-cuda-device" --conformance && tell_sum "wrappers"
}

sanitizer() { # TOOL
    attempt "compute-sanitizer $1" compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$checks/check-cuda-device" --one-process --once --exact --limit 0 &&
        result pass "compute-sanitizer $1" "$(cat "$work/out" "$work/err" | sed -n 's/^=* *\([A-Z]* SUMMARY\)/\1/p')"
}

part_kernels() {
    attempt "kernels" "$checks/check-cuda-device" && tell_sum "kernels"
    [ -n "$dry" ] || grep '^ok' "$work/out" > "$work/bits"
    if attempt "kernels, managed memory" "$checks/check-cuda-device" --managed; then
        tell_sum "kernels, managed memory"
        if grep '^ok' "$work/out" | cmp -s - "$work/bits"; then
            result pass "the same bits in both" "$(grep -c . "$work/bits") cases"
        else
            result fail "the same bits in both" "$(grep '^ok' "$work/out" | diff - "$work/bits" | grep -m1 '^[<>]')"
        fi
    fi
    sanitizer memcheck
    sanitizer racecheck
}

# ---- parity ----

curve="--data $fixtures/curve/tokens.bin --init $fixtures/curve --sampling sequential --batch-size 12 --seq-len 64
    --steps 200 --lr 1e-3 --min-lr 1e-4 --warmup 20 --eval-every 0 --save-every 0"

# sgt-train over the curve; its log as rows of step, loss, norm, as the fixture has them, in FILE.
train_curve() { # NAME FILE OPTION...
    name=$1 rows=$2
    shift 2
    rm -rf "$work/run"
    # shellcheck disable=SC2086
    attempt "$name" "$bin/sgt-train" --quiet --device cuda $curve --run "$work/run" "$@" || return
    sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*"grad_norm":\([^,}]*\).*/\1\t\2\t\3/p' \
        "$work/run/log.jsonl" > "$rows"
}

# The largest difference from float64's loss, and that of the norm as a part of it; nothing unless there are 200 steps.
curve_errors() { # ROWS
    awk -F '\t' '
        function size(x) { return x < 0 ? -x : x }
        FNR == NR { if (FNR > 1) { loss[$1] = $2; norm[$1] = $3 } next }
        $1 in loss && $2 ~ /^[0-9.]/ && $3 ~ /^[0-9.]/ {
            rows++
            if (size($2 - loss[$1]) > worst_loss) worst_loss = size($2 - loss[$1])
            if (size($3 / norm[$1] - 1) > worst_norm) worst_norm = size($3 / norm[$1] - 1)
        }
        END { if (rows == 200) printf "%.3g %.3g\n", worst_loss, worst_norm }' "$fixtures/curve/f64.tsv" "$1"
}

# Within twice what PyTorch is off by in that precision, and 2e-5 and 1e-4, which float32 is held to on a CPU.
parity_of() { # PRECISION [OPTION]...
    precision=$1
    shift
    ours='' theirs=''
    train_curve "curve in $precision" "$work/rows" --precision "$precision" "$@" &&
        ours=$(curve_errors "$work/rows") && ours=${ours:-none}
    attempt_peer "PyTorch's curve in $precision" "$peers/torch_curve.py" "$fixtures/curve" \
        --precision "$precision" "$@" &&
        theirs=$(curve_errors "$work/out")
    [ -n "$ours" ] || return
    text="loss off by at most ${ours% *}, norm by ${ours#* } of itself"
    more="\"loss_error\": ${ours% *}, \"norm_error\": ${ours#* }"
    if [ "$ours" = none ]; then
        result fail "curve in $precision" "the log does not hold 200 steps of numbers"
    elif [ -z "$theirs" ] && [ "$precision" != fp32 ]; then
        result info "curve in $precision" "$text; no PyTorch to hold it to" "$more"
    else
        theirs=${theirs:-0 0}
        awk -v a="$ours" -v b="$theirs" 'BEGIN {
            split(a, x, " ")
            split(b, y, " ")
            exit !(x[1] <= 2 * y[1] + 2e-5 && x[2] <= 2 * y[2] + 1e-4)
        }' && verdict=pass || verdict=fail
        result "$verdict" "curve in $precision" "$text; PyTorch ${theirs% *}, ${theirs#* }" \
            "$more, \"loss_error_pytorch\": ${theirs% *}, \"norm_error_pytorch\": ${theirs#* }"
    fi
}

part_parity() {
    for p in fp32 tf32 bf16 fp16; do
        attempt "steps of the fixtures in $p" "$bin/check-step" --device cuda --precision $p &&
            result pass "steps of the fixtures in $p" "$(tail -1 "$work/out")"
        case $p in
        fp16) parity_of "$p" --loss-scale 1024 ;; # no overflow in these 200 steps, so that none is left out
        *) parity_of "$p" ;;
        esac
    done
    train_curve "deterministic" "$work/once" --precision bf16 --deterministic || [ -n "$dry" ] || return
    train_curve "deterministic, again" "$work/again" --precision bf16 --deterministic || return
    if cmp -s "$work/once" "$work/again" && [ "$(grep -c . "$work/once")" -eq 200 ]; then
        result pass "deterministic" "the same losses and norms twice, 200 steps in bf16"
    else
        parted=$(diff "$work/once" "$work/again" | sed -n 's/^< \([0-9]*\).*/\1/p' | head -1)
        result fail "deterministic" "two runs part at step ${parted:-none, but are not whole}"
    fi
}

# ---- speed ----

# Each line of "results" in a document that came.
tell_results() { # NAME
    tr '\n' ' ' < "$work/out" | sed 's/.*"results": *\[//; s/\].*//' | tr '}' '\n' | tr -d '{"' |
        sed -n 's/^[, ]*\([^, ]\)/     \1/p' > "$work/table"
    cat "$work/table"
    if [ -s "$work/table" ]; then
        result info "$1" "$(grep -c . "$work/table") rows, as above" "$(document)"
    else
        result fail "$1" "no results came"
    fi
}

# The step at a shape; its tokens per second in $tokens, its peak memory in $bytes, its document in the result.
step_of() { # BATCH SEQ PRECISION
    tokens='' bytes=''
    attempt "step, B=$1 T=$2 $3" "$bin/sgt-bench" step --device cuda --model gpt2 --batch-size "$1" --seq-len "$2" \
        --precision "$3" --json || return
    tokens=$(number tokens_per_s) bytes=$(number peak_bytes)
    [ -n "$tokens" ] || { result fail "step, B=$1 T=$2 $3" "no tokens_per_s came" && return 1; }
    text="$tokens tokens/s, $(number ms_per_step) ms, mfu $(number mfu) ($(number mfu_datasheet) of the datasheet)"
    text="$text, $(awk -v b="${bytes:-0}" 'BEGIN { printf "%.2f", b / 2^30 }') GiB"
    result info "step, B=$1 T=$2 $3" "$text, $(number launches_forward) launches forward" "$(document)"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a != "" && b > 0) printf "%.3f", a / b }'; }

# Shards of real text: the bundle's, or made of our own sources.
shards() {
    data=$root/data/shards
    [ ! -d "$data" ] || return 0
    data=$work/shards
    [ -d "$data" ] || attempt "shards" "$bin/sgt-tokenize" --quiet --split 5% "$root/README.md" "$root/loader" \
        "$root/kernels" "$root/train" "$root/tools" "$data"
}

train_gpt2() { # NAME SEQ STEPS
    rm -rf "$work/run"
    began=$(date +%s.%N)
    attempt "$1" "$bin/sgt-train" --quiet --device cuda --model gpt2 --data "$data" --run "$work/run" --loader preload \
        --batch-size 64 --seq-len "$2" --steps "$3" --lr 6e-4 --eval-every 0 --save-every 0
}

# From the command to the end of the first step, which is when the log gets its only line.
first_step() { # NAME
    train_gpt2 "$1" 512 1 || return
    ended=$(stat -c %.Y "$work/run/log.jsonl")
    figure "$1" "$(awk -v a="$began" -v b="$ended" 'BEGIN { printf "%.2f", b - a }')" s "<=" 10 2
}

data_wait() {
    train_gpt2 "training on shards" 1024 30 || return
    share=$(tail -20 "$work/run/log.jsonl" |
        sed -n 's/.*"ms_per_step":\([^,}]*\).*"data_wait_ms":\([^,}]*\).*/\2 \1/p' |
        awk '{ printf "%.6f\n", $1 / $2 * 100 }' | sort -n |
        awk '{ x[NR] = $1 } END { if (NR == 20) printf "%.4f", (x[10] + x[11]) / 2 }')
    figure "data wait, of a step" "$share" % "<=" 1 0.1
}

part_speed() {
    shards || [ -n "$dry" ] || return
    step_of 64 1024 bf16
    bf16=$tokens
    step_of 64 1024 fp16
    [ -n "$dry" ] || figure "fp16 with scaler against bf16" "$(ratio "$tokens" "$bf16")" times ">=" 0.97 1
    step_of 12 1024 bf16
    step_of 64 512 bf16
    first_step "start to first step, the first time"
    first_step "start to first step, the second time"
    data_wait
    attempt "matrix products" "$bin/sgt-bench" gemm --device cuda --json && tell_results "matrix products"
    attempt "attention" "$bin/sgt-bench" attention --device cuda --json && tell_results "attention"
    attempt "ablation" "$bin/sgt-bench" ablation --device cuda --data "$data" --json || return
    tell_results "ablation"
    chain=$(tr '{},[]' '\n' < "$work/out" | sed -n 's/^ *"tokens_per_s": *\([0-9.eE+]*\) *$/\1/p')
    whole=$(ratio "$(echo "$chain" | tail -1)" "$(echo "$chain" | head -1)")
    figure "ablation, first row to last" "$whole" times ">=" 16 40
}

# ---- peer ----

peer_step() { # BATCH SEQ MODE
    theirs=
    attempt_peer "PyTorch $3, B=$1 T=$2 bf16" "$peers/torch_step.py" 12x768x12 "$1" "$2" --precision bf16 --mode "$3" \
        --device cuda || return
    theirs=$(number tokens_per_s)
    result info "PyTorch $3, B=$1 T=$2 bf16" "$theirs tokens/s, $(number ms_per_step) ms" "$(document)"
}

# Ours and theirs one after the other, on the same machine.
against() { # BATCH SEQ FLOOR GOAL
    step_of "$1" "$2" bf16
    ours=$tokens ours_bytes=$bytes
    peer_step "$1" "$2" default || return
    theirs_bytes=$(number peak_bytes)
    figure "B=$1 T=$2 bf16 against torch.compile" "$(ratio "$ours" "$theirs")" times ">=" "$3" "$4"
    [ "$1 $2" != "64 1024" ] ||
        figure "peak memory against torch.compile, B=64 T=1024" "$(ratio "$ours_bytes" "$theirs_bytes")" times \
            "<=" 1 0.8
    echo "$ours" > "$work/ours-$1-$2"
}

part_peer() {
    against 64 1024 1.10 1.35
    against 12 1024 1.3 1.8
    against 64 512 1.10 1.35
    attempt_peer "PyTorch's attention" "$peers/torch_attention.py" && tell_results "PyTorch's attention"
    for mode in eager max-autotune; do
        for shape in "64 1024" "12 1024" "64 512"; do
            # shellcheck disable=SC2086
            peer_step $shape $mode || continue
            ours=$(cat "$work/ours-${shape% *}-${shape#* }" 2> /dev/null)
            [ -z "$ours" ] || figure "B=${shape% *} T=${shape#* } bf16 against PyTorch $mode" \
                "$(ratio "$ours" "$theirs")" times
        done
    done
}

# ---- the parts in turn ----

would() {
    case $1 in
    conformance) echo "hold each wrapper of device.cuh and hopper.cuh to exact answers on integers" ;;
    kernels) echo "hold every CUDA kernel to kernels/ref, twice, and have compute-sanitizer look on" ;;
    parity) echo "train 200 steps in fp32, tf32, bf16 and fp16 and compare each with float64 and with PyTorch" ;;
    speed) echo "time matrix products, attention, the step and the ablation chain, and measure memory and waits" ;;
    peer) echo "time PyTorch eager, compiled and max-autotuned on three shapes, and ours beside it" ;;
    esac
}

for part in $parts; do
    if [ -z "$dry" ] && ! have_gpu; then
        echo "SKIP $part: no CUDA device; it would $(would "$part")"
        skipped=$((skipped + 1))
        continue
    fi
    echo "== $part: $(would "$part")"
    part_start=$(date +%s)
    echo ok > "$work/$part.status"
    echo 0 > "$work/$part.seconds"
    "part_$part"
    [ -n "$dry" ] || echo $(($(date +%s) - part_start)) > "$work/$part.seconds"
done
[ -z "$dry" ] || exit 0
[ -z "$(ls "$work"/*.results 2> /dev/null)" ] || write_json true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77
