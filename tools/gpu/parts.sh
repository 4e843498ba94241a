# parts.sh: the parts in gpu-check.sh's table. First come the functions for kernel cases, compute-sanitizer and training
# curves, then the parts in the table's order.
# shellcheck shell=sh disable=SC2154,SC2086

# ---- kernel cases: the cases of check-cuda-device, each in a process of its own ----

# Run each case in $work/todo for at most 60 s. Several cases run at once, because most of their time is spent in
# kernels/ref on the CPU. Cases named card_* need much of the GPU's memory, so they run one at a time, at the end. The
# output and exit code of each case are kept, and its name is printed when it ends. With --foreground, a case stays in
# the process group of at_once's timeout, which ends it when the part's time is over.
run_cases() {
    rm -rf "$work/of" && mkdir "$work/of"
    cat > "$work/one" << 'END'
timeout --foreground -k 5 60 "$2" --limit 55 --case "$3" > "$1/$3.out" 2> "$1/$3.err" < /dev/null
echo $? > "$1/$3.code"
echo "$3"
END
    cores=$(nproc)
    grep -v ^card_ "$work/todo" | at_once $((cores < 16 ? (cores + 1) / 2 : 8))
    grep ^card_ "$work/todo" | at_once 1
}

at_once() { # NUMBER
    seconds=$(left)
    [ "$seconds" -le 5 ] || LD_LIBRARY_PATH=$our_path timeout -k 5 "$seconds" xargs -P "$1" -I CASE \
        sh "$work/one" "$work/of" "$bin/check-cuda-device" CASE
}

# Record the result of a case, unless it was killed because the part's time was over.
case_ended() { # CASE
    of=$work/of/$1 name="kernel $1" most=60
    code=$(cat "$of.code")
    [ "$code" -ne 137 ] || [ "$(left)" -gt 5 ] || return 0
    cp "$of.out" "$work/out"
    cp "$of.err" "$work/err"
    keep_log "$name" "$code" "$bin/check-cuda-device" --limit 55 --case "$1"
    ! tell_end || result pass "$name" "$(grep '^ok' "$work/out" | tail -1)"
}

has_passed() { grep -qs "\"pass\", \"name\": \"kernel $1\"" "$tests"/gpu-results/*.json*; } # CASE: on a card

# Print the cases on standard input that must still run.
cases_left() { # new|all
    while read -r case; do
        { [ "$1" = new ] && has_passed "$case"; } || ! todo "kernel $case" > /dev/null || echo "$case"
    done
}

# Run the kernel cases. Each result is stored as soon as its case ends, because the script may be killed before the last
# one. For cases that pass, only their number is printed.
cases() { # new|all
    before=$(grep -sc '"pass", "name": "kernel ' "$json")
    attempt "list of cases" 0 "$bin/check-cuda-device" --list || return 0
    cases_left "$1" < "$work/out" > "$work/todo"
    run_cases | while read -r case; do case_ended "$case" | grep -v ^pass; done
    cases_left all < "$work/todo" > "$work/rest"
    [ ! -s "$work/rest" ] || result cut "kernel cases" \
        "the part's time is over, $(grep -c . "$work/rest") have not run: first $(head -1 "$work/rest")"
    passed=$(($(grep -c '"pass", "name": "kernel ' "$json") - ${before:-0}))
    echo "     kernels: $passed of $(grep -c . "$work/todo") cases passed"
}

part_cases() { cases new; }

# Run a case, or all cases, under compute-sanitizer, which does not support the GPUs of some virtual machines.
sanitizer() { # TOOL SECONDS [CASE]
    attempt "compute-sanitizer $1${3:+, $3}" "$2" compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$bin/check-cuda-device" --one-process --once --exact --limit 0 ${3:+--case "$3"} &&
        result pass "$name" "$(cat "$work/out" "$work/err" | sed -n 's/^=* *\([A-Z]* SUMMARY\)/\1/p')"
}

# ---- curves: 200 steps of training, against float64 (tests/data/fixtures/curve) and PyTorch ----

fixture=$tests/data/fixtures/curve
curve="--data $fixture/tokens.bin --init $fixture --sampling sequential --batch-size 12 --seq-len 64 --lr 1e-3
    --min-lr 1e-4 --warmup 20 --eval-every 0 --save-every 0"

# Train with sgt-train, and write its log to FILE as rows of step, loss and gradient norm, like the fixture.
train_curve() { # NAME FILE OPTION...
    name=$1 rows=$2
    shift 2
    rm -rf "$work/run"
    attempt "$name" 60 "$bin/sgt-train" --quiet --device cuda $curve --steps $curve_steps --run "$work/run" "$@" ||
        return
    sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*"grad_norm":\([^,}]*\).*/\1\t\2\t\3/p' \
        "$work/run/log.jsonl" > "$rows"
}

