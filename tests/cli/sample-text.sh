# sgt-sample writes raw bytes to a file or a pipe. On a terminal it writes only complete characters,
# and nothing that controls the terminal. The model of this test continues every prompt with the
# same text (tests/data/make_sample.py).
says=$ROOT/tests/data/fixtures/sample/says
text=$says/text
sample() { run 0 sgt-sample "$says" --quiet --temperature 0 "$@"; }

sample -p G
stderr_is ''
same .stdout "$text"
sample -p G --no-prompt
tail -c +2 "$text" > rest
same .stdout rest
head -c 3 "$text" > half # a prompt that ends in the middle of a character
sample --prompt-file half
same .stdout "$text"
sample -p G --tokens 2
head -c 3 "$text" > want
same .stdout want
sample -p G --precision bf16
same .stdout "$text"
sample -p G -p G
{ cat "$text" && printf '\n---\n' && cat "$text"; } > want
same .stdout want

sample -p G --ignore-eot --tokens 49
{ cat "$text" && printf '<|endoftext|><|endoftext|>'; } > want
same .stdout want

sample -p G --json
stdout_has '"prompt": "G", "sample": 0, "prompt_ids": [71], "text": "rüße, 世界 🙂\n\tx\u001B[31m'
stdout_has 'red\u001B[0m\u0007'
stdout_has '\u0007'"$(printf '\177\357\277\275 \357\277\275( \302\205')"'.\r'"$(printf '\357\277\275')"'", '\
'"ids": [114, 195, '
stdout_has '184], "end": "end-of-text"}]}' '"tokens": 47, '
sample -p G --json --tokens 3
stdout_has '"ids": [114, 195, 188], "end": "tokens"}]}'

# A prompt is encoded to the ids that sgt-tokenize gives its text, in the normal form that the
# vocabulary requires.
ids() { od -An -tu2 -v -w2 -j1026 set/train_000000.bin | paste -sd, | tr -d ' ' | sed 's/,/, /g'; }
cp -r "$says" own
# e with a separate accent, and ligatures that NFKC makes 18 letters of
{ printf 'e\314\201 ' && printf '\357\267\272%.0s' 1 2 3 4 5 6 7 8 9; } > raw.txt
for form in none nfc nfkc; do
    run 0 sgt-tokenize --quiet --force --vocab "$says" --normalize $form raw.txt set
    cp set/tokenizer.json own
    run_prints "\"prompt_ids\": [$(ids)]" sgt-sample own --quiet --json --tokens 1 --prompt-file raw.txt
done

# A character is written in one call, as soon as its last byte has been generated.
need_strace
strace -f -o .traced -e trace=write -xx sgt-sample "$says" -q -p G --temperature 0 -t 1 > .stdout || fail 'under strace'
grep -oE 'write\(1, "[^"]*"' .traced | sed 's/.*"\(.*\)"/\1/' | tr -d '\\' > pieces
check 'whole characters' [ "$(head -6 pieces | tr '\n' ' ')" = 'x47 x72 xc3xbc xc3x9f x65 x2c ' ]

command -v script > /dev/null || skip 'script is not there: nothing was shown on a terminal'
script -qec "sgt-sample '$says' --quiet --temperature 0 -p G" /dev/null < /dev/null > .shown 2> .stderr ||
    fail "exit $?: $(cat .stderr .shown)"
printf 'Grüße, 世界 🙂\r\n\tx\\x1b[31mred\\x1b[0m\\x07\\x7f\\xff \\xc3( \\xc2\\x85.\\x0d\\xe4\\xb8\r\n' > want
same .shown want
# Control characters of a prompt do not reach the terminal either.
script -qec "sgt-sample '$says' --quiet --temperature 0 --tokens 1 -p \"\$(printf 'a\\033]0;b\\007')\"" /dev/null \
    < /dev/null > .shown 2> .stderr || fail "exit $?: $(cat .stderr .shown)"
grep -qF 'a\x1b]0;b\x07' .shown || fail "not escaped: $(cat .shown)"
# A message begins on a new line, even if the text does not end with a newline. Files and pipes get
# no extra newline.
script -qec "sgt-sample '$says' --temperature 0 --tokens 3 -p G" /dev/null < /dev/null > .shown 2> .stderr ||
    fail "exit $?: $(cat .stderr .shown)"
sed 's/\r\|\x1b\[K//g' .shown > shown
[ "$(head -1 shown)" = Grü ] && sed -n 2p shown | grep -qE '^sgt-sample: 3 tokens in [0-9.]+ (ms|s): ' ||
    fail "not two lines: $(cat shown)"
run 0 sgt-sample "$says" --temperature 0 --tokens 1 -p G
printf 'Gr' > want
same .stdout want
stderr_matches '^sgt-sample: 1 token in [0-9.]+ (ms|s): '
