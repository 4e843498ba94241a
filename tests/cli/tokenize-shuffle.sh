# tokenize-shuffle.sh: --shuffle gives the same order for any number of threads and ranks, and another
# order for another seed. Also runs that are refused or resumed.
# (tests/tokenize compares the order with its definition.)
. "$ROOT/tests/cli/corpus.inc"

work_in_memory

some_corpus corpus
documents=$((300 + $(ls corpus | wc -l) - 1))
touch -d @1700000000 corpus/*
options='--shard-tokens 1k --split 30%'
run 0 sgt-tokenize --quiet $options corpus one
run 0 sgt-tokenize --json $options --shuffle 7 corpus seven
[ "$(field documents .stdout)" = $documents ] || fail "documents: $(cat .stdout)"
same one/sources.jsonl seven/sources.jsonl
grep -q '^  "shuffle": 7$' seven/manifest.json || fail "the manifest does not say so"
run 0 sgt-inspect --quiet --verify seven

# ---- the order depends only on the seed ----
run 0 sgt-tokenize --quiet --threads 3 $options --shuffle 7 corpus out
same_folders out seven
rm -r out
for i in 2 0 1; do run 0 sgt-tokenize --quiet $options --shuffle 7 --rank $i --ranks 3 corpus out; done
same_folders out seven
run 0 sgt-tokenize --quiet $options --shuffle 8 corpus eight
cmp -s seven/train_000000.bin eight/train_000000.bin && fail 'another seed gives the same order'

# ---- standard input, one document, an empty one ----
run 0 sgt-tokenize --quiet --shuffle 1 - single < corpus/m
run 0 sgt-tokenize --quiet - plain < corpus/m
same single/train_000000.bin plain/train_000000.bin
run 0 sgt-tokenize --quiet --shuffle 1 corpus/empty none
[ "$(wc -c < none/train_000000.bin)" = 1026 ] || fail 'an empty document is one id'

# ---- refused ----
run_unforced 'seven: made with --shuffle 7, now 8' sgt-tokenize $options --shuffle 8 corpus seven
run_unforced 'seven: made with --shuffle 7, now not given' sgt-tokenize $options corpus seven
run_unforced 'seven: made with --dedup not given, now true' sgt-tokenize $options --shuffle 7 --dedup corpus seven
run_usage '--shuffle much: not a whole number (such as 12, 512k, 1.5M)' sgt-tokenize --shuffle much corpus out
run_prints 'already complete, nothing to do' sgt-tokenize $options --shuffle 7 corpus seven

# ---- stopped while shards are assembled: complete shards stay ----
need_strace
late() { # SET: print the number of the rename after which half of SET's shards are in OUT, for a run with $options
    rm -rf counted
    renames=$(strace -f -c -e trace=rename sgt-tokenize --quiet $options --shuffle 7 corpus counted 2>&1 > /dev/null |
        awk '$NF == "rename" { print $4 }')
    echo $((renames - $(ls "$1"/*.bin | wc -l))) # a shard takes two renames
}
stop_late() { # kill a run at rename number $at
    rm -rf out
    strace -f -o trace -e trace=rename -e inject=rename:signal=KILL:when="$at" \
        sgt-tokenize --quiet --threads 1 $options --shuffle 7 corpus out > .stdout 2> .stderr
    absent out/manifest.json
}
goes_on() { # WANT: the resumed run must give WANT and must not write a shard again
    inodes out/*.bin > had
    [ "$(grep -c 'bin$' had)" -gt 5 ] || fail 'too few shards were whole'
    run 0 strace -f -o trace -e trace=rename,openat sgt-tokenize --quiet $options --shuffle 7 corpus out
    inodes out/*.bin | sort > has
    [ "$(grep 'out/train' had | sort | comm -23 - has | wc -l)" -eq 0 ] || fail 'shards were made again'
    same_folders out "$1"
}
# A single rank reads the documents from its part and does not copy them.
at=$(late seven)
stop_late
absent out/.work/sorting/train
goes_on seven
! grep -q '/sorting/train' trace || fail 'documents were copied'
# Damage to another rank's part is found.
rm -r out
run 0 sgt-tokenize --quiet $options --shuffle 7 --rank 1 --ranks 2 corpus out
part=out/.work/part-000001/train_000003.bin
truncate -s -2 $part
run 1 sgt-tokenize --quiet $options --shuffle 7 --rank 0 --ranks 2 corpus out
stderr_is "sgt-tokenize: $part: ends at offset 3022, 2 bytes too early (was it truncated while being read?)"
rm $part
run_failure "$part: No such file or directory" sgt-tokenize --quiet $options --shuffle 7 --rank 0 --ranks 2 corpus out
rm -r out

# ---- more shards than may be open: documents are copied. A resumed
# run does not copy them again ----
options='--shard-tokens 100 --split 30%'
run 0 sgt-tokenize --quiet $options --shuffle 7 corpus many
[ "$(ls many/train*.bin | wc -l)" -gt 256 ] || fail 'too few shards'
for split in train val; do # the same order in shards of any size
    for out in many seven; do tail -q -c +1025 $out/${split}_*.bin > $out.$split; done
    same many.$split seven.$split
done
at=$(late many)
stop_late
copy=out/.work/sorting/train/00000-of-00001
exists $copy/counts
goes_on many
grep -q 'openat.*/sorting/train/00000-of-00001/00000.*O_RDONLY' trace || fail 'the copy was not read'
grep -q 'openat.*/sorting/train/00000-of-00001/00000.*O_EXCL' trace && fail 'it was copied again'
# Damage to the copied documents is found. --force copies them again.
stop_late
truncate -s -2 $copy/00000
run_failure_like '^sgt-tokenize: out/\.work/sorting/train/00000-of-00001/00000: has [0-9]+ bytes, but [0-9]+ were written '\
'\(--force starts over\)$' sgt-tokenize --quiet $options --shuffle 7 corpus out
run 0 sgt-tokenize --quiet --force $options --shuffle 7 corpus out
same_folders out many
stop_late
printf '\377\377\377\377' | dd of=$copy/00000 bs=1 seek=16 conv=notrunc 2> /dev/null
run 1 sgt-tokenize --quiet $options --shuffle 7 corpus out
stderr_is 'sgt-tokenize: out/.work/sorting/train/00000-of-00001/00000: offset 0: damaged (--force starts over)'
run 0 sgt-tokenize --quiet --force $options --shuffle 7 corpus out
same_folders out many
stop_late
printf '\377' | dd of=$copy/counts bs=1 seek=7 conv=notrunc 2> /dev/null
run_failure "$copy/counts: missing or damaged (--force starts over)" sgt-tokenize --quiet $options --shuffle 7 corpus out
# A shard in OUT with another length is not accepted as a shard of this run.
stop_late
head -c 1026 one/train_000000.bin > out/train_000001.bin
run_failure_like '^sgt-tokenize: out/train_000001.bin: ' sgt-tokenize --quiet $options --shuffle 7 corpus out
run 0 sgt-tokenize --quiet --force $options --shuffle 7 corpus out
same_folders out many

# Each shard of a part is an open file.
i=0
mkdir texts
while [ $i -lt 100 ]; do echo "document $i has a few tokens" > texts/$i && i=$((i + 1)); done
run 1 sh -c 'ulimit -n 64 && exec "$@"' sh sgt-tokenize --quiet --threads 1 --shuffle 1 --shard-tokens 5 texts few-files
stderr_matches '^sgt-tokenize: .*: Too many open files \(raise ulimit -n\)$'
