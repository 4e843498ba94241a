# smoke.sh: the part smoke, the first checks of all, and the measured step that the part speed uses too.
# shellcheck shell=sh disable=SC2154,SC2086

# Measure the step at a shape. The result's value is its tokens per second; the result holds its JSON document.
step_of() { # NAME SECONDS BATCH SEQ PRECISION [OPTION]...
    step_name=$1 step_most=$2 step_shape="--batch-size $3 --seq-len $4 --precision $5"
    shift 5
    todo "$step_name" || return 1
    attempt "$step_name" "$step_most" "$bin/sgt-bench" step --device cuda --model $model $step_shape $bench "$@" \
        --json || return 1
    tokens=$(number tokens_per_s) loss=$(number loss)
    [ -n "$tokens" ] || { result fail "$step_name" "no tokens_per_s came" && return 1; }
    text="$tokens tokens/s, $(number ms_per_step) ms" mfu=$(number mfu)
    [ -z "$mfu" ] || text="$text, mfu $mfu ($(number mfu_datasheet) of the datasheet)"
    text="$text, $(number peak_bytes | awk '{ printf "%.2f", $1 / 2^30 }') GiB, loss $loss, $(text level)"
}

tell_step() { result "${1:-info}" "$step_name" "$text" "\"value\": $tokens, $(document)"; }

timed_step() { step_of "$@" && tell_step; }

# ---- the machine ----

tell_machine() {
    todo "libraries" || return 0
    where=
    for name in libcublasLt.so.13 libcudnn.so.9 libnccl.so.2 libcupti.so.13; do
        at=$(library $name)
        where="$where$name: ${at:-not there}; "
    done
    [ -n "$dry" ] || { nvidia-smi; nvidia-smi -q; ls -l "$cuda"; } >> "$json.log" 2>&1
    [ -n "$dry" ] || result info "libraries" "${where%; }"
}

self_check() {
    todo "self-check" || return 0
    option=--self-check
    if [ -z "$dry" ] && ! has_option "$bin/sgt-train"; then
        result skip "self-check" "this sgt-train has no --self-check"
        return
    fi
    began=$(date +%s.%N)
    attempt "self-check" 40 "$bin/sgt-train" --self-check --device cuda || return
    took=$(date +%s.%N | awk -v began="$began" '{ printf "%.2f", $1 - began }')
    cat "$work/out"
    result pass "self-check" "$(grep -c . "$work/out") lines, as above"
    [ -n "${GPU_CHECK_SMALL:-}" ] || figure "self-check, the time it takes" "$took" s "<=" 5 3
}

# ---- 15 steps ----

# A step fails if it uses another attention than the one requested, or if its loss is not a number.
smoke_run() { # ATTENTION BATCH WORDS-OF-LEVEL OPTIONS
    label="15 steps, $1, graphs, fused"
    case $4 in *--no-graphs*) label=$(echo "$label" | sed 's/graphs/no graphs/') ;; esac
    case $4 in *--no-fuse*) label=$(echo "$label" | sed 's/fused/not fused/') ;; esac
    if [ "$1" = cudnn ] && [ -z "$cudnn" ] && todo "$label" && [ -z "$dry" ]; then
        result skip "$label" "no libcudnn.so.9 on this machine"
        return
    fi
    step_of "$label" 40 "$2" $seq bf16 --attention "$1" $4 $smoke_steps || return
    case $(text level) in
    *"$3"*) ;;
    *) result fail "$label" "it took $(text level): $(tail -1 "$work/err")" && return ;;
    esac
    awk -v x="$loss" 'BEGIN { exit !(x != "" && x > 0 && x < 20) }' && tell_step pass ||
        result fail "$label" "loss ${loss:-none}"
}

smoke_runs() {
    for options in "" "--no-graphs" "--no-fuse" "--no-graphs --no-fuse"; do
        smoke_run cudnn $large "cuDNN's attention" "$options"
        smoke_run own $large "our attention" "$options"
        smoke_run naive $naive "naive attention" "$options"
    done
}

# If cuDNN is installed, the step must choose its attention by default. Otherwise it would just be slower.
first_speed() {
    step_of "first step, B=$large T=$seq bf16" 60 $large $seq bf16 || return
    case "$cudnn $(text level)" in
    *"cuDNN's attention"*) tell_step pass ;;
    ' '*) tell_step ;;
    *) result fail "$step_name" "cuDNN is there ($cudnn) and was not taken: $text; $(tail -1 "$work/err")" \
        "\"value\": $tokens, $(document)" ;;
    esac
}

part_smoke() {
    cudnn=$(library libcudnn.so.9)
    tell_machine
    self_check
    smoke_runs
    first_speed
}
