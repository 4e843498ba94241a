# tokenize-basic.sh: the files that sgt-tokenize writes, and its output.

word() { od -An -td4 -v -w4 -j$((4 * $2)) -N4 "$1" | tr -d ' '; }

mkdir -p in/sub
printf 'Hello world' > in/b.txt
printf 'hello hello' > in/sub/a.txt
: > in/a.txt # an empty file has only the end-of-text id
printf ' x' > in/First
touch -d @1700000000 in/First in/a.txt in/b.txt in/sub/a.txt

# The usual case: a summary on stdout, nothing on stderr, and exactly these files.
run_silent sgt-tokenize in/ out/
stdout_lines 2
stdout_has 'out/: 9 tokens, 4 documents, 1 shard'
stdout_matches '^24 B of text in 4 files, ([0-9]+ m|[0-9.]+ )s, [0-9.]+ [kMG]?B/s$'
is "$(ls -A out | paste -sd' ')" 'manifest.json sources.jsonl tokenizer.json train_000000.bin train_000000.idx'

# Documents are ordered by the bytes of their paths. Each begins with the end-of-text id. Ids are
# tiktoken's.
is "$(ids_of out/train_000000.bin)" '50256 2124 50256 50256 15496 995 50256 31373 23748'
[ "$(starts_of out/train_000000.idx)" = '0 2 3 6' ] || fail "starts: $(starts_of out/train_000000.idx)"
words=$(for i in 0 1 2 3 4 5; do word out/train_000000.bin $i; done | xargs)
[ "$words" = '20240520 1 9 1 50257 50256' ] || fail "header words: $words"
cat > want.jsonl << 'END'
{"path": "First", "size": 2, "mtime": 1700000000, "stat": "HASH", "documents": 1, "bytes": 2, "tokens": 2, "xxh3": "HASH"}
{"path": "a.txt", "size": 0, "mtime": 1700000000, "stat": "HASH", "documents": 1, "bytes": 0, "tokens": 1, "xxh3": "HASH"}
{"path": "b.txt", "size": 11, "mtime": 1700000000, "stat": "HASH", "documents": 1, "bytes": 11, "tokens": 3, "xxh3": "HASH"}
{"path": "sub/a.txt", "size": 11, "mtime": 1700000000, "stat": "HASH", "documents": 1, "bytes": 11, "tokens": 3, "xxh3": "HASH"}
END
sed 's/"[0-9a-f]\{16\}"/"HASH"/g' out/sources.jsonl > got.jsonl
same got.jsonl want.jsonl
grep -q '"tokens": 9,' out/manifest.json || fail 'tokens in manifest.json'
run 0 sgt-inspect out --verify
grep -q '"model"' out/tokenizer.json || fail 'tokenizer.json has no model'

# The same command again writes nothing, and prints nothing with --quiet.
ls -li --time-style=full-iso out > before
run_says 'out/: 9 tokens, 4 documents, 1 shard; already complete, nothing to do' sgt-tokenize in/ out/
run_says '' sgt-tokenize --quiet --threads 1 --field text in out
stderr_is ''
ls -li --time-style=full-iso out > after
same before after

# --json: exactly one JSON document on stdout.
run 0 sgt-tokenize --json in out2
stdout_lines 1
stderr_is ''
cp .stdout doc
for pair in tokens:9 documents:4 bytes:24 files:4 invalid_utf8:0 shards:1 train_tokens:9 val_tokens:0 \
    already_done:false; do
    found=$(field "${pair%:*}" doc)
    [ "$found" = "${pair#*:}" ] || fail "--json: ${pair%:*} is $found, not ${pair#*:}"
done
grep -qE '"seconds": [0-9.e-]+, "mb_per_s": [0-9.e-]+' doc || fail '--json: seconds and mb_per_s'
same_folders out out2

# Documents continue in the next shard (tests/tokenize compares shards of any size). If the tokens
# fill the shards exactly, there is no empty shard at the end.
run_prints 'out3: 9 tokens, 4 documents, 3 shards' sgt-tokenize --shard-tokens 3 in out3
absent out3/train_000003.bin
run_prints 'out1: 9 tokens, 4 documents, 9 shards' sgt-tokenize --shard-tokens 1 in out1

