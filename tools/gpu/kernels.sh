# kernels.sh: the parts conformance and kernels. check-cuda-device runs each case in a process of its own.
# shellcheck shell=sh disable=SC2154

# Run each case in $work/todo for at most 60 s, several at once: most of their time goes to kernels/ref on the CPU. Those
# named card_ take much of the GPU's memory, so they run alone, at the end. Outputs and exit codes are kept by case. Print
# the name of each case when it ends.
# --foreground: a case stays in the process group of at_once's timeout, which ends it when the part's time is over.
run_cases() { # OPTION...
    rm -rf "$work/of" && mkdir "$work/of"
    cat > "$work/one" << 'END'
of=$1/$2 && shift 2
timeout --foreground -k 5 60 "$@" > "$of.out" 2> "$of.err" < /dev/null
echo $? > "$of.code"
echo "${of##*/}"
END
    cores=$(nproc)
    grep -v ^card_ "$work/todo" | at_once $((cores < 16 ? (cores + 1) / 2 : 8)) "$@"
    grep ^card_ "$work/todo" | at_once 1 "$@"
}

at_once() { # NUMBER OPTION...
    number=$1 seconds=$(left)
    shift
    [ "$seconds" -le 5 ] || LD_LIBRARY_PATH=$our_path timeout -k 5 "$seconds" xargs -P "$number" -I CASE \
        sh "$work/one" "$work/of" CASE "$checks/check-cuda-device" "$@" --limit 55 --case CASE
}

# Record the result of a case. Return 1 if the part's time was over before the case ended.
case_ended() { # CASE OPTION...
    of=$work/of/$1 case=$1 name="$what $1" most=60
    shift
    code=$(cat "$of.code" 2> /dev/null || echo 137)
    [ "$code" -ne 137 ] || [ "$(left)" -gt 5 ] || return 1
    cp "$of.out" "$work/out"
    cp "$of.err" "$work/err"
    keep_log "$name" "$code" "$checks/check-cuda-device" "$@" --limit 55 --case "$case"
    ! tell_end || result pass "$name" "$(grep '^ok' "$work/out" | tail -1)"
}

# Each result is kept when its case ends: this call may be killed before the last one. Of the cases that pass, only the
# number is printed.
cases() { # WHAT OPTION...
    what=$1 quiet=1
    shift
    if [ -n "$dry" ]; then
        attempt "$what" 0 "$checks/check-cuda-device" "$@" --case NAME || true
        return
    fi
    attempt "list of cases" 0 "$checks/check-cuda-device" "$@" --list || return
    cp "$work/out" "$work/cases"
    while read -r case; do ! todo "$what $case" || echo "$case"; done < "$work/cases" > "$work/todo"
    run_cases "$@" | while read -r case; do case_ended "$case" "$@"; done
    first='' not_run=0
    while read -r case; do
        ! todo "$what $case" || case_ended "$case" "$@" || first=${first:-$case} not_run=$((not_run + 1))
    done < "$work/todo"
    quiet=
    [ $not_run -eq 0 ] ||
        result cut "$what cases" "the part's $part_seconds s are over, $not_run have not run: first $first"
    echo "     $what: $(grep -sc "\"pass\", \"name\": \"$what " "$work/$part.results") of" \
        "$(grep -c . "$work/cases") cases passed"
}

part_conformance() { cases wrapper --conformance; }

# compute-sanitizer supports no device in some virtual machines, and reports that.
sanitizer() { # TOOL
    todo "compute-sanitizer $1" || return
    if [ -z "$dry" ] && compute-sanitizer "$checks/check-cuda-device" --one-process --once \
        --case "$(head -1 "$work/cases")" 2>&1 | grep -q 'Device not supported'; then
        result skip "compute-sanitizer $1" "it does not support this device"
        return
    fi
    attempt "compute-sanitizer $1" 0 compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$checks/check-cuda-device" --one-process --once --exact --limit 0 &&
        result pass "compute-sanitizer $1" "$(cat "$work/out" "$work/err" | sed -n 's/^=* *\([A-Z]* SUMMARY\)/\1/p')"
}

part_kernels() {
    cases kernel
    sanitizer memcheck
    sanitizer racecheck
}
