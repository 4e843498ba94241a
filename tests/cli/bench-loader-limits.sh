# sgt-bench loader --limits: every limit has one line, whose share is the quotient of its two figures. With usable and
# unusable answers of fio.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
. "$ROOT/tests/cli/shards.inc"

mkdir set bin
{ le32 20240520 && le32 1 && le32 20000 && head -c 41012 /dev/zero; } > 'set/train_000000.bin'
{ le32 20240520 && le32 1 && le32 20000 && head -c 41012 /dev/zero; } > 'set/train_a:b.bin'
quick='--seconds .02 --turns 1 --batch-size 4 --seq-len 16'
lines() { sed -n '/"limits"/,$p' .stdout; }

# ---- warm ----
run 0 sgt-bench loader set $quick --limits memcpy,memory,scalar,mmap,threads,stream --json
stderr_is ''
check 'no table' grep -q '"results": \[\]' .stdout
check 'twelve lines' test "$(lines | grep -c '"limit"')" -eq 12
check 'each once' test "$(lines | sed -n 's/.*"\(ours\|other\)": \(.*\),/\2/p' | paste - - | sort -u | wc -l)" -eq 12
check 'all measured' test "$(lines | grep -c '"left_out"')" -eq 0
check 'ten shares' test "$(lines | grep -c '"share"')" -eq 10
check 'each is the quotient of its figures' test "$(lines | awk -F'[:,]' '/"ours_is"/ { a = $2 } /"other_is"/ { b = $2 }
    /"share"/ { q = a / b / $2; n += q > 1 - 3e-5 && q < 1 + 3e-5 } END { print n }')" -eq 10
run 0 sgt-bench loader set $quick --limits numpy,scalar
stdout_has 'preload, i32                   not measured: --peer PYTHON was not given'
stdout_matches '^preload, i32, 64 rows of 512 +[0-9.]+ Mtokens/s  a token at a time +[0-9.]+ +[0-9.]+$'
check '100 columns' test "$(awk 'length > 100' .stdout | wc -l)" -eq 0
cat > python <<'END2'
#!/bin/sh
echo '{"peer": "numpy 0.1"}'
while read -r line; do echo "$line" >> asked && echo '{"peer": "numpy 0.1", "batches": 1, "seconds": 1}'; done
END2
chmod +x python
run 0 sgt-bench loader set $quick --limits numpy --peer ./python
stderr_is ''
stdout_matches '^preload, i32 +[0-9.]+ Mtokens/s  numpy, sliding windows, i32 +0\.0 +[0-9.]+$'
check 'nothing else is asked for' test "$(cut -d' ' -f1-4 asked | sort -u)" = 'window i32 4 16'
run 0 sgt-bench loader set $quick --seconds .2 --peer ./python --json # all limits, below the table
check 'twenty lines' test "$(lines | grep -c '"limit"')" -eq 20
check 'and its rows' test "$(sed -n '/"results"/,/"peers"/p' .stdout | grep -cE '"pass": "(mapped|cached)"')" -eq 4

# ---- a stand-in for fio that stores its arguments and reports 1,000 requests per second ----
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
run 0 sgt-bench loader set $quick --limits random,ahead,block,fill --json
if grep -q 'stay in memory, so --cold would not be cold' .stdout; then
    skip 'files here cannot be dropped from the page cache'
fi
stderr_is ''
check 'seven lines' test "$(lines | grep -c '"limit"')" -eq 7
stdout_has '"fio": "fio-0.3"'
check 'requests a second' test "$(lines | grep -c '"other_is": 1.0,')" -eq 2
check 'blocks of 256 KiB' test "$(lines | grep -c '"other_is": 0.262144')" -eq 1 # 1,000 requests per second, in GB/s
check 'and of 1 MiB' test "$(lines | grep -c '"other_is": 1.04858')" -eq 1
check 'its CPU' test "$(lines | grep -c '"other_is": 0.25')" -eq 3
check 'no more than reading' test "$(grep -c -- '--readonly' fio.asked)" -eq 3
check 'as ours reads' test "$(sed 's/.*--rw=\([a-z]*\) .*--bs=\([0-9]*\) --iodepth=\([0-9]*\) .*/\1 \2 \3/' fio.asked |
    tr '\n' ';')" = 'randread 4096 128;randread 262144 16;read 1048576 16;'
