# sgt-train on two ranks, which are processes with CUDA on the host and the stand-in for NCCL,
# started with torchrun's variables or by mpirun. They have the losses of one rank, and one or two
# ranks resume a checkpoint. If a rank fails, dies or is interrupted, one message says so.
# In make check-all only: it trains on the host in place of several GPUs.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
cuda_on_the_host
ranks_data --device cuda --deterministic --model 2x16x2 --batch-size 4 --grad-accum 2

# ---- the same losses, up to 2e-5, for everything that is divided: dropout
# masks, tensors, norms, the head ----
same_losses '--dropout 0.2 --eval-every 2' '--no-tie --optimizer sgd --nesterov' \
    '--grad-clip 0.1 --recompute block --no-fuse' '--optimizer muon' '--optimizer muon --no-tie --no-fuse --grad-accum 1'

close_in_16_bits

# ---- the bits depend neither on the order of a rank's streams nor on graphs ----
again() {
    same_facts two-bf16/log.jsonl again/log.jsonl
    same_folders two-bf16/step-00000004 again/step-00000004
}
for schedules in '2 3' '0 1'; do
    bf16="sgt-train $options --precision bf16 --run again --force"
    pair 0 "env SGT_HOST_DEVICE=schedule=${schedules% *} $bf16" "env SGT_HOST_DEVICE=schedule=${schedules#* } $bf16"
    again
done
two 0 sgt-train $options --precision bf16 --no-graphs --run again --force
same_facts two-bf16/log.jsonl again/log.jsonl
same two-bf16/step-00000004/model.safetensors again/step-00000004/model.safetensors

# ---- gradients are reduced bucket by bucket during the backward pass: a block, a block and
# all vectors, the embeddings, each after more kernels. Loss and norm follow, and the
# weights' working copies. All of it appears twice: in the first step, and in its capture,
# which has one micro-step and an update ----
two 0 env SGT_HOST_NCCL=trace=calls sgt-train $options --precision bf16 --run again --force
same calls.0 calls.1
grep -v '^broadcast' calls.0 > .calls # without the broadcasts for saving state
awk '/^reduce_scatter/ { at[++n] = $4 }
    END { exit !(n == 8 && at[1] < at[2] && at[2] == at[3] && at[3] < at[4] && at[4] < at[5]) }' .calls ||
    fail "not four buckets at three moments: $(cat .calls)"
is "$(cut -d ' ' -f 1 .calls | uniq -c | awk '{ printf "%s %s ", $1, $2 }')" \
    '5 all_gather 8 reduce_scatter 1 all_reduce 5 all_gather 1 all_reduce 5 all_gather '

# ---- one rank resumes checkpoints of two, and the reverse ----
resumes_ranks cuda
again

# ---- each rank keeps half of the optimizer's state ----
bytes() { sed "s/.*\"name\": \"$1\", \"bytes\": \([0-9]*\).*/\1/" .stdout; }
run 0 sgt-train $options --precision bf16 --estimate-memory --json
moments=$(bytes moments) weights=$(bytes weights)
two 0 sgt-train $options --precision bf16 --estimate-memory --json
# Dividing adds at most 256 bytes of padding per rank, bucket and array. Of a weight's 4 + 2 bytes,
# a rank keeps 2 + 2, plus 1 in the send buffer.
[ $(($(bytes moments) * 2)) -le $((moments + 2 * 4 * 2 * 256)) ] || fail "moments: $(bytes moments) of $moments"
[ $(($(bytes weights) * 6)) -le $((weights * 5 + 6 * 3 * 4 * 2 * 256)) ] || fail "weights: $(bytes weights) of $weights"

# ---- failures are reported once, by the first rank that fails ----
refuses_odd_rows
two 1 sgt-train $options --run two
stderr_is 'sgt-train: two: this run already has step-00000004 (--resume continues from it, --force starts over)'
run 2 env RANK=2 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port sgt-train $options --run odd
stderr_is 'sgt-train: RANK: rank 2 is not below the number of ranks, 2'
pair 1 "sgt-train $options --run odd" "env SGT_HOST_DEVICE=memory=1M sgt-train $options --run odd"
stderr_lines 1
stderr_matches '^sgt-train: rank 1: out of GPU memory'

# ---- if a rank dies or is interrupted, the run ends within 30 s, and
# saved checkpoints stay complete ----
ends_well cuda TERM
saves_slowly cuda

# ---- SIGINT or SIGTERM to the launcher itself ends the ranks within its time limit ----
ends_launcher() { # LAUNCHER...: set $long to the options of the run
    for signal in INT TERM; do
        rm -rf dead
        "$@" sgt-train $long --run dead > .stdout 2> .stderr &
        launcher=$!
        saved dead
        kill -$signal $launcher
        ! wait $launcher || fail "$1 has ended well"
        grep '^sgt-train: ' .stderr > .said
        mv .said .stderr
        stopped_after dead
        goes_on dead cuda
    done
}

find_python torch.distributed.run
if [ "$python" ]; then
    torchrun="$python -m torch.distributed.run --nproc-per-node 2 --no-python --"
    run 0 $torchrun sgt-train $options --precision bf16 --run again --force
    again
    ends_launcher $torchrun
    texts corpus 40000
    run 0 sgt-tokenize --quiet --dedup corpus set
    run 0 $torchrun sgt-tokenize --quiet --dedup corpus set-torchrun
    same_folders set set-torchrun
else echo 'no PyTorch: torchrun itself was not tried'; fi

command -v mpirun > /dev/null && [ -e "$programs/../lib/libsgt-mpi.so" ] || skip 'no Open MPI; all else passed'
mpi="mpirun --allow-run-as-root --oversubscribe -n 2"
run 0 $mpi sgt-train $options --precision bf16 --run again --force
again
ends_launcher $mpi --mca odls_base_sigkill_timeout 10
