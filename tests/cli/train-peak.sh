# The estimate of sgt-train --estimate-memory is within 5 % of the process's peak memory, for
# several batch sizes and recomputation levels. SHOW=1 makes run.sh print both.
# In make check-all only: it trains models of several sizes.
. "$ROOT/tests/cli/train.inc"
! grep -q __asan_init "$BIN/sgt-train" || skip 'a sanitizer has memory of its own'
data d

model="--data d --model 4x256x4 --seq-len 128 --device cpu --steps 2 --eval-every 0"
compare() { # ROWS LEVEL LOADER
    options="$model --batch-size $1 --recompute $2 --loader $3"
    run 0 sgt-train --estimate-memory --json $options
    predicted=$(field total_bytes .stdout)
    run 0 sgt-train --quiet --json $options --run r --force
    measured=$(field memory_used .stdout)
    echo "$1 rows, recompute $2, $3: $predicted bytes predicted, $measured measured"
    awk -v p="$predicted" -v m="$measured" 'BEGIN { exit !(p >= .95 * m && p <= 1.05 * m) }' ||
        fail 'more than 5 % apart'
}

compare 16 none preload
compare 16 block mmap
compare 32 gelu preload
compare 64 block preload
compare 128 none mmap