for word in --ioengine=io_uring --registerfiles=1 --fixedbufs=1 --direct=1 --iomem_align=2m --output-format=json \
    '--filename=set/train_000000.bin:set/train_a\:b.bin'; do
    check "fio is told $word" grep -qxF -e "$word" fio.args
done
run 0 sgt-bench loader set $quick --limits random
stdout_matches '^uring, cold, i32 +[0-9.]+ k rows/s   fio, random, depth 128 +1\.0 +[0-9.]+$'
stdout_matches '^  CPU that it takes +[0-9.]+ cores +fio +0\.250$'

check 'into huge pages' grep -qx 'glibc.malloc.hugetlb=1' fio.pages

# The table compares with fio: a window of 4,098 bytes is two pages, and a batch of 4 rows takes 4
# requests, that is 4,000 us.
run 0 sgt-bench loader set --cold --seconds .02 --turns 1 --batch-size 4 --seq-len 2048 --json --loader uring,mmap
check 'two pages' grep -qx -- '--bs=8192' fio.args
check 'as many requests as rows' test "$(sed -n '/"peers"/,$p' .stdout | grep -c '"us_per_batch": 4000.0')" -eq 1
check 'a share each' test "$(sed -n '/"results"/,/"peers"/p' .stdout | grep -c '"fio_fraction"')" -eq 4
check 'the quotient' awk -F'[:,]' '/"us_per_batch"/ { us = $2 } /"fio_fraction"/ { q = $2 * us / 4000
    if (q < 1 - 3e-5 || q > 1 + 3e-5) exit 1 }' .stdout
run 0 sgt-bench loader set --cold --seconds .02 --turns 1 --batch-size 4 --seq-len 64
stdout_has 'Dropped from the page cache before each measurement, 1 thread'
stdout_has "Limit: the disk, read by fio at the same depth."
stdout_matches '^  fio             -   random          4     64    4000\.00       0\.1   0\.000   1\.0000  0\.25$'
check '100 columns' test "$(awk 'length > 100' .stdout | wc -l)" -eq 0

# ---- fio that fails, fio that reports nothing usable, no fio ----
one='--limits random --json'
printf '#!/bin/sh\necho "fio: engine io_uring not loadable" >&2\nexit 1\n' > bin/fio
run 0 sgt-bench loader set $quick $one
stderr_is 'sgt-bench loader: fio is left out: fio: exit 1: fio: engine io_uring not loadable'
check 'both lines say why' \
    test "$(lines | grep -c '"left_out": "fio: exit 1: fio: engine io_uring not loadable"')" -eq 2
printf '#!/bin/sh\necho hello\n' > bin/fio
run 0 sgt-bench loader set $quick $one
stderr_is 'sgt-bench loader: fio is left out: fio: no jobs[0].read.iops in what it said: hello'
printf '#!/bin/sh\necho %s\n' "'{\"jobs\": [{\"error\": 5, \"read\": {\"iops\": 7}}]}'" > bin/fio
run 0 sgt-bench loader set $quick $one
stderr_is 'sgt-bench loader: fio is left out: fio: error 5 (Input/output error)'
rm bin/fio
mkdir only
for p in "$BIN/sgt-bench"; do ln -s "$p" only/; done
run 0 env PATH="$PWD/only" sgt-bench loader set $quick --limits random
stderr_is ''
stdout_has 'uring, cold, i32               not measured: fio is not here (apt-get install fio)'
run 0 env PATH="$PWD/only" sgt-bench loader set $quick --cold --loader mmap
stdout_has "Limit: memcpy of the same windows (the disk's limit needs fio: apt-get install fio)."
stderr_is ''
