# kernels.sh: the parts conformance and kernels. check-cuda-device runs each case in a separate process.
# shellcheck shell=sh disable=SC2154

# Run each case of a list for at most 60 s. Of the cases that pass, only the number is printed.
cases() { # WHAT OPTION...
    what=$1 quiet=1
    shift
    if [ -n "$dry" ]; then
        attempt "$what" 0 "$checks/check-cuda-device" "$@" --case NAME || true
        return
    fi
    attempt "list of cases" 0 "$checks/check-cuda-device" "$@" --list || return
    cp "$work/out" "$work/cases"
    while read -r case; do
        todo "$what $case" || continue
        [ "$(left)" -gt 5 ] || { result cut "$what cases" "the part's $part_seconds s are over before $case" && break; }
        attempt "$what $case" 60 "$checks/check-cuda-device" --limit 55 --case "$case" || continue
        result pass "$what $case" "$(grep '^ok' "$work/out" | tail -1)"
    done < "$work/cases"
    quiet=
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
