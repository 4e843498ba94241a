# sgt-train --profile: which steps are traced, the content of the trace, and that its file is never
# incomplete.
. "$ROOT/tests/cli/train.inc"
data d
validation d
small="$small --schedule constant --warmup 0" # so that losses do not depend on --steps

spans() { grep -c "\"ph\":\"X\",\"name\":\"$1\"" "$2"; }
expect_spans() { # COUNT NAME FILE
    got=$(spans "$2" "$3")
    [ "$got" -eq "$1" ] || fail "$3 has $got spans '$2', not $1"
}

run 0 sgt-train $small --model 2x16x2 --run r --steps 25 --grad-accum 2 --recompute gelu --eval-every 15 --save-every 20 \
    --profile t.json
stderr_has 'sgt-train: trace of steps 10 to 19: t.json'
for name in step update 'metrics wait'; do expect_spans 10 "$name" t.json; done
for name in micro-step 'embeddings backward' 'h.0 backward' 'h.0 recompute'; do expect_spans 20 "$name" t.json; done
for name in 'data wait' 'embeddings forward' 'h.1 forward' 'head and loss'; do # the evaluation has them too
    [ "$(spans "$name" t.json)" -ge 20 ] || fail "t.json lacks '$name'"
done
expect_spans 1 evaluation t.json
expect_spans 1 checkpoint t.json
[ "$(spans 'make batch' t.json)" -ge 10 ] || fail 'the loader is not there'
expect_spans 0 'h.1 recompute' t.json # the last layer's outputs are still there
grep -q '"left_out":0}' t.json || fail 'events found no room'
check 'each span lies within the spans of its track that are open' python3 -c 'import json
tracks = {}
for e in json.load(open("t.json"))["traceEvents"]:
    if e["ph"] == "X":
        over, ends = e["ts"] + e["dur"], tracks.setdefault((e["pid"], e["tid"]), [])
        while ends and ends[-1] <= e["ts"]:
            ends.pop()
        assert not ends or over <= ends[-1] + 1e-6, e
        ends.append(over)'
[ "$(echo $(ls))" = 'd r t.json' ] || fail "something else is left: $(ls)"

# A short run prints nothing and replaces an older file by another one, so that a file of that name
# is never incomplete. A resumed run counts the steps to trace from its first one.
echo old > t.json
ln t.json before.json
run_silent sgt-train --quiet $small --run short --steps 3 --profile t.json
expect_spans 3 step t.json
is "$(cat before.json)" old
run_notes 'trace of steps 5 to 14: again.json' sgt-train $small --run short --steps 15 --resume --profile again.json
grep -q '"first_step":5' again.json || fail 'it says which step was the first'
grep -q '"step":14}' again.json || fail 'and which step each is'

# A trace does not change the run.
run 0 sgt-train --quiet $small --run plain --steps 15
same_facts short/log.jsonl plain/log.jsonl

# A path that cannot be written is an error before any file is made.
run 1 sgt-train --quiet $small --run none --steps 3 --profile nowhere/t.json
stderr_is "sgt-train: nowhere/t.json: cannot create: No such file or directory"
absent none
mkdir traces
for folder in traces traces/; do
    run_failure "$folder: is a folder, not a file" sgt-train --quiet $small --run none --steps 3 --profile $folder
    absent none
done
check 'nothing is left in the folder' rmdir traces

# A finished run has no step to trace.
run 0 sgt-train $small --run plain --steps 15 --resume --profile nothing.json
absent nothing.json
