# sgt-train on four ranks, which are processes with CUDA on the host and the stand-in for NCCL. They
# have one rank's losses, and the same bits with and without graphs. If one rank dies or fails, there
# is one message. train-ranks.sh tests two ranks, and where NCCL's calls are.
# In make check-all only: it trains on the host in place of several GPUs.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
cuda_on_the_host
ranks_data --device cuda --deterministic --precision bf16 --model 3x16x2 --batch-size 4
world=4

four() { # COMMAND...: run it on four ranks
    both "$@"
    gather 0
}

# ---- one rank's losses; the same bits for any order of the streams, and without graphs ----
run 0 sgt-train $options --precision fp32 --run one
four sgt-train $options --precision fp32 --run many
stderr_is ''
close one many 2e-5
four sgt-train $options --run graphs
for other in schedule=1 'schedule=0 --no-graphs'; do
    four env SGT_HOST_DEVICE="${other%% *}" sgt-train $options ${other#schedule=?} --run other --force
    same_facts graphs/log.jsonl other/log.jsonl
    same graphs/step-00000004/model.safetensors other/step-00000004/model.safetensors
done

# ---- one of four ranks dies: the others end within 30 s with one message, and
# saved checkpoints stay complete ----
both sgt-train $options --steps 100000 --save-every 3 --keep 2 --run dead
saved dead
kill -9 "$pid3"
killed=$(date +%s)
gather '1 1 1 137'
[ $(($(date +%s) - killed)) -le 30 ] || fail 'the others went on for more than 30 s'
died 3 4
goes_on dead cuda

# ---- one of four ranks fails on its device: its message is printed once ----
echo 'case $RANK in 2) export SGT_HOST_FAULT=norm_rows_kernel:error ;; esac; exec "$@"' > failing
both sh failing sgt-train $options --sync-kernels --run fails
gather 1
stderr_is 'sgt-train: rank 2: norm_rows_kernel (grid 4, block 128, 0 bytes of shared memory): an illegal memory access '\
'was encountered (CUDA error 700)'
