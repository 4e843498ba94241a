# sgt-train: options.json stores each option. Some change the losses, others no bit. A CPU refuses
# some options by name. A resumed run keeps the options.
. "$ROOT/tests/cli/train.inc"
work_in_memory
data d
run 0 sgt-train --quiet $small --steps 6 --run plain

lossline() { sed -n 6p "$1/log.jsonl" > line && field loss line; }
option() { # JSON OPTION...: options.json must have JSON, unlike that of the plain run
    kept=$1
    shift
    run_silent sgt-train --quiet $small --steps 6 --run one --force "$@"
    grep -qF "$kept" one/options.json || fail "options.json lacks $kept: $(cat one/options.json)"
    grep -qF "$kept" plain/options.json && fail "$kept is there without being asked for"
    run 0 sgt-train --quiet --config one/options.json --run again --force
    same_facts one/log.jsonl again/log.jsonl
    same one/options.json again/options.json
}
changes() { # JSON OPTION...: check `option`, and that losses differ from those of the plain run
    option "$@"
    [ "$(lossline one)" != "$(lossline plain)" ] || fail "$1 changes nothing"
}
keeps() { # JSON OPTION...: check `option`, and that the bits are those of the plain run
    option "$@"
    same_facts plain/log.jsonl one/log.jsonl
    same plain/step-00000006/model.safetensors one/step-00000006/model.safetensors
}
changes '"dropout": 0.25' --dropout 0.25
changes '"ignore-index": 10' --ignore-index 10
changes '"optimizer": "sgd"' --optimizer sgd
changes '"momentum": 0.5' --optimizer sgd --momentum 0.5
changes '"nesterov": true' --optimizer sgd --nesterov
changes '"optimizer": "muon"' --optimizer muon
changes '"no-tie": true' --no-tie
changes '"document-mask": true' --document-mask
keeps '"recompute": "gelu"' --recompute gelu
keeps '"recompute": "block"' --recompute block
keeps '"batching": "scalar"' --batching scalar
keeps '"no-overlap": true' --no-overlap
keeps '"deterministic": true' --deterministic
for reader in mmap uring; do keeps '"no-overlap": true' --no-overlap --batching scalar --loader $reader; done

# SGD's settings replace AdamW's in options.json.
option '"momentum": 0.9' --optimizer sgd
grep -q betas one/options.json && fail 'SGD has no betas'
grep -qE 'momentum|loss-scale' plain/options.json && fail 'neither momentum nor a loss scale is used'
changes '"loss-scale": 1024' --precision fp16 --loss-scale 1024
lossline one > .loss
[ "$(field loss_scale line)" = 1024 ] || fail "the scale that was given is not what the log has"

