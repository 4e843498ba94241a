# sgt-bench ablation: all rows of its table train on the same batches. Also its JSON and the options
# that it refuses. Speeds are not checked.
# In make check-all only: it trains once for each technique.
. "$ROOT/tests/cli/bench.inc"
. "$ROOT/tests/cli/train.inc"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
tiny="--model 1x16x2 --batch-size 2 --seq-len 16 --threads 1 --steps 2 --warmup 1 --rounds 1"
cpu="$tiny --device cpu"
rows() { sed -n '/"results"/,/\]/p' .stdout | sed -n 's/.*"technique": "\(.*\)".*/\1/p' | tr '\n' ' '; }
losses() { sed -n 's/.*"loss": \([0-9.]*\),/\1/p' .stdout; }

repeated 3 "$ROOT/README.md" > text.txt
run 0 sgt-tokenize --quiet text.txt out

run_notes_like '^sgt-bench ablation: preload: [0-9.]+ ms/step$' sgt-bench ablation $cpu --data out --rounds 3
check "three rounds" test "$(grep -c "ablation: tied: " .stderr)" -eq 3
stdout_matches '^1x16x2, steps of 2 x 16 tokens, medians of 3 x 2 steps; each row adds a technique'
stdout_matches '^[* ] text +text encoded each step +[0-9.]+ +[0-9]+ % +[0-9.]+ +[0-9]+ +- +1\.00 +[0-9.]+ MiB$'
stdout_matches '^[* ] tied +head tied to embedding +[0-9.]+ +[0-9]+ % +[0-9.]+ +[0-9]+ +([0-9.]+|noise) +[0-9.]+ +[0-9.]+ MiB$'
stdout_matches '^[* ] accum '
stdout_matches '^[* ] recompute '
stdout_matches '^tf32 +not measured: CPUs do not support TF32$'
table ' % of the speed of a large matrix product.'
check 'one is the fastest' test "$(grep -cE '^\* (text|cold|mmap|preload|simd|overlap|bf16|tied|accum|recompute) ' .stdout)" -eq 1

# How the loader makes batches changes no loss. An untied head does; all rows above `tied` in the
# table have one.
run_silent sgt-bench ablation $cpu --data out --quiet --json --rows tied,preload,mmap,simd,overlap
check 'in their own order' test "$(rows)" = 'mmap preload simd overlap tied '
check 'the same losses' test "$(losses | head -4 | uniq | wc -l)" -eq 1
check 'another model' test "$(losses | uniq | wc -l)" -eq 2
check 'factors' awk '
    /"ms_per_step"/ { gsub(/[^0-9.e-]/, "", $2); ms[++n] = $2 }
    /"factor"/ { gsub(/[^0-9.e-]/, "", $2); step[n] = $2 }
    /"factor_first"/ { gsub(/[^0-9.e-]/, "", $2); all[n] = $2 }
    function near(x, y) { return x / y > 1 - 1e-6 && x / y < 1 + 1e-6 }
    END {
        for (i = 2; i <= n; i++) if (!near(step[i], ms[i - 1] / ms[i]) || !near(all[i], ms[1] / ms[i])) exit 1
        exit !(n == 5 && step[1] + 0 == 1 && all[1] + 0 == 1)
    }' .stdout
for name in ms_per_step tokens_per_s bytes; do
    check "$name of five" test "$(grep -cE "\"$name\": [1-9]" .stdout)" -eq 5
done

# With several rounds, the JSON has the range of each row's times and says whether it overlaps the
# range of the row above.
run 0 sgt-bench ablation $cpu --data out --quiet --json --rows mmap,preload --rounds 3
check 'ranges' holds '.results | all(.ms_low <= .ms_per_step and .ms_per_step <= .ms_high)'
check 'noise' holds '.results | (.[0].within_noise | not) and
    .[1].within_noise == (.[0].ms_low <= .[1].ms_high and .[1].ms_low <= .[0].ms_high)'

