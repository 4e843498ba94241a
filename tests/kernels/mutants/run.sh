#!/bin/sh
# run.sh BUILD all|N: plants a bug at a time in a copy of a kernel and expects check-cuda to catch it; N: the next N of the
# bugs in turn. A bug is NAME.sed, whose first line says where and how: "# FILE CASE race|SCHEDULE...", the schedules being
# tried until one catches it. The last line is "N passed, N failed, 0 skipped".
set -u
cd "$(dirname "$0")/../../.." || exit 1
B=$1
CXX=${HOST_CXX:-g++}
flags="-std=c++17 -D_GNU_SOURCE -O2 -ffp-contract=off -pthread -w -Iloader -Ikernels -iquote kernels/cuda -Itests/kernels -I."
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# What check-cuda is made of, but for one file.
objects() { # obj|obj/race FILE
    for f in kernels/cuda/*.cu tests/kernels/*.cu; do
        [ "$f" = "$2" ] || [ ! -f "$f" ] || echo "$B/$1/$f.o"
    done
    for f in tests/kernels/*.cpp tests/kernels/host/*.cpp; do
        [ ! -f "$f" ] || echo "$B/obj/$f.o"
    done
    echo "$B/obj/tests/kernels/harness.o $B/lib/libsgt-kernels.a $B/lib/libsgt-loader.a"
}

# Caught: check-cuda ran to its sum, and the case failed. Otherwise $why says what happened.
caught() { # SED FILE CASE MODES
    sed -f "$1" "$2" > "$work/mutant.cu"
    why="no longer changes $2"
    ! cmp -s "$2" "$work/mutant.cu" || return
    kind=obj race=
    [ "$4" != race ] || kind=obj/race race=-fsanitize=thread
    why="does not compile"
    # shellcheck disable=SC2086
    $CXX $flags $race -I"$(dirname "$2")" -x c++ -c -o "$work/mutant.o" "$work/mutant.cu" > "$work/log" 2>&1 || return
    # shellcheck disable=SC2046
    $CXX -pthread -o "$work/check" "$work/mutant.o" $(objects $kind "$2") -fopenmp -ldl -lm > "$work/log" 2>&1 || return
    why="not caught"
    for schedule in $4; do
        timeout 120 "$work/check" --case "$3" --schedule "$(echo "$schedule" | sed s/race/0/)" > "$work/log" 2>&1
        [ $? -ne 1 ] || ! grep -qE '^0 passed, 1 failed, 0 skipped$' "$work/log" || return 0
    done
    return 1
}

mutants=$(ls tests/kernels/mutants/*.sed)
if [ "$2" != all ]; then # three a run, then the three after these: every bug has its turn
    count=$(echo "$mutants" | wc -l)
    next=$(cat "$B/mutants-next" 2> /dev/null || echo 0)
    mutants=$(i=0 && while [ $i -lt "$2" ]; do
        echo "$mutants" | sed -n "$(((next + i) % count + 1))p"
        i=$((i + 1))
    done)
    echo $(((next + $2) % count)) > "$B/mutants-next"
fi
for mutant in $mutants; do
    name=$(basename "$mutant" .sed)
    # shellcheck disable=SC2046
    set -- $(sed -n '1s/^# //p' "$mutant")
    file=$1 case=$2
    shift 2
    if caught "$mutant" "$file" "$case" "$*"; then
        echo "ok   planted bug $name: caught"
        passed=$((passed + 1))
    else
        echo "FAIL planted bug $name ($file): $why"
        tail -3 "$work/log"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
