# sgt-inspect --sampling packed: rows of whole documents, from every reader; how many documents they hold and how many
# tokens they crop.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/shards.inc"

# documents of 3, 6, 2, 5 and 4 tokens in rows of 4+1: 5 of the 6; the 5; 4 and 1 of the 2; 3 and, from the next epoch,
# 2 of the 4. The token before the first document is in no row.
mkdir docs
shard docs/train_000000.bin 7 50256 1 2 50256 3 4 5 6 8 50256 10 50256 11
shard docs/train_000001.bin 12 13
shard docs/train_000002.bin 14 50256 15 16 17
run 0 sgt-inspect docs --sampling packed --seq-len 4
stdout_is 'docs: rows of 4 tokens and their targets, packed
  rows        4 an epoch
  documents   5, 1.25 a row (1 to 2)
  cropped     2 of 20 tokens, 10 %'
stderr_is ''
run 0 sgt-inspect docs --sampling packed --seq-len 4 --json
stdout_matches '"rows": 4,'
stdout_matches '"cropped_tokens": 2,'
stdout_matches '"documents_per_row": 1\.25,'
for reader in mmap preload uring; do
    run 0 sgt-inspect docs --json --batch 0:2 --sampling packed --batch-size 4 --seq-len 4 --loader $reader --documents
    cp .stdout $reader.rows
done
same mmap.rows preload.rows
same mmap.rows uring.rows
tr -d ' ' < mmap.rows | sed 's/.*"inputs":\[\(.*\)\],"targets":\[\(.*\)\],"positions":\[\(.*\)\],"doc.*/\1+\2+\3/; s/\],\[/;/g' |
    awk -F+ '{ n = split($1, x, ";"); split($2, y, ";"); split($3, p, ";");
        for (i = 1; i <= n; i++) print x[i], y[i], p[i] }' | tr -d '[]' > .rows
sed -n '1,2p' .rows | sort > .pattern
printf '%s\n' '50256,11,12,13 11,12,13,14 0,1,2,3' '50256,3,4,5 3,4,5,6 0,1,2,3' > .want
same .pattern .want
sed -n '5,6p' .rows | sort > .pattern # the next epoch's
same .pattern .want
sed -n '3,4p; 7p' .rows > .rest
printf '%s\n' '50256,15,16,17 15,16,17,50256 0,1,2,3' '50256,1,2,50256 1,2,50256,15 0,1,2,0' \
    '50256,10,50256,1 10,50256,1,2 0,1,0,1' > .want
same .rest .want
run 0 sgt-inspect docs --batch 0 --sampling packed --batch-size 4 --seq-len 4 --documents
stdout_matches '^ +documents begin at 0, 3$'

# tokenized text: no more is cropped than the rows' ends, where documents are shorter than rows
mkdir corpus
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do seq -s ' ' 1 $((7 * i)) > corpus/$i.txt; done
run 0 sgt-tokenize --quiet corpus out
run 0 sgt-inspect out --sampling packed --seq-len 127 --json
stdout_matches '"documents": 12,'
check 'little is cropped' awk '/cropped_fraction/ { exit !($2 < .2) }' .stdout
run 0 sgt-inspect out:2,docs:1 --sampling packed --seq-len 4 --json
stdout_matches '"documents": 17,'

# wrong use
run 1 sgt-inspect docs --sampling packed --seq-len 20
stderr_is 'sgt-inspect: docs: its 5 documents have 20 tokens, and a packed row takes 21 (take a shorter sequence length, '\
'or more text)'
run_usage '--loader, --seed, --batch-size: need --batch K, which they shape' \
    sgt-inspect docs --sampling packed --batch-size 4
run_usage '--sampling packed: not together with --verify or --decode (run them one after the other)' \
    sgt-inspect docs --sampling packed --verify
mkdir none
shard none/train_000000.bin 1 2 3 4 5 6 7 8
run 1 sgt-inspect none --sampling packed --seq-len 4
stderr_has 'sgt-inspect: none: no document starts in it: '
# Megatron-LM's documents end with the end-of-text id; an empty one also begins with it
mkdir m
ids 50256 5 6 50256 7 8 9 50256 > m/set.bin
megatron m/set 8 1 3 4
run 1 sgt-inspect m/set --sampling packed --seq-len 4
stderr_is 'sgt-inspect: m/set.bin: token 4: a document begins with id 7, and packed rows need the end-of-text id 50256 '\
'there (the other samplings do not)'
