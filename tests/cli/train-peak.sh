# The estimate of sgt-train --estimate-memory is within 5 % of the process's peak memory, for
# several batch sizes and recomputation levels. SHOW=1 makes run.sh print the table.
# In make check-all only: it trains models of several sizes.
. "$ROOT/tests/cli/train.inc"
! grep -q __asan_init "$BIN/sgt-train" || skip 'a sanitizer has memory of its own'
data d

model="--data d --model 4x256x4 --seq-len 128 --device cpu --steps 2 --eval-every 0"
printf '%5s %9s %7s %13s %12s %6s\n' rows recompute loader 'predicted MiB' 'measured MiB' '%'
compare() { # ROWS LEVEL LOADER
    options="$model --batch-size $1 --recompute $2 --loader $3"
    run 0 sgt-train --estimate-memory --json $options
    predicted=$(field total_bytes .stdout)
    run 0 sgt-train --quiet --json $options --run r --force
    measured=$(field memory_used .stdout)
    echo "$1 $2 $3 $predicted $measured" |
        awk '{ printf "%5d %9s %7s %13.1f %12.1f %+6.1f\n", $1, $2, $3, $4 / 1048576, $5 / 1048576, 
            100 * ($4 / $5 - 1) }'
    awk -v p="$predicted" -v m="$measured" 'BEGIN { exit !(p >= .95 * m && p <= 1.05 * m) }' ||
        fail "$1 rows, recompute $2, $3: $predicted bytes predicted, $measured measured"
}

compare 16 none preload
compare 16 block mmap
compare 32 gelu preload
compare 64 block preload
compare 128 none mmap
