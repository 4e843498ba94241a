# parts.sh: the parts of gpu-check.sh's table, in its order. The cases are in cases.sh, the curves in curves.sh.
# shellcheck shell=sh disable=SC2154,SC2086

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a != "" && b > 0) printf "%.3f", a / b }'; } # A B

# Print the mean of those arguments that are numbers.
mean() { echo "$*" | awk '{ for (i = 1; i <= NF; i++) s += $i; if (NF) printf "%.1f", s / NF }'; }

# ---- clocks ----

clocks=clocks.sm,clocks.mem,power.draw,temperature.gpu

# Append the clocks to FILE.clocks twice a second until the budget is over, or this process ends.
sample_clocks() {
    timeout "$budget" nvidia-smi --query-gpu=$clocks --format=csv,noheader,nounits -lms 500 \
        >> "$json.clocks" 2> /dev/null < /dev/null &
    sampler=$!
}

# Record the clocks since the last call.
tell_clocks() {
    clocks_text=$(tail -n +$((clocks_seen + 1)) "$json.clocks" 2> /dev/null | awk -F ', *' '$1 > 0 {
        if (!n++ || $1 < low) low = $1
        sum += $1
        if ($3 > power) power = $3
        if ($4 > heat) heat = $4
    }
    END { if (n) printf "%d MHz at least, %.0f on average; %g W and %g C at most", low, sum / n, power, heat }')
    clocks_seen=$(grep -sc . "$json.clocks")
    [ -z "$clocks_text" ] || ! todo "clocks during $part" || result info "clocks during $part" "$clocks_text"
}

# ---- the step ----

# Measure the step with a number of rows. The result's value is its tokens per second; the result holds its JSON
# document.
step_of() { # NAME BATCH [OPTION]...
    step_name=$1 step_shape="--batch-size $2 --seq-len $seq --precision bf16"
    shift 2
    todo "$step_name" || return 1
    attempt "$step_name" 40 "$bin/sgt-bench" step --device cuda --model $model $step_shape $bench "$@" --json || return 1
    tokens=$(number tokens_per_s) mfu=$(number mfu)
    [ -n "$tokens" ] || { result fail "$step_name" "no tokens_per_s came" && return 1; }
    step_text="$tokens tokens/s, $(number ms_per_step) ms, ${mfu:+mfu $mfu, }loss $(number loss), $(text level)"
    result info "$step_name" "$step_text" "\"value\": $tokens, \"variants\": \"$(text variants)\", $(document)"
}

# Measure PyTorch's step, with the attention that was faster on an H100.
peer_step() { # NAME BATCH [OPTION]...
    peer_name=$1 batch=$2
    shift 2
    todo "$peer_name" || return 0
    attempt_peer "$peer_name" 90 "$tests/peers/torch_step.py" $torch_shape $batch $seq --precision bf16 "$@" || return 0
    theirs=$(number tokens_per_s)
    [ -n "$theirs" ] || { result fail "$peer_name" "no tokens_per_s came" && return 0; }
    result info "$peer_name" "$theirs tokens/s, $(number ms_per_step) ms, its first steps $(number first_steps_s) s" \
        "\"value\": $theirs, $(document)"
}

# Print each line of "results" in the JSON output.
table_of() { # NAME SUBCOMMAND OPTION...
    name=$1
    shift
    todo "$name" || return 0
    attempt "$name" 0 "$bin/sgt-bench" "$@" --json || return 0
    tr '\n' ' ' < "$work/out" | sed 's/.*"results": *\[//; s/\].*//' | tr '}' '\n' | tr -d '{"' |
        sed -n 's/^[, ]*\([^, ]\)/     \1/p' > "$work/table"
    cat "$work/table"
    if [ -s "$work/table" ]; then
        result info "$name" "$(grep -c . "$work/table") rows, as above" "$(document)"
    else
        result fail "$name" "no results came"
    fi
}

# ---- the parts ----

# The head of FILE takes the versions of the libraries from the self-check's result.
part_versions() {
    ! todo "clocks and limits" || { attempt "clocks and limits" 5 nvidia-smi \
        --query-gpu=$clocks,pstate,clocks.max.sm,clocks.max.mem,power.limit,power.max_limit --format=csv &&
        result info "clocks and limits" "$(paste -sd';' "$work/out")"; }
    todo "self-check" || return 0
    from=$(date +%s.%N)
    attempt "self-check" 0 "$bin/sgt-train" --self-check --device cuda --json || return 0
    took=$(date +%s.%N | awk -v from="$from" '{ printf "%.2f", $1 - from }')
    result pass "self-check" "$(grep -o '"verdict": *"[a-z]*"' "$work/out" | sed 's/.*: *//' | sort | uniq -c |
        xargs), of $(versions_in_output)" "$(document)"
    figure "self-check, the time it takes" "$took" s "<=" 5 3
}
versions_in_output() { sed -n 's/.*"libraries": {\([^}]*\)}.*/\1/p' "$work/out" | tr -d '":'; }

# If cuDNN is installed, the step must choose its attention, unless ours was faster. The limits of speed are for an H100.
part_first() {
    name="step, B=$large T=$seq bf16"
    step_of "$name" $large --data "$data" || return 0
    case $(versions),$step_text,$(cat "$work/err") in
    *'"cudnn"'*"cuDNN's attention"* | *'"cudnn"'*'a layer both ways'*) ;;
    *'"cudnn"'*) result fail "attention by cuDNN" "it is there and was not taken: $step_text; $(tail -1 "$work/err")" ;;
    esac
    waited=$(ratio "$(number data_wait_ms | awk '{ print $1 * 100 }')" "$(number ms_per_step)")
    opened=$(number open_s) began_s=$(number first_step_s)
    figure "data wait, of a step" "$waited" % "<=" 0.1 0.05
    figure "start to first step" "$(awk -v a="$opened" -v b="$began_s" 'BEGIN { printf "%.2f", a + b }')" s "<=" 3 2
    case $card in *H100*) figure "tokens a second" "$tokens" tokens/s ">=" 600000 680000 ;; esac
}

