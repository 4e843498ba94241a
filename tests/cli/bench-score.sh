# sgt-bench score: a small model's answers are transformers', to the item, where a Python has it; and those of a run in
# which they were.
# In make check-all only: it scores questions with a whole model.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
. "$ROOT/tests/cli/train.inc"
work_in_memory
for python in ${PYTHON:-python3} /usr/bin/python3; do
    $python -c 'import torch, transformers' 2> /dev/null && break
    python=
done

# A model that was never trained is likeliest to say the token before once more: some last words are just that.
mkdir corpus
cp "$ROOT/README.md" corpus/
run 0 sgt-tokenize --quiet corpus out
run 0 sgt-train --quiet --data out --device cpu --model 2x64x2 --seq-len 16 --batch-size 1 --steps 1 --lr 0 \
    --eval-every 0 --precision fp32 --run model
words='apple river window mountain yesterday cat running xylophone green nothing Paris door unbelievable seven'
awk -v words="$words" 'BEGIN {
    n = split(words, w)
    for (i = 0; i < 30; i++) {
        printf "{\"ind\": %d, \"ctx\": \"%s %s is %s the\", \"endings\": [",
            i, w[1 + i % n], w[1 + i * 5 % n], w[1 + i * 3 % n] > "endings.jsonl"
        for (k = 0; k < 4; k++) {
            text = w[1 + (i * 7 + k * 3) % n]
            for (j = 0; j < 1 + (i + k) % 2; j++) text = text " " w[1 + (i + j * 5 + k) % n]
            printf "%s\"%s.\"", k ? ", " : "", text > "endings.jsonl"
        }
        printf "], \"label\": %s}\n", i % 2 ? i * 3 % 4 : "\"" i * 3 % 4 "\"" > "endings.jsonl"
        last = i % 2 ? w[1 + i % n] : w[1 + i * 3 % n]
        printf "{\"text\": \"They said the %s of %s is %s %s\"}\n",
            w[1 + i * 5 % n], w[1 + i * 11 % n], w[1 + i % n], last > "words.jsonl"
    }
}'
score="sgt-bench score --device cpu --model model/step-00000001"
for kind in endings words; do
    run 0 $score $kind.jsonl --json --quiet
    stderr_is ''
    cp .stdout $kind.json
    [ -z "$python" ] || run 0 env HF_HUB_OFFLINE=1 $python "$ROOT/tests/train/check_score.py" model/step-00000001 \
        $kind.jsonl $kind.json
done
figure() { sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$2"; }
list() { grep -o "\"$1\": [a-z0-9]*" "$2" | sed 's/.* //; s/true/1/; s/false/0/' | tr -d '\n'; }
kept() { [ "$2" = "$3" ] || fail "$1: $3, which was $2 when transformers said the same"; }
kept pick 010121212101230101212121012301 "$(list pick endings.json)"
kept pick_norm 111121312112131111213121121311 "$(list pick_norm endings.json)"
kept right 010001000101010100010001010101 "$(list right words.json)"
check 'some are right, some are not' test "$(list right words.json | tr -d 0 | wc -c)" -gt 3
check 'and some wrong' test "$(list right words.json | tr -d 1 | wc -c)" -gt 3

# however many at a time, on however many threads, and a run for its newest checkpoint
for option in '--batch-size 1' '--batch-size 7 --threads 1' '--batch-size 500'; do
    run 0 $score words.jsonl --json $option
    kept right "$(list right words.json)" "$(list right .stdout)"
    check 'perplexity' awk "BEGIN { d = $(figure perplexity .stdout) / $(figure perplexity words.json) - 1
        exit !(d < 1e-5 && d > -1e-5) }"
done
run 0 sgt-bench score --device cpu --model model endings.jsonl --plot s.svg
table 'guessing    0.2500'
picture s.svg 2 2 0
stdout_matches '^endings.jsonl, model/step-00000001, cpu, fp32$'
stdout_matches '^[* ] acc         0\.[0-9]{4} \+- 0\.[0-9]{4}  \([0-9]+ of 30\)$'
stdout_matches '^[* ] acc_norm    0\.[0-9]{4} \+- 0\.[0-9]{4}  \([0-9]+ of 30\)$'
run 0 $score words.jsonl
stdout_matches '^  perplexity  [0-9]+\.[0-9]{4}$'

