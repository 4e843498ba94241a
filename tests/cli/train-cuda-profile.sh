# sgt-train --device cuda --profile on the host (build/host): the trace has the device's work, with
# each kernel in the range of its layer, whether a graph or the host launched it.
# In make check-all only: it trains on the host in place of a GPU.
. "$ROOT/tests/cli/train.inc"
cuda_on_the_host
data d
cuda="--data d --model 2x32x2 --seq-len 16 --batch-size 2 --grad-accum 2 --eval-every 0 --lr 1e-2 --schedule constant
    --warmup 1 --threads 1 --device cuda --precision bf16 --deterministic"

# expect COUNT NAME CATEGORY: the trace must have that many spans of this name
expect() {
    got=$(grep -c "\"ph\":\"X\",\"name\":\"$2\",\"cat\":\"$3\"" t.json)
    [ "$got" -eq "$1" ] || fail "$got spans '$2' of $3, not $1"
}

ranges() { # STEPS MICRO-STEPS UPDATES: the last two count those run by graphs; other kernels are in no range
    for layer in 0 1; do
        expect "$2" "h.$layer forward" range
        expect $((2 * $2)) "h.$layer backward" range # on both of its streams
    done
    for name in 'embeddings forward' 'head and loss' 'head backward' 'embeddings backward'; do
        expect "$2" "$name" range
    done
    expect "$3" update range
    expect $((2 * $1)) begin_micro_step_kernel kernel
    expect "$1" end_step_kernel kernel
    expect $((2 * $1)) micro-step micro-step
    grep -q '"left_out":0}' t.json || fail 'events found no room'
    grep -q '"name":"device"' t.json || fail 'the device is no process of its own'
}

# The graphs are captured before the trace begins. The device is then a step behind the host, and
# that step is not shown.
run 0 sgt-train $cuda --run graphs --steps 11 --profile t.json
stderr_has 'trace of steps 1 to 10: t.json'
ranges 10 20 10
run 0 env SGT_HOST_DEVICE=schedule=2 sgt-train --quiet $cuda --run none --steps 3 --no-graphs --profile t.json
ranges 3 0 0
run 0 sgt-train --quiet $cuda --run again --steps 3 --recompute block --profile t.json
ranges 3 5 2
expect 5 'h.0 recompute' range
expect 0 'h.1 recompute' range

# A kernel that starts before the previous one has ended starts a new range. Ranges of one stream
# still do not overlap.
run 0 env SGT_HOST_CUPTI=overlap sgt-train --quiet $cuda --run overlap --steps 3 --profile t.json
grep '"cat":"range"' t.json | sed 's/.*"tid":\([0-9]*\),"ts":\([0-9.]*\),"dur":\([0-9.]*\).*/\1 \2 \3/' > spans
check 'ranges one after another' awk '{ if ($2 < end[$1] - 1e-9) exit bad = 1; end[$1] = $2 + $3; n++ }
    END { exit bad || n < 20 }' spans

# If a record is lost, a message says so, and the trace has the other records.
run 0 env SGT_HOST_CUPTI=lose sgt-train $cuda --run lose --steps 3 --profile lost.json
stderr_matches '^sgt-train: --profile: CUPTI: 1 records were lost: these events are missing from the trace$'
check 'the trace without one record' grep -q '"cat":"kernel"' lost.json

# A trace changes no result.
run 0 sgt-train --quiet $cuda --run plain --steps 3 --recompute block
same_facts again/log.jsonl plain/log.jsonl
same again/step-00000003/model.safetensors plain/step-00000003/model.safetensors

# If a device records nothing, a message says so, and the run continues.
run 0 env SGT_HOST_CUPTI=refuse sgt-train --quiet $cuda --run plain --force --steps 3 --recompute block --profile none.json
stderr_matches '^sgt-train: --profile: CUPTI: .*: training continues without a trace$'
absent none.json
same again/step-00000003/model.safetensors plain/step-00000003/model.safetensors

# sgt-bench counts the launches of a step on the host and the kernels in CUPTI's records. Both
# counts agree.
for technique in '' --no-graphs --no-fuse; do
    run 0 sgt-bench step --device cuda --model 2x32x2 --batch-size 2 --seq-len 16 --warmup 1 --steps 1 --json $technique
    seen=$(sed -n 's/.*"cupti_kernels_step": \([0-9]*\).*/\1/p' .stdout)
    [ -n "$seen" ] || fail 'CUPTI counted nothing'
    stdout_has "\"launches_step\": $seen"
done
