# sgt-train on four ranks, which are processes with CUDA on the host and the stand-in for NCCL. They
# have one rank's losses, and the same bits with and without graphs. The graphs contain NCCL's
# calls (train-ranks.sh tests where in the backward pass). If one rank dies or fails, there is one
# message.
# In make check-all only: it trains on the host in place of several GPUs.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
cuda_on_the_host
ranks_data --device cuda --deterministic --precision bf16 --model 3x16x2 --batch-size 4
world=4

four() { # COMMAND...: start it as four ranks in the background; set $pids
    echo "four ranks: $*" > .ran
    next_port
    pids=
    for rank in 0 1 2 3; do
        start $rank "$@"
        pids="$pids $pid"
    done
}
gather_four() { # CODES: wait for all ranks; their exit codes must be CODES, in the order of ranks
    codes=
    for pid in $pids; do
        code=0
        wait "$pid" || code=$?
        codes="$codes $code"
    done
    cat .stdout0 .stdout1 .stdout2 .stdout3 > .stdout
    cat .stderr0 .stderr1 .stderr2 .stderr3 > .stderr
    [ "$codes" = " $1" ] || fail "exit codes$codes, not $1"
}

# ---- one rank's losses; the same bits for any order of the streams, without graphs,
# and with synchronous launches ----
run 0 sgt-train $options --precision fp32 --run one
four sgt-train $options --precision fp32 --run many
gather_four '0 0 0 0'
stderr_is ''
close one many 2e-5
four env SGT_HOST_NCCL='trace=calls ran=first' sgt-train $options --run graphs
gather_four '0 0 0 0'
for other in 'schedule=1' 'schedule=2' 'schedule=0 --no-graphs' 'schedule=0 --sync-kernels'; do
    four env SGT_HOST_DEVICE="${other%% *}" sgt-train $options ${other#schedule=?} --run other --force
    gather_four '0 0 0 0'
    same_facts graphs/log.jsonl other/log.jsonl
    same graphs/step-00000004/model.safetensors other/step-00000004/model.safetensors
done

# ---- NCCL's calls are in the graphs: of four steps, only the first one and its
# capture put calls on a stream, one for each bucket (three blocks, all vectors,
# embeddings); yet each step runs them ----
for rank in 1 2 3; do same calls.0 calls.$rank; done
[ "$(grep -c '^reduce_scatter' calls.0)" = 10 ] || fail "put on streams: $(cat calls.0)"
[ "$(grep -c '^reduce_scatter' first.0)" = 20 ] || fail "made: $(cat first.0)"

# ---- one of four ranks dies: the others end within 30 s with one message, and
# saved checkpoints stay complete ----
for victim in 3 0; do
    rm -rf dead
    four sgt-train $options --steps 100000 --save-every 3 --keep 2 --run dead
    saved dead
    # shellcheck disable=SC2086
    set -- $pids
    shift $victim
    kill -9 "$1"
    killed=$(date +%s)
    want=$(for rank in 0 1 2 3; do [ $rank = $victim ] && echo 137 || echo 1; done | tr '\n' ' ')
    gather_four "${want% }"
    [ $(($(date +%s) - killed)) -le 30 ] || fail 'the others went on for more than 30 s'
    died $victim 4
    goes_on dead cuda
done

# ---- one of four ranks fails on its device: its message is printed once ----
four sh -c 'case $RANK in 2) export SGT_HOST_FAULT=norm_rows_kernel:error ;; esac; exec "$@"' sh \
    sgt-train $options --sync-kernels --run fails
gather_four '1 1 1 1'
stderr_is 'sgt-train: rank 2: norm_rows_kernel (grid 4, block 128, 0 bytes of shared memory): an illegal memory access '\
'was encountered (CUDA error 700)'
