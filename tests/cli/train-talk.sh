# sgt-train's messages: four lines at the start, the same loss in a file and on a terminal, a
# mistyped run, data that was moved, and lines that wrap between words on a narrow terminal.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
data d

# ---- a file: four lines, the last state, a summary with the loss ----
run 0 sgt-train $small --steps 60 --run toy-run
stderr_lines 5
is "$(sed -n 's/^sgt-train: \([a-z]*\): .*/\1/p' .stderr | xargs)" 'model data plan disk'
stderr_has 'sgt-train: data: d, 153,601 tokens in 1 shard'
stderr_has 'sgt-train: plan: 60 steps of 2 x 16 tokens, 0.013 epochs; learning rate 0.001 after 3 steps of warm-up, '\
'cosine to 0.0001'
losses=$(sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' toy-run/log.jsonl)
want=$(echo "$losses" | awk 'NR == 1 { first = $1 } NR > 40 { sum += $1 }
    END { printf "loss: %.2f → %.2f (mean of the last 20 steps)", first, sum / 20 }')
[ "$(head -1 .stdout)" = "$want" ] || fail "the summary should begin: $want"
last=$(echo "$losses" | awk 'END { printf "%.4f", $1 }')
tail -1 .stderr | grep -qE "^100% 60/60 \[00:[0-9]+<00:00, [0-9.]+ [kM]?step/s\] loss $last, " ||
    fail "not the last state: $(tail -1 .stderr)"
stdout_matches '^tokens seen: 1,920$' # no line about validation tokens, which are zero
stdout_matches '^time: [0-9.]+ (ms|s) in steps, [0-9.]+ (ms|s) in all$'
run 0 sgt-train $small --steps 1 --seq-len 1 --batch-size 1 --run one --verbose
stderr_has 'sgt-train: plan: 1 step of 1 x 1 tokens'
stderr_matches '^sgt-train: device: the CPU|^sgt-train: model: 1 layer, '
stdout_matches '^loss: 5\.[0-9]+$'
grep -q 'documents begun: 0' .stdout && fail 'a row of zero'

# If steps follow the last evaluation, the line names the evaluation's step. The summary of a
# resumed run says from which step its numbers count.
validation d
run 0 sgt-train $small --steps 8 --eval-every 4 --run seen
stdout_matches '^loss: 5\.[0-9]+ → 5\.[0-9]+ \(mean of the last 4 steps\), validation 5\.[0-9]+$'
run_notes 'sgt-train: plan: steps 9 to 10 of 2 x 16 tokens' sgt-train --run seen --resume --steps 10
stdout_matches '^loss since step 8: 5\.[0-9]+, validation 5\.[0-9]+$'
rm d/val_000000.bin
run 0 sgt-train $small --steps 2 --eval-every 1 --run blind
stderr_lines 5
stderr_matches '^sgt-train: data: d, 153,601 tokens in 1 shard; d has no validation shards: no evaluation$'
grep -q val_loss blind/log.jsonl && fail 'there was nothing to validate on'

run_notes ' tokens; Muon and AdamW, learning rate 0.001' sgt-train $small --steps 1 --optimizer muon --run muon

# Epochs that take almost no time are not all reported.
shard few.bin $(seq 65)
run 0 sgt-train $small --data few.bin --steps 60 --run passes
grep -c '^Epoch ' .stderr > epochs
[ "$(cat epochs)" -ge 2 ] && [ "$(cat epochs)" -le 4 ] || fail "$(cat epochs) epochs are said"

run_usage '--verbose: not together with --quiet' sgt-train $small --verbose --quiet --run none
absent none

# ---- a mistyped name of a run ----
run_failure 'toy-rnu: no checkpoint to resume from: there is no such run (--resume-or-start starts at step 0)' \
    sgt-train --run toy-rnu --resume
absent toy-rnu
mkdir deep begun
run_failure 'begun/: no checkpoint to resume from (--resume-or-start starts at step 0)' sgt-train --run begun/ --resume
run 0 sgt-train $small --steps 2 --run deep/run --resume-or-start
stderr_has 'sgt-train: deep/run has no checkpoint to resume from: starting at step 0'
run_usage '--resume: not together with --resume-or-start, which starts at step 0 if there is no checkpoint' \
    sgt-train --run deep/run --resume --resume-or-start
run_usage '--resume-or-start: not together with --force' sgt-train --run deep/run --resume-or-start --force

# With two ranks, rank 0 decides and prints the message.
two 1 sgt-train --run deep/rnu --resume --device cpu
stderr_is 'sgt-train: deep/rnu: no checkpoint to resume from: there is no such run (--resume-or-start starts at step 0)'
absent deep/rnu

# ---- moved data ----
mv d elsewhere
run_failure 'toy-run: the run was trained on d, which no longer exists (pass --data DIR)' \
    sgt-train --run toy-run --resume --steps 61
run 0 sgt-train --quiet --run toy-run --resume --steps 61 --data elsewhere
run 0 sgt-train --quiet --run toy-run --resume --steps 62 # the checkpoint now names the new folder
mv elsewhere d
mkdir web && cp d/train_000000.bin web
run 0 sgt-train --quiet $small --data d:1,web:3 --steps 1 --run mixed
mv web gone
run_failure 'mixed: the run was trained on web, which no longer exists (pass --data with all sets and their weights, as when the run began)' sgt-train --quiet --run mixed --resume --steps 2
echo '{"prompt": "a", "completion": "b"}' > sums.jsonl
cp sums.jsonl check.jsonl
run 0 sgt-train --quiet --device cpu --model 1x16x2 --seq-len 8 --batch-size 1 --threads 1 --steps 1 --run tuned \
    --data sums.jsonl --val-data check.jsonl
mv check.jsonl checks.jsonl
run 1 sgt-train --quiet --run tuned --resume --steps 2
stderr_is 'sgt-train: tuned: the run was evaluated on check.jsonl, which no longer exists (pass --val-data FILE.jsonl)'
mv sums.jsonl more.jsonl
run 1 sgt-train --quiet --run tuned --resume --steps 2
stderr_is 'sgt-train: tuned: the run was trained on sums.jsonl, which no longer exists (pass --data FILE.jsonl)'
run 0 sgt-train --quiet --run tuned --resume --steps 2 --data more.jsonl --val-data checks.jsonl

# ---- a terminal of 40 columns: lines wrap between words, so only a single word may be longer ----
narrow() { # COMMAND: run it on a terminal of 40 columns; ./shown gets what it shows
    terminal 40 "$1"
    awk 'length > 40 && NF > 1 { print; bad = 1 } END { exit bad }' shown > long || fail "wider than 40 columns: $(cat long)"
}
# words FILE: print its words; a list of choices may be broken after each |
words() { tr -s '\n ' '  ' < "$1" | sed 's/| /|/g' | tr ' ' '\n'; }
narrow "sgt-train $small --steps 2 --run piped"
for command in 'sgt-train --run toy-rnu --resume' 'sgt-train --help' 'sgt-bench --help'; do
    $command > piped.txt 2>&1 || :
    narrow "$command || :"
    words piped.txt > words
    words shown > shown-words
    same words shown-words
done
