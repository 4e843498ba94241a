# sgt-train --batch-size auto, --recompute auto and --memory-limit: the values chosen, notices,
# stored options, and errors.
# In make check-all only: half a minute of runs near a limit.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
data d
MiB=1048576
model="--data d --model 4x64x4 --seq-len 64 --device cpu --threads 1 --precision fp32 --loader mmap --eval-every 0"
run="$model --steps 2 --run r --force"

# total OPTION...: set $total to the estimate in bytes
total() {
    run 0 sgt-train --estimate-memory --json $model "$@"
    total=$(field total_bytes .stdout)
}
# between LOW HIGH: set $limit to the mean of the two
between() { limit=$((($1 + $2) / 2)); }
levels() { # NONE GELU BLOCK
    stderr_matches "^sgt-train: --recompute auto: none in $1 layers?, gelu in $2, block in $3: the run needs [0-9.]+ MiB of the \
[0-9.]+ [MG]iB of --memory-limit\$"
}

# ---- the least recomputation that fits: none, then GELU in as many layers as needed, then
# blocks. A unit is B*T*C floats. Estimates of different processes differ by less than 1 MiB
# (mapped code); a page is 2 MiB ----
rows=256 # a unit is 4 MiB; GELU in n layers frees 6 (n - 1) units, n blocks 9 (n - 1) more
total --batch-size $rows && none=$total
unit=$((rows * 64 * 64 * 4))
choose() { # LIMIT NONE GELU BLOCK
    run 0 sgt-train --estimate-memory --json $model --batch-size $rows --recompute auto --memory-limit "$1"
    levels "$2" "$3" "$4"
    [ "$(field total_bytes .stdout)" -le "$1" ] || fail "more than $1"
}
choose $((none + 8 * MiB)) 4 0 0
choose $((none - 3 * unit)) 2 2 0
choose $((none - 15 * unit)) 0 4 0
choose $((none - 18 * unit - 6 * MiB)) 1 1 2
choose $((none - 42 * unit)) 0 0 4

# ---- the run prints its choice; its options keep the word auto and the limit (test_recompute.c
# tests that it has the same bits) ----
small="--batch-size 8"
total $small && none=$total
total $small --recompute block && between "$total" "$none"
run 0 sgt-train $run $small --recompute auto --memory-limit $limit
stderr_matches '^sgt-train: --recompute auto: none in [0-3] layers?, '
grep -q '"recompute": "auto"' r/options.json || fail 'options.json lacks recompute'
grep -q "\"memory-limit\": $limit" r/options.json || fail 'options.json lacks memory-limit'
run 0 sgt-train --data d --device cpu --loader mmap --run r --resume --steps 3
stderr_matches '^sgt-train: --recompute auto: none in 4 layers, gelu in 0, block in 0: the run needs [0-9.]+ MiB of the [0-9.]+ '\
'[MG]iB free$'

# ---- too large ----
total --batch-size 64 --recompute block && block=$total
total --batch-size 32 --recompute block && between "$total" "$block"
run_failure_like '^sgt-train: the model and its step need [0-9.]+ MiB even with --recompute block, more than the '\
'[0-9.]+ MiB of --memory-limit \(the largest --batch-size that fits is [0-9]+\)$' \
    sgt-train $run --batch-size 64 --recompute auto --memory-limit $limit --run no
absent no
most=$(sed 's/.*fits is \([0-9]*\)).*/\1/' .stderr)
[ "$most" -gt 32 ] && [ "$most" -lt 64 ] || fail "$most rows should be between 32 and 64"
run 0 sgt-train --estimate-memory $model --batch-size "$most" --recompute auto --memory-limit $limit
run 1 sgt-train --estimate-memory $model --batch-size $((most + 2)) --recompute auto --memory-limit $limit
run 1 sgt-train $run --batch-size 64 --memory-limit $limit --run no
stderr_matches '^sgt-train: the model and its step need [0-9.]+ MiB, more than the [0-9.]+ MiB of --memory-limit '\
'\(the largest --batch-size that fits is [0-9]+, and --recompute auto allows more\)$'
run 1 sgt-train $run --batch-size 64 --recompute block --memory-limit 1MiB --run no
stderr_matches '^sgt-train: the model and its step need [0-9.]+ MiB, more than the 1\.0 MiB of --memory-limit \(no '\
'--batch-size fits: use a smaller --model or --seq-len\)$'
run 1 sgt-train $run --batch-size auto --memory-limit 1MiB --run no
stderr_matches '^sgt-train: --batch-size auto: the model and its step need [0-9.]+ MiB with one row, more than the '\
'1\.0 MiB of --memory-limit \(use a smaller --model or --seq-len, or --recompute auto\)$'
absent no

