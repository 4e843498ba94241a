# sgt-train on several CPU ranks, with mpirun: they have the losses of one rank and the same bits in
# each run, and any number of ranks resumes their checkpoints. If a rank fails, dies or is
# interrupted, one message says so. torchrun is refused.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
ranks_data --device cpu --model 2x16x2 --batch-size 6 --grad-accum 2

# ---- torchrun starts ranks without MPI ----
for memory in '' '--batch-size auto' '--memory-limit 8G'; do
    two 1 sgt-train $options $memory --run odd
    stderr_is 'sgt-train: CPU ranks: they exchange gradients by MPI (start them with mpirun or srun instead of torchrun)'
    absent odd
done

with_mpi 'all else passed'

same_run() { # RUN RUN
    same_facts "$1/log.jsonl" "$2/log.jsonl"
    for file in model optimizer; do same "$1/step-00000004/$file.safetensors" "$2/step-00000004/$file.safetensors"; done
}

# ---- the same losses, up to 2e-5, for everything that is divided: dropout,
# tensors, norms, ignored targets, rows of two sets ----
cp -r d elsewhere
same_losses '--dropout 0.2 --eval-every 2' '--no-tie --optimizer sgd --nesterov --ignore-index 32' \
    '--optimizer muon' '--grad-clip 0.1 --recompute block' '--sampling documents --document-mask' \
    '--sampling packed --document-mask' '--data d:2,elsewhere:1'

# ---- prompts and completions, whose rows have different numbers of targets ----
for i in 1 2 3 4 5 6 7; do
    echo "{\"prompt\": \"$i and $i is\", \"completion\": \" $((2 * i)), or $((i + i)) as some say.\"}"
done > sums.jsonl
tune="$options --data sums.jsonl --precision fp32"
run 0 sgt-train $tune --run tuned
two 0 sgt-train $tune --run tuned-two
stderr_is ''
close tuned tuned-two 2e-5

close_in_16_bits

# ---- the bits do not change from run to run, nor with the number of threads ----
two 0 sgt-train $options --precision bf16 --threads 3 --run again
same_run two-bf16 again

# ---- one rank resumes checkpoints of two, and the reverse ----
resumes_ranks cpu
same_run two-bf16 again

# ---- memory: a rank needs as much as one process with half of the rows, plus room for the
# gradients that it receives. That is the size of the model's gradients here, because the
# model is smaller than a message ----
bytes() { sed "s/.*\"name\": \"$1\", \"bytes\": \([0-9]*\).*/\1/" .stdout; }
run 0 sgt-train $options --precision bf16 --estimate-memory --json --batch-size 3
for kind in moments weights gradients activations; do eval $kind="$(bytes $kind)"; done
two 0 sgt-train $options --precision bf16 --estimate-memory --json
stdout_lines 1
for kind in moments weights gradients activations; do
    eval want=\$$kind
    [ "$(bytes $kind)" = "$want" ] || fail "$kind: $(bytes $kind), not $want"
done
received=$(bytes 'gradients received')
[ "$received" -ge $((2 * gradients - 256)) ] && [ "$received" -le $((2 * gradients + 256)) ] || fail "received: $received"

# ---- threads: each rank uses its share of the cores ----
talk="$(echo "$options" | sed 's/--quiet//; s/--threads 1//') --precision fp32"
cores=$(nproc)
threads=$((cores / 2 > 0 ? cores / 2 : 1))
two 0 sgt-train $talk --run two --force --verbose
stderr_matches "^sgt-train: ranks: 2, each with 3 of a micro-step's 6 rows, on $threads threads?\$"

# ---- failures are reported once, by the first rank that fails ----
refuses_odd_rows
pair 1 "sgt-train $options --run odd" "sgt-train $options --run odd --data nowhere"
stderr_lines 1
stderr_matches '^sgt-train: rank 1: nowhere: No such file or directory'
for other in '--model 3x16x2|--model: "3x16x2" here, but it is "2x16x2" on' \
    '--steps 3|--steps: 3 here, but it is 4 on' '--scale-lr|--lr: 0.001875 here, but it is 0.01 on'; do
    pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd ${other%%|*}"
    stderr_is "sgt-train: rank 1: ${other#*|} rank 0 (run the same command on all ranks)"
    absent odd
