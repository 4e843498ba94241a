# The manuals have each program's options, which `make man` writes from the option tables, and
# --help lists the same. Each option with a value states its default. If that is a number or a word,
# the program takes it from the table.

# Check that each option with a value states a default, except for options that choose an action.
no_default='$5 == "-" && $6 ~ /^(count|size|real|percent|choice)$/ && $2 !~ /^(train-vocab|export)$/ { print $1 " --" $2 }'

# Check that the table has every option that ./examples uses, on lines that begin with the program.
options_exist() {
    grep -E "^ *$program " examples | sed "s/ && .*//; s/'[^']*'//g" | grep -oE -e ' --[a-z][a-z0-9-]*' | tr -d ' ' | sort -u |
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
    run_silent awk -f "$ROOT/tools/man.awk" table "$page"
    cp .stdout generated
    has=$(sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' generated | sed 's/\\-/-/g' | grep -cE '^\.BR? (-. ", " )?--[a-z]')
    [ "$has" -eq $(($(cut -f 6 table | grep -vcx heading) + 2)) ] || fail "$page has $has options, not all of the table"
    sections=$(sed -n 's/^\.SH //p' "$page" | grep -nE '^(NAME|SYNOPSIS|DESCRIPTION|OPTIONS|JSON OUTPUT|FILES|EXIT STATUS|ENVIRONMENT|EXAMPLES|SEE ALSO)$' |
        cut -d : -f 2 | tr '\n' ' ')
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'JSON OUTPUT' FILES 'EXIT STATUS' ENVIRONMENT EXAMPLES 'SEE ALSO'; do
        sections=${sections#"$section "}
    done
    [ -z "$sections" ] || fail "$page has sections in another order: $sections"
    sed -n '/^\.EX/,/^\.EE/p' "$page" | sed 's/\\-/-/g' > examples
    grep -q "^$program" examples || fail "$page has no examples"
    options_exist
    if command -v mandoc > /dev/null; then
        run 0 mandoc -Tlint -Wwarning generated
    fi

    # --help of the program and of each subcommand is at most 100 columns wide. It has groups, each
    # row of the option table with its default, and examples that call the program.
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
        awk -F '\t' -v c="$command" '$1 == c && $6 != "heading"' table | while IFS='	' read -r _ name letter value def _; do
            option="--$name"
            [ "$value" = - ] || option="$option $value"
            [ "$letter" = - ] || option="-$letter, $option"
            grep -qF -e "$option" flat || fail "$called lacks $option"
            [ "$def" = - ] || grep -qF -e "(default $def)" flat || fail "$called lacks the default of $name"
        done || exit 1
    done
done

# Expressions that readers of the manuals stumbled over are not used.
! grep -nE '\b((is|are) said|goe?s? on|so many|meanwhile)\b' "$ROOT"/tools/*.[17] "$ROOT"/*/sgt_*.3 || fail 'say it plainly'

# sgt.7 names every page. Its tour works, here with fewer steps and with a small model instead of
# GPT-2.
page=$ROOT/tools/sgt.7
for name in "$ROOT"/tools/sgt-*.1 "$ROOT"/loader/sgt_loader.3 "$ROOT"/tokenize/sgt_tokenize.3; do
    title=$(basename "${name%.*}" | sed 's/-/\\\\-/g')
    grep -qE "^\.BR $title \(${name##*.}\)" "$page" || fail "sgt.7 does not name $title"
done
if command -v mandoc > /dev/null; then run 0 mandoc -Tlint -Wwarning "$page"; fi
texts corpus 200000
sed -n '/^\.SH TOUR/,/^\.SH CONCEPTS/p' "$page" | sed -n '/^\.EX/,/^\.EE/p' | grep '^sgt' | sed 's/\\-/-/g; s/steps 200/steps 2/
    s/steps 400/steps 4/; s/--seq-len 1024 --batch-size auto/--model 1x8x1 --seq-len 8 --batch-size 2 --steps 1/' > tour
[ "$(wc -l < tour)" -eq 8 ] || fail "a tour of $(wc -l < tour) commands"
while read -r line; do
    run 0 sh -c "$line"
done < tour
exists small/step-00000004
exists gpt2/step-00000001
exists report.html
