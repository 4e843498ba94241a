# sgt-bench loader --cold measures files that can be dropped from the page cache and refuses others.
# It also compares the readers with fio, whose output may be unusable.
. "$ROOT/tests/cli/shards.inc"

# A file system in memory never drops its pages, so its files are refused.
memory=/dev/shm/sgt-bench-cold.$$
if [ "$(stat -f -c %T /dev/shm 2> /dev/null)" = tmpfs ] && mkdir "$memory" 2> /dev/null; then
    trap 'rm -rf "$memory"' EXIT
    shard "$memory/train_000000.bin" 1 2 3 4 5 6 7 8 9
    run_failure "$memory/train_000000.bin: 1 of 1 pages cannot be dropped from the page cache \
(because of a file system in memory, a program that maps it, or another owner)" \
        sgt-bench loader "$memory" --cold --seq-len 4 --seconds .01
fi

mkdir set
{ le32 20240520 && le32 1 && le32 20000 && head -c 41012 /dev/zero; } > set/train_000000.bin
code=0
sgt-bench loader set --cold --seq-len 64 --batch-size 2 --seconds .05 --json > .stdout 2> .stderr || code=$?
if [ $code -eq 1 ] && grep -q 'cannot be dropped from the page cache' .stderr; then
    check 'nothing is printed' test ! -s .stdout
    skip "files here cannot be dropped from the page cache"
fi
[ $code -eq 0 ] || fail "exit code $code: $(cat .stderr)"
stderr_is ''
check 'all are cold' test "$(sed -n '/"results"/,/"peers"/p' .stdout | grep -c '"cold": true')" -eq 6

# ---- a stand-in for fio that stores its arguments and reports 1,000 requests per second ----
mkdir bin
cat > bin/fio <<'END2'
#!/bin/sh
for a; do echo "$a"; done > fio.args
echo "$*" >> fio.asked
echo "$GLIBC_TUNABLES" > fio.pages
echo 'a note that stands before it'
echo '{"fio version": "fio-0.3", "jobs": [{"error": 0, "read": {"iops": 1000.0}, "usr_cpu": 10.0, "sys_cpu": 15.0}]}'
END2
chmod +x bin/fio
PATH=$PWD/bin:$PATH
cp set/train_000000.bin 'set/train_a:b.bin'
quick='--cold --seconds .02 --turns 1 --batch-size 4'
peers() { sed -n '/"peers"/,$p' .stdout; }
for sampling in random block sequential; do
    run_silent sgt-bench loader set $quick --seq-len 16 --sampling $sampling --loader uring,mmap --json
    stdout_has '"fio": "fio-0.3"'
    peers >> all-peers
done
check 'no more than reading' test "$(grep -c -- '--readonly' fio.asked)" -eq 3
check 'as ours reads' test "$(sed 's/.*--rw=\([a-z]*\) .*--bs=\([0-9]*\) --iodepth=\([0-9]*\) .*/\1 \2 \3/' fio.asked |
    tr '\n' ';')" = 'randread 4096 128;randread 262144 16;read 1048576 16;'
for word in --ioengine=io_uring --registerfiles=1 --fixedbufs=1 --direct=1 --iomem_align=2m --output-format=json \
    '--filename=set/train_000000.bin:set/train_a\:b.bin'; do
    check "fio is told $word" grep -qxF -e "$word" fio.args
done
check 'into huge pages' grep -qx 'glibc.malloc.hugetlb=1' fio.pages
# The stand-in answers in 1,000 us per request. Random rows take a request each. Requests of block
# and sequential sampling read 131,072 tokens and 1 MiB; a batch of 64 tokens is charged its share.
check 'microseconds per batch' test "$(sed -n 's/.*"us_per_batch": \(.*\),/\1/p' all-peers | tr '\n' ' ')" = \
    '4000.0 0.48828125 0.122070312 '
check 'its CPU' test "$(grep -c '"cpu_share": 0.25' all-peers)" -eq 3

