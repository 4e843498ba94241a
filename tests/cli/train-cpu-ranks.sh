# sgt-train on several CPU ranks, with mpirun and with torchrun's variables: the losses of one rank, the same bits
# whether gradients go through shared memory or MPI, checkpoints that any number of ranks resumes. If a rank fails,
# dies or is interrupted, one message says so.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
unset SGT_RANKS_SHARE
ranks_data --device cpu --model 2x16x2 --batch-size 6 --grad-accum 2

same_run() { # RUN RUN
    same_facts "$1/log.jsonl" "$2/log.jsonl"
    for file in model optimizer; do same "$1/step-00000004/$file.safetensors" "$2/step-00000004/$file.safetensors"; done
}

# ---- the same losses, up to 2e-5, with all that is divided: dropout, tensors, norms, ignored targets ----
same_losses '--dropout 0.2 --eval-every 2' '--no-tie --optimizer sgd --nesterov --ignore-index 32' \
    '--optimizer muon' '--grad-clip 0.1 --recompute block' '--sampling documents --document-mask' \
    '--sampling packed --document-mask'

# ---- prompts and completions, whose rows have different numbers of losses ----
for i in 1 2 3 4 5 6 7; do
    echo "{\"prompt\": \"$i and $i is\", \"completion\": \" $((2 * i)), or $((i + i)) as some say.\"}"
done > sums.jsonl
tune="$options --data sums.jsonl --precision fp32"
run 0 sgt-train $tune --run tuned
two 0 sgt-train $tune --run tuned-two
stderr_is ''
close tuned tuned-two 2e-5

close_in_16_bits

# ---- the bits depend neither on the run nor on threads ----
two 0 sgt-train $options --precision bf16 --threads 3 --run again
same_run two-bf16 again

# ---- one rank resumes checkpoints of two, and the reverse ----
resumes_ranks cpu
same_run two-bf16 again

# ---- memory: shared parameters count once, gradients for each rank ----
bytes() { sed "s/.*\"name\": \"$1\", \"bytes\": \([0-9]*\).*/\1/" .stdout; }
run 0 sgt-train $options --precision bf16 --estimate-memory --json
moments=$(bytes moments) weights=$(bytes weights) gradients=$(bytes gradients)
two 0 sgt-train $options --precision bf16 --estimate-memory --json
[ "$(bytes moments)" = $((moments / 2)) ] || fail "moments: $(bytes moments) of $moments"
# The other 128 bytes are the ranks' counters.
[ $(($(bytes weights) - weights / 2)) = 128 ] || fail "weights: $(bytes weights) of $weights"
[ "$(bytes gradients)" = "$gradients" ] || fail "gradients: $(bytes gradients), not $gradients"

# ---- rank 0 alone prints the learning rates ----
two 0 sgt-train --lr-table
[ "$(wc -l < .stdout0)" -eq 10 ] || fail 'rank 0 prints no table'
same .stdout0 .stdout
two 0 sgt-train --lr-table --json
stdout_lines 1

# ---- threads: each rank uses its part of the cores ----
talk=$(echo "$options" | sed 's/--quiet//; s/--threads 1//')
cores=$(nproc)
threads=$((cores / 2 > 0 ? cores / 2 : 1))
two 0 sgt-train $talk --precision fp32 --run two --force --verbose
stderr_matches "^sgt-train: ranks: 2, each with 3 of the 6 rows of a micro-step, on $threads threads?\$"

# ---- failures are reported once, by the first rank ----
refuses_odd_rows
pair 1 "sgt-train $options --run odd" "sgt-train $options --run odd --data nowhere"
stderr_lines 1
stderr_matches '^sgt-train: rank 1: nowhere: No such file or directory'
if strace -o .traced true 2> /dev/null && ! is_sanitized; then # rank 1 ends before rank 0
    slow='strace -f -o .traced -e trace=exit_group -e inject=exit_group:delay_enter=500000'
    pair 1 "$slow sgt-train $options --run odd" \
        "sgt-train $options --run odd --data nowhere"
    stderr_lines 1
    stderr_matches '^sgt-train: rank 1: nowhere: No such file or directory'
