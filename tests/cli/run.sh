#!/bin/sh
# run.sh BIN [PATTERN]: runs tests/cli/*.sh (those whose name contains PATTERN) against the programs in BIN, each in an
# empty folder. A line each, and with SHOW=1 what it said; the last line is "N passed, N failed, N skipped". Exit 1 when
# one failed.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BIN=$(cd "$1" && pwd) || exit 1
PATTERN=${2:-}
export ROOT BIN
PATH=$BIN:$PATH
export PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-cli.XXXXXX")
trap 'chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
for script in "$ROOT"/tests/cli/*.sh; do
    name=$(basename "$script" .sh)
    case $name in lib | run) continue ;; *"$PATTERN"*) ;; *) continue ;; esac
    mkdir "$work/$name"
    code=0
    (cd "$work/$name" && exec timeout -k 5 "${SCRIPT_SECONDS:-300}" sh "$script") \
        > "$work/$name.out" 2>&1 < /dev/null || code=$?
    case $code in
    0) passed=$((passed + 1)) && echo "ok    $name" && [ -z "${SHOW:-}" ] || sed 's/^/      /' "$work/$name.out" ;;
    77) skipped=$((skipped + 1)) && echo "SKIP  $name: $(sed -n 's/^SKIP: //p' "$work/$name.out" | head -1)" ;;
    *) failed=$((failed + 1)) && echo "FAIL  $name (exit $code)" && sed 's/^/      /' "$work/$name.out" | tail -40 ;;
    esac
    chmod -R u+rwx "$work/$name" 2>/dev/null
    rm -rf "${work:?}/$name"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