done
data other
patch other/train_000000.bin 2048 7 # another token
pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd --data other"
other='--resume, --init, data or checkpoint: not that of rank 0 (run the same command on all ranks)'
stderr_is "sgt-train: rank 1: $other"
pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd --resume"
stderr_is "sgt-train: rank 1: $other"
pair 2 "sgt-train $options --run odd" "sgt-train $options --run odd --batch-size auto"
stderr_is 'sgt-train: rank 1: --batch-size: not set here, but it is 6 on rank 0 (run the same command on all ranks)'
echo text > text
pair 1 "sgt-train $options --run odd" 'sgt-tokenize --quiet text set' # another program
stderr_is 'sgt-train: ranks are out of step: rank 1 is at a different point than rank 0 (run the same command on all ranks)'
pair 0 "sgt-train $options --run moved" "sgt-train $options --run moved --data elsewhere --threads 2"
stderr_is ''
if ! is_sanitized; then
    large="sgt-train $options --run odd --model 4x16x2 --batch-size 2048 --seq-len 64"
    printf 'ulimit -v 300000\nexec "$@"\n' > small-rank
    pair 1 "$large" "sh small-rank $large"
    stderr_lines 1
    stderr_matches '^sgt-train: rank 1: .*MiB of memory.*: Cannot allocate memory$'
fi

# ---- the second or the last save of rank 0 fails: it reports at the end what was trained, and
# gives up the run's owner file ----
if strace -o .traced true 2> /dev/null && ! is_sanitized; then
    for step in 2 4; do
        failing="strace -f -o .traced -P unsaved/.step-0000000$step.tmp -e trace=mkdir -e inject=mkdir:error=ENOSPC"
        rm -rf unsaved
        pair 1 "$failing sgt-train $talk --run unsaved --save-every 1" "sgt-train $talk --run unsaved --save-every 1"
        grep -q INJECTED .traced || fail 'no save has failed'
        newest=$((step == 4 ? 3 : 4))
        stdout_matches '^tokens seen: 768$'
        stdout_matches "^checkpoint: unsaved/step-0000000$newest\$"
        stderr_has 'unsaved/.step-0000000'$step'.tmp: cannot create this folder: No space left on device (step '$step' is not saved: '
        [ $step = 4 ] || stderr_has 'sgt-train: unsaved: step 4 is saved, but 1 earlier save failed'
        absent unsaved/owner
        run 0 sgt-train $options --run unsaved --resume # with one rank
        is "$(cat unsaved/latest)" step-00000004
        close unsaved two 2e-5
    done
fi

# ---- if a rank dies or is interrupted, the run ends within 30 s, and
# saved checkpoints stay complete ----
ends_well cpu INT
saves_slowly cpu

# ---- the first signal ends a rank that waits for another rank in MPI ----
launch 'sleep 600' "sgt-train $long --run waits"
handles "$pid1"
kill -TERM "$pid1"
until [ -e .code1 ]; do kill -0 $launcher && sleep .05 || break; done
kill "$pid0" "$launcher"
wait $launcher
[ "$(cat .code1)" = 130 ] || fail "exit code $(cat .code1)"
[ ! -s .stderr1 ] || fail "stderr: $(cat .stderr1)"
absent waits

# ---- an interrupted rank 0 that hangs, here writing to a pipe that nobody reads, ends
# all ranks after ten seconds ----
rm .stdout0 && mkfifo .stdout0
exec 3<> .stdout0
head -c 65536 /dev/zero >&3
both sgt-train $long --json --run full
saved full
kill -INT "$pid0" "$pid1"
wait "$launcher"
exec 3>&-
rm .stdout0 && touch .stdout0
gather 130
stderr_lines 1
stderr_matches '^sgt-train: interrupted after step '

# ---- three ranks ----
run 0 $mpi -n 3 sgt-train $options --precision fp32 --dropout 0.2 --eval-every 2 --run three
run 0 sgt-train $options --precision fp32 --dropout 0.2 --eval-every 2 --run one --force
close one three 2e-5

# ---- mpirun without wrappers may print its own message too, if it notices a failure first ----
mpi='mpirun --allow-run-as-root --oversubscribe -n 2'
rm -rf dead
$mpi sgt-train $long --run dead > .stdout 2> .stderr &
launcher=$!
saved dead
kill -9 "$(pgrep -P $launcher | tail -1)" || { kill $launcher && fail "no rank to kill"; }
killed=$(date +%s)
! wait $launcher || fail 'mpirun has ended well'
[ $(($(date +%s) - killed)) -le 30 ] || fail 'the other rank went on for more than 30 s'
[ "$(grep -c '^sgt-train: ' .stderr)" -le 1 ] || fail 'more than one message'
goes_on dead cpu