# --split depends only on the path (tests/tokenize has recorded splits).
mkdir many
for i in $(seq 100 299); do echo "document $i" > "many/$i.txt"; done
run 0 sgt-tokenize --split 25% many split
stdout_matches '^split: [0-9,]+ tokens, 200 documents, 2 shards; train [0-9,]+, val [0-9,]+ tokens \([0-9.]+ %: '\
'--split chooses whole documents\)$'
val=$(($(wc -c < split/val_000000.idx) / 8))
[ "$val" -ge 30 ] && [ "$val" -le 70 ] || fail "25% of 200 documents set aside $val"
run_prints 'train 0, val 9 tokens' sgt-tokenize --split 100% in all-val
absent all-val/train_000000.bin
# If the hash picks none of several files, the one with the smallest hash goes to val, in any order
# of the inputs and for any number of ranks.
mkdir few
for i in 1 2 3 4 5 6 7 8 9; do echo "number $i" > few/$i; done
run 0 sgt-tokenize --split 5% few one-val
stdout_matches '^one-val: 36 tokens, 9 documents, 2 shards; train 32, val 4 tokens \(11\.1 %: --split chooses whole documents\)$'
run 0 sgt-tokenize --split 5% few/9 few/8 few/7 few/6 few/5 few/4 few/3 few/2 few/1 one-val2
same one-val/val_000000.bin one-val2/val_000000.bin
for rank in 0 1 2; do run 0 sgt-tokenize --quiet --rank $rank --ranks 3 --split 5% few one-val4; done
same_folders one-val one-val4
# If the hash puts all files into val, one stays in training, for any number of ranks.
kept=0
for name in 1 2 3 4 5 6 7 8 9; do
    run 0 sgt-tokenize --split 50% few/$name one-train
    exists one-train/train_000000.bin
    ! grep -q 'so one was moved to training' .stderr || kept=$((kept + 1))
    rm -r one-train
done
[ $kept -gt 0 ] && [ $kept -lt 9 ] || fail "of 9 files, the hash puts $kept into val"
run 0 sgt-tokenize --split 99.999% few one-train
stderr_is 'sgt-tokenize: --split: all files fell into the validation split, so one was moved to training (a hash '\
"of a file's path below INPUT decides)"
stdout_matches 'train 4, val 32 tokens'
for rank in 0 1 2; do run 0 sgt-tokenize --quiet --rank $rank --ranks 3 --split 99.999% few one-train2; done
same_folders one-train one-train2
# JSONL and standard input are split while they are read, so the split may pick no document.
run 0 sgt-tokenize --split 1% in/b.txt no-val
stdout_has 'No document fell into the validation split: there is only one, and documents are not divided.'
absent no-val/val_000000.bin
printf '{"text": "a"}\n{"text": "b"}\n' > two.jsonl
run 0 sgt-tokenize --quiet --split 1% few two.jsonl no-val3
absent no-val3/val_000000.bin
run 0 sgt-tokenize --quiet --split 1% few - no-val4 < in/b.txt
absent no-val4/val_000000.bin
# If the split leaves no document for training, no set is made, whatever the options and formats.
cp "$ROOT/tests/data/parquet/zstd-v1.parquet" rows.parquet
all_val() { # DOCUMENTS OPTION...
    documents=$1
    shift
    run_failure "--split 99.999%: all documents ($documents) fell into the validation split, so none is left for training (use a smaller value, with --force)" sgt-tokenize --split 99.999% "$@"
    absent no-train/manifest.json
}
all_val 2 two.jsonl no-train
all_val 2 --force --threads 1 --shuffle 1 two.jsonl no-train
all_val 3 --force --dedup two.jsonl in/b.txt no-train
all_val 2 --force --shards nanogpt two.jsonl no-train
all_val 2 --force --format jsonl - no-train < two.jsonl
all_val 1 --force --field plain_all --skip-bad rows.parquet no-train
run 0 sgt-tokenize --force --split 30% two.jsonl no-train
exists no-train/train_000000.bin
# With ranks, the rank that completes OUT reports the failure.
run 0 sgt-tokenize --quiet --rank 0 --ranks 2 --split 99.999% two.jsonl in/b.txt no-train2
run 1 sgt-tokenize --quiet --rank 1 --ranks 2 --split 99.999% two.jsonl in/b.txt no-train2
stderr_matches ': all documents \(3\) fell into the validation split'
absent no-train2/manifest.json
# The notice that one file stays in training is not printed if OUT is refused or complete already.
run_silent sgt-tokenize --split 99.999% few one-train
stdout_has 'already complete'
run 1 sgt-tokenize --split 99.99% few one-train
stderr_lines 1
run 0 sgt-tokenize --split 1% two.jsonl no-val2
stdout_has 'No document fell into the validation split: with 2 documents, 1 % may pick none. Try --split 20%.'
