# RUN/memory.jsonl: the bytes in use in each part of a step, for two steps, on the CPU and with CUDA
# on the host.
# In make check-all only: it trains models of several sizes.
. "$ROOT/tests/cli/train.inc"
data d

L=4
model="--data d --model ${L}x32x2 --seq-len 24 --batch-size 4 --threads 1 --eval-every 0"

# column live|used KIND: print the bytes of a kind in step 1, one line per part of the step
column() {
    grep '^{"step":1,"micro_step":0,' "$RUN/memory.jsonl" |
        sed -nE "s/.*\"$1\":\{[^}]*\"$2\":([0-9]+).*/\1/p"
}
top() { sort -n | tail -1; }

# agrees OPTION...: the estimate of each kind must equal its largest use in any part. Exceptions are
# memory that the update also uses for something else, and statistics that are recomputed.
agrees() { # OPTION...
    run 0 sgt-train --estimate-memory --json $model "$@"
    tr '{' '\n' < .stdout | sed -nE 's/.*"name": "([^"]*)", "bytes": ([0-9]+).*/\2 \1/p' > .kinds
    seen=0
    while read -r bytes kind; do
        most=$(column used "$kind" | top)
        [ -n "$most" ] || continue
        seen=$((seen + 1))
        [ "$most" -le "$bytes" ] || fail "$kind: $most bytes in use of $bytes"
        case $kind in
        weights | '16-bit copies' | moments | gradients | attention | products | head)
            [ "$most" -eq "$bytes" ] || fail "$kind: at most $most bytes in use of $bytes" ;;
        activations)
            [ $((bytes - most)) -le $(((L - 1) * 6 * 4 * 24 * 4)) ] || fail "activations: $most bytes of $bytes" ;;
        esac
    done < .kinds
    [ "$seen" -ge 8 ] || fail "$seen kinds of the estimate are in memory.jsonl"
}

# Activations grow with each layer of the forward pass and shrink with each layer of the backward
# pass. None are left after the step.
rises_and_falls() {
    column live activations > .live
    [ "$(wc -l < .live)" -eq $((2 * L + 4)) ] || fail "$(wc -l < .live) parts"
    awk -v L=$L '{ x[NR - 1] = $1 }
        END {
            for (i = 1; i < L; i++) if (x[i] <= x[i - 1]) exit 1
            for (i = L + 3; i <= 2 * L + 1; i++) if (x[i] >= x[i - 1]) exit 2
            if (x[2 * L + 3] != 0 || x[2 * L + 2] != 0) exit 3
        }' .live || fail "activations do not rise and fall: $(tr '\n' ' ' < .live)"
}

check() { # RUN OPTION...
    RUN=$1
    shift
    run 0 sgt-train --quiet $model --steps 4 --run "$RUN" "$@"
    [ "$(wc -l < "$RUN/memory.jsonl")" -eq $((2 * (2 * L + 4))) ] || fail "$(wc -l < "$RUN/memory.jsonl") lines"
    grep '^{"step":1,' "$RUN/memory.jsonl" | cut -d , -f 2- > .one
    grep '^{"step":2,' "$RUN/memory.jsonl" | cut -d , -f 2- > .two
    same .one .two
    rises_and_falls
    agrees "$@"
    for kind in weights moments; do [ "$(column live $kind | sort -u | wc -l)" -eq 1 ] || fail "$kind come and go"; done
}

both() { # DEVICE
    for precision in fp32 bf16; do
        for level in none gelu block; do
            check "$1-$precision-$level" --device "$1" --precision $precision --recompute $level
            eval "$level=$(column used activations | top)"
        done
        [ "$gelu" -lt "$none" ] && [ $((2 * block)) -le "$none" ] || fail "activations: $none, $gelu, $block bytes"
    done
}
both cpu

# The first and the last micro-step of a step are logged.
run 0 sgt-train --quiet $model --device cpu --grad-accum 3 --steps 3 --run accum
is "$(cut -d , -f 1,2 accum/memory.jsonl | uniq | tr -d '{}"\n')" \
    step:1,micro_step:0step:1,micro_step:2step:2,micro_step:0step:2,micro_step:2

# A run of one step writes no log. A run of two steps logs the second step. A run that starts over
# replaces or removes the file.
run 0 sgt-train --quiet $model --device cpu --steps 1 --run accum --force
absent accum/memory.jsonl
run 0 sgt-train --quiet $model --device cpu --steps 2 --run accum --force
[ "$(cut -d , -f 1 accum/memory.jsonl | sort -u)" = '{"step":1' ] || fail 'two steps: not of the second'
run 0 sgt-train --quiet $model --device cpu --steps 6 --run accum --resume
[ "$(cut -d , -f 1 accum/memory.jsonl | sort -u | tr -d '\n')" = '{"step":3{"step":4' ] || fail 'resumed: other steps'

programs=$BIN/../host/bin
[ -e "$programs/../lib/libsgt-cuda.so" ] || exit 0
PATH=$programs:$PATH
both cuda
