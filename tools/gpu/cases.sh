# cases.sh: the cases of check-cuda-device, each in a process of its own, and compute-sanitizer.
# shellcheck shell=sh disable=SC2154

# Run each case in $work/todo for at most 60 s, several at once: most of their time goes to kernels/ref on the CPU. Those
# named card_ take much of the GPU's memory, so they run alone, at the end. Outputs and exit codes are kept by case. Print
# the name of each case when it ends.
# --foreground: a case stays in the process group of at_once's timeout, which ends it when the part's time is over.
run_cases() {
    rm -rf "$work/of" && mkdir "$work/of"
    cat > "$work/one" << 'END'
timeout --foreground -k 5 60 "$2" --limit 55 --case "$3" > "$1/$3.out" 2> "$1/$3.err" < /dev/null
echo $? > "$1/$3.code"
echo "$3"
END
    cores=$(nproc)
    grep -v ^card_ "$work/todo" | at_once $((cores < 16 ? (cores + 1) / 2 : 8))
    grep ^card_ "$work/todo" | at_once 1
}

at_once() { # NUMBER
    seconds=$(left)
    [ "$seconds" -le 5 ] || LD_LIBRARY_PATH=$our_path timeout -k 5 "$seconds" xargs -P "$1" -I CASE \
        sh "$work/one" "$work/of" "$bin/check-cuda-device" CASE
}

# Record the result of a case. Return 1 if the part's time was over before the case ended.
case_ended() { # CASE
    of=$work/of/$1 name="kernel $1" most=60
    code=$(cat "$of.code" 2> /dev/null || echo 137)
    [ "$code" -ne 137 ] || [ "$(left)" -gt 5 ] || return 1
    cp "$of.out" "$work/out"
    cp "$of.err" "$work/err"
    keep_log "$name" "$code" "$bin/check-cuda-device" --limit 55 --case "$1"
    ! tell_end || result pass "$name" "$(grep '^ok' "$work/out" | tail -1)"
}

has_passed() { grep -qs "\"pass\", \"name\": \"kernel $1\"" "$tests"/gpu-results/*.json; } # CASE: on a card

# Each result is kept when its case ends: this call may be killed before the last one. Of the cases that pass, only the
# number is printed.
cases() { # new|all
    before=$(grep -sc '"pass", "name": "kernel ' "$work/$part.results")
    attempt "list of cases" 0 "$bin/check-cuda-device" --list || {
        [ -z "$dry" ] || echo "  $bin/check-cuda-device --limit 55 --case NAME"
        return 0
    }
    quiet=1
    while read -r case; do
        { [ "$1" = new ] && has_passed "$case"; } || ! todo "kernel $case" || echo "$case"
    done < "$work/out" > "$work/todo"
    run_cases | while read -r case; do case_ended "$case"; done
    first='' cases_left=0
    while read -r case; do
        ! todo "kernel $case" || case_ended "$case" || first=${first:-$case} cases_left=$((cases_left + 1))
    done < "$work/todo"
    quiet=
    [ $cases_left -eq 0 ] ||
        result cut "kernel cases" "the part's time is over, $cases_left have not run: first $first"
    passed=$(($(grep -sc '"pass", "name": "kernel ' "$work/$part.results") - ${before:-0}))
    echo "     kernels: $passed of $(grep -c . "$work/todo") cases passed"
}

part_cases() { cases new; }

# Have compute-sanitizer look at a case, or at all. It supports no device in some virtual machines.
sanitizer() { # TOOL SECONDS [CASE]
    todo "compute-sanitizer $1${3:+, $3}" || return 0
    attempt "compute-sanitizer $1${3:+, $3}" "$2" compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$bin/check-cuda-device" --one-process --once --exact --limit 0 ${3:+--case "$3"} &&
        result pass "$name" "$(cat "$work/out" "$work/err" | sed -n 's/^=* *\([A-Z]* SUMMARY\)/\1/p')"
}