# a context longer than the model keeps its end: the answer is what it is after that end alone
long=$(awk 'BEGIN { for (i = 0; i < 1500; i++) printf "one " }')
echo "{\"text\": \"$long two\"}" > long.jsonl
run 0 $score long.jsonl --json
stderr_has 'sgt-bench score: long.jsonl: 1 of 1 contexts are cut at their beginning to the model'"'"'s 1024 positions'
cp .stdout long.json
[ -z "$python" ] || run 0 env HF_HUB_OFFLINE=1 $python "$ROOT/tests/train/check_score.py" model/step-00000001 \
    long.jsonl long.json

# lines that are wrong
bad() { # MESSAGE LINE
    printf '{"text": "one two"}\n%s\n' "$2" > bad.jsonl
    run 1 $score bad.jsonl
    stdout_is ''
    stderr_is "sgt-bench score: bad.jsonl: line 2: $1"
}
bad 'wanted {"text": TEXT}: it is of another kind' '{"ctx": "a", "endings": ["b", "c"], "label": 0}'
bad 'wanted {"text": TEXT}: no two words with a space between them' '{"text": "one"}'
bad 'wanted {"text": TEXT}: no two words with a space between them' '{"text": " one "}'
bad 'wanted {"text": TEXT}: no text "text"' '{"text": 3}'
bad 'wanted {"text": TEXT}: it is no object' '[3]'
bad "not JSON: '}' expected near end of file" '{"text": "one two"'
choice() { # MESSAGE LINE
    echo "$2" > bad.jsonl
    run 1 $score bad.jsonl
    stderr_is "sgt-bench score: bad.jsonl: line 1: wanted {\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": N}: $1"
}
choice 'no text "ctx"' '{"endings": ["b", "c"], "label": 0}'
choice '"endings" are not 2 to 1000 texts' '{"ctx": "a", "endings": ["b"], "label": 0}'
choice '"endings" are not 2 to 1000 texts' '{"ctx": "a", "endings": ["b", 3], "label": 0}'
choice "\"label\" is no ending's number" '{"ctx": "a", "endings": ["b", "c"], "label": 2}'
choice "\"label\" is no ending's number" '{"ctx": "a", "endings": ["b", "c"], "label": "x"}'
: > bad.jsonl
run 1 $score bad.jsonl
stderr_is 'sgt-bench score: bad.jsonl: no line in it: wanted {"ctx": TEXT, "endings": [TEXT, ...], "label": N} or '\
'{"text": TEXT} a line'
run 1 $score missing.jsonl
stderr_is 'sgt-bench score: missing.jsonl: No such file or directory'
run 1 sgt-bench score --device cpu --model nowhere words.jsonl
stderr_is 'sgt-bench score: nowhere/config.json: No such file or directory'
run 1 sgt-bench score --device cpu --model "$curve" words.jsonl
stderr_is "sgt-bench score: $curve: a vocabulary of 256, not GPT-2's 50257"
run_score_usage() {
    run 2 sgt-bench score $2
    stderr_is "sgt-bench score: $1
try 'sgt-bench score --help'"
}
run_score_usage 'wanted a FILE of questions, a JSON object a line' '--model model'
run_score_usage '--model: needed (a checkpoint, a run or a Hugging Face directory)' words.jsonl
run_score_usage 'one FILE at a time' '--model model words.jsonl endings.jsonl'
run 1 $score words.jsonl --precision tf32
stderr_is 'sgt-bench score: --precision tf32: no CPU has it (fp32 is as good, or --device cuda)'

# on CUDA, the host in its place: the same answers
programs=$BIN/../host/bin
[ -e "$programs/sgt-bench" ] || exit 0
PATH=$programs:$PATH
for precision in fp32 bf16 fp16; do
    run 0 sgt-bench score --device cuda --precision $precision --model model words.jsonl --json --batch-size 10
    [ $precision != fp32 ] || kept 'right on CUDA' "$(list right words.json)" "$(list right .stdout)"
    # a loss near 11 in numbers of 8 bits of mantissa
    check "perplexity in $precision" awk "BEGIN {
        d = log($(figure perplexity .stdout) / $(figure perplexity words.json)); exit !(d < .05 && d > -.05) }"
done
