#!/bin/sh
# gpu-check.sh [OPTION]... [PART]...: everything that only a machine with an NVIDIA GPU can show, in the order in which
# half an hour with a card is best spent. It runs in the folder that `make gpu-bundle` makes, or in the repository.
#
#     smoke        which libraries load, 15 steps in every way that a step can run, the first tokens a second
#     conformance  each wrapper of PTX against its host twin's answers, exact, on integers
#     kernels      every CUDA kernel against kernels/ref, each case a process; then under compute-sanitizer
#     parity       the fixtures' steps and 200 steps of training against float64 and PyTorch, in every precision
#     speed        the step, memory, data wait, start to first step, matrix products, attention, the ablation chain
#     peer         torch.compile on the same shapes, in turn with ours, and the ratio to it
#     variants     each variant of the step that `sgt-bench step --variants` lists, in turn with the step as it is
#     ranks        NCCL: one rank on one card; on several cards sgt-train with a rank on each
#
# Options:
#     -o FILE          where results are kept (gpu-check.json); FILE.log gets all that the programs say
#     --skip NAME      leave out each part or check whose name contains NAME; may be given several times
#     --again          also run again what FILE says failed
#     --seconds N      the time of each part (540); a part that needs more is cut, and the next one begins
#     --max-autotune   in peer: also torch.compile's max-autotune mode and eager mode, which take minutes
#     --dry-run        print the commands alone
#
# FILE is one JSON document, whole at any moment. A second call leaves out every check that FILE has a result of, but
# for those that were cut or skipped. FILE belongs to one card and one commit.
# Exit 0: what ran passed; 1: something failed, missed its floor or was cut; 2: wrong usage; 77: nothing could run.
# PYTHON (python3) is the interpreter that may have PyTorch; B (build) is where the repository was built; CUDA_HOME
# (/usr/local/cuda) is the toolkit, if there is one.
# GPU_CHECK_SMALL=SHARDS takes shapes for a rehearsal on the host build, and trains on SHARDS; GPU_CHECK_PATIENCE=N
# makes each check's own limit N times as long there.
set -u
LC_ALL=C
export LC_ALL
PYTHON=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
json=gpu-check.json dry='' again='' autotune='' part_seconds=540
all_parts="smoke conformance kernels parity speed peer variants ranks"

usage() {
    echo "gpu-check.sh: $1 (gpu-check.sh [-o FILE] [--skip NAME] [--again] [--seconds N] [--max-autotune] [--dry-run]" \
        "[$(echo "$all_parts" | tr ' ' '|')]...)" >&2
    exit 2
}

work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-gpu.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
: > "$work/out"
: > "$work/err"
: > "$work/skips"

parts=
while [ $# -gt 0 ]; do
    case $1 in
    -o | --skip | --seconds) [ $# -gt 1 ] || usage "$1 needs a value" ;;
    esac
    case $1 in
    -o) json=$2 && shift ;;
    --skip) echo "$2" >> "$work/skips" && shift ;;
    --seconds) part_seconds=$2 && shift ;;
    --again) again=1 ;;
    --max-autotune) autotune=1 ;;
    --dry-run) dry=1 ;;
    --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && exit 0 ;;
    smoke | conformance | kernels | parity | speed | peer | variants | ranks) parts="$parts $1" ;;
    *) usage "$1: no such part or option" ;;
    esac
    shift
done
parts=${parts:-$all_parts}
case $part_seconds in '' | *[!0-9]*) usage "--seconds $part_seconds: not a number" ;; esac

if [ -f "$root/commit" ]; then # the bundle
    bin=$root/bin checks=$root/bin commit=$(cat "$root/commit")
else
    B=${B:-$root/build}
    bin=$B/bin checks=$B/tests
    commit=$(git -C "$root" describe --always --dirty --abbrev=12 2> /dev/null || echo unknown)
fi
# The bundle has its own copy of the tests' data, or lies in build/ of a repository that has it.
tests=$root/tests
[ -d "$tests/data/fixtures" ] || tests=$(cd "$root/../../tests" 2> /dev/null && pwd) || tests=$root/tests
fixtures=$tests/data/fixtures
peers=$tests/peers

for each in report attempt smoke kernels parity speed peer ranks; do
    # shellcheck disable=SC1090
    . "$root/tools/gpu/$each.sh"
done

would() {
    case $1 in
    smoke) echo "run 15 steps with each attention, with and without graphs and fused kernels, and time the first" ;;
    conformance) echo "hold each wrapper of device.cuh and hopper.cuh to exact answers on integers" ;;
    kernels) echo "hold every CUDA kernel to kernels/ref, and have compute-sanitizer look on" ;;
    parity) echo "train 200 steps in bf16, fp16, fp32 and tf32 and compare each with float64 and with PyTorch" ;;
    speed) echo "time the step, matrix products, attention and the ablation chain, and measure memory and waits" ;;
    peer) echo "time torch.compile with each of its attentions in turn with ours" ;;
    variants) echo "time each variant of the step in turn with the step as it is" ;;
    ranks) echo "run NCCL's calls in a graph on each card" ;;
    esac
}

# Run each part in a subshell: if it ends early, the next part still runs.
run_part() {
    echo "== $part: $(would "$part")"
    part_start=$(date +%s)
    [ -n "$dry" ] || echo "== $date $part" >> "$json.log"
    ("part_$part")
    code=$?
    if [ -z "$dry" ] && [ $code -gt 1 ]; then result fail "$part" "the part itself ended early, exit $code"; fi
    [ -n "$dry" ] || keep_seconds
}

[ -n "$dry" ] || load_json
left_out=0
for part in $parts; do
    if is_left_out "$part"; then
        continue
    elif [ -z "$dry" ] && ! have_gpu; then
        echo "SKIP $part: no CUDA device; it would $(would "$part")"
        left_out=$((left_out + 1))
    else
        run_part
    fi
done
[ -z "$dry" ] || exit 0
[ -z "$(ls "$work"/*.results 2> /dev/null)" ] || write_json true
echo "$(count pass) passed, $(($(count fail) + $(count cut))) failed, $(($(count skip) + left_out)) skipped"
[ $(($(count fail) + $(count cut))) -eq 0 ] || exit 1
[ $(($(count pass) + $(count info))) -gt 0 ] || exit 77
