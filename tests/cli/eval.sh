# sgt-eval: a small model's answers to each question equal those of transformers, if a Python has
# it, and answers of transformers that were stored. Loss and bits per byte equal those of GPT-2 in
# float64 and of sgt-train.
# In make check-all only: it scores questions with a whole model.
. "$ROOT/tests/cli/train.inc"
work_in_memory
find_python 'torch, transformers'

# An untrained model mostly predicts the token that it has just seen: some last words are that token.
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
model=model/step-00000001
score="sgt-eval --device cpu $model"
like_transformers() { # FILE JSON
    [ -z "$python" ] || run 0 env HF_HUB_OFFLINE=1 $python "$ROOT/tests/train/check_eval.py" $model "$1" "$2"
}
for kind in endings words; do
    run_silent $score $kind.jsonl --json --quiet
    cp .stdout $kind.json
    like_transformers $kind.jsonl $kind.json
done
figure() { sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$2"; }
list() { grep -o "\"$1\": [a-z0-9]*" "$2" | sed 's/.* //; s/true/1/; s/false/0/' | tr -d '\n'; }
kept() { [ "$2" = "$3" ] || fail "$1: $3, which was $2 when transformers said the same"; }
kept pick 010121212101230101212121012301 "$(list pick endings.json)"
kept pick_norm 131122321321021311223213210213 "$(list pick_norm endings.json)"
kept pick_token 111121312112131111213121121311 "$(list pick_token endings.json)"
kept right 010001000101010100010001010101 "$(list right words.json)"
# Each token has about the same log-probability here. Normalized per character, the ending of four
# letters is more likely; per byte, or by the sum, the other ending would be.
printf '{"ctx": "He said", "endings": ["ééé", "x y z w"], "label": 1}\n' > wide.jsonl
run 0 $score wide.jsonl --json --quiet
cp .stdout wide.json
like_transformers wide.jsonl wide.json
kept 'pick by the sum' 0 "$(list pick wide.json)"
kept 'pick per character' 1 "$(list pick_norm wide.json)"

# Results do not depend on the batch size or the number of threads. If MODEL is a run, its newest
# checkpoint is used.
for option in '--batch-size 1' '--batch-size 7 --threads 1' '--batch-size 500'; do
    run 0 $score words.jsonl --json $option
    kept right "$(list right words.json)" "$(list right .stdout)"
    check 'perplexity' awk "BEGIN { d = $(figure perplexity .stdout) / $(figure perplexity words.json) - 1
        exit !(d < 1e-5 && d > -1e-5) }"
done
run_silent sgt-eval --device cpu model endings.jsonl words.jsonl
stdout_has 'model/step-00000001 on cpu in fp32' 'endings.jsonl: questions'
fact items 30 acc '0\.[0-9]+' 'acc stderr' '0\.[0-9]+' 'acc norm' '0\.[0-9]+' 'acc norm stderr' '0\.[0-9]+' \
    'acc token' '0\.[0-9]+' 'acc token stderr' '0\.[0-9]+'
fact guessing 0.25
stdout_has 'words.jsonl: last words'
fact perplexity '[0-9.]+'

# If a context is longer than the model's, only its end is used. The result then equals the result
# for that end.
long=$(awk 'BEGIN { for (i = 0; i < 1500; i++) printf "one " }')
echo "{\"text\": \"$long two\"}" > long.jsonl
run 0 $score long.jsonl --json
stderr_has 'sgt-eval: long.jsonl: 1 of 1 contexts lose their beginning, to fit the model'"'"'s 1024 positions'
cp .stdout long.json
like_transformers long.jsonl long.json

# Data sets: each window of T tokens counts once. End-of-text ids count in the loss, but not in bits
# per byte.
texts texts 40000
run 0 sgt-tokenize --quiet texts set
run 0 $score --data set --split train --json --quiet
cp .stdout set.json
! python3 -c 'import numpy' 2> /dev/null ||
    run 0 python3 "$ROOT/tests/train/check_eval_set.py" $model set/train_000000.bin set.json
