# sgt-train --skip-spikes: a batch of foreign data changes nothing in the run but its own line in
# the log; on the CPU, and with CUDA on the host.
# In make check-all only: it trains hundreds of steps on the host in place of a GPU.
. "$ROOT/tests/cli/train.inc"
work_in_memory

# Shards with bytes as tokens: 143 batches of 32 tokens; and the same with a foreign batch after the
# first 140. The foreign batch begins with the token that follows in the other shard, so the window
# before it is the same in both. Its other tokens occur nowhere else.
ids="$curve/tokens.bin"
body() { dd if="$ids" bs=2 skip=$((512 + $1)) count="$2" 2> .dd; }
foreign() { body 4480 1 && i=1 && while [ $i -lt 32 ]; do le16 $((200 + i)) && i=$((i + 1)); done; }
{ header 4641 && body 0 4480 && foreign && body 4480 129; } > with.bin
{ header 4609 && body 0 4609; } > without.bin
options="--model 1x16x2 --seq-len 16 --batch-size 2 --sampling sequential --lr 1e-2 --schedule constant --warmup 0
    --eval-every 0 --threads 1 --precision fp32 --save-every 135"
losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/log.jsonl"; }
at() { sed -n "$(($2 + 1))p" "$1/log.jsonl" > line && field "$3" line; }

spikes() { # DEVICE OPTION...
    device=$1
    shift
    rm -rf clean kept cut plain
    run 0 sgt-train --quiet $options --device $device "$@" --data without.bin --steps 143 --run clean --skip-spikes 5
    [ "$(at clean 142 spikes),$(at clean 142 skipped)" = 0,0 ] || fail "$device: a clean run has no spikes"
    run 0 sgt-train --quiet $options --device $device "$@" --data with.bin --steps 144 --run kept --skip-spikes 5
    is "$(at kept 139 spikes),$(at kept 140 spikes),$(at kept 143 spikes)" 0,1,1
    [ "$(at kept 143 skipped)" = 1 ] || fail "$device: it counts as skipped"
    # All other steps and their results equal those of the run without the foreign batch.
    losses kept | sed 141d > .kept
    losses clean | cmp -s - .kept || fail "$device: the losses differ from those of a run without it"
    for name in model optimizer; do
        same clean/step-00000143/$name.safetensors kept/step-00000144/$name.safetensors
    done
    # Without the option, the losses differ, and the log has no count of skipped spikes.
    run 0 sgt-train --quiet $options --device $device "$@" --data with.bin --steps 144 --run plain
    [ "$(at plain 141 loss)" != "$(at clean 140 loss)" ] || fail "$device: the spike changes nothing"
    grep -q '"spikes":' plain/log.jsonl && fail "$device: nobody asked for spikes"
    # A resumed run still has the past losses for the comparison.
    cp -r kept cut
    rm -r cut/step-00000144
    echo step-00000135 > cut/latest
    run_silent sgt-train --quiet --run cut --resume --device $device --threads 1
    same_facts kept/log.jsonl cut/log.jsonl
    same_folders kept/step-00000144 cut/step-00000144
}
spikes cpu
spikes cpu --optimizer sgd --lr 1e-1 --grad-clip 0

# Several spikes in a row give a notice. A checkpoint without the past losses is skipped.
{ header 5153 && body 0 4480 && foreign && foreign && foreign && foreign && foreign && foreign && foreign && foreign &&
    foreign && foreign && foreign && foreign && foreign && foreign && foreign && foreign && foreign && foreign &&
    foreign && foreign && foreign && body 4480 1; } > many.bin
run 0 sgt-train $options --device cpu --data many.bin --steps 160 --run many --skip-spikes 5
stderr_matches '^sgt-train: step 15[67]: --skip-spikes has skipped 16 updates in a row, so these are not spikes \(start '\
'again with a larger --skip-spikes or a lower --lr\)$'
[ "$(grep -c 'updates in a row' .stderr)" -eq 1 ] || fail 'it is said once'
sed -i 's/"grad_norm": \[/"grad_norm": [ null,/; s/^  "xxh3"/  "unsealed"/' many/step-00000160/state.json
run 0 sgt-train --quiet --run many --resume
stderr_matches '^sgt-train: skipped an incomplete checkpoint: many/step-00000160/state.json: spikes: number 0 is '\
'missing'
run 1 sgt-train --quiet --run many --resume --skip-spikes 6
stderr_is 'sgt-train: --skip-spikes: 6 here, but it was 5 in the run to resume (leave it out, or start a new --run)'
run_usage '--skip-spikes -1: must be from 0 to 1000000000' sgt-train $options --data with.bin --skip-spikes -1

(cuda_on_the_host) > /dev/null || exit 0
cuda_on_the_host
spikes cuda --deterministic