# Set $errors to four numbers: for the loss (absolute error), then for the gradient norm (relative error), the root mean
# square of the errors in the first 40 steps, and the largest error in all steps. If a step is missing, record a failure
# and return 1.
curve_errors() { # NAME ROWS
    errors=$(awk -F '\t' -v steps=$curve_steps '
        function size(x) { return x < 0 ? -x : x }
        FNR == NR { if (FNR > 1) { loss[$1] = $2; norm[$1] = $3 } next }
        $1 in loss && $1 < steps && $2 ~ /^[0-9.]/ && $3 ~ /^[0-9.]/ {
            rows++
            off = size($2 - loss[$1])
            part = size($3 / norm[$1] - 1)
            if (off > worst_loss) worst_loss = off
            if (part > worst_norm) worst_norm = part
            if ($1 < 40) { early++; losses += off * off; norms += part * part }
        }
        END {
            if (rows == steps)
                printf "%.3g %.3g %.3g %.3g\n", sqrt(losses / early), worst_loss, sqrt(norms / early), worst_norm
        }' "$fixture/f64.tsv" "$2")
    [ -n "$errors" ] || { result fail "$1" "fewer than $curve_steps steps were logged" && return 1; }
}

errors_text() { echo "loss off by $1 in the first 40 steps, $2 at most; norm by $3, $4 of itself"; }

# Set $theirs to PyTorch's errors. Its curve is trained once for all comparisons. In bf16 and fp16, PyTorch's residual
# stream has the same precision as ours; autocast would keep it in float32.
peer_curve() { # PRECISION
    peer_name="PyTorch's curve in $1" residual=fp32
    case $1 in bf16 | fp16) residual=half ;; esac
    attempt "$peer_name" 25 "$PYTHON" "$tests/peers/torch_curve.py" "$fixture" --steps $curve_steps \
        --precision "$1" --residual $residual --loss-scale 1024 && curve_errors "$peer_name" "$work/out" &&
        result info "$peer_name" "$(errors_text $errors)"
    theirs=$(kept "$peer_name" |
        sed -n 's/.*off by \([^ ]*\) .* steps, \([^ ]*\) at .* by \([^ ]*\), \([^ ]*\) of.*/\1 \2 \3 \4/p')
}

# Compare our errors with PyTorch's in the same precision. $limits has four factors, in the order of $errors, then a
# floor for the loss and one for the norm, which are the limits of float32 on a CPU. An error may be at most PyTorch's
# error times its factor, plus the floor.
#
# From about step 40 on, rounding errors grow in one direction of the parameters, by an amount that is partly chance.
# PyTorch's own runs in fp16, with an fp16 residual stream, show this. They ran on an H100, and on a CPU with --jitter 1
# and 2 (torch_curve.py). The largest errors of the loss were 8.6e-5, 2.2e-4 and 1.8e-4, and of the norm .0021, .011 and
# .0067. In the first 40 steps, the errors of the loss were 3.2e-5, 2.3e-5 and 1.9e-5, and of the norm .00023, .00039
# and .00027. So the first steps must be close to PyTorch's, while the largest errors may be a few times as large. This
# test detects, for example, a LayerNorm with bf16 parameters: its error of 1.7e-3 in the first steps is 4 times
# PyTorch's.
curve_of() { # PRECISION ATTENTION
    curve_name="curve in $1, $2 attention" scale='' limits='2 2 2 2 2e-5 1e-4'
    case $1 in bf16 | fp16) limits='2 4 3 8 0 0' ;; esac
    [ "$1" != fp16 ] || scale="--loss-scale 1024" # no overflow in these 200 steps, so that none is left out
    todo "$curve_name" || return 0
    peer_curve "$1"
    train_curve "$curve_name" "$work/rows" --precision "$1" --attention "$2" $scale &&
        curve_errors "$curve_name" "$work/rows" || return 0
    if [ -z "$theirs" ] && [ "$1" != fp32 ]; then
        result info "$curve_name" "$(errors_text $errors); no PyTorch to compare with"
        return
    fi
    theirs=${theirs:-0 0 0 0} verdict=pass
    echo "$errors $theirs $limits" | awk '{
        for (i = 1; i <= 4; i++) if (!($i <= $(i + 4) * $(i + 8) + $(13 + (i > 2)))) exit 1
    }' || verdict=fail
    result $verdict "$curve_name" "$(errors_text $errors); PyTorch: $(errors_text $theirs)"
}

