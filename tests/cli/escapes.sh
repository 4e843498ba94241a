# File names with control characters, which could move a terminal's cursor or set its title. Every program prints
# these characters as \xNN, on standard output and standard error. An error message of each program is enough, because
# one function escapes them all (tests/base/test_base.c).

# In this name, ESC ] 0 ; x BEL sets a terminal's title. A newline follows, then CSI as a single
# byte and as UTF-8, and a printable character, which is printed unchanged.
evil=$(printf 'e\033]0;x\007\nl\233\302\233\303\251')
shown='e\x1b]0;x\x07\x0al\x9b\xc2\x9bé'

# unnamed EXIT COMMAND...: run it; its output must have no control characters
unnamed() {
    run "$@"
    for stream in .stdout .stderr; do
        [ -z "$(LC_ALL=C tr -d '\n -~\200-\377' < $stream)" ] || fail "controls in $stream: $(od -c $stream | head -20)"
        ! LC_ALL=C grep -aq "$(printf '\302[\200-\237]')" $stream || fail "C1 controls in $stream"
        ! LC_ALL=C grep -aq "$(printf 'l\233')" $stream || fail "ill-formed UTF-8 in $stream"
    done
}

# tame EXIT COMMAND...: run it; its output must have no control characters, and must name the file
tame() {
    unnamed "$@"
    cat .stdout .stderr | grep -qF -e "$shown" || fail "the name is not shown"
}

mkdir "$evil"
texts "$evil" 40000
tame 0 sgt-tokenize "$evil" "set$evil"
tame 0 sgt-tokenize "$evil" "set$evil"
tame 1 sgt-tokenize --split 5% "$evil" "set$evil"
unnamed 0 sgt-tokenize --dry-run "$evil" "new$evil"
tame 1 sgt-tokenize "no$evil" out
tame 2 sgt-tokenize "--no$evil" in out
unnamed 2 sgt-tokenize --pattern "($evil" "$evil" out
tame 0 sgt-tokenize --train-vocab 300 "$evil" "vocab$evil"

tame 0 sgt-inspect "set$evil"
tame 0 sgt-inspect --verify "set$evil"
unnamed 0 sgt-inspect --batch 0 --seq-len 16 --batch-size 2 "set$evil"
tame 1 sgt-inspect "no$evil"
tame 2 sgt-inspect --decode "$evil" "set$evil"
tame 0 sgt-inspect --compare "set$evil" "set$evil"
tame 0 sgt-inspect --export npy "set$evil" "files$evil"

cp -r "set$evil" "other$evil"
small='--device cpu --model 1x8x1 --seq-len 16 --batch-size 2 --steps 2'
# shellcheck disable=SC2086
{
    tame 0 sgt-train --data "set$evil" --run "run$evil" $small
    tame 0 sgt-train --data "set$evil" --run "run$evil" --resume --steps 3 --device cpu
    tame 1 sgt-train --data "no$evil" $small --run other
    tame 2 sgt-train --data "set$evil" --model "$evil"
    tame 0 sgt-train --data "set$evil:1,other$evil:3" --run mixed $small
    run 0 sgt-train --json --data "set$evil:1,other$evil:3" --run "json$evil" $small
    grep -q '"run": "jsone.u001B' .stdout && grep -q '"data": "other' .stdout ||
        fail 'JSON lacks names that are not UTF-8'
}
tame 0 sgt-inspect "run$evil"
tame 0 sgt-inspect "run$evil/step-00000002"
mkdir names
printf '{"%s": {"%s": ["%s"]}, "%s": 1}\n' '\u001b]0;x\u0007' '\u001bc' '\u009b1m' '\u009b' > names/options.json
unnamed 0 sgt-inspect names
tame 1 sgt-sample "no$evil"
tame 2 sgt-sample "run$evil" --vocab "no$evil" --prompt "$evil" --tokens "0$evil"
tame 1 sgt-report "no$evil"
tame 0 sgt-report "run$evil" -o "page$evil.html"

tame 0 sgt-bench loader "set$evil" --seq-len 16 --batch-size 2 --seconds .01
tame 1 sgt-bench loader "no$evil"
tame 2 sgt-bench loader "set$evil" --loader "$evil"
tame 1 sgt-eval "no$evil" "no$evil"
tame 2 sgt-bench "$evil"
tame 2 sgt-bench ablation --data "set$evil" --rows "$evil"