# The default precision is bf16 on a CPU with bf16 instructions, and fp32 on others. A run keeps its
# precision on every CPU.
precision_is() { grep -qF "\"precision\": \"$2\"" "$1/options.json" || fail "$1 is not in $2"; } # RUN PRECISION
run 0 sgt-train $small --steps 6 --run bf16 --precision bf16 --verbose
if grep -q '/rounded kernels' .stderr; then precision_is plain fp32; else precision_is plain bf16; fi
run 0 sgt-train --quiet $small --steps 6 --run fp32 --precision fp32
[ "$(lossline fp32)" != "$(lossline bf16)" ] || fail 'bf16 changes nothing'
run 0 sgt-train --quiet $small --steps 6 --run lesser --cpu plain
for of in 'bf16 plain' 'lesser auto'; do run 0 sgt-train --quiet --run ${of% *} --cpu ${of#* } --resume --steps 7; done
precision_is bf16 bf16
precision_is lesser fp32

# Checkpoints of an untied model record that, can be resumed, and can initialize a model.
grep -q '"tie_word_embeddings": true' plain/step-00000006/config.json || fail 'GPT-2 is tied'
run 0 sgt-train --quiet $small --steps 6 --run untied --no-tie
grep -q '"tie_word_embeddings": false' untied/step-00000006/config.json || fail '--no-tie is not'
check "transformers' names" grep -q '"transformer.ln_f.bias".*"lm_head.weight"' untied/step-00000006/model.safetensors
run 0 sgt-train --quiet --run untied --resume --steps 7
[ "$(wc -l < untied/log.jsonl)" -eq 7 ] || fail 'one more step'
tune="--data d --seq-len 16 --batch-size 2 --lr 1e-3 --device cpu --threads 1 --eval-every 0 --steps 1"
run 0 sgt-train --quiet $tune --run tuned --init untied/step-00000006
grep -q '"no-tie": true' tuned/options.json || fail 'what --init decided is kept'
run_usage '--no-tie: the model of --init plain/step-00000006 has a tied head (leave out --no-tie)' \
    sgt-train --quiet $tune --run x --init plain/step-00000006 --no-tie

# Options that only CUDA has, and options that a CPU cannot support, give exit code 1 and a message
# that names the option (tests/train/test_settings.c has all of them).
refuses() { # MESSAGE OPTION...
    message=$1
    shift
    run_failure "$message" sgt-train --quiet $small --run refused "$@"
    absent refused
}
refuses '--sync-kernels: needs --device cuda' --sync-kernels
refuses '--attention cudnn: needs --device cuda' --attention cudnn
echo '{"no-graphs": true}' > c.json
refuses '--no-graphs: needs --device cuda' --config c.json
refuses '--precision tf32: no CPU supports it (use fp32, or --device cuda)' --precision tf32

# A resume refuses to change some options, whether numbers, words or flags
# (tests/train/test_settings.c lists them).
differs() { # WAS-AND-IS OPTION...
    message=$1
    shift
    run_failure "$message in the run to resume (leave it out, or start a new --run)" \
        sgt-train --quiet --run plain --resume "$@"
}
differs '--dropout: 0.5 here, but it was 0' --dropout 0.5
differs '--no-overlap: true here, but it was not set' --no-overlap

# The data determine which id begins a document. For shards of other programs it is GPT-2's
# end-of-text id, or none.
mkdir other
cp "$curve/tokens.bin" other/train_000000.bin
other="--data other --seq-len 16 --batch-size 2 --lr 1e-3 --device cpu --threads 1 --eval-every 0 --steps 1"
run 1 sgt-train --quiet $other --init "$curve" --run refused --document-mask
stderr_is "sgt-train: --document-mask: other does not say which id begins a document (shards of sgt-tokenize do)"
absent refused
run 0 sgt-train --quiet $other --model 1x16x2 --run gpt2 --document-mask
le64 0 > other/train_000000.idx # or the index says where documents begin
run 0 sgt-train --quiet $other --init "$curve" --run told --document-mask

# Each of these runs, stopped half-way and resumed, has the bits of an undisturbed run.
for options in '--dropout 0.25 --grad-accum 2' '--optimizer sgd --nesterov' '--no-overlap --no-tie --ignore-index 10' \
    '--optimizer muon --grad-accum 2' '--optimizer muon --precision bf16' \
    '--document-mask --dropout 0.1' '--sampling documents --pad-id 0' '--optimizer-state bf16' \
    '--precision fp16 --loss-scale 16777216'; do
    rm -rf whole half
    run_silent sgt-train --quiet $small --run whole --steps 6 --save-every 3 $options
    cp -r whole half
    rm -r half/step-00000006
    run 0 sgt-train --quiet --run half --resume --threads 1
    same_facts whole/log.jsonl half/log.jsonl
    same_folders whole/step-00000006 half/step-00000006
done
# The last run overflowed. Its skipped updates are in the log and give no warning.
[ "$(tail -1 whole/log.jsonl > line && field skipped line)" -gt 0 ] || fail 'no update was skipped'
grep -q '"grad_norm":null,.*"loss_scale":16777216,"skipped":1,' whole/log.jsonl || fail 'the first overflow is not there'
