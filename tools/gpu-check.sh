#!/bin/sh
# gpu-check.sh [OPTION]... [PART]...: runs the checks that need an NVIDIA GPU, the most valuable first, because a GPU
# may be available for only ten minutes. Run it in the folder that `make gpu-bundle` builds.
#
# Options:
#     --budget N       seconds for all parts together (default: the sum of their seconds below)
#     -o FILE          file for the results (default: gpu-check.jsonl). FILE.log gets everything that the programs
#                      print, FILE.clocks the GPU's clocks twice a second
#     --skip NAME      leave out each part or check whose name contains NAME; may be given several times
#     --again          also repeat the checks that failed according to FILE
#
# Each part may take its share of the budget, plus the seconds that earlier parts did not use. When they are over, the
# running program is ended, its result is "cut", and the next part begins. FILE has a line of JSON about the machine,
# one for each result, written as soon as the check ends, and one at the end. A second call leaves out every check that
# has a result in FILE, unless it was cut or skipped. FILE belongs to one GPU and one commit.
#
# Exit code 0: everything that ran passed; 1: something failed, missed its floor or was cut; 2: wrong usage; 77: nothing
# could run.
#
# PYTHON (default: python3) is the interpreter that may have PyTorch; CUDA_HOME (default: /usr/local/cuda) is the CUDA
# toolkit, if there is one. GPU_CHECK_SMALL=1 chooses small shapes, to rehearse with the host build.
#
# The parts, in the order in which they run, with their seconds. The last part only runs if it is named. If parts are
# named, `versions` runs before them, so that FILE has the versions of the libraries; results that FILE has are kept.
set -u
table='versions 20 versions of driver and libraries, clocks and power limits, the self-check; sampling of clocks starts
first 15 the step with 64 rows, from shards: tokens a second, data wait, start to first step
profile 40 the kernels of a step: launches, ms, GB/s or TFLOP/s, and idle time, for 64 and 12 rows
ab 90 each undecided variant of a step, or each NAME after ab, between two runs without it
products 50 matrix products of a step and of a chunk of the head; attention
ablation 60 the chain of techniques
compile 120 the step between two runs by torch.compile, for 64 and 12 rows
cases 60 kernels against kernels/ref: the cases that have not passed on a card (tests/gpu-results)
curves 40 200 steps in bf16, with attention by cuDNN and ours, against float64 and PyTorch
last 65 racecheck of attention-hopper, forward and backward; the step again
more 400 curves in fp16, TF32, fp32; equal runs; Muon; the CPU; all kernel cases; memcheck'
LC_ALL=C
export LC_ALL
PYTHON=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
json=gpu-check.jsonl again='' budget='' variants='' sampler=''
all_parts=$(echo "$table" | sed 's/ .*//' | paste -sd' ')

usage() {
    echo "gpu-check.sh: $1 (gpu-check.sh [--budget N] [-o FILE] [--skip NAME] [--again]" \
        "[$(echo "$all_parts" | tr ' ' '|')]...)" >&2
    exit 2
}
weight() { echo "$table" | sed -n "s/^$1 \([0-9]*\) .*/\1/p"; } # PART
about() { echo "$table" | sed -n "s/^$1 [0-9]* //p"; }          # PART

began=$(date +%s)
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-gpu.XXXXXX") || exit 1
trap 'rm -rf "$work"; [ -z "$sampler" ] || kill "$sampler" 2> /dev/null' EXIT
trap 'exit 130' INT TERM
: > "$work/skips"

named=
while [ $# -gt 0 ]; do
    case $1 in
    -o | --skip | --budget) [ $# -gt 1 ] || usage "$1 needs a value" ;;
    esac
    case $1 in
    -o) json=$2 && shift ;;
    --skip) echo "$2" >> "$work/skips" && shift ;;
    --budget) budget=$2 && shift ;;
    --again) again=1 ;;
    --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && echo "$table" | awk '{
        printf "    %-9s %3d  ", $1, $2; sub(/^[^ ]* [^ ]* /, ""); print }' && exit 0 ;;
    *)
        case " $all_parts :$named" in
        *" $1 "*) named="$named $1" ;;
        *' ab') variants="$variants $1" ;;
        *) usage "$1: no such part or option" ;;
        esac
        ;;
    esac
    shift
done
case ${budget:-1} in *[!0-9]* | 0*) usage "--budget $budget: not a number of seconds" ;; esac

bin=$root/bin commit=$(cat "$root/commit" 2> /dev/null || echo unknown)
# The tests' data is in the bundle, or in the repository whose build/ contains the bundle.
tests=$root/tests
[ -d "$tests/data/fixtures" ] || tests=$(cd "$root/../../tests" 2> /dev/null && pwd) || tests=$root/tests

for each in run parts; do
    # shellcheck disable=SC1090
    . "$root/tools/gpu/$each.sh"
done

# ---- run the parts ----

parts='' whole=0 upto=0
named=${named:+ versions$named}
for part in $all_parts; do
    case " ${named:-${all_parts% more}} " in *" $part "*) ;; *) continue ;; esac
    is_left_out "$part" || parts="$parts $part" whole=$((whole + $(weight "$part")))
done
if ! have_gpu; then
    for part in $parts; do echo "SKIP $part: no CUDA device ($(about "$part"))"; done
    echo "0 passed, 0 failed, $(echo $parts | wc -w) skipped"
    exit 77
fi
open_results
budget=${budget:-$whole} clocks_seen=$(grep -sc . "$json.clocks")
sample_clocks
for part in $parts; do
    upto=$((upto + $(weight "$part")))
    ends=$((began + budget * upto / whole)) # of the part
    echo "== $part, until $((ends - began)) s: $(about "$part")"
    echo "== $date $part" >> "$json.log"
    # Run the part in a subshell, so that the next part still runs if this one exits.
    ("part_$part")
    code=$?
    [ $code -le 1 ] || result fail "$part" "this part ended early with exit code $code"
    tell_clocks
done
failed=$(($(count fail) + $(count cut)))
echo "{\"complete\": true, \"passed\": $(count pass), \"failed\": $failed, \"skipped\": $(count skip)}" >> "$json"
echo "$(count pass) passed, $failed failed, $(count skip) skipped"
[ $failed -eq 0 ] || exit 1
[ $(($(count pass) + $(count info))) -gt 0 ] || exit 77