# A window of 4,098 bytes spans two pages. A batch of 4 rows takes 4 requests, or 4,000 us.
run 0 sgt-bench loader set $quick --seq-len 2048 --json --loader uring,mmap
check 'two pages' grep -qx -- '--bs=8192' fio.args
check 'as many requests as rows' test "$(peers | grep -c '"us_per_batch": 4000.0')" -eq 1
check 'a share each' test "$(sed -n '/"results"/,/"peers"/p' .stdout | grep -c '"fio_fraction"')" -eq 4
check 'the quotient' awk -F'[:,]' '/"us_per_batch"/ { us = $2 } /"fio_fraction"/ { q = $2 * us / 4000
    if (q < 1 - 3e-5 || q > 1 + 3e-5) exit 1 }' .stdout
run 0 sgt-bench loader set $quick --seq-len 64
stdout_has "Shards on disk, not in the page cache, 1 thread, sampling random, batches of 4 x 64 tokens"
stdout_has "of limit: relative to fio, with the same requests."
stdout_matches '^  fio +- +4000\.00 +0\.1 +0\.000 +1\.0000( +-)+ +0\.25 +-$'
check '100 columns' test "$(awk 'length > 100' .stdout | wc -l)" -eq 0

# ---- fio that fails, fio that reports nothing usable, no fio ----
printf '#!/bin/sh\necho "fio: engine io_uring not loadable" >&2\nexit 1\n' > bin/fio
run 0 sgt-bench loader set $quick --seq-len 16 --json
stderr_is 'sgt-bench loader: skipping fio: fio: exited with code 1: fio: engine io_uring not loadable'
check 'the document says why' test "$(grep -c '"why": "fio: exited with code 1: fio: engine io_uring not loadable"' .stdout)" -eq 1
printf '#!/bin/sh\necho hello\n' > bin/fio
run_tells 'sgt-bench loader: skipping fio: fio: no jobs in its output: hello' sgt-bench loader set $quick --seq-len 16
printf '#!/bin/sh\necho %s\n' "'{\"jobs\": [{\"error\": 5, \"read\": {\"iops\": 7}}]}'" > bin/fio
run 0 sgt-bench loader set $quick --seq-len 16
stderr_is 'sgt-bench loader: skipping fio: fio failed: error 5 (Input/output error)'
rm bin/fio
mkdir only
ln -s "$BIN/sgt-bench" only/
run_silent env PATH="$PWD/only" sgt-bench loader set $quick --seq-len 16 --loader mmap --json
stdout_has '"why": "fio was not found (apt-get install fio)"'
run 0 env PATH="$PWD/only" sgt-bench loader set $quick --seq-len 16 --loader mmap
stdout_has "relative to memcpy (to see the disk's limit: apt-get install fio)."
stderr_is ''
rm 'set/train_a:b.bin'

# No reader reads a window twice, whatever the output. The reader mmap prefetches each window by one
# madvise call, whose address strace shows. Where a file was mapped gives the offset in the file.
need_strace
{ le32 20240520 && le32 1 && le32 20000000 && head -c 40001012 /dev/zero; } > set/train_000000.bin
run 0 strace -f -o traced -e trace=mmap,madvise \
    sgt-bench loader set --cold --loader mmap --sampling shuffle --batch-size 4 --seq-len 4096 --turns 3 \
    --seconds .02
sed -n 's/.*mmap(NULL, 40001024, .* = \(0x.*\)/map \1/p
    s/.*madvise(\(0x[0-9a-f]*\), [0-9]*, MADV_WILLNEED.*/window \1/p' traced |
    while read -r what at; do
        if [ "$what" = map ]; then base=$at; else echo $((at - base)); fi
    done > places
check 'six slices were drawn' test "$(wc -l < places)" -ge $((6 * 4))
check 'no place is read twice' test "$(sort places | uniq -d | wc -l)" -eq 0
