# sgt-train --estimate-memory prints a table of at most 100 columns, or JSON; their numbers agree.
# Nothing is trained.
# In make check-all only: it trains models of several sizes.
. "$ROOT/tests/cli/train.inc"
data d
estimate="sgt-train --estimate-memory --device cpu --threads 1 --precision fp32"

# Without data, GPT-2's vocabulary is assumed.
run_silent $estimate
stdout_has 'a step of 12x768x12, 50257 ids, 8 rows of 512 tokens, fp32 on the CPU'
stdout_matches '^  weights +474\.7 MiB +[0-9.]+ %$'
stdout_matches '^  moments +949\.4 MiB +[0-9.]+ %$'
stdout_matches '^  in all +[0-9.]+ [GM]iB(,| of).* free now$'
awk 'length > 100 { exit 1 }' .stdout || fail 'wider than 100 columns'
absent run

# With data, the vocabulary size is read from the shards' headers.
run 0 $estimate --data d --model 2x32x2 --seq-len 64 --batch-size 4
stdout_has 'a step of 2x32x2, 256 ids, 4 rows of 64 tokens, fp32 on the CPU'
absent run
mkdir empty
run 1 $estimate --data empty
stdout_is ''
stderr_lines 1

# One JSON document, in which the kinds add up to the total. Activations grow with rows.
# train-memory.sh tests what recomputation saves.
total() { # OPTION...
    run 0 $estimate --json --model 4x64x4 --seq-len 64 "$@"
    stdout_lines 1
    sum=$(tr '{' '\n' < .stdout | sed -n 's/.*"name".*"bytes": *\([0-9]*\).*/\1/p' |
        awk '{ n += $1 } END { printf "%d", n }')
    total=$(field total_bytes .stdout)
    [ "$sum" = "$total" ] || fail "kinds add up to $sum, not $total"
}
total --batch-size 8 && eight=$total
[ "$(field device .stdout),$(field precision .stdout),$(field batch .stdout)" = cpu,fp32,8 ] || fail 'what it is about'
total --batch-size 16 && [ "$total" -gt "$eight" ] || fail 'twice the rows need more'
for less in '--optimizer sgd' '--optimizer muon' '--optimizer-state bf16'; do
    total --batch-size 8 $less && [ "$total" -lt "$eight" ] || fail "$less takes less for moments"
done
total --batch-size 8 --no-tie && [ "$total" -gt "$eight" ] || fail 'a head of its own needs more'

# A checkpoint is written in the background from a copy, which has the parameters and both moments,
# or one moment with SGD.
copy() { # BYTES OPTION...
    expected=$1
    shift
    run 0 $estimate --json --model 4x64x4 --seq-len 64 "$@"
    [ "$(field checkpoint_bytes .stdout)" = "$expected" ] || fail "a copy of $(field checkpoint_bytes .stdout) bytes ($*)"
    kind=$(tr '{' '\n' < .stdout | sed -n 's/.*"name": "checkpoint", "bytes": \([0-9]*\).*/\1/p')
}
floats=$((50257 * 64 + 1024 * 64 + 4 * (12 * 64 * 64 + 13 * 64) + 2 * 64))
copy $((12 * floats)) --steps 1001 && with=$kind
copy 0 --steps 1000
[ $((with - kind)) -eq $((12 * floats)) ] || fail 'it is part of what a checkpoint takes'
copy 0 --save-every 0
copy $((8 * floats)) --optimizer sgd
copy $((12 * (floats - 50001 * 64))) --data d --batch-size 2 # 1199 steps, and 256 ids

# If a run does not fit, its error message states the estimate of its memory.
large='--data d --device cpu --threads 1 --model 48x1600x25 --seq-len 1024 --batch-size 512'
run 0 sgt-train --estimate-memory --json $large
gib=$(tr '{' '\n' < .stdout | grep '"name"' | grep -vE '"(page rest|loader|checkpoint|program)"' |
    sed 's/.*"bytes": *\([0-9]*\).*/\1/' | awk '{ n += $1 } END { printf "%.1f", n / 1024 / 1024 / 1024 }')
run_failure_about "the model and its step need $gib GiB of memory" sgt-train --quiet $large

# CUDA's estimate needs the library but no GPU. A run then uses that much memory.
programs=$BIN/../host/bin
[ -e "$programs/../lib/libsgt-cuda.so" ] || exit 0
PATH=$programs:$PATH
for device in nodriver none driver=12040 arch=61; do
    run_silent env SGT_HOST_DEVICE=$device sgt-train --estimate-memory --device cuda
    stdout_has 'a step of 12x768x12, 50257 ids, 64 rows of 512 tokens, bf16 on CUDA'
    stdout_matches '^  in all +[0-9.]+ GiB$'
done
cuda="--data d --device cuda --model 2x32x2 --seq-len 24 --batch-size 2 --steps 2 --eval-every 0"
for technique in '' '--precision fp32' '--precision fp16 --recompute block' '--attention naive --no-fuse' \
    '--no-tie --optimizer sgd --dropout 0.1' '--document-mask' '--optimizer muon'; do
    run 0 sgt-train --estimate-memory --json $cuda $technique
    total=$(field total_bytes .stdout)
    run 0 sgt-train --quiet $cuda $technique --run held --force
    held=$(field peak_bytes held/log.jsonl)
    [ "$total" = "$held" ] || fail "estimated are $total bytes, held $held ($technique)"
done

# sgt-bench step, not --estimate-memory, estimates and measures several batch sizes.
run_usage '--batch-size 4,8: not a whole number (such as 12, 512k, 1.5M) or auto' $estimate --batch-size 4,8
