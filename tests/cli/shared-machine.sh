# What several processes of one machine share: CPUs, memory for preloaded sets, and a slow file system.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
. "$ROOT/tests/cli/machine.inc"

# ---- memory: a set of 287 MiB (a sparse file) and 488 MiB of free memory ----
mkdir holes
{ le32 20240520 && le32 1 && le32 150000000 && head -c 1012 /dev/zero; } > holes/train_000000.bin
truncate -s 300001024 holes/train_000000.bin 2> .truncate || skip "no file of 300 MB here: $(cat .truncate)"
echo 'MemAvailable: 500000 kB' > machine/proc/meminfo
options="--data holes --model 1x8x1 --seq-len 8 --batch-size 2 --steps 1 --device cpu --threads 1 --eval-every 0 --force"
few='this machine has only [0-9]+ MiB of free memory for data'

# One process: if the set does not fit, the default reader is mmap, also for an estimate, and
# --loader preload is refused.
run 0 $machine sgt-train $options --estimate-memory --json
loader_bytes() { sed -n 's/.*"name": "loader", "bytes": \([0-9]*\).*/\1/p' .stdout; }
check 'the set counts' test "$(loader_bytes)" -gt 300000000
cp --sparse=always holes/train_000000.bin holes/val_000000.bin
run 0 $machine sgt-train $options --eval-every 1 --estimate-memory --json
check 'the validation shards do not fit beside it' test "$(loader_bytes)" -gt 300000000 -a "$(loader_bytes)" -lt 310000000
rm holes/val_000000.bin
echo 'MemAvailable: 100000 kB' > machine/proc/meminfo
run_notes_like "^sgt-train: the set needs 287 MiB, but $few: reading with mmap instead\$" $machine sgt-train $options
run 0 $machine sgt-train $options --estimate-memory --json
check 'the set does not count' test "$(loader_bytes)" -lt 1000000
refused='(use the reader mmap or uring, which need no memory for the set)'
for program in "sgt-train $options" 'sgt-inspect holes --batch 0 --batch-size 1 --seq-len 8'; do
    run 1 $machine $program --loader preload
    stderr_matches "the set needs 287 MiB, but $few"
    stderr_has "$refused"
done
echo '{"loader": "preload"}' > typed.json
run_failure_about "$refused" $machine sgt-train $options --config typed.json

# The model needs memory too: 488 MiB are free for a set of 287 MiB and a model of 300 MiB.
echo 'MemAvailable: 500000 kB' > machine/proc/meminfo
large="$options --model 2x320x4"
run_notes_like "^sgt-train: the set needs 287 MiB, but $few: reading with mmap instead\$" $machine sgt-train $large
run 1 $machine sgt-train $large --loader preload
stderr_has "$refused"
run 0 $machine sgt-train $large --loader mmap
run 0 $machine sgt-train $large --estimate-memory --json
check 'the set does not count' test "$(loader_bytes)" -lt 1000000
echo 'MemAvailable: 100000 kB' > machine/proc/meminfo

# ---- threads: by default one per core, but no more than a CPU quota or OMP_NUM_THREADS allows ----
unset OMP_NUM_THREADS TORCHELASTIC_RUN_ID
threads() { # NUMBER COMMAND...: check the number of threads that a program reports
    number=$1
    shift
    run 0 "$@" --json
    [ "$(sed -n 's/.*"threads": *\([0-9]*\).*/\1/p' .stdout)" = "$number" ] || fail "not $number threads: $(cat .stdout)"
}
echo 'some text' > text
tokenize='sgt-bench tokenize text --turns 1 --quiet'
sgt-bench tokenize text --turns 1 --quiet --json > .all
all=$(sed -n 's/.*"threads": *\([0-9]*\).*/\1/p' .all)
echo 0::/job/1 > machine/proc/self/cgroup
mkdir -p machine/sys/fs/cgroup/job/1
threads "$all" $machine $tokenize
echo '100000 100000' > machine/sys/fs/cgroup/job/cpu.max
threads 1 $machine $tokenize
threads 3 $machine $tokenize --threads 3
for omp in 1 1,4; do threads 1 env OMP_NUM_THREADS=$omp $tokenize; done
for omp in 1000 0 ''; do threads "$all" env OMP_NUM_THREADS=$omp $tokenize; done
threads "$all" env OMP_NUM_THREADS=1 TORCHELASTIC_RUN_ID=none $tokenize
run 0 sgt-train --data holes --loader mmap --model 1x8x1 --seq-len 8 --batch-size 2 --steps 1 --device cpu --eval-every 0 \
    --run model --quiet
threads 1 $machine sgt-sample model --prompt text --tokens 1 --vocab gpt2
options=$(echo "$options" | sed 's/--threads 1//')
run 0 $machine sgt-train $options --loader mmap --verbose
[ "$all" -eq 1 ] || stderr_has "sgt-train: threads: 1 of $all cores, because of the CPU quota or OMP_NUM_THREADS (use more with --threads)"
rm machine/proc/self/cgroup

# ---- a file system that answers in milliseconds: one line names it
# and suggests suitable readers ----
data d
run 0 $slow sgt-train $small --steps 48 --loader mmap --force
stderr_matches '^sgt-train: a step waits [0-9]+\.[0-9] ms for its rows: reading d takes milliseconds, as on a network file system '\
'\(use --loader preload, which reads all at once, or --loader uring, which reads ahead\)$'
check 'said once' test "$(grep -c 'a step waits' .stderr)" -eq 1
run 0 $slow sgt-train $small --steps 48 --loader uring --force
stderr_matches '^sgt-train: a step waits [0-9]+\.[0-9] ms for its rows: .* \(use --loader preload, which reads all at once\)$'
for how in "$slow sgt-train --loader preload" 'sgt-train --loader mmap' "$busy sgt-train --loader mmap" \
    "$busy sgt-train --loader uring"; do
    run 0 $how $small --steps 48 --force
    ! grep -q 'a step waits' .stderr || fail "it is not slow: $how"
done

# Two processes: a single copy of the set would fit, but not two.
with_mpi 'all else passed'
printf 'MemTotal: 1000000 kB\nMemAvailable: 500000 kB\n' > machine/proc/meminfo
two 0 $machine sgt-train $options
each='the set needs 287 MiB in each of 2 processes, but this machine has only [0-9]+ MiB of free memory for data'
stderr_matches "^sgt-train: $each: reading with mmap instead\$"
check 'said once' test "$(grep -c 'reading with mmap' .stderr)" -eq 1
two 1 $machine sgt-train $options --loader preload
stderr_lines 1
stderr_matches "^sgt-train: $each \(use the reader"
two 0 $machine sgt-train $options --loader mmap --quiet
stderr_is ''
two 0 $machine sgt-train $options --estimate-memory --json
stdout_has '"available_bytes": 256000000' # a half for each process
check 'each set takes more than a half' test "$(loader_bytes)" -lt 1000000