part_curves() {
    for attention in cudnn own; do curve_of bf16 $attention; done
}

deterministic() {
    for turn in once again; do
        train_curve "deterministic" "$work/$turn" --precision bf16 --deterministic || return 0
    done
    parted=$(diff "$work/once" "$work/again" | sed -n 's/^[<>] \([0-9]*\).*/\1/p' | head -1)
    if [ -n "$parted" ]; then
        result fail "deterministic" "two runs differ from step $parted on"
    elif curve_errors "deterministic" "$work/once"; then
        result pass "deterministic" "the same losses and norms twice, $curve_steps steps in bf16"
    fi
}

# ---- figures ----

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a != "" && b > 0) printf "%.3f", a / b }'; } # A B

# Print the mean of the arguments that are not empty.
mean() { echo "$*" | awk '{ for (i = 1; i <= NF; i++) s += $i; if (NF) printf "%.1f", s / NF }'; }

# ---- clocks ----

clocks=clocks.sm,clocks.mem,power.draw,temperature.gpu

# Append the GPU's clocks to FILE.clocks twice a second, until the budget is over or this script ends.
sample_clocks() {
    timeout "$budget" nvidia-smi --query-gpu=$clocks --format=csv,noheader,nounits -lms 500 \
        >> "$json.clocks" 2> /dev/null < /dev/null &
    sampler=$!
}

# Record a summary of the clocks since the last call.
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

# Measure a training step with COMMAND. Record its tokens per second as the value, and its JSON document.
speed_of() { # NAME SECONDS COMMAND...
    attempt "$@" || return 1
    tokens=$(number tokens_per_s) mfu=$(number mfu) loss=$(number loss) level=$(text level) took=$(number first_steps_s)
    [ -n "$tokens" ] || { result fail "$name" "no tokens_per_s was printed" && return 1; }
    step_text="$tokens tokens/s, $(number ms_per_step) ms${mfu:+, mfu $mfu}${loss:+, loss $loss}${level:+, $level}"
    result info "$name" "$step_text${took:+, its first steps $took s}" \
        "\"value\": $tokens, \"variants\": \"$(text variants)\", $(document)"
}

# Measure our step on the GPU with BATCH rows.
step_of() { # NAME BATCH [OPTION]...
    step_name=$1 step_shape="--model $model --batch-size $2 --seq-len $seq --precision bf16"
    shift 2
    speed_of "$step_name" 40 "$bin/sgt-bench" step --device cuda $step_shape $bench "$@" --json
}

# Measure PyTorch's step with BATCH rows.
peer_step() { # NAME BATCH [OPTION]...
    peer_name=$1 batch=$2
    shift 2
    speed_of "$peer_name" 90 "$PYTHON" "$tests/peers/torch_step.py" $torch_shape $batch $seq --precision bf16 "$@"
}

# Run a subcommand of sgt-bench, and print each element of "results" or "kernels" in its JSON output as a line.
table_of() { # NAME SUBCOMMAND OPTION...
    name=$1
    shift
    attempt "$name" 0 "$bin/sgt-bench" "$@" --json || return 0
    tr '\n' ' ' < "$work/out" | sed 's/.*"\(results\|kernels\)": *\[//; s/\].*//' | tr '}' '\n' | tr -d '{"' |
        sed -n 's/^[, ]*\([^, ]\)/     \1/p' > "$work/table"
    cat "$work/table"
    if [ -s "$work/table" ]; then
        idle=$(number idle_ms) lines=$(grep -c . "$work/table")
        result info "$name" "$lines rows, as above${idle:+, idle $idle ms of $(number step_ms) ms}" "$(document)"
    else
        result fail "$name" "no results were printed"
    fi
}

# ---- the parts ----

part_versions() {
    attempt "clocks and limits" 5 nvidia-smi \
        --query-gpu=$clocks,pstate,clocks.max.sm,clocks.max.mem,power.limit,power.max_limit --format=csv &&
        result info "clocks and limits" "$(paste -sd';' "$work/out")"
    from=$(date +%s.%N)
    attempt "self-check" 0 "$bin/sgt-train" --self-check --device cuda --json || return 0
    took=$(date +%s.%N | awk -v from="$from" '{ printf "%.2f", $1 - from }')
    result pass "self-check" "$(grep -o '"verdict": *"[a-z]*"' "$work/out" | sed 's/.*: *//' | sort | uniq -c |
        xargs), of $(versions "$work/out" | tr -d '":')" "$(document)"
    figure "self-check, the time it takes" "$took" s "<=" 5 3
}

