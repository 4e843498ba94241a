# sgt-inspect --batch shows the batches that a trainer gets; every reader gives the same. --sampling
# packed counts the documents per row and the tokens that packing crops.
. "$ROOT/tests/cli/shards.inc"

# every_reader NAME ARGUMENT...: check that all readers give the same batches, and store them in
# NAME
every_reader() {
    name=$1
    shift
    for reader in mmap preload uring; do
        run 0 sgt-inspect "$@" --json --loader $reader
        [ $reader != mmap ] || cp .stdout "$name"
        same .stdout "$name"
    done
}

mkdir set
shard set/train_000000.bin 15496 995 0 198 50256 15496 995 198 1
shard set/train_000001.bin 10 11 12 13 14 15 16 17 18

# In sequential order, windows of 4+1 tokens begin at 0 and 4, then in the next shard, then at the
# start again.
run 0 sgt-inspect set --batch 0:2 --sampling sequential --batch-size 2 --seq-len 4 --json
stdout_is '{"index":0,"inputs":[[15496,995,0,198],[50256,15496,995,198]],'\
'"targets":[[995,0,198,50256],[15496,995,198,1]]}
{"index":1,"inputs":[[10,11,12,13],[14,15,16,17]],"targets":[[11,12,13,14],[15,16,17,18]]}'
stderr_is ''
run 0 sgt-inspect set --batch 2 --sampling sequential --batch-size 2 --seq-len 4 --json
stdout_has '{"index":2,"inputs":[[15496,995,0,198],[50256,'
run 0 sgt-inspect set --batch 0 --sampling sequential --batch-size 2 --seq-len 4
stdout_is 'batch 0: 2 rows of 4 tokens
  row 0    train_000000.bin from token 0          "Hello world!\n"
  row 1    train_000000.bin from token 4          "<|endoftext|>Hello world\n"'

# Every reader gives the same batches with each sampling. Targets are shifted by one, and another
# seed gives other batches.
for sampling in shuffle random block sequential; do
    every_reader $sampling set --batch 5:3 --batch-size 3 --seq-len 2 --sampling $sampling --seed 7
    stdout_lines 3
done
check 'random is not shuffle' test "$(cat random)" != "$(cat shuffle)"
run 0 sgt-inspect set --json --batch 5:3 --batch-size 3 --seq-len 2 --sampling random --seed 8
check 'another seed gives other batches' test "$(cat .stdout)" != "$(cat random)"

# With --sampling documents, each row holds one document: the tokens from its start to the start of
# the next, cut to 5 tokens or padded. A document may span shards (tests/loader/test_documents.c).
mkdir docs
shard docs/train_000000.bin 7 50256 1 2 50256 3 4 5 6 8 9 50256 10
shard docs/train_000001.bin 11
shard docs/train_000002.bin 12 50256
documents='--sampling documents --batch-size 4 --seq-len 4'
every_reader documents docs --batch 0:2 $documents
run_prints '[50256,3,3,3]' sgt-inspect docs --json --batch 0 $documents --pad-id 3
stdout_has '[50256,1,2,3]' '[-100,-100,-100,-100]'
run 0 sgt-inspect docs --batch 0 $documents
stdout_matches '^  row [0-3]    train_000000.bin from token 11 +4 tokens "<\|endoftext\|>\+,-"$'
stdout_matches '^  row [0-3]    train_000002.bin from token 1 +1 token  "<\|endoftext\|>"$'
run_usage '--pad-id: needs --sampling documents' sgt-inspect docs --batch 0 --pad-id 3

# Options at and beyond their bounds.
run_failure_about 'set/train_00000' sgt-inspect set --batch 0 --seq-len 9
run_usage '--batch 4611686018427387904: too large for batches of 8 rows' \
    sgt-inspect set --batch 4611686018427387904 --batch-size 8 --seq-len 4
run_usage '--batch x: expected a whole number, or two, as in 100:20, the second at least 1' sgt-inspect set --batch x
run 1 sgt-inspect set --batch 0 --split val --seq-len 4
stderr_lines 1