# Micro-steps and recomputation change losses only by rounding, and need less memory.
run 0 sgt-bench ablation $cpu --data out --quiet --json --rows tied,accum,recompute --model 3x16x2 --batch-size 4 --seq-len 64
check 'the same loss' holds '[.results[].loss] | max - min < 1e-4'
check 'less memory' holds '[.results[].bytes] | .[0] > .[1] and .[1] > .[2]'
run 1 sgt-bench ablation $cpu --data out --rows accum --batch-size 1
stderr_is 'sgt-bench ablation: --rows accum: a batch of one row cannot be split into micro-steps'

# The row `text`, which encodes text while it trains, gets the same batches as `mmap`.
run 0 sgt-bench ablation $cpu --data out --steps 5 --quiet --json --rows text,mmap
check 'the same rows from text' test "$(losses | uniq | wc -l)" -eq 1

# ---- if the vocabulary of the shards is not GPT-2's, there is no row `text` ----
data d
run 0 sgt-bench ablation $cpu --data d --quiet --json
check 'no text' test "$(rows | sed 's/cold //' | cut -c 1-13)" = 'mmap preload '
stdout_has '"why": "the data'"'"'s vocabulary of 256 ids is not GPT-2'"'"'s"'
run_failure "--rows text: the data's vocabulary of 256 ids is not GPT-2's" \
    sgt-bench ablation $cpu --data d --rows text,mmap
run_failure '--rows graphs: CUDA graphs need a GPU' sgt-bench ablation $cpu --data out --rows graphs
run_usage '--data: required (the shards to train on: --data OUT/)' sgt-bench ablation
run_usage '--rows fast: unknown value (expected text|cold|mmap|preload|simd|overlap|async|tf32|bf16|fused|'\
'graphs|flash|padded|tied|accum|recompute)' sgt-bench ablation --data out --rows tied,fast
run_interrupted sgt-bench ablation $cpu --data out --steps 100000

# ---- after an interrupt, the rows measured so far are kept: as a table, or in the JSON ----
interrupt() { # OPTION...: send SIGINT after the first of two rows was measured
    rm -f .stderr && echo "sgt-bench ablation, interrupted: $*" > .ran
    sgt-bench ablation $cpu --data d --rows mmap,preload --steps 300 --rounds 100 "$@" > .stdout 2> .stderr &
    pid=$!
    tries=0
    until grep -q ' mmap: .* ms/step' .stderr 2> .grep; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail 'no row after 60 s'
        sleep .05
    done
    kill -INT $pid
    ended 130 $pid
    [ "$(tail -1 .stderr)" = 'sgt-bench ablation: interrupted' ] || fail 'it does not say so'
}
interrupt
stdout_matches '^[* ] mmap +mmap, in page cache +[0-9.]+ +([0-9]+ % +|- +)?[0-9.]+ +[0-9]+ +(- +)?1\.00 '
stdout_matches '^Interrupted: the measurements so far'
interrupt --json
stdout_has '"interrupted": true'
check 'the row' test "$(rows | cut -d ' ' -f 1)" = mmap

# ---- CUDA on the host: all rows, and the batch that fits ----
cuda_on_the_host
cuda="$tiny --device cuda --data d --quiet"
chain='mmap preload simd overlap async tf32 bf16 fused graphs flash padded tied accum recompute '
# All rows except `cold`, which needs files that can be dropped from the page cache.
run_silent sgt-bench ablation $cuda --json --rows "$(echo ${chain% } | tr ' ' ',')"
check 'the whole chain' test "$(rows)" = "$chain"
check 'float32 until TF32' test "$(losses | head -5 | uniq | wc -l)" -eq 1
bytes() { sed -n 's/.*"bytes": \([0-9]*\).*/\1/p' .stdout | sed -n "$1p"; }
check 'no T x T scores' test "$(bytes 10)" -lt "$(bytes 9)"
check 'one weight less' test "$(bytes 12)" -lt "$(bytes 11)"
# Without --batch-size, the batch is the largest that fits in the first row.
run 0 env SGT_HOST_DEVICE=memory=36M sgt-bench ablation --model 1x16x2 --seq-len 64 --steps 1 --warmup 0 --device cuda \
    --data d --json --rows mmap
stderr_matches '^sgt-bench ablation: using --batch-size (1|2|4|8|16|32), so that the first row fits in memory$'
