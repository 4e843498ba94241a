# tokenize-usage.sh: wrong usage of sgt-tokenize, and its --help.

run_usage 'OUT must be a folder, not - (./- names a folder called -)' sgt-tokenize corpus -
run_usage 'expected INPUT... OUT/ (such as: sgt-tokenize corpus/ out/)' sgt-tokenize
run_usage 'expected INPUT... and OUT, got only in (OUT comes last)' sgt-tokenize in
run_usage '--no-such-option: no such option' sgt-tokenize --no-such-option
# Option names of other programs: the message suggests the option of sgt-tokenize.
for meant in --output:'OUT/ as the last word' -o:'OUT/ as the last word' --output_dir:'OUT/ as the last word' \
    --input:'INPUT... without an option' --tokenizer:--vocab --model:--vocab --vocab-size:--train-vocab --vocab-file:--vocab \
    --jobs:--threads -j:--threads --workers:--threads --num_workers:--threads --num-proc:--threads --text_key:--field \
    --json-keys:--field --key:--field --seed:--shuffle --val:--split --jsonl:'--format jsonl' \
    --val-fraction:--split --overwrite:--force --shard_size:--shard-tokens \
    --tokens-per-shard:--shard-tokens --skip-errors:--skip-bad --nproc:--threads; do
    run_usage "${meant%%:*}: no such option; did you mean ${meant#*:}?" sgt-tokenize "${meant%%:*}" 4 in out
done
run_usage '--shard-tokens 0: must be from 1 to 2147483647' sgt-tokenize --shard-tokens 0 in out
run_usage '--shard-tokens 2147483648: must be from 1 to 2147483647' sgt-tokenize --shard-tokens 2147483648 in out
run_usage '--shard-tokens ten: not a whole number (such as 12, 512k, 1.5M)' sgt-tokenize --shard-tokens ten in out
run_usage '--shuffle 10000T: must be from 0 to 9007199254740992' sgt-tokenize --shuffle 10000T in out
run_usage '--threads 0: must be from 1 to 1024' sgt-tokenize --threads 0 in out
run_usage '--split 5: not a percentage (such as 1%, with the sign) or none' sgt-tokenize --split 5 in out
run_usage '--split 101%: not a percentage (such as 1%, with the sign) or none' sgt-tokenize --split 101% in out
run_usage '--format html: must be one of auto|text|jsonl' sgt-tokenize --format html in out
run_misuse 'field: "a..b" contains an empty name' sgt-tokenize --field a..b in out
run_misuse 'field: "gr\xf6sse" is not UTF-8' sgt-tokenize --field "$(printf 'gr\366sse')" in out
run_usage '--special all: must be one of none|eot' sgt-tokenize --special all in out
run_usage '--invalid-utf8 drop: must be one of keep|replace|fail' sgt-tokenize --invalid-utf8 drop in out
run_misuse 'standard input (-) can be read only once (name it once)' sgt-tokenize - - out
absent out

# If standard output cannot be written to, the program fails.
if [ -w /dev/full ]; then
    printf x > in
    code=0
    sgt-tokenize in out > /dev/full 2> .stderr || code=$?
    [ $code -eq 1 ] || fail "exit $code with stdout full"
    stderr_is 'sgt-tokenize: standard output: No space left on device'
fi

# Files of OUT never reuse closed standard descriptors: reading from or writing to those fails or
# goes nowhere.
printf x > in
run_failure '-: offset 0: Bad file descriptor' sgt-tokenize - shut <&-
absent shut
code=0
sgt-tokenize in shut 2> .stderr >&- || code=$?
[ $code -eq 1 ] || fail "exit $code with stdout closed"
stderr_is 'sgt-tokenize: standard output: Bad file descriptor'
run 0 sgt-tokenize --quiet in whole
same_folders shut whole
