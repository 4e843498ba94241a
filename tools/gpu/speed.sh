# speed.sh: the part speed: the step, data and start-up, then matrix products, attention and the ablation chain.
# shellcheck shell=sh disable=SC2154,SC2086

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a != "" && b > 0) printf "%.3f", a / b }'; } # A B

# Print each line of "results" in the JSON output.
tell_results() { # NAME
    tr '\n' ' ' < "$work/out" | sed 's/.*"results": *\[//; s/\].*//' | tr '}' '\n' | tr -d '{"' |
        sed -n 's/^[, ]*\([^, ]\)/     \1/p' > "$work/table"
    cat "$work/table"
    if [ -s "$work/table" ]; then
        result info "$1" "$(grep -c . "$work/table") rows, as above" "$(document)"
    else
        result fail "$1" "no results came"
    fi
}

table_of() { # NAME SUBCOMMAND OPTION...
    name=$1
    shift
    todo "$name" || return 0
    attempt "$name" 240 "$bin/sgt-bench" "$@" --device cuda --json && tell_results "$name"
}

# Shards of real text: the bundle's, or shards tokenized from our own sources.
shards() {
    [ ! -d "$data" ] || return 0
    data=$work/shards
    [ -d "$data" ] || attempt "shards" 0 "$bin/sgt-tokenize" --quiet --split 5% "$tests/../README.md" \
        "$tests/../loader" "$tests/../kernels" "$tests/../train" "$tests/../tools" "$data"
}

train_model() { # NAME SEQ STEPS
    rm -rf "$work/run"
    began=$(date +%s.%N)
    attempt "$1" 120 "$bin/sgt-train" --quiet --device cuda --model $model --data "$data" --run "$work/run" \
        --loader preload --batch-size $large --seq-len "$2" --steps "$3" --lr 6e-4 --eval-every 0 --save-every 0
}

# Measure the time from the command to the end of the first step, when the log gets its only line.
first_step() { # NAME [SENSE FLOOR GOAL]
    todo "$1" || return 0
    train_model "$1" $short 1 || return 0
    ended=$(stat -c %.Y "$work/run/log.jsonl") name=$1
    shift
    figure "$name" "$(awk -v a="$began" -v b="$ended" 'BEGIN { printf "%.2f", b - a }')" s "$@"
}

data_wait() {
    todo "data wait, of a step" || return 0
    train_model "data wait, of a step" $seq 30 || return 0
    share=$(tail -20 "$work/run/log.jsonl" |
        sed -n 's/.*"ms_per_step":\([^,}]*\).*"data_wait_ms":\([^,}]*\).*/\2 \1/p' |
        awk '{ printf "%.6f\n", $1 / $2 * 100 }' | sort -n |
        awk '{ x[NR] = $1 } END { if (NR == 20) printf "%.4f", (x[10] + x[11]) / 2 }')
    figure "data wait, of a step" "$share" % "<=" 0.1 0.05
}

# The limit is for an H100.
headline() {
    name="tokens a second, B=$large T=$seq bf16" bf16=$(value_of "step, B=$large T=$seq bf16")
    case $card in
    *H100*) [ -z "$bf16" ] || ! todo "$name" || figure "$name" "$bf16" tokens/s ">=" 600000 680000 ;;
    esac
    name="fp16 with scaler against bf16" fp16=$(value_of "step, B=$large T=$seq fp16")
    [ -z "$bf16" ] || [ -z "$fp16" ] || ! todo "$name" || figure "$name" "$(ratio "$fp16" "$bf16")" times ">=" 0.97 1
}

ablation() {
    todo "ablation" || return 0
    attempt "ablation" 0 "$bin/sgt-bench" ablation --device cuda --data "$data" --model $model --json || return 0
    chain=$(tr '{},[]' '\n' < "$work/out" | sed -n 's/^ *"tokens_per_s": *\([0-9.eE+]*\) *$/\1/p')
    tell_results "ablation"
    whole=$(ratio "$(echo "$chain" | sort -g | tail -1)" "$(echo "$chain" | head -1)")
    figure "ablation, first row to fastest" "$whole" times ">=" 16 40
}

part_speed() {
    shards || [ -n "$dry" ] || return 0
    timed_step "step, B=$large T=$seq bf16" 60 $large $seq bf16
    timed_step "step, B=$large T=$seq fp16" 60 $large $seq fp16
    [ -n "$dry" ] || headline
    timed_step "step, B=$small T=$seq bf16" 60 $small $seq bf16
    timed_step "step, B=$large T=$short bf16" 60 $large $short bf16
    first_step "start to first step, the first time"
    first_step "start to first step, the second time" "<=" 3 2
    data_wait
    table_of "matrix products" gemm --model $model --batch-size $large --seq-len $seq
    table_of "attention" attention --batch-size $large --seq-len $seq
    ablation
}