part_profile() {
    for batch in $large $small; do
        name="kernels of a step, B=$batch T=$seq bf16"
        todo "$name" || continue
        attempt "$name" 0 "$bin/sgt-bench" step --device cuda --model $model --batch-size $batch --seq-len $seq \
            --precision bf16 $bench --parts --json || continue
        rows=$(grep -o '"launches":' "$work/out" | grep -c .)
        if [ "$rows" -eq 0 ]; then
            result fail "$name" "no kernels came"
        else
            result info "$name" "$rows kernels, idle $(number idle_ms) ms of $(number step_ms) ms" "$(document)"
        fi
    done
}

# A run of the base serves the variants on both sides of it. A variant that the base has is left out instead of added.
part_ab() {
    for batch in $large $small; do
        turn=0
        step_of "base 0, B=$batch" $batch
        on=$(kept "base 0, B=$batch" | sed -n 's/.*"value": [^,]*, "variants": "\([^"]*\)".*/\1/p')
        [ -n "$variants" ] || ! attempt "list of variants" 5 "$bin/sgt-bench" step --variants ||
            variants=$(cut -f 1 "$work/out" | grep -vxF "$(echo "$on" | tr , '\n')" | paste -sd' ')
        for variant in ${variants:-${dry:+NAME}}; do
            case ",$on," in
            *",$variant,"*) set=$(echo "none,$on," | sed "s/,$variant,/,/; s/,\$//") ;;
            *) set=default,$variant ;;
            esac
            step_of "--variant $set, B=$batch" $batch --variant "$set"
            before=$(value_of "base $turn, B=$batch") turn=$((turn + 1))
            step_of "base $turn, B=$batch" $batch
            base=$(mean "$before" "$(value_of "base $turn, B=$batch")") with=$(value_of "--variant $set, B=$batch")
            [ -z "$base" ] || [ -z "$with" ] || figure "--variant $set, B=$batch, to base" "$(ratio "$with" "$base")" times
        done
    done
}

part_products() {
    table_of "matrix products" kernels --kind gemm --device cuda --model $model --batch-size $large --seq-len $seq
    for rows in $chunks; do
        table_of "products of the head, $rows rows" kernels --kind gemm --device cuda --model $model --layer head \
            --batch-size 1 --seq-len $rows
    done
    table_of "attention" kernels --kind attention --device cuda --model $model --batch-size $large --seq-len $seq
}

# Record a row of the ablation when it ends: "sgt-bench ablation: bf16: 12.3 ms/step".
row_ended() { # LINE
    row=$(echo "$1" | sed -n 's/^sgt-bench ablation: \([a-z0-9]*\): \([0-9.]*\) ms\/step$/\1 \2/p')
    [ -z "$row" ] || [ -n "$(kept "row ${row% *}")" ] ||
        result info "row ${row% *}" "${row#* } ms a step" "\"value\": ${row#* }"
}

# First the rows that the gain comes from, so that it is known even if time runs out in the rest. A step of the first
# takes a second, so three are enough. The program chooses 64 rows, or as many as fit without flash attention.
part_ablation() {
    for rows in $chain mmap,preload,simd,async,accum,recompute cold; do
        listen=row_ended
        table_of "ablation of $rows" ablation --device cuda --data "$data" --model $model --seq-len $seq \
            $chain_rows --rows $rows --steps 2 --warmup 1
        listen=
        [ "$rows" != $chain ] || [ -z "$(value_of "row tied")" ] || figure "ablation, from ${chain%%,*} to tied" \
            "$(ratio "$(value_of "row ${chain%%,*}")" "$(value_of "row tied")")" times ">=" 16 40
    done
}

# Ours runs between two runs of PyTorch.
part_compile() {
    for batch in $large $small; do
        shape="B=$batch T=$seq bf16"
        if [ $batch -eq $large ]; then floor=1.35 goal=1.5; else floor=1.5 goal=1.55; fi
        peer_step "torch.compile, $shape, before ours" $batch --sdpa cudnn --device cuda --steps 20
        step_of "ours, $shape" $batch
        peer_step "torch.compile, $shape, after ours" $batch --sdpa cudnn --device cuda --steps 20
        ours=$(value_of "ours, $shape")
        theirs=$(mean "$(value_of "torch.compile, $shape, before ours")" "$(value_of "torch.compile, $shape, after ours")")
        [ -z "$ours" ] || [ -z "$theirs" ] ||
            figure "ours against torch.compile, $shape" "$(ratio "$ours" "$theirs")" times ">=" $floor $goal
    done
}

part_last() {
    for case in cuda_attention_hopper_bf16 cuda_attention_hopper_backward_bf16; do sanitizer racecheck 25 $case; done
    step_of "step again, B=$large T=$seq bf16" $large --data "$data"
}

# If time for a second run is left.
part_more() {
    for precision in fp16 tf32 fp32; do curve_of $precision auto; done
    deterministic
    step_of "step with Muon, B=$large" $large --optimizer muon
    name="step on the CPU, B=4 T=$seq bf16"
    ! todo "$name" || { attempt "$name" 90 "$bin/sgt-bench" step --device cpu --model $model --batch-size 4 \
        --seq-len $seq --precision bf16 --steps 5 --json && result info "$name" "$(number tokens_per_s) tokens/s" "$(document)"; }
    peer_step "torch.compile on the CPU, B=4 T=$seq bf16" 4 --device cpu --steps 5
    cases all
    sanitizer memcheck 120
}