fi
pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd --dropout .5"
stderr_has 'sgt-train: rank 1: its options or its CPU are not those of rank 0 (all ranks run the same command)'
pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd --model 3x16x2"
stderr_has 'sgt-train: rank 1: its options or its CPU are not those of rank 0 (all ranks run the same command)'
pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd --steps 3"
stderr_has 'sgt-train: rank 1: its steps, learning rate, precision or data are not those of rank 0 (all ranks run the same '\
'command)'
two 1 env SGT_RANKS_SHARE=0 sgt-train $options --run odd
stderr_is 'sgt-train: CPU ranks on several machines: gradients go by MPI (mpirun or srun instead of torchrun)'
absent odd
if ! is_sanitized; then
    cat > small-rank << 'END'
ulimit -v 300000
exec "$@"
END
    pair 1 "sgt-train $options --run odd --model 4x16x2 --batch-size 2048 --seq-len 64" \
        "sh small-rank sgt-train $options --run odd --model 4x16x2 --batch-size 2048 --seq-len 64"
    stderr_lines 1
    stderr_matches '^sgt-train: rank 1: .*MiB of memory.*: Cannot allocate memory$'
fi

# ---- a rank that dies, or is interrupted, ends the run within 30 s; saved checkpoints stay whole ----
ends_well cpu INT

# ---- the same with mpirun; and with gradients over MPI, as between machines ----
command -v mpirun > /dev/null && [ -e "$BIN/../lib/libsgt-mpi.so" ] || skip 'no Open MPI; all else passed'
mpi="mpirun --allow-run-as-root --oversubscribe"
run 0 $mpi -n 2 sgt-train $options --precision bf16 --run again --force
same_run two-bf16 again
run 0 $mpi -n 2 -x SGT_RANKS_SHARE=0 sgt-train $options --precision bf16 --run again --force
same_run two-bf16 again
for share in 1 0; do
    run 0 env SGT_RANKS_SHARE=$share $mpi -n 3 sgt-train $options --precision fp32 --dropout 0.2 --eval-every 2 \
        --run three-$share
done
run 0 sgt-train $options --precision fp32 --dropout 0.2 --eval-every 2 --run one --force
close one three-1 2e-5
same_run three-1 three-0
for share in 1 0; do
    run 0 env SGT_RANKS_SHARE=$share $mpi -n 2 sgt-train $tune --run tuned-mpi --force
    same_run tuned-two tuned-mpi
done
run 0 $mpi -n 3 sgt-train $options --precision fp32 --run shrinks --steps 2 --force
run 0 env SGT_RANKS_SHARE=0 $mpi -n 2 sgt-train $options --precision fp32 --run shrinks --resume
run 0 sgt-train $options --precision fp32 --run one --force
close one shrinks 2e-5
run 2 $mpi -n 2 sgt-train $options --batch-size 3 --run odd
[ "$(grep -c '^sgt-train: ' .stderr)" = 1 ] || fail 'not one message'

# mpirun may print its own message too, if it notices the failure first.
for share in 1 0; do
    rm -rf dead
    env SGT_RANKS_SHARE=$share $mpi -n 2 sgt-train $long --run dead > .stdout 2> .stderr &
    launcher=$!
    saved dead
    kill -9 "$(pgrep -P $launcher | tail -1)" || { kill $launcher && fail "no rank to kill"; }
    killed=$(date +%s)
    ! wait $launcher || fail 'mpirun has ended well'
    [ $(($(date +%s) - killed)) -le 30 ] || fail 'the other rank went on for more than 30 s'
    [ "$(grep -c '^sgt-train: ' .stderr)" -le 1 ] || fail 'more than one message'
    goes_on dead cpu
done
