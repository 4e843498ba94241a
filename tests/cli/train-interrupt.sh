# sgt-train: Ctrl-C and SIGTERM finish the step, save, and exit 130; --resume ends like an undisturbed run.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"
data d
options="--data d --init $curve --sampling shuffle --batch-size 4 --seq-len 64 --steps 80 --lr 1e-3 --device cpu
    --threads 1 --eval-every 0"
run 0 sgt-train --quiet $options --run whole

# A shell starts its background processes with SIGINT ignored; sgt-train handles it anyway.
for signal in INT TERM; do
    sgt-train --quiet $options --run $signal > .stdout 2> .stderr &
    pid=$!
    until [ -s $signal/log.jsonl ]; do sleep 0.02; done
    kill -$signal $pid
    ended 130 $pid
    stderr_matches '^sgt-train: interrupted after step [0-9]+ of 80; --resume goes on from there$'
    stderr_lines 1
    steps=$(wc -l < $signal/log.jsonl)
    [ "$(cat $signal/latest)" = "$(printf 'step-%08d' "$steps")" ] ||
        fail "$steps lines of log, and $(cat $signal/latest)"
    [ "$steps" -lt 80 ] || fail 'it was not interrupted'
    run 0 sgt-train --quiet $options --run $signal --resume
    same_facts whole/log.jsonl $signal/log.jsonl
    same_folders whole/step-00000080 $signal/step-00000080
done

# one process at a time
sgt-train --quiet $options --steps 100000 --run shared 2> shared.err &
pid=$!
until [ -s shared/log.jsonl ]; do sleep 0.02; done
run 1 sgt-train --quiet $options --run shared
kill -TERM $pid
wait $pid || :
grep -q '^sgt-train: interrupted after step' shared.err || fail 'the first one should go on undisturbed'
stderr_is 'sgt-train: shared: another sgt-train is writing to this run (wait for it, or take another --run)'
