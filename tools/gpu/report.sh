# report.sh: stores the results of gpu-check.sh: a line of JSON each in $work/PART.results, joined into one document.
# shellcheck shell=sh disable=SC2154

quote() { printf '"%s"' "$(printf '%s' "$1" | tr '\001-\037' ' ' | sed 's/[\\"]/\\&/g')"; }

count() { cat "$work"/*.results 2> /dev/null | grep -c "^{\"result\": \"$1\""; }

# Print the versions of the libraries, as the self-check found them.
versions() { sed -n 's/.*"name": "self-check",.*"libraries": \({[^}]*}\).*/\1/p' "$work/versions.results" 2> /dev/null; }

# Write the results so far as one document. It is renamed when complete, so FILE is always whole.
write_json() { # COMPLETE
    [ -z "$dry" ] || return 0
    {
        printf '{"card": %s, "driver": %s, "memory": %s,\n' "$(quote "$card")" "$(quote "$driver")" "$(quote "$memory")"
        printf ' "date": "%s", "commit": %s, "complete": %s,\n' "$date" "$(quote "$commit")" "$1"
        libraries_json=$(versions)
        printf ' "libraries": %s,\n' "${libraries_json:-null}"
        printf ' "passed": %d, "failed": %d, "skipped": %d, "parts": {' "$(count pass)" \
            $(($(count fail) + $(count cut))) "$(count skip)"
        comma=
        for each in $all_parts; do
            [ -f "$work/$each.results" ] || continue
            printf '%s\n  "%s": {"results": [\n' "$comma" "$each"
            sed 's/^/    /; $!s/$/,/' "$work/$each.results"
            printf '  ]}'
            comma=,
        done
        printf '\n }}\n'
    } > "$json.part" && mv "$json.part" "$json"
}

# Take over the results of an earlier call from FILE, except those cut or skipped and, with --again, those failed.
load_json() {
    [ -s "$json" ] || return 0
    head -2 "$json" | tr -d '\n' | grep -qF "{\"card\": $(quote "$card"), \"driver\"" &&
        sed -n 2p "$json" | grep -qF "\"commit\": $(quote "$commit")," || {
        echo "gpu-check.sh: $json is of another card or commit: move it away, or name another file with -o" >&2
        exit 2
    }
    date=$(sed -n '2s/.*"date": "\([^"]*\)".*/\1/p' "$json")
    awk -v work="$work" -v drop="^    {\"result\": \"(cut|skip${again:+|fail})\"" '
        /^  "[a-z]*": {"results": / { split($0, field, "\"") }
        /^    {"result": / && $0 !~ drop {
            sub(/^    /, "")
            sub(/,$/, "")
            print > (work "/" field[2] ".results")
        }' "$json"
}

# Record a result: print a line for the user and append a line of JSON. With $quiet, results that passed are not
# printed. "at" is the number of seconds since gpu-check.sh began.
result() { # pass|fail|skip|cut|info NAME TEXT [MORE-JSON]
    [ -n "${quiet-}" ] && [ "$1" = pass ] || printf '%-4s %s: %s\n' "$1" "$2" "$3"
    printf '{"result": "%s", "name": %s, "text": %s, "at": %d%s}\n' "$1" "$(quote "$2")" "$(quote "$3")" \
        $(($(date +%s) - began)) "${4:+, $4}" >> "$work/$part.results"
    write_json false
}

# Record a figure that must be at least (>=) or at most (<=) its limit, unless this is a rehearsal.
figure() { # NAME VALUE UNIT [SENSE FLOOR GOAL]
    todo "$1" || return 0
    [ -n "$2" ] || { result fail "$1" "no figure came" && return; }
    if [ $# -eq 3 ] || [ -n "${GPU_CHECK_SMALL:-}" ]; then
        result info "$1" "$2 $3" "\"value\": $2"
        return
    fi
    verdict=$(awk -v x="$2" -v sense="$4" -v floor="$5" -v goal="$6" 'BEGIN {
        better = sense == ">=" ? 1 : -1
        print (better * (x - floor) >= 0 ? "pass" : "fail"), (better * (x - goal) >= 0 ? "goal met" : "goal not met")
    }')
    result "${verdict%% *}" "$1" "$2 $3 (floor $4 $5, goal $4 $6: ${verdict#* })" \
        "\"value\": $2, \"floor\": $5, \"goal\": $6"
}

# ---- which checks run ----

is_left_out() { # NAME: by --skip
    while read -r skip; do
        case $1 in *"$skip"*) echo "left $1: --skip $skip" && return 0 ;; esac
    done < "$work/skips"
    return 1
}

kept() { grep -sF "\"name\": $(quote "$1"), \"text\"" "$work/$part.results" | tail -1; } # NAME
value_of() { kept "$1" | sed -n 's/.*, "value": \([0-9.eE+-]*\)[,}].*/\1/p'; }            # NAME

# Return whether a check must still run: neither --skip nor an earlier call covers it.
todo() { # NAME
    [ -n "$dry" ] || ! grep -qsF "\"name\": $(quote "$1"), \"text\"" "$work/$part.results" || {
        [ -n "${quiet-}" ] || echo "kept $1: $(kept "$1" | sed 's/.*"text": "\(.*\)", "at".*/\1/')"
        return 1
    }
    ! is_left_out "$1"
}