tokens=$((($(stat -c %s set/train_000000.bin) - 1024) / 2))
[ "$(field seq set.json)" -eq 16 ] || fail 'not the tokens per row that the run was trained with'
[ "$(field tokens set.json)" -eq $(((tokens - 1) / 16 * 16)) ] || fail 'not the tokens of all whole windows'
run 0 sgt-inspect set --decode "1:$(field tokens set.json)"
[ "$(sed 's/<|endoftext|>//g' .stdout | wc -c)" -eq "$(field bytes set.json)" ] || fail 'not the bytes of the text'
check 'seven ends of text have no bytes' test "$(grep -o '<|endoftext|>' .stdout | wc -l)" -eq 7
close() { check "$1: $2 and $3" awk "BEGIN { d = ($2) / ($3) - 1; exit !(d < $4 && d > -$4) }"; }
close perplexity "$(figure perplexity set.json)" "exp($(figure loss set.json))" 1e-6
close 'bits per byte' "$(figure bits_per_byte set.json)" "$(figure loss set.json) * $(field tokens set.json) \
    / log(2) / $(field bytes set.json)" .002
run 0 $score --data set/train_000000.bin --json --batch-size 7 --threads 1
close 'loss in other batches' "$(figure loss .stdout)" "$(figure loss set.json)" 1e-6

# The loss equals that of a training step on the same windows.
run 0 sgt-tokenize --quiet --split 5% texts split
windows=$((($(stat -c %s split/val_000000.bin) / 2 - 513) / 64))
run 0 sgt-train --quiet --data split/val_000000.bin --device cpu --init $model --seq-len 64 --sampling sequential \
    --batch-size $windows --steps 1 --lr 0 --eval-every 0 --precision fp32 --run again --json
cp .stdout again.json
run 0 sgt-eval --device cpu again --data split --json
[ "$(field windows .stdout)" -eq $windows ] || fail "not $windows windows"
close "sgt-train's loss" "$(figure loss .stdout)" "$(field loss again.json)" 1e-6
run 0 sgt-eval --device cpu again --data split --data split --split train --seq-len 32
[ "$(grep -c '^split: train$' .stdout)" -eq 2 ] || fail 'not both sets'
fact seq 32 windows '[0-9]+' tokens '[0-9,]+' loss '1[0-9]\.[0-9]+' 'bits per byte' '[0-9]\.[0-9]+'
fact bytes '[0-9.]+ KiB'

# Validation while training gives the same loss in nats and in bits per byte. The only window holds
# all tokens, so its start is not shifted.
mkdir few both
head -c 900 texts/part-03 > few/text
run 0 sgt-tokenize --quiet few some
cp set/train_000000.* both
cp some/train_000000.bin both/val_000000.bin
cp some/train_000000.idx both/val_000000.idx
tokens=$((($(stat -c %s both/val_000000.bin) - 1024) / 2))
run 0 sgt-train --data both --run watched --device cpu --model 1x8x1 --seq-len $((tokens - 1)) --batch-size 1 --steps 2 \
    --eval-every 1 --precision fp32
