# sgt-train is killed (SIGKILL) at TORTURE_KILLS random moments (20; make torture: 500) and resumed
# each time. Runs end with the log and the checkpoints of undisturbed runs. Several kinds of run
# take turns. A start may use another reader and another number of threads than the start before.
# SEED=N repeats the moments as far as the machine's timing allows.
# In make check-all only: it kills and resumes over and over.
. "$ROOT/tests/cli/train.inc"
work_in_memory
data d
validation d
expected=${TORTURE_KILLS:-20} seed=${SEED:-$$}
echo "SEED=$seed TORTURE_KILLS=$expected"
common="--data d --model 2x32x2 --seq-len 16 --batch-size 2 --lr 1e-3 --device cpu --save-every 4 --keep 2"

# The kinds cover the state of the optimizer, the loss scaler, the sampler, and dropout's counters.
kinds=3
options1="$common --precision fp32 --steps 200 --eval-every 30"
options2="$common --precision fp16 --loss-scale 16777216 --grad-accum 2 --dropout 0.2 --steps 120 --eval-every 0"
options3="$common --precision bf16 --sampling block --no-tie --optimizer sgd --nesterov --recompute block --dropout 0.1
    --steps 160 --eval-every 50 --schedule wsd"
# Options that may change at a resume.
lives='--threads 1 --loader preload|--threads 2 --loader mmap|--threads 1 --loader uring|--threads 2 --loader preload'
life() { printf '%s\n' "$lives" | cut -d '|' -f "$1"; }

before=$(date +%s%N)
for kind in $(seq $kinds); do
    eval "options=\$options$kind"
    run 0 sgt-train --quiet $options --threads 1 --loader preload --run "whole$kind"
done
# A life takes at most as long as a whole run, in milliseconds, so that some lives end before the
# first step, and some end the run.
longest=$((($(date +%s%N) - before) / kinds / 1000000))
grep -q '"skipped":[1-9]' whole2/log.jsonl || fail 'the scaler has nothing to do'

# Print lines of two numbers below 1: they choose when the run is killed, and which options change.
numbers() { awk -v seed="$seed" 'BEGIN { srand(seed); while (1) print rand(), rand() }'; }

same_run() { # KIND RUN
    same_facts "whole$1/log.jsonl" "$2/log.jsonl"
    [ "$(ls -A "$2" | tr '\n' ' ')" = "$(ls -A "whole$1" | tr '\n' ' ')" ] || fail "the run holds $(ls -A "$2")"
    same "whole$1/latest" "$2/latest"
    for folder in "$2"/step-*; do
        facts_of "$folder" .got
        facts_of "whole$1/$(basename "$folder")" .want
        cmp -s .got .want || fail "$folder differs from that of an undisturbed run of kind $1"
    done
}

finish() { # KIND: complete the run in one life, and compare it
    eval "options=\$options$1"
    run 0 sgt-train --quiet $options --run "cut$1" --resume-or-start
    ! grep -v ': the gradient norm spikes: ' .stderr || fail 'it says something'
    same_run "$1" "cut$1"
}

kills=0 saving=0 runs=0 kind=0
numbers | while read -r length which; do
    kind=$((kind % kinds + 1))
    eval "options=\$options$kind"
    cut=cut$kind
    code=0
    timeout --foreground -s KILL \
        "$(awk -v x="$length" -v ms=$longest 'BEGIN { printf "%.4f", x * ms / 1000 + .0001 }')" \
        sgt-train --quiet $options $(life "$(awk -v x="$which" 'BEGIN { print int(4 * x) + 1 }')") --run $cut --resume-or-start \
        > .stdout 2> .stderr || code=$?
    [ $code -ne 124 ] || code=0 # the run ended just when its time was up
    ! grep -v ': the gradient norm spikes: ' .stderr || fail "a start of the run printed: $(cat .stderr)" # advice is allowed
    case $code in
    137)
        kills=$((kills + 1))
        for name in $cut/.step-*; do [ ! -e "$name" ] || saving=$((saving + 1)); done
        for name in $cut/step-*; do # a checkpoint with its final name must be complete
            [ ! -e "$name" ] || [ -s "$name/state.json" ] || fail "$name is half a checkpoint"
        done
        ;;
    0)
        same_run $kind $cut
        rm -rf $cut
        runs=$((runs + 1))
        ;;
    *) fail "exit $code, neither done nor killed" ;;
    esac
    [ "$kills" -lt "$expected" ] && continue
    for kind in $(seq $kinds); do finish "$kind"; done
    echo "$kills kills, $saving of them in the middle of a save; $((runs + kinds)) runs, all as undisturbed ones"
    # If there are few kills, it may happen that none falls into a save.
    [ "$expected" -lt 100 ] || [ $saving -gt $((expected / 50)) ] || fail 'saves were hardly disturbed'
    break
done
