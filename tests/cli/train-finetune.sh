# sgt-train --data FILE.jsonl: prompts without a loss, completions with one.
. "$ROOT/tests/cli/train.inc"
work_in_memory
cat > some.jsonl << 'END'
{"prompt": "Two and two is", "completion": " four."}
{"completion": " Paris.", "prompt": "The capital of France is", "source": 7}

{"prompt": "", "completion": "Once upon a time"}
{"prompt": "La s\u0153ur", "completion": " rit \ud83d\ude00"}
{"prompt": "one two three four five six seven eight nine ten eleven twelve thirteen", "completion": " fourteen"}
{"prompt": "one two three", "completion": " four five six seven eight nine ten eleven twelve thirteen fourteen"}
END
tune="sgt-train --quiet --device cpu --model 1x16x2 --seq-len 12 --batch-size 2 --lr 1e-2 --threads 1"

run_silent $tune --data some.jsonl --steps 6 --save-every 2 --run whole
# A byte order mark begins the file, and it has numbers that Python writes.
{ printf '\357\273\277' && sed 's/"source": 7/"s": {"a": NaN}, "t": [Infinity,-Infinity]/' some.jsonl; } > python.jsonl
run 0 $tune --data python.jsonl --val-data python.jsonl --steps 6 --save-every 6 --run python
same python/step-00000006/model.safetensors whole/step-00000006/model.safetensors
run 0 sgt-train --device cpu --model 1x16x2 --seq-len 12 --batch-size 2 --steps 1 --data some.jsonl --run said
stderr_has 'sgt-train: some.jsonl: 1 of 6 prompts fill their row of 12 tokens, so nothing is learnt from them (use a longer --seq-len)'
stderr_has 'sgt-train: some.jsonl: 1 of 6 completions are cut to fit a row of 12 tokens (use a longer --seq-len)'
stderr_has 'sgt-train: data: some.jsonl, 61 tokens in 6 completions; no evaluation without --val-data'
stdout_has 'documents begun: 2'
same said/step-00000001/tokenizer.json whole/step-00000006/tokenizer.json

# The loss falls below ln 27 = 3.3, the loss of a uniform guess among the tokens of the completions.
# A checkpoint is resumed.
run 0 $tune --data some.jsonl --steps 60 --run learnt --val-data some.jsonl --eval-every 30 --min-lr 1e-2
first=$(field loss learnt/log.jsonl)
last=$(sed -n '60s/.*"val_loss":\([0-9.]*\).*/\1/p' learnt/log.jsonl)
check "from $first to $last" awk "BEGIN { exit !($first > 9 && $last < 3) }"

# Lines are encoded with the vocabulary next to the model, even if it has as many ids as GPT-2's;
# here the ids of two words are exchanged. Prompts and completions are brought into its normal form.
one() { # MODEL COMPLETION: set $loss to the loss of one example
    printf '{"prompt": "one two", "completion": "%s"}\n' "$2" > one.jsonl
    rm -rf one
    run 0 sgt-train --quiet --device cpu --init "$1" --data one.jsonl --seq-len 12 --batch-size 1 --steps 1 --lr 0 --run one
    loss=$(field loss one/log.jsonl)
}
same_loss() { one "$1" "$2" && first=$loss && one "$3" "$4" && [ "$first" = "$loss" ]; }
tuned=learnt/step-00000060
cp -r $tuned own
sed 's/"\xc4\xa0four":1440,/"\xc4\xa0four":1936,/; s/"\xc4\xa0five":1936,/"\xc4\xa0five":1440,/' \
    $tuned/tokenizer.json > own/tokenizer.json