stderr_matches '^step 2: loss [0-9.]+, validation [0-9.]+ \([0-9.]+ bits per byte\), [0-9,]+ tokens, '
stdout_matches '^loss: .*, validation 10\.[0-9]+ \([0-9.]+ bits per byte\)$'
tail -n 1 watched/log.jsonl > logged
run 0 sgt-eval --device cpu watched --data both --json
[ "$(field windows .stdout)" -eq 1 ] || fail 'not one window'
close 'nats while training' "$(field val_loss logged)" "$(figure loss .stdout)" 1e-6
close 'bits per byte while training' "$(field val_bits_per_byte logged)" "$(figure bits_per_byte .stdout)" 1e-6
cp .stdout newest
run_same newest sgt-eval --device cpu watched/best --data both --json
run 0 sgt-inspect watched
fact 'val loss' '10\.[0-9]{3,4}' 'val bits per byte' '[0-9.]+' evaluated 2
run 0 sgt-report --json watched -o page.html
close 'bits per byte in the report' "$(field val_bits_per_byte .stdout)" "$(field val_bits_per_byte logged)" 1e-6
grep -q '<dt>Bits per byte</dt>' page.html || fail 'the page lacks the bits per byte'
# Bits per byte need the data's tokenizer.json, unless the vocabulary is GPT-2's. Without the file,
# the loss is only in nats.
run 0 sgt-tokenize --quiet --train-vocab 300 texts their
run 0 sgt-tokenize --quiet --vocab their --split 30% texts theirs
run 0 sgt-train --quiet --data theirs --run watched2 --device cpu --model 1x8x1 --seq-len 64 --batch-size 1 --steps 2 \
    --eval-every 1 --precision fp32
tail -n 1 watched2/log.jsonl > logged
# Each of 300 random tokens takes log2(300) = 8.2 bits, and tokens have more than a byte on average.
check "bits per byte: $(field val_bits_per_byte logged)" awk "BEGIN { b = $(field val_bits_per_byte logged); \
    exit !(b > 2 && b < 8.3) }"
# A tokenizer.json of another vocabulary is refused.
run 0 sgt-tokenize --quiet --train-vocab 280 texts other-ids
cp other-ids/tokenizer.json theirs
run_failure 'theirs/tokenizer.json: not the vocabulary of the shards in this folder (replace it by theirs, or remove it)' \
    sgt-train --data theirs --run watched4 --device cpu --model 1x8x1 --seq-len 64 --batch-size 1 --steps 1 --eval-every 1
absent watched4
rm theirs/tokenizer.json
run 0 sgt-train --verbose --data theirs --run watched3 --device cpu --model 1x8x1 --seq-len 64 --batch-size 1 --steps 1 \
    --eval-every 1
stderr_has "sgt-train: the data's folder has no tokenizer.json: no validation in bits per byte"
check 'nats alone' grep -q '"val_loss"' watched3/log.jsonl
! grep -q val_bits watched3/log.jsonl || fail 'bits per byte of an unknown vocabulary'

# The tokens are of another vocabulary than the model's.
run 0 sgt-tokenize --quiet --train-vocab 300 texts small
run 0 sgt-tokenize --quiet --vocab small texts other
run 1 $score --data other --split train
stderr_is "sgt-eval: other: tokenized with a different vocabulary than the model's, gpt2 (if that is wrong, pass --vocab FILE)"
run 0 sgt-inspect --quiet --export nanogpt other their-files # no headers: the manifest names the vocabulary
run 1 $score --data their-files --split train
stderr_is "sgt-eval: their-files: tokenized with a different vocabulary than the model's, gpt2 (if that is wrong, \
pass --vocab FILE)"
# The manifest also names the end-of-text id, which begins a document.
run 0 sgt-train --quiet --data their-files --run masked --device cpu --model 1x8x1 --seq-len 8 --batch-size 1 --steps 1 \
    --document-mask
grep -q '"eos_token_id": 0' masked/step-*/config.json || fail 'the end of text is not in the checkpoint'
run_usage "--vocab small: not the vocabulary in the model's folder, $model (omit --vocab)" $score --vocab small --data other
run_failure 'set: no val shards (val_*.bin) in it: make them with sgt-tokenize --split 5%' \
    $score --data set
run_usage '--seq-len 2000: the model has only 1024 positions (use a shorter --seq-len)' $score --data set --seq-len 2000