# ---- --batch-size auto: the largest size that fits; options.json stores the number ----
run 0 sgt-train $run --batch-size auto --memory-limit $limit
stderr_matches '^sgt-train: --batch-size [0-9]+, the largest that fits: the run needs [0-9.]+ MiB of the [0-9.]+ MiB of '\
'--memory-limit$'
rows=$(sed -n 's/^sgt-train: --batch-size \([0-9]*\), .*/\1/p' .stderr)
grep -q "\"batch-size\": $rows," r/options.json || fail "options.json lacks the $rows rows"
total --batch-size $((rows - 2)) && [ "$total" -le "$limit" ] || fail "$rows rows do not fit"
total --batch-size $((rows + 2)) && [ "$total" -gt "$limit" ] || fail "more than $rows rows fit"
run 0 sgt-train --quiet --data d --device cpu --loader mmap --run r --resume --steps 3 --batch-size auto
grep -q "\"batch-size\": $rows," r/options.json || fail 'a resumed run has other rows'
# An epoch of 153,601 tokens has 2399 windows of 64 tokens.
run 0 sgt-train --estimate-memory --json $model --batch-size auto
stderr_matches '^sgt-train: --batch-size 2399, all rows of an epoch: '
[ "$(field batch .stdout)" -eq 2399 ] || fail 'the estimate is of other rows'
# Recomputation is used only if not even one row fits without it.
total --batch-size 1 && limit=$((total + 4 * MiB))
run 0 sgt-train --estimate-memory $model --batch-size auto --recompute auto --memory-limit $limit
levels 4 0 0

# ---- two ranks: both use the number of rows that fits the rank with less memory ----
ranks_fit() {
    total --batch-size 1 --steps 2
    with_mpi
    # $total is for one row. Of the 32 MiB, MPI uses a part, received gradients take another, and up
    # to a page (2 MiB) may be wasted.
    ranks="sgt-train $run --run two --batch-size auto --memory-limit"
    pair 0 "$ranks $((total + 64 * MiB))" "$ranks $((total + 32 * MiB))"
    two=$(sed -n 's/.*"batch-size": \([0-9]*\),.*/\1/p' two/options.json)
    row=$((64 * 64 * 4 * 16 * 4)) # least bytes of activations per row
    [ $((two % 2)) -eq 0 ] && [ "$two" -gt 2 ] && [ "$two" -le $((2 * (34 * MiB / row + 1))) ] ||
        fail "$two rows on two ranks"
}
! has_mpi || ranks_fit

# ---- wrong usage ----
run_usage '--memory-limit 1.5: not a size (such as 4096, 512k, 64MiB)' sgt-train --data d --memory-limit 1.5

# ---- CUDA on the host: the limit is the device's memory, and the run
# then uses what was estimated ----
programs=$BIN/../host/bin
[ -e "$programs/../lib/libsgt-cuda.so" ] || exit 0
PATH=$programs:$PATH
model="--data d --model 4x32x2 --seq-len 24 --device cuda --deterministic --precision fp32 --eval-every 0"
run="$model --batch-size 64 --steps 2 --run c --force"
total --batch-size 64 && none=$total
total --batch-size 64 --recompute block && between "$total" "$none"
run 0 sgt-train $run --recompute auto --memory-limit $limit
stderr_matches '^sgt-train: --recompute auto: none in [0-3] layers?, '
[ "$(field peak_bytes c/log.jsonl)" -le "$limit" ] || fail 'a run on CUDA holds more than its limit'
run 0 env SGT_HOST_DEVICE=memory=40M sgt-train $model --steps 1 --run c --force --batch-size auto
stderr_matches '^sgt-train: --batch-size [0-9]+, the largest that fits: the run needs [0-9.]+ MiB of the [0-9.]+ MiB free$'
has_mpi || skip 'no Open MPI; all else passed'
