# The options in tools/sgt-*.1 are what `make man` writes from the tables, --help lists the same, and each option with a
# value states its default, which the program sets from there if it is a number or a word.

# Check that each option of a table with a value, but those that choose an action, states a default.
no_default='$5 == "-" && $6 ~ /^(count|size|real|percent|choice)$/ && $2 !~ /^(train-vocab|export)$/ { print $1 " --" $2 }'

# Check that the table has every option that ./examples uses, on lines that begin with the program.
options_exist() {
    grep -E "^ *$program " examples | sed 's/ && .*//' | grep -oE -e ' --[a-z][a-z0-9-]*' | tr -d ' ' | sort -u |
        while read -r option; do
            cut -f 2 table | grep -qx -e "${option#--}" || fail "$program has no $option, which an example has"
        done || exit 1
}

for page in "$ROOT"/tools/sgt-*.1; do
    program=$(basename "$page" .1)
    run_prints_like "^$program [0-9]+\.[0-9]+\.[0-9]+$" "$program" --version
    run 0 "$program" --completion table
    cp .stdout table
    without=$(awk -F '\t' "$no_default" table)
    [ -z "$without" ] || fail "no default: $without"
    awk -f "$ROOT/tools/man.awk" table "$page" > generated 2> said || fail "$(cat said)"
    cmp -s generated "$page" || fail "$page is not what make man makes of it: $(diff "$page" generated | head -6)"
    sed -n '/^\.SH EXAMPLES/,/^\.SH SEE/p' "$page" | sed 's/\\-/-/g' > examples
    grep -q "^$program" examples || fail "$page has no examples"
    options_exist
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning "$page"
    fi

    # --help of the program and of each subcommand stays within 100 columns, and has groups, every
    # row of the table with its default, and examples that call it.
    for command in - $(cut -f 1 table | grep -vx -e - | sort -u); do
        called=$program
        [ "$command" = - ] || called="$program $command"
        # shellcheck disable=SC2086
        run_silent $called --help
        cp .stdout help
        head -1 help | grep -qE "^usage: $called( |$)" || fail "$called begins its help with: $(head -1 help)"
        [ -z "$(LC_ALL=C.UTF-8 awk 'length > 100' help)" ] || fail "more than 100 columns: $(awk 'length > 100' help)"
        early=$(awk '/^$/ { exit } /^(usage:|   )/ { next } last && length(last) + 1 + length($1) <= 100 { print last }
            { last = $0 }' help)
        [ -z "$early" ] || fail "$called ends a line early: $early"
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
texts corpus 200000
sed -n '/^\.SH A FIRST SESSION/,/^\.fi/p' "$page" | grep '^sgt' |
    sed 's/ *# .*//; s/\\-/-/g; s/steps 200/steps 2/; s/steps 400/steps 4/' > session
[ "$(wc -l < session)" -eq 6 ] || fail "a session of $(wc -l < session) lines"
while read -r line; do
    run 0 sh -c "$line"
done < session
exists run/step-00000004
