# sgt-bench loader --cold: measures files that can be dropped from the page cache, and refuses others.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/shards.inc"

# A file system in memory never drops its pages, so its files are refused.
memory=/dev/shm/sgt-bench-cold.$$
if [ "$(stat -f -c %T /dev/shm 2> /dev/null)" = tmpfs ] && mkdir "$memory" 2> /dev/null; then
    trap 'rm -rf "$memory"' EXIT
    shard "$memory/train_000000.bin" 1 2 3 4 5 6 7 8 9
    run 1 sgt-bench loader "$memory" --cold --seq-len 4 --seconds .01
    stdout_is ''
    stderr_is "sgt-bench loader: $memory/train_000000.bin: 1 of 1 pages stay in memory, so --cold would not be cold \
(a file system in memory, a program that maps it, or not your file)"
fi

mkdir set
{ le32 20240520 && le32 1 && le32 20000 && head -c 41012 /dev/zero; } > set/train_000000.bin
code=0
sgt-bench loader set --cold --seq-len 64 --batch-size 2 --seconds .05 --json > .stdout 2> .stderr || code=$?
if [ $code -eq 1 ] && grep -q 'stay in memory, so --cold would not be cold' .stderr; then
    check 'nothing is printed' test ! -s .stdout
    skip "files here cannot be dropped from the page cache"
fi
[ $code -eq 0 ] || fail "exit code $code: $(cat .stderr)"
stderr_is ''
check 'all are cold' test "$(sed -n '/"results"/,/"peers"/p' .stdout | grep -c '"cold": true')" -eq 6

# No reader reads a window twice, for either output. io_uring is refused here: the reads are then
# single system calls, whose offsets strace shows.
need_strace
{ le32 20240520 && le32 1 && le32 20000000 && head -c 40001012 /dev/zero; } > set/train_000000.bin
run 0 strace -f -o traced -e trace=pread64,io_uring_setup -e inject=io_uring_setup:error=EPERM \
    sgt-bench loader set --cold --loader uring --sampling sequential --batch-size 4 --seq-len 4096 --turns 3 \
    --seconds .02
sed -n 's/.*pread64.*, \([0-9]*\), \([0-9]*\)) = [0-9]*$/\1 \2/p' traced |
    awk '$1 >= 8194 && $1 <= 20480 { print $2 }' > places # without reads of headers
stderr_has 'io_uring is forbidden here'
check 'six slices were drawn' test "$(wc -l < places)" -ge $((6 * 4))
check 'no place is read twice' test "$(sort places | uniq -d | wc -l)" -eq 0
