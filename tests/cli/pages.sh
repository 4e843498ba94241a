# tools/sgt-*.1, --help and the tables of options say the same: names, letters, values, choices and defaults, in both
# directions; and a default that is said is the one that is set.
. "$ROOT/tests/cli/lib.sh"

# An option's paragraph of a page, from its table's row: in its subcommand's section of OPTIONS, or in "All".
cat > compare.awk << 'AWK'
function plain(s) {
    sub(/^\.(BR|BI|RB|IR|RI|IB|B|I) /, "", s)
    gsub(/\\f[A-Z]/, "", s); gsub(/\\-/, "-", s); gsub(/\\&/, "", s); gsub(/\\e/, "\\", s)
    gsub(/"/, "", s); gsub(/[ \t]+/, " ", s)
    return s
}
function fail(what) { print page ": " what; failed = 1 }
function words(s) { return " " s " " }
BEGIN { FS = "\t"; needs = " count size real percent choice " }
FNR == 1 { file++ }
file == 1 { row[++rows] = $0; next }
FNR == 1 { page = FILENAME; sub(/.*\//, "", page) }
/^\.SH/ { options = /^\.SH OPTIONS/; section = "-"; next }
!options { next }
/^\.SS/ { section = plain(substr($0, 5)); next }
/^\.TP/ { tag_next = 1; last = ++count; in_section[count] = section; next }
/^\.TQ/ { tag_next = 1; next }
tag_next { tag[count] = tag[count] " " plain($0); tag_next = 0; next }
count { body[count] = body[count] " " plain($0) }
END {
    for (i = 1; i <= rows; i++) {
        split(row[i], f, "\t")
        command = f[1]; name = f[2]; letter = f[3]; value = f[4]; def = f[5]; set = f[6]; kind = f[7]
        shown = (command == "-" ? "" : command " ") "--" name
        found = 0
        for (j = 1; j <= count; j++) {
            if (command != "-" && in_section[j] != "All" && in_section[j] !~ command "$") continue
            if ((tag[j] " ") !~ "(^|[^a-z-])--" name "[^a-z-]") continue
            found = j
            known[j, name] = 1
            if (command != "-" && in_section[j] == "All") everywhere[name] = 1
        }
        if (!found) { fail(shown " is not in the page"); continue }
        text = tag[found] body[found]
        gsub(/ +/, " ", text)
        if (letter != "-" && text !~ "(^|[^a-z-])-" letter "[^a-z-]") fail(shown ": no -" letter)
        squeezed = tag[found]; gsub(/[ ,]/, "", squeezed); wanted = value; gsub(/[ ,]/, "", wanted)
        if (value != "-" && index(squeezed, "--" name wanted) == 0) fail(shown ": no value " value " in" tag[found])
        if (def != "-" && index(text, "Default: " def ".") == 0) fail(shown ": no \"Default: " def ".\"")
        if (def == "-" && index(text, "Default")) fail(shown ": a default that the table has not")
        if (def == "-" && index(needs, " " kind " ") && name !~ /^(train-vocab)$/) fail(shown ": no default")
        if (def != "-" && set != "-" && set !~ /^0%?$/ && set !~ /^(-inf|18446744073709551615)$/) {
            number = def
            if (number ~ /^[0-9.]+M$/) number = number * 1000000
            if (words(number) !~ "[^a-z0-9.-]" set "[^a-z0-9.-]" && !(def ~ /^all/))
                fail(shown ": the default is said to be " def ", and is " set)
        }
    }
    for (j = 1; j <= count; j++) {
        n = split(tag[j], w, /[ ,|]+/)
        for (k = 1; k <= n; k++)
            if (w[k] ~ /^--./ && w[k] !~ /^--(help|version)$/ && !((j, substr(w[k], 3)) in known))
                fail(w[k] " is in the page (" in_section[j] ") and not in the table")
    }
    if (!rows || !count) fail("nothing to compare")
    exit failed
}
AWK

# Every option in ./examples, on lines that begin with the program, is in its table.
options_exist() {
    grep -E "^ *$program " examples | sed 's/ && .*//' | grep -oE -e ' --[a-z][a-z0-9-]*' | tr -d ' ' | sort -u |
        while read -r option; do
            cut -f 2 table | grep -qx -e "${option#--}" || fail "$program has no $option, which an example has"
        done || exit 1
}

for page in "$ROOT"/tools/sgt-*.1; do
    program=$(basename "$page" .1)
    run 0 "$program" --completion table
    cp .stdout table
    awk -f compare.awk table "$page" > said || fail "$(cat said)"
    sed -n '/^\.SH EXAMPLES/,/^\.SH SEE/p' "$page" | sed 's/\\-/-/g' > examples
    grep -q "^$program" examples || fail "$page has no examples"
    options_exist
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning "$page"
    fi

    # --help of the program and of each subcommand: within 100 columns, in groups, with every row of the table and its
    # default, and examples that call it
    for command in - $(cut -f 1 table | grep -vx -e - | sort -u); do
        called=$program
        [ "$command" = - ] || called="$program $command"
        # shellcheck disable=SC2086
        run 0 $called --help
        stderr_is ''
        cp .stdout help
        [ -z "$(LC_ALL=C.UTF-8 awk 'length > 100' help)" ] || fail "more than 100 columns: $(awk 'length > 100' help)"
        [ "$(grep -c '^[A-Z].*:$' help)" -ge 3 ] || fail "$called has no groups"
        sed -n '/^Examples:$/,$p' help > examples
        grep -q "^  .*$called" examples || fail "$called has no example"
        options_exist
        tr -s '\n ' ' ' < help > flat
        grep "^$command	" table | while IFS='	' read -r _ name letter value def _; do
            option="--$name"
            [ "$value" = - ] || option="$option $value"
            [ "$letter" = - ] || option="-$letter, $option"
            grep -qF -e "$option" flat || fail "$called lacks $option"
            [ "$def" = - ] || grep -qF -e "(default $def)" flat || fail "$called lacks the default of $name"
        done || exit 1
    done
done

# sgt.7 names every page, and its first session works, with fewer steps.
page=$ROOT/tools/sgt.7
for name in "$ROOT"/tools/sgt-*.1 "$ROOT"/loader/sgt_loader.3 "$ROOT"/tokenize/sgt_tokenize.3; do
    title=$(basename "${name%.*}" | sed 's/-/\\\\-/g')
    grep -qE "^\.BR $title \(${name##*.}\)" "$page" || fail "sgt.7 does not name $title"
done
if command -v mandoc > /dev/null; then run 0 mandoc -Tlint -Wwarning "$page"; fi
mkdir corpus
texts corpus 200000
sed -n '/^\.SH A FIRST SESSION/,/^\.fi/p' "$page" | grep '^sgt' |
    sed 's/ *# .*//; s/\\-/-/g; s/steps 200/steps 2/; s/steps 400/steps 4/' > session
[ "$(wc -l < session)" -eq 6 ] || fail "a session of $(wc -l < session) lines"
while read -r line; do
    run 0 sh -c "$line"
done < session
exists run/step-00000004