# If cuDNN is installed, the step must choose cuDNN's attention, unless it measured that ours is faster. The speed
# limits are for an H100.
part_first() {
    name="step, B=$large T=$seq bf16"
    step_of "$name" $large --data "$data" || return 0
    case $(versions "$json"),$step_text,$(cat "$work/err") in
    *'"cudnn"'*"cuDNN's attention"* | *'"cudnn"'*'forward and backward of a layer'*) ;;
    *'"cudnn"'*) result fail "attention by cuDNN" "it is installed, but was not used: $step_text; $(tail -1 "$work/err")" ;;
    esac
    waited=$(ratio "$(number data_wait_ms | awk '{ print $1 * 100 }')" "$(number ms_per_step)")
    opened=$(number open_s) began_s=$(number first_step_s)
    figure "data wait, of a step" "$waited" % "<=" 0.1 0.05
    figure "start to first step" "$(awk -v a="$opened" -v b="$began_s" 'BEGIN { printf "%.2f", a + b }')" s "<=" 3 2
    case $card in *H100*) figure "tokens a second" "$tokens" tokens/s ">=" 625000 680000 ;; esac
}

part_profile() {
    for batch in $large $small; do
        table_of "kernels of a step, B=$batch T=$seq bf16" step --device cuda --model $model --batch-size $batch \
            --seq-len $seq --precision bf16 $bench --parts
    done
}

# Measure each variant between two runs of the base; consecutive variants share the run between them. If the base
# already has a variant, the step is measured without it instead.
part_ab() {
    for batch in $large $small; do
        turn=0
        step_of "base 0, B=$batch" $batch
        on=$(kept "base 0, B=$batch" | sed -n 's/.*"value": [^,]*, "variants": "\([^"]*\)".*/\1/p')
        [ -n "$variants" ] || ! attempt "list of variants" 5 "$bin/sgt-bench" step --variants ||
            variants=$(cut -f 1 "$work/out" | grep -vxF "$(echo "$on" | tr , '\n')" | paste -sd' ')
        for variant in $variants; do
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

# Record the finished rows of an ablation, even if it was cut, from lines like "sgt-bench ablation: bf16: 12.3 ms/step".
tell_rows() {
    sed -n 's/^sgt-bench ablation: \([a-z0-9]*\): \([0-9.]*\) ms\/step$/\1 \2/p' "$work/err" 2> /dev/null |
        while read -r row ms; do
            [ -n "$(kept "row $row")" ] || result info "row $row" "$ms ms a step" "\"value\": $ms"
        done
}

# Measure the rows of $chain first, because the total gain is computed from them; so it is known even if the time runs
# out later. A step of the first row takes a second, so three steps are enough. The program chooses a batch of 64 rows,
# or as many as fit in memory without flash attention.
part_ablation() {
    for rows in $chain mmap,preload,simd,async,accum,recompute cold; do
        table_of "ablation of $rows" ablation --device cuda --data "$data" --model $model --seq-len $seq \
            $chain_rows --rows $rows --steps 2 --warmup 1
        tell_rows
        [ "$rows" != $chain ] || [ -z "$(value_of "row tied")" ] || figure "ablation, from ${chain%%,*} to tied" \
            "$(ratio "$(value_of "row ${chain%%,*}")" "$(value_of "row tied")")" times ">=" 16 40
    done
}

# Measure our step between two runs of PyTorch's.
part_compile() {
    for batch in $large $small; do
        shape="B=$batch T=$seq bf16"
        if [ $batch -eq $large ]; then floor=1.33 goal=1.45; else floor=1.36 goal=1.55; fi
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

# For a second call, if there is time left for one.
part_more() {
    for precision in fp16 tf32 fp32; do curve_of $precision auto; done
    deterministic
    step_of "step with Muon, B=$large" $large --optimizer muon
    speed_of "step on the CPU, B=4 T=$seq bf16" 90 "$bin/sgt-bench" step --device cpu --model $model --batch-size 4 \
        --seq-len $seq --precision bf16 --steps 5 --json
    peer_step "torch.compile on the CPU, B=4 T=$seq bf16" 4 --device cpu --steps 5
    cases all
    sanitizer memcheck 120
}
