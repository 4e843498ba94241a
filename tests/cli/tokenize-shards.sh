# sgt-tokenize --shards and sgt-inspect --export write files for Megatron-LM, nanoGPT and OLMo-core.
# Their bytes are those of these programs' formats, and every program here reads them.
. "$ROOT/tests/cli/shards.inc"
. "$ROOT/tests/cli/corpus.inc"

work_in_memory
some_corpus corpus
touch -d @1700000000 corpus/*
options='--quiet --split 30%'
run 0 sgt-tokenize $options --shard-tokens 1k corpus own
for layout in megatron nanogpt npy; do
    # The files are the same from text and from shards of any size, with any number of ranks, and in
    # a second run.
    run_says '' sgt-tokenize $options --shards $layout --threads 1 corpus $layout
    absent $layout/.work
    grep -q '"eos_token": "<|endoftext|>"' $layout/tokenizer_config.json || fail 'transformers gets no end of text'
    check_layout own $layout $layout
    run_says '' sgt-inspect --quiet --export $layout own exported
    same_folders exported $layout
    rm -r exported
    run_prints '"already_done": true' sgt-tokenize --json --split 30% --shards $layout corpus $layout
    for i in 1 0 2; do run 0 sgt-tokenize $options --shards $layout --rank $i --ranks 3 corpus ranks; done
    same_folders ranks $layout
    rm -r ranks
    # The programs here read the files, with their manifest and documents.
    run 0 sgt-inspect $layout --verify
    fact verified yes checksums '[1-9]'
    same_text $layout own
    run 0 sgt-inspect --json $layout
    documents=$(field documents .stdout)
    run 0 sgt-inspect --json own
    [ "$documents" = "$(field documents .stdout)" ] || fail "$layout: $documents documents"
    run 0 sgt-bench loader $layout --seq-len 16 --batch-size 2 --loader mmap --json
    run 0 sgt-train --quiet --data $layout --run run-$layout --model 1x8x1 --seq-len 16 --batch-size 2 --steps 2 \
        --eval-every 1 --device cpu
    check "$layout: evaluated on its val split" grep -q '"val_loss"' run-$layout/log.jsonl
    # The manifest's checksum reveals a changed token.
    cp -r $layout hurt
    bin=$(echo hurt/train*[ny])
    flip "$bin" 600
    run_failure_like "^sgt-inspect: $bin: checksum [0-9a-f]{16}, expected [0-9a-f]{16}: " sgt-inspect hurt --verify
    rm -r hurt
done
# The files are a set without their manifest too.
mkdir pair
cp megatron/*_text_document.* pair
run 0 sgt-inspect --compare pair megatron

# The messages that say how to use the files.
run_prints 'for nanoGPT: raw 16-bit ids; documents end with the end-of-text id' sgt-tokenize --shards nanogpt corpus/m said
run 0 sgt-inspect --quiet --export npy own other
run_prints 'third: for Megatron-LM: --data-path OUT/train_text_document' sgt-inspect --export megatron own third
fact tokens '[0-9,]+' files 2

# Sets that are shuffled and deduplicated, with another vocabulary; from standard input; of an empty
# corpus.
vocab="--vocab $ROOT/tests/data/vocab/trained"
run 0 sgt-tokenize $options $vocab --shuffle 7 --dedup corpus trained
run 0 sgt-tokenize $options $vocab --shuffle 7 --dedup --shards megatron corpus trained-megatron
check_layout trained trained-megatron megatron
same_text trained-megatron trained
: > nothing
run 0 sgt-tokenize --quiet --shards megatron nothing one-id
run 0 sgt-tokenize --quiet nothing one-id-own
check_layout one-id-own one-id megatron
# A complete set may have no documents and no shards.
: > nothing.jsonl
run 0 sgt-tokenize $options nothing.jsonl zero
run 0 sgt-inspect --verify zero
fact verified yes
! grep -qE '^  (tokens|documents|shards) ' .stdout || fail 'an empty set has something'
run 0 sgt-inspect --quiet --export npy zero zero-npy
run 0 sgt-tokenize $options --shards npy nothing.jsonl zero-same
same_folders zero-npy zero-same

# --dry-run predicts the number of files, and the space that shards take while the files are made.
run_prints '"shards": 2' sgt-tokenize --dry-run --json --shards megatron --split 30% corpus
[ "$(field disk_meanwhile .stdout)" -gt 0 ] || fail 'no shards meanwhile'

# A layout other than that of OUT is refused. With --force it replaces the old one, of which nothing
# is left.
run_unforced 'megatron: made with --shards megatron, now not given' sgt-tokenize $options corpus megatron
run_unforced 'own: made with --shards not given, now npy' sgt-tokenize $options --shards npy corpus own
cp -r own changing
echo mine > changing/train.bin.notes
for layout in megatron npy; do
    run 0 sgt-tokenize $options --force --shards $layout corpus changing
    same_folders -x train.bin.notes changing $layout
done
run 0 sgt-inspect --quiet --force --export nanogpt own changing
same_folders -x train.bin.notes changing nanogpt
exists changing/train.bin.notes

# Every program reports an unfinished set.
run 0 sgt-tokenize $options --shards npy --rank 1 --ranks 2 corpus half
run_failure 'half: no shard is complete yet (repeat the sgt-tokenize command)' sgt-inspect half
run_failure 'half: unfinished (run the same sgt-tokenize command again to finish it)' sgt-bench loader half
run_failure 'half: made with --shards npy, now not given (--force replaces it)' sgt-tokenize $options corpus half
run 0 sgt-tokenize $options --shards npy --rank 0 --ranks 2 corpus half
same_folders half npy

# Exports that are refused. (tokenize-out.sh has more reasons, and owners.sh has an OUT in use.)
run 1 sgt-inspect --export npy megatron new
stderr_is "sgt-inspect: megatron: is in another trainer's format, but only sgt's own shards can be exported"
run 1 sgt-inspect --export npy pair new
stderr_is 'sgt-inspect: pair: has no manifest.json: only complete sets of sgt-tokenize can be exported'
run_failure 'megatron: OUT already holds a set of shards (name a new folder, or --force replaces it)' \
    sgt-inspect --export npy own megatron
mkdir kept && echo mine > kept/notes.txt # --force keeps a file that is not ours
run 0 sgt-inspect --quiet --force --export npy own kept
is "$(cat kept/notes.txt)" mine
rm kept/notes.txt && same_folders kept other
mkdir half-done half-done/.work && touch half-done/.work/lock half-done/.work/train.npy.tmp # as after a kill
run 0 sgt-inspect --quiet --export npy own half-done
same_folders half-done other
run 0 sgt-tokenize --quiet --normalize nfc corpus nfc # tokenizer.json has the form, also in the copy
run 0 sgt-inspect --quiet --export npy nfc normal
same nfc/tokenizer.json normal/tokenizer.json
mkdir shards shards/.work && cp own/train_000000.* shards # another set, whose journal is missing
run 1 sgt-inspect --quiet --export npy own shards
stderr_is 'sgt-inspect: shards: OUT already holds a set of shards (name a new folder, or --force replaces it)'
same shards/train_000000.bin own/train_000000.bin
run_usage 'own: cannot export a set into its own folder (name a new one)' sgt-inspect --force --export npy own own
cp -r own hurt
patch hurt/train_000000.bin 1500 7
run 1 sgt-inspect --export npy hurt new
stderr_matches '^sgt-inspect: hurt/train_000000.bin: checksum [0-9a-f]{16}, expected [0-9a-f]{16}: '
absent new
rm -r hurt && cp -r own hurt && patch hurt/train_000000.idx 0 3
run 1 sgt-inspect --export megatron hurt new
stderr_has 'hurt/train_000000.idx: at byte 0: document 0 starts at token 3, expected '
absent new
# A document with more tokens than Megatron-LM's index can count; most of its shards are holes.
mkdir long
for i in 0 1; do
    { le32 20240520 && le32 1 && le32 2147483647 && le32 1 && le32 50257 && le32 50256; } > long/train_00000$i.bin
    truncate -s $((1024 + 2 * 2147483647)) long/train_00000$i.bin 2> /dev/null || skip 'files of 4 GiB are refused here'
done
le64 0 > long/train_000000.idx
: > long/train_000001.idx
cat > long/manifest.json << 'END'
{"version": 1, "options": {}, "vocabulary": {"name": "gpt2", "fingerprint": "0000000000000000", "size": 50257, "eot": 50256},
 "shards": [{"file": "train_000000.bin", "split": "train", "tokens": 2147483647, "documents": 1, "xxh3": "0000000000000000"},
  {"file": "train_000001.bin", "split": "train", "tokens": 2147483647, "documents": 0, "xxh3": "0000000000000000"}],
 "totals": {"tokens": 4294967294, "documents": 1, "bytes": 1, "files": 1, "invalid_utf8": 0}}
END
run 1 sgt-inspect --export megatron long new
stderr_has "long: document 0 of split train has 4294967294 tokens, but Megatron-LM's index allows at most 2147483647 ("
absent new

run 2 sgt-tokenize --shards npy --shard-tokens 1k corpus new
stderr_is 'sgt-tokenize: shard-tokens: cannot be combined with the formats megatron, nanogpt and npy, which keep each '\
'split in one file'
run_usage "--shards parquet: must be one of sgt|megatron|nanogpt|npy" sgt-tokenize --shards parquet corpus new
run_usage '--export: expected two paths, not 1 (sgt-inspect --export npy SET OUT)' sgt-inspect --export npy own
run_usage '--export: needs an entire set, so it accepts no --split and no --raw' sgt-inspect --export npy --raw 16 own new
# As the manual of sgt-inspect says, links to the shards of two sets make one set, with the
# documents of both.
mkdir more linked
texts more 20000
run 0 sgt-tokenize $options --shard-tokens 1k more second
for set in own second; do
    for shard in $set/*_0*; do
        name=${shard#*/}
        ln "$shard" "linked/${name%%_*}_${set}_${name#*_}"
    done
