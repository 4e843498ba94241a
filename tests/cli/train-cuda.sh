# sgt-train --device cuda on the host (build/host): the bits of a run do not depend on the order in
# which streams run, nor on graphs, overlap or a resume. CPU and CUDA resume each other's runs.
# In make check-all only: it trains on the host in place of a GPU.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/ranks.inc"
cuda_on_the_host
data d
validation d
options="--data d --model 2x32x2 --seq-len 24 --batch-size 2 --grad-accum 2 --steps 4 --eval-every 2 --lr 1e-2
    --schedule constant --warmup 1 --threads 1"
cuda="$options --device cuda --deterministic"

# ---- orders of the streams, and techniques that change no number, give the
# same log and the same bits ----
for precision in bf16 fp16; do run_silent sgt-train --quiet $cuda --precision $precision --run whole-$precision; done
for schedule in 1 2 3; do
    run 0 env SGT_HOST_DEVICE=schedule=$schedule sgt-train --quiet $cuda --precision bf16 --run again --force
    same_facts whole-bf16/log.jsonl again/log.jsonl
    same_folders whole-bf16/step-00000004 again/step-00000004
done
for technique in --no-graphs --no-overlap --sync-metrics; do
    run 0 sgt-train --quiet $cuda --precision bf16 $technique --run again --force
    same_facts whole-bf16/log.jsonl again/log.jsonl
    same again/step-00000004/model.safetensors whole-bf16/step-00000004/model.safetensors
done

# ---- stopped and resumed ----
halves() { # WHOLE OPTION...: a run with these options in two halves must be like WHOLE
    whole=$1
    shift
    run 0 sgt-train --quiet $cuda "$@" --run cut --force --steps 2
    run_silent sgt-train --quiet $cuda "$@" --run cut --resume
    same_facts $whole/log.jsonl cut/log.jsonl
    same_folders $whole/step-00000004 cut/step-00000004
}
for precision in bf16 fp16; do
    halves whole-$precision --precision $precision
    run_silent sgt-train --quiet $cuda --optimizer muon --precision $precision --run whole-muon --force
    halves whole-muon --optimizer muon --precision $precision
done
run 0 sgt-train $cuda --precision fp32 --quiet --optimizer sgd --run whole-sgd
halves whole-sgd --precision fp32 --optimizer sgd

# ---- matrix products: a deterministic run stores its choices of algorithms in its checkpoint ----
halves whole-bf16 --precision bf16
choices() { grep '"choices"' "$1/state.json" | sed 's/\\n/\n/g'; }
choices cut/step-00000002 > before
choices cut/step-00000004 > after
check 'a choice for each product' test "$(grep -c '^[0-9]*x.* 7467736c74616c67 ' before)" -gt 10
same before after

# ---- from one device to the other. Sums of at most 128 float32 products in another order change a
# loss of 5 by less than 128 * 2^-24 of it at the next step. If parameters or moments were lost, the
# next losses would differ by 0.1 ----
near() { close "$1" "$2" 2e-4; } # RUN RUN: compare their losses
fp32="--precision fp32 --quiet"
# Padded rows have targets of their own, which --pad-id sets.
documents='--sampling documents --pad-id'
run 0 sgt-train $options $fp32 $documents 1 --device cpu --run cpu-documents
run 0 sgt-train $options $fp32 $documents 2 --device cuda --run cuda-documents
near cpu-documents cuda-documents
for optimizer in adamw muon; do
    run 0 sgt-train $options $fp32 --optimizer $optimizer --device cpu --run cpu --force
    for there in 'cpu cuda' 'cuda cpu'; do
        run 0 sgt-train $options $fp32 --optimizer $optimizer --device ${there% *} --run from --force --steps 2
        run 0 sgt-train $options $fp32 --optimizer $optimizer --device ${there#* } --run from --resume
        stderr_matches "^sgt-train: continuing with ${there#* }, .*, but the checkpoint is from ${there% *}, "
        near cpu from
    done
done

# A resume on a CPU drops the options that only CUDA has, unless the command line gives them. Back
# on CUDA, another precision is possible.
run 0 sgt-train $options --device cuda --precision tf32 --attention naive --no-graphs --quiet --run moves --steps 2
run 0 sgt-train --device cpu --quiet --run moves --resume --steps 3
stderr_has 'sgt-train: continuing in fp32 on the CPU, but the checkpoint is from tf32 on CUDA'
grep -q '"precision": "fp32"' moves/options.json || fail 'not in fp32'
grep -qE 'naive|no-graphs' moves/options.json && fail "what a CPU lacks is kept: $(cat moves/options.json)"
run_failure '--no-graphs: needs --device cuda' sgt-train --device cpu --quiet --run moves --resume --no-graphs
run 0 sgt-train --device cuda --quiet --run moves --resume --steps 4 --precision bf16
run_failure '--precision: "fp16" here, but it was "bf16" in the run to resume (leave it out, or start a new --run)' \
    sgt-train --device cuda --quiet --run moves --resume --precision fp16

# Options without a PyTorch fixture are compared with the CPU.
for technique in '' '--no-tie' '--ignore-index 101' '--optimizer sgd --nesterov' '--recompute block --dropout 0.25' \
    '--document-mask' '--optimizer muon'; do
    run 0 sgt-train $options $fp32 $technique --device cpu --run cpu --force
    for switches in '' '--no-fuse --no-pad-vocab'; do
        run 0 sgt-train $options $fp32 $technique $switches --device cuda --run cuda --force
        near cpu cuda
    done
done

# ---- auto selects CUDA and says so. A batch that does not fit is refused; the
# message has the largest that fits ----
run 0 sgt-train $options --device auto --run auto --verbose
stderr_has 'sgt-train: device: CUDA, the host (sm_90, 1 GiB)'
large="$options --device cuda --quiet --eval-every 0 --grad-accum 1 --steps 1"
run 1 env SGT_HOST_DEVICE=memory=34M sgt-train $large --batch-size 4096 --run large
stdout_is ''
stderr_lines 1
stderr_matches '^sgt-train: out of GPU memory: .* \(the largest --batch-size that fits is [1-9][0-9]*\)$'
absent large
most=$(sed 's/.*fits is \([0-9]*\)).*/\1/' .stderr)
run 0 env SGT_HOST_DEVICE=memory=34M sgt-train $large --batch-size "$most" --run fits
# If there is too little memory for the workspace of matrix products, the message is the same.
run 1 env SGT_HOST_DEVICE=memory=1M sgt-train $large --run large
stderr_matches '^sgt-train: out of GPU memory: the model and a step of 2 x 24 tokens need 0\.0[3-9] GiB, but the host has only 0\.00 of 0\.00 GiB free \(no --batch-size fits: use a smaller --model or --seq-len\)$'
absent large
