# ranks.sh: the part ranks: training with a rank on each of several GPUs.
# shellcheck shell=sh disable=SC2154,SC2086

# Run a rank on each GPU, with torchrun's variables. Rank 0's exit is the verdict: it ends if any other rank does.
start_ranks() { # RANKS COMMAND...
    ranks=$1 rank=0
    shift
    while [ $rank -lt "$ranks" ]; do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)) "$@" &
        pids="${pids-} $!"
        rank=$((rank + 1))
    done
    code=0
    for pid in $pids; do wait "$pid" || code=$?; done
    exit $code
}

losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/log.jsonl"; } # RUN

# The losses of 15 steps equal one rank's, up to rounding: the sums have another order.
several_ranks() { # RANKS
    name="training, $1 ranks"
    todo "$name" || return 0
    batch=$(($1 * small))
    train="$bin/sgt-train --quiet --device cuda --model $model --data $data --batch-size $batch --seq-len $seq
        --steps 15 --lr 6e-4 --eval-every 0 --save-every 0 --precision bf16"
    rm -rf "$work/one" "$work/all"
    attempt "$name" 120 $train --run "$work/one" || return 0
    attempt "$name" 120 sh -c '. "$0" && start_ranks "$@"' "$root/tools/gpu/ranks.sh" "$1" $train --run "$work/all" ||
        return 0
    worst=$({ losses "$work/one" && losses "$work/all"; } | awk '{ x[NR] = $1 }
        END { for (i = 1; i <= NR / 2; i++) { d = x[i] - x[i + NR / 2]; if (d < 0) d = -d; if (d > most) most = d }
              if (NR == 30) printf "%.4g", most }')
    figure "$name" "$worst" "nats from one rank's losses" "<=" 0.02 0.005
}

part_ranks() {
    cards=$(quick nvidia-smi -L | grep -c '^GPU')
    if [ -z "$dry" ] && [ "$cards" -lt 2 ]; then
        result skip "training, several ranks" "it needs several cards"
    else
        several_ranks "$cards"
    fi
}
