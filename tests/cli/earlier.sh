# earlier.sh: sets, runs, options and checkpoints that commit c02046b wrote (tests/data/earlier) open as before.
. "$ROOT/tests/cli/lib.sh"
cp -r "$ROOT/tests/data/earlier" .
cd earlier || exit 1
set -- --device cpu --threads 1 --quiet

run 0 sgt-inspect --verify set
stdout_has 'verified    sizes and ids are right, checksums too'
stdout_has '7,609 tokens in 2 shards, 2 documents'
run 0 sgt-inspect run
stdout_has 'checkpoints step-00000006 (latest)'
stdout_has 'loss 6.5512 to 6.2597, validation 6.3294 after step 6'
run 0 sgt-report run -o page.html

# The same command finds the set complete if its inputs have the time that it recorded: it has no hashes of them. With
# another OUT it makes the same bytes.
run 1 sgt-tokenize --quiet --vocab ranks.tiktoken --split 50% corpus set
stderr_is 'sgt-tokenize: set: made from other inputs: corpus/a.txt has a new time, and this set of an earlier version '\
'has no hash to compare it with (--force replaces it)'
touch -d @1795589756 corpus/a.txt corpus/b.txt
run 0 sgt-tokenize --vocab ranks.tiktoken --split 50% corpus set
stdout_has 'complete already, nothing was done'
run 0 sgt-tokenize --quiet --vocab ranks.tiktoken --split 50% corpus again
for f in train_000000.bin train_000000.idx val_000000.bin val_000000.idx tokenizer.json; do
    cmp set/$f again/$f || fail "$f has other bytes"
done

# The checkpoint can be evaluated and continued, and options.json gives the same run: losses agree up to rounding.
run 0 sgt-eval "$@" --json run --data set
near() { # NAME OF VALUE
    jq -e "(.$1 - ($2)) | fabs < 1e-4" > /dev/null || fail "$1 is not $2"
}
near 'results[0].loss' 6.3233593 < .stdout
run 0 sgt-train "$@" --config run/options.json --run same
tail -1 same/log.jsonl | near loss 6.25968575
tail -1 same/log.jsonl | near val_loss 6.3293615
run 0 sgt-train --device cpu --threads 1 --data set --run run --resume --steps 8
stderr_has 'the checkpoint is from cpu, plain, oneDNN 2.6.3: results will differ in the last bits'
[ "$(wc -l < run/log.jsonl)" -eq 8 ] || fail 'the log has other lines'
