#!/bin/sh
# run.sh BUILD all|N: plant one bug at a time in a copy of a kernel and expect check-cuda to catch
# it. N: the next N of the bugs in turn; a new BUILD begins where the number of commits says, so that
# fresh clones do not all try the same. A bug is NAME.sed, whose first line says where and how: "#
# FILE CASE race|SCHEDULE...". Schedules are tried until one catches the bug. Some bugs match a
# comment of FILE, so its words must stay. The last line is "N passed, N failed, 0 skipped".
set -u
cd "$(dirname "$0")/../../.." || exit 1
B=$1
CXX=${HOST_CXX:-g++}
flags="-D_GNU_SOURCE -O1 -ffp-contract=off -pthread -w"
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-mutants.XXXXXX")
flags="$flags -I$work/planted -I. -Iloader" # a planted header is found before the real one
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# Print the sources that a bug in FILE affects: FILE itself, or the files that include it.
users() { # FILE
    case $1 in
    *.cu | *.c) echo "$1" ;;
    *) grep -l "\"$1\"" kernels/cuda/*.cu tests/kernels/*.cu ;;
    esac
}

# Print the objects of a check-cuda, except for the ones that are compiled anew.
objects() { # check-cuda|check-cuda-race FILE...
    parts=$(tr ' ' '\n' < "$B/tests/$1.parts")
    shift
    for f; do parts=$(echo "$parts" | grep -vF "/${f%.c}.o"); done
    echo "$parts"
}

# Build check-cuda with the bug, as $work/planted/check.
build() { # SED FILE check-cuda|check-cuda-race FLAGS
    rm -rf "$work/planted"
    mkdir -p "$work/planted/$(dirname "$2")"
    sources=$(users "$2" | tr '\n' ' ')
    sed -f "$1" "$2" > "$work/planted/$2"
    why="no longer changes $2"
    ! cmp -s "$2" "$work/planted/$2" || return
    why="does not compile"
    for f in $sources; do
        language="c++ -std=c++17" object=$work/planted/$(basename "$f").o
        [ "$f" = "${f%.c}" ] || language="c -std=c11"
        [ "$f" != "$2" ] || f=$work/planted/$f
        # shellcheck disable=SC2086
        $CXX $flags $4 -x $language -c -o "$object" "$f" > "$work/log" 2>&1 || return
    done
    # shellcheck disable=SC2046,SC2086
    $CXX -pthread -o "$work/planted/check" "$work"/planted/*.o $(objects "$3" $sources) -fopenmp -ldl -lm \
        > "$work/log" 2>&1
}

# The bug is caught if check-cuda ran to its sum and the case failed. If not, $why says what
# happened.
caught() { # SED FILE CASE race|SCHEDULES
    if [ "$4" = race ]; then
        build "$1" "$2" check-cuda-race -fsanitize=thread || return
        set -- "$1" "$2" "$3" 0
    else
        build "$1" "$2" check-cuda "" || return
    fi
    why="not caught"
    for schedule in $4; do
        SGT_HOST_DEVICE="schedule=$schedule" timeout 120 "$work/planted/check" --case "$3" > "$work/log" 2>&1
        [ $? -ne 1 ] || ! grep -qE '^0 passed, 1 failed, 0 skipped$' "$work/log" || return 0
    done
    return 1
}

mutants=$(ls tests/kernels/mutants/*.sed)
if [ "$2" != all ]; then # three a run, then the three after these: every bug has its turn
    count=$(echo "$mutants" | wc -l)
    next=$(cat "$B/mutants-next" 2> /dev/null ||
        echo $(($(git rev-list --count HEAD 2> /dev/null || echo 0) * $2 % count)))
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
