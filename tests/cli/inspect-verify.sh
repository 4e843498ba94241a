# sgt-inspect --verify on sets with several faults: one line for each damaged shard, the same for any number of
# threads.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/shards.inc"

mkdir text
texts text 90000
run 0 sgt-tokenize --quiet --split 30% --shard-tokens 5k --format text text out
n=$(ls out/*.bin | wc -l)
for threads in 1 2 5; do
    run 0 sgt-inspect --verify --threads $threads out
    stdout_has 'verified    sizes and ids are right, checksums too'
    stderr_is ''
done

# Five shards are damaged in five ways, which are reported in the order of the set.
cp -r out hurt
patch hurt/train_000001.bin 3000 7
truncate -s -100 hurt/train_000002.bin
rm hurt/train_000004.bin
patch hurt/train_000005.idx 1 255
patch hurt/val_000000.bin 24 1
for threads in 1 3; do
    run 1 sgt-inspect --verify --threads $threads hurt
    stdout_is ''
    sed 's/checksum [0-9a-f]*, expected [0-9a-f]*/checksum A, expected B/; s/: vocabulary [0-9a-f]*/: vocabulary A/
        s/says [0-9a-f]\{16\}/says B/; s/starts at token [0-9]*, expected/starts at token N, expected/' .stderr > got
    cat > want << END
sgt-inspect: hurt/train_000001.bin: checksum A, expected B: its tokens have changed since it was written (make it again)
sgt-inspect: hurt/train_000002.bin: 10924 bytes, but its header says 5000 tokens, which make 11024 \
(cut short; make it again)
sgt-inspect: hurt/train_000004.bin: missing, but hurt/manifest.json lists it
sgt-inspect: hurt/train_000005.idx: at byte 0: document 0 starts at token N, expected after the one before and below 5000
sgt-inspect: hurt/val_000000.bin: at byte 24: vocabulary A, but hurt/manifest.json says B
sgt-inspect: hurt: 5 of $n shards are damaged (sgt-tokenize --force makes the set again)
END
    diff got want || fail 'not a line for each'
done
run 1 sgt-inspect --verify --json hurt
stdout_has '"verified": false'
[ "$(grep -c '"damage": "hurt/' .stdout)" -eq 5 ] || fail 'damage is missing from the JSON'
stderr_lines 6
run 1 sgt-inspect --verify --quiet hurt
stdout_is ''
stderr_lines 6
run 1 sgt-inspect --verify --split val hurt
stderr_lines 1
run 1 sgt-inspect hurt # without --verify, only the first one is reported
stderr_lines 1

# A header without a checksum, and one with the size of another vocabulary.
rm -r hurt && cp -r out hurt
for byte in 32 33 34 35 36 37 38 39; do patch hurt/train_000000.bin $byte 0; done
patch hurt/train_000001.bin 16 82
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/train_000000.bin: at byte 32: checksum 0{16}, but hurt/manifest.json says '\
'[0-9a-f]{16}$'
stderr_has 'hurt/train_000001.bin: at byte 16: 50258 ids, end of text 50256, but hurt/manifest.json says 50257 and '\
'50256'
stderr_lines 3

# The manifest's totals differ from its shards, or from sources.jsonl.
rm -r hurt && cp -r out hurt
sed '/"totals"/,$ s/"documents": [0-9]*/"documents": 7/' out/manifest.json > hurt/manifest.json
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/manifest.json: totals say 7 documents, of its shards it says [0-9]+$'
cp out/manifest.json hurt
sed '/"totals"/,$ s/"tokens": [0-9]*/"tokens": 7/' out/manifest.json > hurt/manifest.json
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/manifest.json: totals say 7 tokens, its shards hold [0-9]+$'
cp out/manifest.json hurt
sed 1d out/sources.jsonl > hurt/sources.jsonl
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/sources.jsonl: [0-9]+ files, but the manifest says [0-9]+$'
sed '2 s/"tokens": /"tokens": 1/' out/sources.jsonl > hurt/sources.jsonl
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/sources.jsonl: [0-9]+ tokens, but the manifest says [0-9]+$'
echo 'no JSON' >> hurt/sources.jsonl
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/sources.jsonl: line [0-9]+: expected a JSON object with documents and tokens$'
rm hurt/sources.jsonl
run 1 sgt-inspect --verify hurt
stderr_is 'sgt-inspect: hurt/sources.jsonl: No such file or directory'

run_usage '--threads: needs --verify' sgt-inspect --threads 2 out
run_usage '--threads 0: must be from 1 to 1024' sgt-inspect --verify --threads 0 out
