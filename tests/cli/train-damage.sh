# sgt-train --resume detects any damage to a checkpoint, names it, and uses the checkpoint before
# it.
. "$ROOT/tests/cli/train.inc"
work_in_memory
data d
work="$small --save-every 2 --keep 3 --schedule constant --warmup 1"
echo '{}' > d/tokenizer.json # a file of the checkpoint that only its checksum protects
run 0 sgt-train --quiet $work --run whole --steps 6
run 0 sgt-train --quiet $work --run further --steps 8
newest=damaged/step-00000006

# damage MESSAGE COMMAND...: COMMAND damages the newest checkpoint of a run, or `latest`. The run
# must resume from step 4, with one line that has MESSAGE.
damage() { # MESSAGE COMMAND...
    message=$1
    shift
    rm -rf damaged && cp -r whole damaged
    "$@" || fail "cannot damage: $*"
    run 0 sgt-train --quiet $work --run damaged --resume --steps 8
    stderr_lines 1
    stderr_matches "^sgt-train: $message"
    same_facts further/log.jsonl damaged/log.jsonl
    same_folders further/step-00000008 damaged/step-00000008
    [ "$(cat damaged/latest)" = step-00000008 ] || fail "latest is $(cat damaged/latest)"
}
passed='skipped an incomplete checkpoint: '$newest

# A single bit is changed in every file, in the middle and in the last byte.
for file in model.safetensors optimizer.safetensors config.json generation_config.json tokenizer.json \
    tokenizer_config.json state.json; do
    size=$(wc -c < whole/step-00000006/$file)
    for at in $((size / 2)) $((size - 1)); do damage "$passed(/$file)?: " flip $newest/$file $at; done
done
damage "$passed/model.safetensors: damaged: XXH3-64 is [0-9a-f]{16}, but state.json says \
[0-9a-f]{16}\$" \
    flip $newest/model.safetensors 20000
# A digit in the state is changed, which only the checksum can reveal.
damage "$passed/state.json: damaged: XXH3-64 " \
    sed -i 's/"documents": \([0-9]*\)/"documents": \11/' $newest/state.json

# Files that are cut short, empty or missing.
for file in model.safetensors optimizer.safetensors config.json state.json; do
    damage "$passed" truncate -s -1 $newest/$file
    damage "$passed" truncate -s 0 $newest/$file
    damage "$passed" rm $newest/$file
done
for file in generation_config.json tokenizer.json tokenizer_config.json; do
    damage "$passed/$file: [0-9]+ bytes, but state.json says [0-9]+\$" truncate -s 1 $newest/$file
    damage "$passed/$file: missing\$" rm $newest/$file
done
damage "$passed" sh -c "rm -r $newest && mkdir $newest"
damage "$passed/optimizer.safetensors: " cp $newest/model.safetensors $newest/optimizer.safetensors
damage "$passed/model.safetensors: damaged: XXH3-64 is " cp whole/step-00000004/model.safetensors $newest/

# Files that are not the expected JSON.
damage "$passed/state.json: " sh -c "echo '[]' > $newest/state.json"
damage "$passed/config.json: " sh -c "echo '{' > $newest/config.json"

# If `latest` does not name a checkpoint, a notice is printed, and the newest whole checkpoint is
# used.
latest() { # TEXT
    rm -rf damaged && cp -r whole damaged
    printf '%s\n' "$1" > damaged/latest
    run 0 sgt-train --quiet $work --run damaged --resume --steps 8
    stderr_is "sgt-train: damaged/latest names '$1', but there is no such checkpoint"
    same_facts further/log.jsonl damaged/log.jsonl
    same_folders further/step-00000008 damaged/step-00000008
}
for text in step-00000009 '' ../../etc; do latest "$text"; done
rm -rf damaged && cp -r whole damaged && rm damaged/latest # as after a kill before `latest` was written: no notice
run_silent sgt-train --quiet $work --run damaged --resume --steps 8
same_folders further/step-00000008 damaged/step-00000008

# If all checkpoints are damaged, each is named, and the message says that none is left.
rm -rf damaged && cp -r whole damaged
for step in 2 4 6; do flip damaged/step-0000000$step/model.safetensors 20000; done
run 0 sgt-train --run damaged --resume-or-start $work --steps 8
[ "$(grep -c 'skipped an incomplete checkpoint' .stderr)" -eq 3 ] || fail 'three should be named'
stderr_has 'sgt-train: damaged has no checkpoint to resume from: starting at step 0'
same_facts further/log.jsonl damaged/log.jsonl

# A checkpoint of an older release has no checksums.
rm -rf damaged && cp -r whole damaged
sed -i '/^  "files": {/,/^  },$/d; s/^  "xxh3".*/  "none": 0/' $newest/state.json
grep -q xxh3 $newest/state.json && fail 'there are sums still'
run_silent sgt-train --quiet $work --run damaged --resume --steps 8
same_facts further/log.jsonl damaged/log.jsonl
