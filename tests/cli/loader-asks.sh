# The readers' system calls, seen by strace. The hints that they give the kernel speed up reading
# and change no batch.
need_strace
texts text 300000
run 0 sgt-tokenize --quiet --shard-tokens 40k text out
shards=$(ls out/*.bin | wc -l)
[ "$shards" -ge 2 ] || fail "only $shards shards"

# asks CALLS OPTION...: draw three batches of four rows, and write the system calls named in CALLS
# to ./traced
asks() {
    calls=$1
    shift
    # Drop the set from the page cache, if its file system uses one: cached pages are mapped without
    # a hint.
    for f in out/*.bin; do dd if="$f" iflag=nocache count=0 2> .dd; done
    run 0 strace -f -o traced -e trace="$calls" sgt-inspect out --batch 0:3 --batch-size 4 --seq-len 64 --json "$@"
    stdout_lines 3
}
seen() { grep -cE "$1" traced; }

# mmap: in random order, the reader requests windows ahead. In sequential order, the kernel reads
# ahead by itself.
for sampling in shuffle random block; do
    asks madvise --loader mmap --sampling $sampling
    check "$sampling: each shard at random" test "$(seen 'madvise\(.*, MADV_RANDOM\) += 0')" -eq "$shards"
    least=2
    [ $sampling != shuffle ] || least=12 # a call for each window
    [ "$(seen 'MADV_POPULATE_READ|0x16')" -gt 0 ] ||
        check "$sampling: windows ahead" test "$(seen 'madvise\(.*, MADV_WILLNEED\) += 0')" -ge $least
done
asks madvise --loader mmap --sampling sequential
check 'in order' test "$(seen 'MADV_SEQUENTIAL\) += 0')" -eq "$shards"
check 'nothing at random' test "$(seen 'MADV_RANDOM|MADV_WILLNEED')" -eq 0

# preload: its memory gets huge pages, unless it is smaller than one.
asks madvise --loader preload
check 'no huge page' test "$(seen 'MADV_HUGEPAGE')" -eq 0
repeated 20 "$ROOT/tokenize/vocab/gpt2.bpe" > large.txt
run 0 sgt-tokenize --quiet large.txt large
run 0 strace -f -o traced -e trace=madvise sgt-inspect large --batch 0:3 --batch-size 4 --seq-len 64 --json --loader preload
check 'huge pages' test "$(seen 'MADV_HUGEPAGE')" -ge 1

# uring: direct reads into registered memory, with an alignment that a read has tested.
asks io_uring_setup,io_uring_register,pread64,fcntl --loader uring
seen 'io_uring_setup\(.*\) += [0-9]+' > /dev/null || skip 'io_uring is unavailable here: mmap and preload were looked at'
check 'memory' test "$(seen 'IORING_REGISTER_BUFFERS')" -ge 1 # RLIMIT_MEMLOCK may make the call fail
check 'alignment' test "$(seen 'pread64\(.*, 512, 0\) += 512')" -ge 1
grep -q 'F_SETFL.*O_DIRECT.*) *= 0$' traced || skip 'no direct reads here: all else was looked at'
