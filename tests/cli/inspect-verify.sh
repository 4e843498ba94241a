# sgt-inspect on sets of sgt-tokenize: totals, and --verify. The message about each kind of damage
# names it. Each damaged shard gives one line, and the number of threads changes nothing.
. "$ROOT/tests/cli/shards.inc"

mkdir -p in
for i in 1 2 3 4 5 6 7 8 9; do
    for line in 1 2 3 4 5 6 7 8 9 10; do echo "Text $i, line $line: the quick brown fox isn't lazy."; done > "in/$i.txt"
done
printf 'broken \377 text' > in/bad.txt
run_silent sgt-tokenize --quiet --split 30% --shard-tokens 200 in out
tokens=$(cat in/*.txt | wc -c)

run_prints 'out: a set of shards, made by sgt-tokenize' sgt-inspect out
fact tokens '[0-9],[0-9]{3}' documents 10 files 10 train 'shards [0-9]+, tokens [0-9]+, documents [0-9]+'
fact val 'shards [0-9]+, tokens [0-9]+, documents [0-9]+'
fact vocabulary 'name gpt2, size 50257, eot 50256, fingerprint [0-9a-f]{16}' 'invalid utf8' 1
fact 'first invalid' 'path bad.txt, offset 7'
stderr_is ''
run 0 sgt-inspect out --verify
fact verified yes checksums "$(ls out/*.bin | wc -l)"
run_prints '"kind": "shards"' sgt-inspect out --json --verify
stdout_has '"documents": 10' "\"bytes\": $tokens" '"invalid_utf8": 1' '"verified": true' '"shard_tokens": 200'
stderr_is ''

# The counts of what sgt-tokenize left out, and of literal end-of-text tokens that it encoded as
# text.
printf '{"text": "a <|endoftext|> b"}\n{"no": 1}\n{"text": 2}\n' > lines.jsonl
run 0 sgt-tokenize --quiet --skip-bad lines.jsonl lines
run 0 sgt-inspect lines
fact 'bad lines' 2 'eot literals' 1
run_prints '"bad_lines": 2' sgt-inspect lines --json
stdout_has '"eot_literals": 1'

# Decoding gives back all text, document by document.
run 0 sgt-tokenize --quiet in whole
run 0 sgt-inspect whole --decode 0:1M
for f in in/1.txt in/2.txt in/3.txt in/4.txt in/5.txt in/6.txt in/7.txt in/8.txt in/9.txt in/bad.txt; do
    printf '<|endoftext|>' && cat $f
done > want
same want .stdout
stderr_matches '^sgt-inspect: whole has only [0-9]+ tokens$'

# damage [SET]: copy the set to hurt, so that the caller can damage the copy
damage() { rm -rf hurt && cp -r "${1:-out}" hurt; }
# found MESSAGE, found_like REGEX: --verify must find the damage and report nothing else
found() { run_failure "hurt/$1" sgt-inspect --verify hurt; }
found_like() { run_failure_like "^sgt-inspect: hurt/$1" sgt-inspect --verify hurt; }

damage && patch hurt/train_000001.bin 1101 255
found_like 'train_000001.bin: token 38 \(byte 1100\): id 65[0-9]+, expected below 50257$'
run 0 sgt-inspect hurt

damage && cp hurt/train_000000.bin hurt/train_000099.bin
found 'train_000099.bin: not listed in hurt/manifest.json (left by another command? remove it)'

damage && cp hurt/train_000000.bin hurt/train_000001.bin
found_like 'train_000001.bin: at byte 32: checksum [0-9a-f]{16}, but hurt/manifest.json says '\
'[0-9a-f]{16} \(make the folder again\)$'

damage && rm hurt/train_000000.idx
found 'train_000000.idx: No such file or directory'

damage && patch hurt/train_000000.idx 0 3
found_like 'train_000000.idx: at byte 0: document 0 starts at token 3, which is [0-9]+, not the '\
'end-of-text id 50256$'

damage && truncate -s +8 hurt/train_000000.idx
found_like 'train_000000.idx: [0-9]+ documents, but the manifest says [0-9]+$'

damage && printf '{"version": 1' > hurt/manifest.json
run_failure_about 'sgt-inspect: hurt/manifest.json: line 1: ' sgt-inspect --verify hurt

damage && sed 's/"tokens": \([0-9]*\)$/"tokens": \1/; s/"file": "train_000000.bin"/"file": "..\/train_000000.bin"/' \
    out/manifest.json > hurt/manifest.json
found 'manifest.json: shard "../train_000000.bin" lies outside the folder: refused (damaged: copy the folder again, or tokenize again with --force)'

# Tokens of an unknown vocabulary are not decoded.
damage && rm hurt/manifest.json
for shard in hurt/*.bin; do patch $shard 24 1; done
run_failure_like '^sgt-inspect: hurt/train_000000.bin: cannot be decoded: its vocabulary is not GPT-2.s '\
'\(fingerprint [0-9a-f]{16}; hurt/tokenizer.json: not the vocabulary of the data\)$' sgt-inspect hurt --decode 0:3
# A complete shard next to .work, without a manifest, is reported as an unfinished set.
mkdir half half/.work
cp out/train_000000.bin out/train_000000.idx half
run_prints 'half: a set of shards, unfinished (run the same command again to finish it)' sgt-inspect half
run_prints '"unfinished": true' sgt-inspect half --json

# Sets with several faults.
texts text 90000
run 0 sgt-tokenize --quiet --split 30% --shard-tokens 5k --format text text large
n=$(ls large/*.bin | wc -l)
run_silent sgt-inspect --verify large
fact checksums "$n"

# Five shards are damaged in five ways, which are reported in the order of the set.
damage large
patch hurt/train_000001.bin 3000 7
truncate -s -100 hurt/train_000002.bin
rm hurt/train_000004.bin
patch hurt/train_000005.idx 1 255
patch hurt/val_000000.bin 24 1
for threads in 1 3; do
    run 1 sgt-inspect --verify --threads $threads hurt
    stdout_is ''
    sed 's/checksum [0-9a-f]*, expected [0-9a-f]*/checksum A, expected B/; s/: vocabulary [0-9a-f]*/: vocabulary A/
        s/says [0-9a-f]\{16\}/says B/; s/starts at token [0-9]*/starts at token N/' .stderr > got
    cat > want << END
sgt-inspect: hurt/train_000001.bin: checksum A, expected B: its tokens have changed since it was written (make it again)
sgt-inspect: hurt/train_000002.bin: 10924 bytes, but its header says 5000 tokens, which take 11024 \
(cut short: make it again)
sgt-inspect: hurt/train_000004.bin: missing, but hurt/manifest.json lists it
sgt-inspect: hurt/train_000005.idx: at byte 0: document 0 starts at token N, but must start after the document before it and below token 5000
sgt-inspect: hurt/val_000000.bin: at byte 24: vocabulary A, but hurt/manifest.json says B (make the folder again)
sgt-inspect: hurt: 5 of $n shards are damaged (sgt-tokenize --force makes the set anew)
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

# A header without a checksum, and a header with the size of another vocabulary.
damage large
for byte in 32 33 34 35 36 37 38 39; do patch hurt/train_000000.bin $byte 0; done
patch hurt/train_000001.bin 16 82
run 1 sgt-inspect --verify hurt
stderr_matches '^sgt-inspect: hurt/train_000000.bin: at byte 32: checksum 0{16}, but hurt/manifest.json says '\
'[0-9a-f]{16} \(make the folder again\)$'
stderr_has 'hurt/train_000001.bin: at byte 16: a vocabulary of 50258 ids with end-of-text id 50256, but hurt/manifest.json says 50257 and '\
'50256'
stderr_lines 3

# The manifest's totals differ from its shards, or from sources.jsonl.
damage large
sed '/"totals"/,$ s/"documents": [0-9]*/"documents": 7/' large/manifest.json > hurt/manifest.json
found_like 'manifest.json: total of 7 documents, but shards with [0-9]+$'
cp large/manifest.json hurt
sed '/"totals"/,$ s/"tokens": [0-9]*/"tokens": 7/' large/manifest.json > hurt/manifest.json
found_like 'manifest.json: total of 7 tokens, but shards with [0-9]+$'
cp large/manifest.json hurt
sed 1d large/sources.jsonl > hurt/sources.jsonl
found_like 'sources.jsonl: [0-9]+ files, but the manifest says [0-9]+$'
sed '2 s/"tokens": /"tokens": 1/' large/sources.jsonl > hurt/sources.jsonl
found_like 'sources.jsonl: [0-9]+ tokens, but the manifest says [0-9]+$'
echo 'no JSON' >> hurt/sources.jsonl
found_like 'sources.jsonl: line [0-9]+: expected a JSON object with documents and tokens$'
rm hurt/sources.jsonl
found 'sources.jsonl: No such file or directory'

run_usage '--threads: needs --verify' sgt-inspect --threads 2 large
run_usage '--threads 0: must be from 1 to 1024' sgt-inspect --verify --threads 0 large

# A folder without a manifest has no list of its shards, but they must have one vocabulary.
rm -rf mixed && mkdir mixed
run_silent sgt-tokenize --quiet --vocab "$ROOT/tests/data/vocab/trained" in/1.txt trained
cp out/train_000000.bin mixed/train_000000.bin
cp trained/train_000000.bin mixed/train_000001.bin
cp out/val_000000.bin mixed/val_000000.bin
run_failure 'mixed/train_000001.bin: a vocabulary of 700, but mixed/train_000000.bin has 50257: shards of one set '\
'must share a vocabulary' sgt-inspect mixed --decode 0:1
cp trained/train_000000.bin mixed/val_000000.bin
run 1 sgt-inspect --verify mixed
stderr_lines 3
stderr_has 'sgt-inspect: mixed: 2 of 3 shards are damaged' 'mixed/val_000000.bin: a vocabulary of 700, but'
