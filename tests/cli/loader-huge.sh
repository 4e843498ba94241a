# A sparse set of 5,000 shards and 10 TB. The readers that do not load all of it can open it and
# draw batches.
. "$ROOT/tests/cli/shards.inc"

tokens=1000000000 # tokens per shard
bytes=$((1024 + 2 * tokens))

: > hole
truncate -s "$bytes" hole 2> .truncate || skip "no file of $bytes bytes here: $(cat .truncate)"
[ "$(du -k hole | cut -f1)" -lt 1024 ] || skip 'files have no holes here'
rm hole

# Each shard is a header and a hole.
mkdir huge
{ le32 20240520 && le32 1 && le32 $tokens && head -c 1012 /dev/zero; } > header
seq -f 'huge/train_%06.0f.bin' 0 4999 > names
xargs -n 500 sh -c 'tee "$@" < header > /dev/null' tee < names || fail 'headers'
xargs truncate -s $bytes < names

# inspect READER: show batch 123,456,789 with at most 100 MiB of private memory. (Mapped and cached
# pages do not count. A sanitizer maps terabytes, so there is no limit then.)
inspect() {
    echo "sgt-inspect huge --batch 123456789 --loader $1" > .ran
    code=0
    (
        [ -n "$sanitized" ] || ulimit -d 102400
        exec timeout 60 sgt-inspect huge --batch 123456789 --seq-len 4 --batch-size 3 --loader "$1" --json
    ) > .stdout 2> .stderr || code=$?
    [ "$code" -eq 0 ] || fail "exit code $code, not 0"
}

sanitized=
is_sanitized && sanitized=1

inspect mmap
cp .stdout empty.mmap
stdout_is '{"index":123456789,"inputs":[[0,0,0,0],[0,0,0,0],[0,0,0,0]],"targets":[[0,0,0,0],[0,0,0,0],[0,0,0,0]]}'
inspect uring
same .stdout empty.mmap

# Each row lies where sgt-inspect says, far into the set: ids written there appear in the row.
run 0 sgt-inspect huge --batch 123456789 --seq-len 4 --batch-size 3
sed -nE 's/^  row [0-2] +(train_[0-9]*.bin) from token ([0-9]+).*/\1 \2/p' .stdout > rows
check 'three rows' test "$(wc -l < rows)" -eq 3
first=1
while read -r shard token; do
    ids $first $((first + 1)) $((first + 2)) $((first + 3)) $((first + 4)) |
        dd of="huge/$shard" bs=1 seek=$((1024 + 2 * token)) conv=notrunc 2> .dd || fail "dd: $(cat .dd)"
    first=$((first + 10))
done < rows
for reader in mmap uring; do
    inspect $reader
    stdout_is '{"index":123456789,"inputs":[[1,2,3,4],[11,12,13,14],[21,22,23,24]],'\
'"targets":[[2,3,4,5],[12,13,14,15],[22,23,24,25]]}'
done
run_failure_about 'sgt-inspect: the set needs 9536758 MiB, but ' sgt-inspect huge --batch 0 --loader preload
