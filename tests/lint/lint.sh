#!/bin/sh
# lint.sh DIR KIND...: print the findings of gcc -fanalyzer (gcc), cppcheck and clang-tidy (tidy),
# whose output make has stored in DIR/**.KIND. Findings listed in tests/lint/allowed ("FILE CHECK:
# why it is no fault") are left out. Exit with 1 if anything else was found.
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$1
shift
# Lines are FILE:LINE:COLUMN: warning: TEXT [CWE-1] [CHECK]. If clang-tidy names several checks,
# take the first.
for kind in "$@"; do find "$dir" -name "*.$kind" -exec cat {} +; done |
    grep -E '^[^ :]+:[0-9]+(:[0-9]+)?: (warning|error):' | sort -u > "$dir/found"
sed -E 's/^([^:]+):.* \[-?W?([a-zA-Z0-9.-]+)(,[^]]*)?\]$/\1 \2/' "$dir/found" > "$dir/keys"
# A pattern of the checks' names. The names of gcc begin with analyzer-, those of clang-tidy with a
# group; those of cppcheck have no prefix.
checks=-
for kind in "$@"; do
    case $kind in
    gcc) checks="$checks|analyzer-[^ :]*" ;;
    tidy) checks="$checks|(clang-analyzer|bugprone|cert|performance|portability|misc)-[^ :]*" ;;
    *) checks="$checks|[a-zA-Z]+" ;;
    esac
done
sed -nE "s/^([^ #]+ ($checks)): .+/\1/p" tests/lint/allowed | sort -u > "$dir/allowed"
paste -d '\n' "$dir/keys" "$dir/found" | awk -v list="$dir/allowed" '
    BEGIN { while ((getline line < list) > 0) allowed[line] = 1 }
    NR % 2 { key = $0; next }
    key in allowed { passed++; used[key] = 1; next }
    { print; found++ }
    END {
        for (key in allowed) if (!(key in used)) print "no longer found: " key > "/dev/stderr"
        printf "%d found, %d allowed\n", found, passed
        exit found > 0
    }'
