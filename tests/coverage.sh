#!/bin/sh
# coverage.sh BUILD: run the tests on a build with coverage (make coverage). Then print the share of
# lines that ran in tokenize, loader and train, and the files with the most lines that did not run.
# SHOW=FILE: write the lines that never ran to FILE. Exit with 1 if tokenize, loader or train is below
# 90 %.
#
# A process of this build writes its counts to files when it ends. That disturbs tests that trace
# system calls, fill the disk or drop permissions. So failures are only listed here; `make check`
# decides about them.
#
# A line counts once, no matter how many files include it or for how many CPU levels it is compiled.
# Files for another CPU (*_neon.c) compile to nothing here and have no lines. train/cuda/*.c run on
# the host in place of CUDA (tests/kernels/host), and count.
set -u
cd "$(dirname "$0")/.." || exit 1
B=$1
LEAST=90
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-coverage.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# These scripts build programs without coverage, or take hours.
LEFT_OUT='deps|demo|examples|install|library|manual|readme|readme-python|valgrind'
LEFT_OUT="$LEFT_OUT|gpu-check|gpu-rehearsal|neon|.*-torture"

run_tests() {
    find "$B/obj" -name '*.gcda' -delete
    for suite in base loader tokenize train; do
        "$B/tests/test-$suite" --jobs 2 > "$work/said" 2>&1 < /dev/null
        echo "test-$suite: $(sed 's/\x1b\[[0-9;]*m//g' "$work/said" | grep -o 'Tested: .*' || echo 'gave no sum')"
    done
    echo "the training step: $(tests/step/check-step.sh "$B" 2>&1 | tail -1)"
    echo "seeds of fuzzing: $(tests/fuzz/replay.sh "$B" 2>&1 | tail -1)"
    LEFT_OUT=$LEFT_OUT tests/cli/run.sh "$B/bin" > "$work/said" 2>&1
    grep -E '^(FAIL|SKIP)' "$work/said"
    echo "programs: $(tail -1 "$work/said")"
    echo
}

# Print FILE LINE TIMES for each line of the objects that are built for coverage.
lines() {
    find "$B/obj/tokenize" "$B/obj/loader" "$B/obj/train" -name '*.gcno' | sed 's/gcno$/o/' |
        xargs -n 50 gcov -t 2> /dev/null | awk -F: '
            { gsub(/ /, "", $1); gsub(/ /, "", $2) }
            $2 == 0 { if ($3 == "Source") file = $4 ; next }
            $1 == "-" || $2 == "" { next }
            file !~ /^(tokenize|loader|train)\// { next }
            { times = $1 ~ /^[#=]/ ? 0 : 1; key = file " " $2
              if (!(key in most) || times > most[key]) most[key] = times }
            END { for (key in most) print key, most[key] }'
}

# Print the rooms and the files with the most lines that never ran.
report() {
    lines | sort -k1,1 -k2,2n > "$work/lines"
    [ -z "${SHOW:-}" ] || show
    awk -v least=$LEAST '
        { room = $1; sub(/\/.*/, "", room); all[$1]++; ran[$1] += $3; all[room]++; ran[room] += $3 }
        END {
            worst = "sort -k2,2nr | head -20"
            for (name in all) if (ran[name] < all[name])
                printf "%-36s %5d of %5d never ran, %5.1f %% did\n", name, all[name] - ran[name], all[name],
                    100 * ran[name] / all[name] | worst
            close(worst)
            n = split("tokenize loader train", rooms, " ")
            for (i = 1; i <= n; i++) if (100 * ran[rooms[i]] <= least * all[rooms[i]]) bad = bad " " rooms[i]
            if (bad) { print "\nunder " least " %:" bad; exit 1 }
        }' "$work/lines"
}

# Print FILE:LINE:TEXT for every line that never ran.
show() {
    awk 'NR == FNR { if (!$3) never[$1 " " $2] = 1; next }
        (FILENAME " " FNR) in never { print FILENAME ":" FNR ":" $0 }' \
        "$work/lines" $(cut -d' ' -f1 "$work/lines" | uniq) > "$SHOW"
}

run_tests
report