done
cp own/tokenizer.json linked
run 0 sgt-inspect --verify linked
for set in linked own second; do sgt-inspect --json $set | field documents /dev/stdin; done > counts
check 'the documents of both' awk 'NR == 1 { left = $1 } NR > 1 { left -= $1 } END { exit left }' counts
run 0 sgt-train --quiet --data linked --run run-linked --model 1x8x1 --seq-len 16 --batch-size 2 --steps 1 --device cpu
run 0 sgt-train --quiet --data own,second --run run-both --model 1x8x1 --seq-len 16 --batch-size 2 --steps 1 --device cpu
run_usage '--export: cannot be combined with --verify (run them one after the other)' sgt-inspect --export npy --verify own new
run_usage '--force: needs --export' sgt-inspect --force own

# After a kill at any rename, the same command continues. --shuffle first writes documents to a part.
need_strace
for also in '' '--shuffle 3'; do
    run 0 sgt-tokenize $options $also --force --shards megatron corpus megatron
    n=1
    while rm -rf out && ! strace -f -o trace -e trace=rename -e inject=rename:signal=KILL:when=$n \
        sgt-tokenize $options --threads 1 $also --shards megatron corpus out > .stdout 2> .stderr; do
        run 0 sgt-tokenize $options $also --shards megatron corpus out
        same_folders out megatron
        n=$((n + 3))
    done
    [ $n -gt 15 ] || fail "there were $n renames"
done
# A run is killed before its manifest exists, and is started over in another layout. None of its
# files is left.
rm -rf out
strace -f -o trace -e trace=rename sgt-tokenize $options --shards nanogpt corpus out
n=$(grep -c 'rename(' trace)
rm -r out
! strace -f -o trace -e trace=rename -e inject=rename:signal=KILL:when=$n sgt-tokenize $options --shards nanogpt corpus out ||
    fail 'it was not killed'
exists out/train.bin
absent out/manifest.json
run 0 sgt-tokenize $options --force --shards megatron corpus out
run 0 sgt-tokenize $options --force --shards megatron corpus megatron
same_folders out megatron
