# What several processes of one machine share: memory for preloaded sets.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
. "$ROOT/tests/cli/machine.inc"

# ---- memory: a set of 287 MiB, which is a hole but for its header, and 488 MiB of free memory ----
mkdir holes
{ le32 20240520 && le32 1 && le32 150000000 && head -c 1012 /dev/zero; } > holes/train_000000.bin
truncate -s 300001024 holes/train_000000.bin 2> .truncate || skip "no file of 300 MB here: $(cat .truncate)"
echo 'MemAvailable: 500000 kB' > machine/proc/meminfo
options="--data holes --model 1x8x1 --seq-len 8 --batch-size 2 --steps 1 --device cpu --threads 1 --eval-every 0 --force"
few='this machine has 97 MiB of free memory'

# One process: the default takes mmap if the set does not fit, in an estimate too; --loader preload is refused.
run 0 $machine sgt-train $options --estimate-memory --json
loader=$(sed -n 's/.*"name": "loader", "bytes": \([0-9]*\).*/\1/p' .stdout)
check 'the set counts' test "$loader" -gt 300000000
echo 'MemAvailable: 100000 kB' > machine/proc/meminfo
run 0 $machine sgt-train $options
stderr_has "sgt-train: the set takes 287 MiB and $few: reading with mmap instead"
run 0 $machine sgt-train $options --estimate-memory --json
loader=$(sed -n 's/.*"name": "loader", "bytes": \([0-9]*\).*/\1/p' .stdout)
check 'the set does not count' test "$loader" -lt 1000000
refused='it cannot be preloaded (use --loader mmap or --loader uring, which need no memory for it)'
for program in "sgt-train $options" 'sgt-inspect holes --batch 0 --batch-size 1 --seq-len 8'; do
    run_failure_about "the set takes 287 MiB and $few: $refused" $machine $program --loader preload
done
echo '{"loader": "preload"}' > typed.json
run_failure_about "$refused" $machine sgt-train $options --config typed.json

# Two processes: one of them would fit.
with_mpi 'all else passed'
echo 'MemAvailable: 500000 kB' > machine/proc/meminfo
two 0 $machine sgt-train $options
each='the set takes 287 MiB in each of 2 processes and this machine has 488 MiB of free memory'
stderr_has "sgt-train: $each: reading with mmap instead"
check 'said once' test "$(grep -c 'reading with mmap' .stderr)" -eq 1
two 1 $machine sgt-train $options --loader preload
stderr_is "sgt-train: $each: $refused"
two 0 $machine sgt-train $options --loader mmap --quiet
stderr_is ''