! same_loss $tuned ' four' $tuned ' five' || fail 'both completions are as likely'
check "tokens of the model's vocabulary" same_loss own ' four' $tuned ' five'
check "tokens of the model's vocabulary" same_loss own ' five' $tuned ' four'
check 'texts stay as they are' same_loss $tuned 'a \" NaN' $tuned 'a \" N\u0061N'
! same_loss own 'e\u0301' own '\u00e9' || fail 'both forms are as likely'
sed -i 's/^"normalizer":null/"normalizer":{"type":"NFC"}/' own/tokenizer.json
check "the vocabulary's normal form" same_loss own 'e\u0301' own '\u00e9'
run 0 sgt-tokenize --quiet --train-vocab 300 "$ROOT/tests/data/vocab/text.txt" v
run 0 sgt-tokenize --quiet --vocab v "$ROOT/tests/data/vocab/text.txt" small
run 0 sgt-train --quiet --device cpu --data small --model 1x16x2 --seq-len 12 --batch-size 2 --steps 1 --run small-run
run 0 sgt-train --quiet --device cpu --init small-run/step-00000001 --data some.jsonl --seq-len 12 --batch-size 2 \
    --steps 1 --run small-tuned
same v/tokenizer.json small-tuned/step-00000001/tokenizer.json

# The run is stopped and resumed without repeating its options.
cp -r whole cut
rm -r cut/step-00000006
run 0 sgt-train --quiet --run cut --resume
same_facts whole/log.jsonl cut/log.jsonl
same_folders whole/step-00000006 cut/step-00000006
echo '{"prompt": "more", "completion": "less"}' >> some.jsonl
run 1 sgt-train --quiet --run cut --resume --steps 8
stderr_is 'sgt-train: --data some.jsonl: its tokens are not those that the run was trained on (restore them, or start a new --run)'

# Wrong lines.
bad() { # MESSAGE LINE
    printf '{"prompt": "a", "completion": "b"}\n%s\n' "$2" > bad.jsonl
    run 1 $tune --data bad.jsonl --run bad
    stdout_is ''
    stderr_is "sgt-train: bad.jsonl: line 2: $1"
    absent bad/log.jsonl
}
expected='expected {"prompt": TEXT, "completion": TEXT}'
bad "$expected, but \"completion\" is missing or not a string" '{"prompt": "a"}'
bad "$expected, but the line is not an object" '["a", "b"]'
bad "$expected, but \"completion\" is missing or not a string" '{"prompt": "a", "completion": NaN}'
bad "not JSON: '}' expected near end of file" '{"prompt": "a"'
mark=$(printf '\357\273\277') # a mark between joined files
why="a byte order mark where files were joined: sed -E 's/^\s*\xEF\xBB\xBF//; "\
"s/}\s*\xEF\xBB\xBF\s*(\{|\$)/}\n\1/g' removes it"
bad "$why" "$mark{\"prompt\": \"a\", \"completion\": \"b\"}"
bad "$why" "{\"prompt\": \"a\", \"completion\": \"b\"}$mark"
printf '\n \n' > empty.jsonl
run 1 $tune --data empty.jsonl --run bad
stderr_is "sgt-train: empty.jsonl: it has no examples: expected one ${expected#expected } per line"
run 1 $tune --data some.jsonl --val-data missing.jsonl --run bad
stderr_is 'sgt-train: missing.jsonl: No such file or directory'
echo '{"prompt": "one two three four", "completion": "b"}' > long.jsonl
run_usage '--seq-len 3: every prompt of long.jsonl fills its row, so there is nothing to learn (use a longer --seq-len)' \
    $tune --data long.jsonl --seq-len 3 --run bad

# Options that have no effect with this data, and options that have none with shards.
run_usage '--sampling: needs --data of shards' $tune --data some.jsonl --sampling random
data d
run_usage '--val-data: needs a --data FILE.jsonl' $tune --data d --val-data some.jsonl
run_usage '--pad-id 50257: must be below 50257' $tune --data some.jsonl --pad-id 50257
run 0 sgt-train $small --steps 1 --run bytes
run 1 sgt-train --quiet --device cpu --data some.jsonl --seq-len 12 --init bytes/step-00000001 --run bad
stderr_is "sgt-train: bytes/step-00000001: the model has 256 ids, not GPT-2's vocabulary, and no tokenizer.json next \
to it (copy its tokenizer.json there)"
run 0 sgt-train --estimate-memory --device cpu --model 1x16x2 --seq-len 12 --batch-size 2 --data some.jsonl
stdout_has '50257 ids'
