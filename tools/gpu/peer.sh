# peer.sh: the parts peer and variants: two implementations of a step, measured twice in alternating turns.
# shellcheck shell=sh disable=SC2154,SC2086

# Print the mean of a measurement's turns, or nothing if a turn has no figure.
mean_of() { # NAME
    first=$(value_of "$1, turn 1") second=$(value_of "$1, turn 2")
    [ -z "$first" ] || [ -z "$second" ] || awk -v a="$first" -v b="$second" 'BEGIN { printf "%.1f", (a + b) / 2 }'
}

larger() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { if (a + b > 0) print(a > b ? a : b) }'; } # A B

# Measure PyTorch's step with one of its attentions, or with the one that it chooses.
peer_step() { # NAME BATCH SEQ MODE SDPA
    todo "$1" || return 0
    peer_name=$1
    attempt_peer "$1" 200 "$peers/torch_step.py" $torch_shape "$2" "$3" --precision bf16 --mode "$4" --sdpa "$5" \
        --device cuda || return 0
    theirs=$(number tokens_per_s)
    [ -n "$theirs" ] || { result fail "$peer_name" "no tokens_per_s came" && return 0; }
    result info "$peer_name" "$theirs tokens/s, $(number ms_per_step) ms, its first steps $(number first_steps_s) s" \
        "\"value\": $theirs, \"peak_bytes\": $(number peak_bytes), $(document)"
}

peak_of() { kept "$1" | grep -o '"peak_bytes": *[0-9]*' | head -1 | tr -cd '0-9'; } # NAME

# Compare our step, in two turns, with torch.compile's and its faster attention; and the peak memory of both.
against() { # BATCH SEQ FLOOR GOAL
    shape="B=$1 T=$2 bf16"
    for turn in 1 2; do
        timed_step "ours, $shape, turn $turn" 60 "$1" "$2" bf16
        for sdpa in flash cudnn; do peer_step "torch.compile $sdpa, $shape, turn $turn" "$1" "$2" default $sdpa; done
    done
    [ -z "$dry" ] || return 0
    ours=$(mean_of "ours, $shape") flash=$(mean_of "torch.compile flash, $shape")
    cudnn=$(mean_of "torch.compile cudnn, $shape")
    theirs=$(larger "$flash" "$cudnn")
    if [ -z "$ours" ] || [ -z "$theirs" ]; then
        todo "$shape against torch.compile" && result skip "$shape against torch.compile" "a figure is missing"
        return 0
    fi
    ! todo "$shape against torch.compile" ||
        figure "$shape against torch.compile" "$(ratio "$ours" "$theirs")" times ">=" "$3" "$4"
    sdpa=$(awk -v f="${flash:-0}" -v c="${cudnn:-0}" 'BEGIN { print(f > c ? "flash" : "cudnn") }')
    ! todo "peak memory against torch.compile, $shape" || figure "peak memory against torch.compile, $shape" \
        "$(ratio "$(peak_of "ours, $shape, turn 1")" "$(peak_of "torch.compile $sdpa, $shape, turn 1")")" times \
        "<=" 1 0.8
}

part_peer() {
    against $large $seq 1.35 1.5
    against $small $seq 1.5 1.8
    ! todo "PyTorch's attention" || {
        attempt_peer "PyTorch's attention" 120 "$peers/torch_attention.py" && tell_results "PyTorch's attention"
    }
    [ -n "$autotune" ] || return 0
    for mode in max-autotune eager; do
        for batch in $large $small; do
            peer_step "PyTorch $mode, B=$batch T=$seq bf16" $batch $seq $mode auto
        done
    done
}

# ---- variants ----

# Compare each variant with the default step, at the large shape.
part_variants() {
    shape="B=$large T=$seq bf16"
    if ! LD_LIBRARY_PATH=$our_path "$bin/sgt-bench" step --variants > "$work/variants" 2> "$work/err"; then
        [ -n "$dry" ] || result skip "variants" "this sgt-bench step has no --variants"
        return 0
    fi
    cut -f 1 "$work/variants" | while read -r variant; do
        for turn in 1 2; do
            timed_step "as it is, beside $variant, turn $turn" 60 $large $seq bf16
            timed_step "$variant, turn $turn" 60 $large $seq bf16 --variant "$variant"
        done
        with=$(mean_of "$variant") without=$(mean_of "as it is, beside $variant")
        [ -n "$dry" ] || [ -z "$with" ] || [ -z "$without" ] || ! todo "variant $variant, $shape" ||
            figure "variant $variant, $shape" "$(ratio "$with" "$without")" times
    done
}
