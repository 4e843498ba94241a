#!/bin/sh
# run.sh BIN [PATTERN]: run tests/cli/*.sh (those whose names contain PATTERN) against the programs in BIN, each in an
# empty folder, AT_ONCE (2) at a time. Leave out names that match LEFT_OUT, a regular expression, and with TIER=check
# scripts with a line "# In make check-all only: WHY". Scripts with "# In make check-wheel only: WHY" run with TIER=wheel,
# and alone. Print one line per script when it ends, and with SHOW=1 its output, with COUNTED=1 how many ended; TIMES=FILE
# gets a line with its name and its CPU time. The last line is "N passed, N failed, N skipped". Exit with 1 if one failed.
set -u

# Run one script; used by the rest of this file.
if [ "$1" = --one ]; then
    script=$2
    name=$(basename "$script" .sh)
    counted=${COUNTED:-}
    unset COUNTED
    out=$CLI_WORK/.$name
    code=0
    mkdir "$CLI_WORK/$name"
    (cd "$CLI_WORK/$name" && exec timeout -k 5 "${SCRIPT_SECONDS:-900}" sh -c '. "$ROOT/tests/cli/lib.sh" && . "$0"' \
        "$script") > "$out" 2>&1 < /dev/null || code=$?
    [ -z "${TIMES:-}" ] || { times > "$out.times" && echo "$name $(tail -1 "$out.times")" >> "$TIMES"; }
    chmod -R u+rwx "$CLI_WORK/$name" 2> /dev/null
    rm -rf "${CLI_WORK:?}/$name"
    {
        case $code in
        0) echo "ok    $name" && [ -z "${SHOW:-}" ] || sed 's/^/      /' "$out" ;;
        77) echo "SKIP  $name: $(sed -n 's/^SKIP: //p' "$out" | head -1)" ;;
        *) echo "FAIL  $name (exit $code)" && sed 's/^/      /' "$out" | tail -40 ;;
        esac
    } > "$out.said"
    # Print the output by a single write: cat may use copy_file_range, which overwrites what another
    # script prints at the same time.
    [ -z "$counted" ] ||
        counted="[$(find "$CLI_WORK" -maxdepth 1 -name '.*.said' | wc -l)/$(wc -l < "$CLI_WORK/scripts")] "
    printf '%s\n' "$counted$(cat "$out.said")"
    exit 0
fi

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BIN=$(cd "$1" && pwd) || exit 1
PATTERN=${2:-}
PATH=$BIN:$PATH
CLI_WORK=$(mktemp -d "${TMPDIR:-/tmp}/sgt-cli.XXXXXX")
XDG_CACHE_HOME=$CLI_WORK/.cache # not the user's
export ROOT BIN PATH CLI_WORK XDG_CACHE_HOME
export GOMP_SPINCOUNT=1000 # as the programs set it when they start themselves again (tools/cli/process.h)
trap 'chmod -R u+rwx "$CLI_WORK" 2>/dev/null; rm -rf "$CLI_WORK"' EXIT
trap 'exit 130' INT TERM
for script in "$ROOT"/tests/cli/*.sh; do
    case ${TIER:-all},$(sed -nE 's/^# In make check-(all|wheel) only: .*/\1/p' "$script") in
    check,?* | all,wheel | wheel, | wheel,all) continue ;;
    esac
    case $(basename "$script" .sh) in lib | run) ;; *"$PATTERN"*) echo "$script" ;; esac
done | grep -vE "/(${LEFT_OUT:-})\.sh\$" > "$CLI_WORK/scripts"
xargs -r -d '\n' -n 1 -P "${AT_ONCE:-2}" sh "$ROOT/tests/cli/run.sh" --one < "$CLI_WORK/scripts"
count() { cat "$CLI_WORK"/.*.said 2> /dev/null | grep -c "^$1  "; }
passed=$(count 'ok  ') skipped=$(count SKIP)
failed=$(($(wc -l < "$CLI_WORK/scripts") - passed - skipped)) # also scripts that could not be started
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