# Several sets: for every reader, rows are equal, and so is the number of the set that each is from.
# The rows of one set keep their order.
mkdir other
shard other/train_000000.bin 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116
mixed='--sampling sequential --batch-size 4 --seq-len 4'
every_reader mix set:1,other:3 --batch 0:64 $mixed
[ "$(jq -s -c '[.[].sets[]] | group_by(.) | map(length)' mix)" = '[64,192]' ] || fail 'shares of four turns'
run 0 sgt-inspect set:1,other:3 --batch 123456789 $mixed --json
run 0 sgt-inspect set:1,other:3 --batch 0 --sampling sequential --batch-size 64 --seq-len 4
[ "$(grep -c '  row [0-9]* *set/train_00000[01].bin from token' .stdout)" = 16 ] || fail "rows of set: $(cat .stdout)"
[ "$(grep -c '  row [0-9]* *other/train_000000.bin from token' .stdout)" = 48 ] || fail "rows of other: $(cat .stdout)"
run_usage 'other:-3: the weight must be a number from 1e-09 to 1e+06' sgt-inspect set:1,other:-3 --batch 0
run 1 sgt-inspect set,gone --batch 0 --seq-len 4
stderr_is 'sgt-inspect: gone: No such file or directory (make a folder of shards with sgt-tokenize)'
run_usage 'set,other: only --batch K can show several sets (name one of them)' sgt-inspect set,other
# A set with a weight, as --data accepts it, gives the same result as the set without a weight.
run 0 sgt-inspect set --json
cp .stdout plain
run_same plain sgt-inspect set:1 --json
run 0 sgt-inspect set:.25 --batch 0 $mixed --json
cp .stdout weighted
run_same weighted sgt-inspect set --batch 0 $mixed --json
mkdir set:7
cp set/*.bin set:7
run_prints_like '^set:7: ' sgt-inspect set:7 # unless a folder has that name
rm -r set:7

# Starts of documents, found by end-of-text ids, or by an .idx file if there is one; also in padded
# rows.
mkdir told
shard told/train_000000.bin 1 2 50256 3 4 50256 50256 5 6
short='--batch 0 --sampling sequential --batch-size 2 --seq-len 4'
run 0 sgt-inspect told $short --documents --json
stdout_has '"positions":[[0,1,0,1],[0,0,0,1]],"documents":[[0,0,1,1],[0,1,2,2]]'
run_prints '           documents begin at 2' sgt-inspect told $short --documents
stdout_has '           documents begin at 1, 2'
{ le32 0 && le32 0 && le32 3 && le32 0; } > told/train_000000.idx
run 0 sgt-inspect told $short --documents --json
stdout_has '"positions":[[0,1,2,0],[0,1,2,3]],"documents":[[0,0,0,1],[0,0,0,0]]'
run_prints '           documents begin at 0, 3' sgt-inspect told $short --documents
stdout_has '           documents begin at no token of this row'
run_prints '[0,1,2,0]' sgt-inspect docs --json --batch 0 $documents --documents
stdout_has '[0,0,0,-1]'
run_usage '--documents: needs --batch K' sgt-inspect told --documents
run_usage '--documents: needs --batch K' sgt-inspect --compare told told --documents

# --sampling packed: rows of whole documents. Documents of 3, 6, 2, 5 and 4 tokens are packed into
# rows of 4+1 tokens. The rows are: 5 of the 6 tokens; the 5; the 4, and 1 of the 2; the 3, and 2 of
# the 4 from the next epoch. Tokens before the first document are in no row.
mkdir packed
shard packed/train_000000.bin 7 50256 1 2 50256 3 4 5 6 8 50256 10 50256 11
shard packed/train_000001.bin 12 13
shard packed/train_000002.bin 14 50256 15 16 17
run 0 sgt-inspect packed --sampling packed --seq-len 4
fact rows 4 documents 5 tokens 20 'cropped tokens' 2 'cropped fraction' 0.1 'documents per row' 1.25
stderr_is ''
run_prints_like '"rows": 4,' sgt-inspect packed --sampling packed --seq-len 4 --json
stdout_matches '"cropped_tokens": 2,'
stdout_matches '"documents_per_row": 1\.25$'
every_reader rows packed --batch 0:2 --sampling packed --batch-size 4 --seq-len 4 --documents
check 'the rows of two documents' grep -qE '\[50256, ?1, ?2, ?50256\]' rows # tests/loader/test_packed.c checks all rows
run 0 sgt-inspect packed --batch 0 --sampling packed --batch-size 4 --seq-len 4 --documents
stdout_matches '^ +documents begin at 0, 3$'

cp -r packed more
run_prints '"documents": 10,' sgt-inspect packed:2,more:1 --sampling packed --seq-len 4 --json

# wrong use
run_usage '--batch-size: needs --batch K' sgt-inspect packed --sampling packed --batch-size 4
run_usage '--sampling packed: cannot be combined with --verify (run them one after the other)' \
    sgt-inspect packed --sampling packed --verify
# Megatron-LM's documents end with the end-of-text id. An empty document also begins with it.
mkdir m
ids 50256 5 6 50256 7 8 9 50256 > m/set.bin
megatron m/set 8 1 3 4
run_failure 'm/set.bin: token 4: this document begins with id 7, but for packed rows it must begin with the end-of-text '\
'id, 50256 (use a different sampling)' sgt-inspect m/set --sampling packed --seq-len 4
