#!/bin/sh
# amx-runs.sh TWIN TRAP: train small models in bfloat16 with two builds, `make CPU=amx` and `make
# CPU=amx-trap`: AMX's twin, and its instructions in emulation. All files of the checkpoints must
# have the same bytes. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/../.." || exit 1
case $1 in /*) twin=$1 ;; *) twin=$PWD/$1 ;; esac
case $2 in /*) trap=$2 ;; *) trap=$PWD/$2 ;; esac
if ! grep -qw avx512_bf16 /proc/cpuinfo; then
    echo 'skipped: AMX in emulation needs AVX512-BF16, which this CPU does not have'
    echo '0 passed, 0 failed, 1 skipped'
    exit 77
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/sgt-amx.XXXXXX")
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
text=tests/data/vocab/text.txt
"$twin/bin/sgt-tokenize" --quiet --train-vocab 777 $text "$folder/vocab" &&
    "$twin/bin/sgt-tokenize" --quiet --vocab "$folder/vocab" $text "$folder/data" || exit 1

compare() { # OPTION...: train with both builds
    for build in twin trap; do
        eval "program=\$$build/bin/sgt-train"
        "$program" --data "$folder/data" --run "$folder/$build" --force --precision bf16 --cpu amx \
            --device cpu --threads 2 --steps 4 --eval-every 2 "$@" > "$folder/$build.out" 2> "$folder/$build.err" ||
            { echo "$build: $*" && cat "$folder/$build.err"; }
    done
    find "$folder/twin" "$folder/trap" -name '*.safetensors' -exec sha256sum {} + |
        sed "s|$folder/||; s|/| |" | sort > "$folder/sums"
    same=$(awk '{ n[$1 " " $3]++ } END { print length(n) }' "$folder/sums")
    files=$(wc -l < "$folder/sums")
    if [ "$files" -gt 0 ] && [ "$files" -eq $((2 * same)) ]; then
        passed=$((passed + 1)) && echo "ok   $*"
    else
        failed=$((failed + 1)) && echo "FAIL $*: other bytes" && cat "$folder/sums"
    fi
}

compare --model 1x8x1 --seq-len 1 --batch-size 1
compare --model 2x30x3 --seq-len 37 --batch-size 3
compare --model 1x65x5 --seq-len 77 --batch-size 2 --dropout .1 --grad-accum 2
compare --model 2x102x3 --seq-len 133 --batch-size 2 --document-mask --no-tie
compare --model 1x520x4 --seq-len 289 --batch-size 1 --recompute block --steps 1
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