# Messages about wrong questions name the line.
bad() { # MESSAGE LINE
    printf '{"text": "one two"}\n%s\n' "$2" > bad.jsonl
    run_failure "bad.jsonl: line 2: $1" $score bad.jsonl
}
bad 'expected {"text": TEXT}: all lines must have the same form' '{"ctx": "a", "endings": ["b", "c"], "label": 0}'
bad 'expected {"text": TEXT}: "text" must have two words with a space between them' '{"text": "one"}'
bad 'expected {"text": TEXT}: "text" must have two words with a space between them' '{"text": " one "}'
bad 'expected {"text": TEXT}: "text" must be a string of at most 16 MiB' '{"text": 3}'
bad 'expected {"text": TEXT}: not a JSON object' '[3]'
bad "not JSON: '}' expected near end of file" '{"text": "one two"'
mark=$(printf '\357\273\277') # a byte order mark, which is invisible
why="a byte order mark where files were joined: sed -E 's/^\s*\xEF\xBB\xBF//; "\
"s/}\s*\xEF\xBB\xBF\s*(\{|\$)/}\n\1/g' removes it"
bad "$why" "$mark{\"text\": \"one two\"}"
bad "$why" "{\"text\": \"one two\"}$mark{\"text\": \"one two\"}"
bad 'expected {"text": TEXT}: "text" must be a string of at most 16 MiB' '{"text": NaN}'
bad "not JSON: string or '}' expected near '['" '{NaN: 1, "text": "one two"}'
{ printf %s "$mark" && cat words.jsonl; } > "$mark.jsonl"
run_prints '\xef\xbb\xbf.jsonl: last words' $score "$mark.jsonl"
choice() { # MESSAGE LINE
    echo "$2" > bad.jsonl
    run 1 $score bad.jsonl
    stderr_is "sgt-eval: bad.jsonl: line 1: expected {\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": N}: $1"
}
choice '"ctx" must be a string' '{"endings": ["b", "c"], "label": 0}'
choice '"endings" must be 2 to 1000 strings' '{"ctx": "a", "endings": ["b"], "label": 0}'
choice '"endings" must be 2 to 1000 strings' '{"ctx": "a", "endings": ["b", 3], "label": 0}'
choice "\"label\" must be the index of an ending, from 0" '{"ctx": "a", "endings": ["b", "c"], "label": 2}'
choice "\"label\" must be the index of an ending, from 0" '{"ctx": "a", "endings": ["b", "c"], "label": "1e0"}'
: > bad.jsonl
run_failure 'bad.jsonl: no line in it: expected lines {"ctx": TEXT, "endings": [TEXT, ...], "label": N} or {"text": '\
'TEXT}' $score bad.jsonl
run_failure 'missing.jsonl: No such file or directory' $score missing.jsonl
run_failure 'nowhere: No such file or directory' sgt-eval --device cpu nowhere words.jsonl
run_usage "$curve: the model has 256 ids, not GPT-2's vocabulary, and no tokenizer.json next to it (pass it with \
--vocab FILE)" sgt-eval --device cpu "$curve" words.jsonl
run_usage 'expected RUN/ | GPT2/ | MODEL.bin [FILE.jsonl]... (such as: sgt-eval run/ --data out/)' sgt-eval
run_usage 'nothing to evaluate on: pass FILE.jsonl with questions, or --data OUT/' sgt-eval model
run_failure '--precision tf32: no CPU supports it (use fp32, or --device cuda)' $score words.jsonl --precision tf32

# CUDA on the host gives the same answers.
programs=$BIN/../host/bin
[ -e "$programs/sgt-eval" ] || exit 0
PATH=$programs:$PATH
for precision in fp32 bf16 fp16; do
    run 0 sgt-eval --device cuda --precision $precision model words.jsonl --json --batch-size 10
    [ $precision != fp32 ] || kept 'right on CUDA' "$(list right words.json)" "$(list right .stdout)"
    # The loss is near 11. It is computed from numbers with 8 bits of mantissa.
    check "perplexity in $precision" awk "BEGIN {
        d = log($(figure perplexity .stdout) / $(figure perplexity words.json)); exit !(d < .05 && d > -.05) }"
done
