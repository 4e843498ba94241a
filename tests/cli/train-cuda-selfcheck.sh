# sgt-train's self-check of CUDA's paths, on the host (build/host): the output of --self-check; and
# training with a fault planted in each path (SGT_HOST_FAULT, tests/kernels/host/fault.cpp), which
# prints a notice, does not use the path, and ends well.
# In make check-all only: it trains on the host in place of a GPU.
. "$ROOT/tests/cli/train.inc"
cuda_on_the_host
data d
XDG_CACHE_HOME=$PWD/cache
SGT_HOST_CUDNN=1
export XDG_CACHE_HOME SGT_HOST_CUDNN
verdicts=cache/sgt/self-check.json

# ---- --self-check without training ----
row() { stdout_matches "^  $1 +$2($|  )"; }
run_silent sgt-train --self-check --device cuda
stdout_has 'the host (sm_90), driver 13.0.0, runtime 13.0.0, cublaslt 13.1.0, cudnn 9.19.0, nccl 2.28.9, cupti 13.0.1'
stdout_lines 12
for path in products 'products with bias' 'products with GELU' "products with GELU's slope" \
    'products for Muon' 'attention naive' 'attention own' 'attention hopper' 'attention cudnn' \
    NCCL CUPTI; do
    row "$path" ok
done
exists $verdicts
# cuBLASLt may round a matrix product to D's type before it applies the epilogue.
run_silent env SGT_HOST_CUBLASLT=rounds sgt-train --self-check
run_silent env SGT_HOST_CUDNN= sgt-train --self-check --json
stdout_has '{"device": "the host", "libraries": {"driver": "13.0.0", "runtime": "13.0.0", "cublaslt": "13.1.0", '
stdout_has '"paths": [{"path": "products", "verdict": "ok", "why": ""},'
stdout_has '{"path": "NCCL", "verdict": "ok", "why": ""}'
run 0 env -u SGT_HOST_CUDNN sgt-train --self-check
grep -q '^the host .*cudnn' .stdout && fail 'a version of a library that is not there'
row 'attention cudnn' absent
stdout_has 'cuDNN: libcudnn.so.9 was not found'
run 1 env SGT_HOST_DEVICE=none sgt-train --self-check
stderr_is 'sgt-train: --self-check: no CUDA device'
stdout_is ''
# Before 9.15.1, cuDNN supports only multiples of 128 tokens. These are then checked.
run 0 env SGT_HOST_CUDNN=old sgt-train --self-check
row 'attention cudnn' ok
run 1 env SGT_HOST_CUDNN=old SGT_HOST_FAULT=cudnn:wrong sgt-train --self-check
row 'attention cudnn' 'wrong    the output in bf16 has a relative error of 1, but at most 0.023 is allowed'
# cuDNN that supports no fp16 is used with bf16 nevertheless. Epilogues that cuBLASLt does not
# support in bf16 are absent, although it supports them in other number formats.
run 0 env SGT_HOST_CUDNN=no-half sgt-train --self-check
row 'attention cudnn' ok
run 0 env SGT_HOST_CUBLASLT=bf16-plain sgt-train --self-check
for path in 'products with bias' 'products with GELU' "products with GELU's slope"; do
    row "$path" absent
done
row products ok
# Faults are found even if only rows longer than a tile, or only wide heads, are wrong.
for fault in wrong-long wrong-wide; do
    run 1 env SGT_HOST_CUDNN=$fault sgt-train --self-check
    row 'attention cudnn' 'wrong    the output in bf16 has a relative error of .*'
done
# Engines that expect the caller to clear the sums of dQ are not used.
run 1 env SGT_HOST_CUDNN=adds sgt-train --self-check
row 'attention cudnn' 'wrong    dq in bf16 has a relative error of -?nan, .*'
# If other programs have filled the card's memory, no verdict is given.
run 1 env SGT_HOST_DEVICE=memory=1M sgt-train --self-check
stderr_matches '^sgt-train: self-check: out of GPU memory: '
stderr_lines 1
run_usage '--self-check: not together with --no-self-check' sgt-train --self-check --no-self-check
run_usage '--self-check: needs --device cuda' sgt-train --self-check --device cpu

# ---- interrupted ----
run_interrupted env SGT_HOST_FAULT='product_bias:hang product_gelu:hang product_slope:hang
    attention_kernel:hang cudnn:hang' sgt-train --self-check

# ---- each kind of fault in every path: the path's row shows it; stored verdicts are not used ----
for how in wrong:wrong crash:crashed hang:hung error:failed; do
    faults= last=cupti
    [ $how != error:failed ] || last=all_gather # all_gather is the last path: CUPTI reports its errors itself
    for name in product_bias product_gelu product_slope product_mixed causal_softmax_kernel attention_kernel \
        attention_hopper_kernel cudnn all_gather $last; do
        faults="$faults $name:${how%:*}"
    done
    run 1 env "SGT_HOST_FAULT=$faults" sgt-train --self-check
    row products ok
    paths=10
    [ $last = cupti ] || paths=9
    [ "$(grep -c "  ${how#*:}  " .stdout)" -eq $paths ] || fail "not $paths paths that are ${how#*:}"
    stderr_is "sgt-train: self-check: $paths of 11 paths did not pass"
done
row 'attention own' 'failed   the device: an illegal memory access was encountered .*'

# A fault leaves the verdicts of other paths unchanged. Faults of the backward pass are found too,
# and so are faults that affect only rows longer than a tile ("first").
only() { # N FAULTS: exactly N paths must be out
    run 1 env "SGT_HOST_FAULT=$2" sgt-train --self-check
    [ "$(grep -c ' ok *$' .stdout)" -eq $((11 - $1)) ] || fail "not $1 paths are out"
    stderr_is "sgt-train: self-check: $1 of 11 paths did not pass"
}
only 2 'keys_kernel:wrong attention_hopper_kernel:first'
row 'attention own' 'wrong    dk in bf16 has a relative error of 1, but at most 0.023 is allowed'
row 'attention hopper' 'wrong    the output in bf16 has a relative error of .*'
only 3 'queries_dropout_kernel:wrong queries_hopper_kernel:first product_mixed:wrong'
row 'attention own' 'wrong    dq with dropout and documents in bf16 has a relative error of 1, but at most 0.027 is allowed'
row 'attention hopper' 'wrong    dq in bf16 has a relative error of .*'
row 'products for Muon' 'wrong    A A added, in a batch in bf16: D \(0, 0\) is .* instead of .*'
only 1 product_plain_same:wrong
row 'products for Muon' 'wrong    A A\^T, in a batch in bf16: D \(0, 0\) is .* instead of .*'
only 1 attention_kernel:first
row 'attention own' 'wrong    the output in bf16 has a relative error of .*'
# Naive attention needs matrix products, unlike the other implementations.
run 1 env SGT_HOST_FAULT=product_plain:crash sgt-train --self-check
row products crashed
row 'attention naive' crashed

# ---- training: a failed path is not used, and the run ends well ----
cuda="--data d --device cuda --seq-len 16 --batch-size 2 --steps 1 --eval-every 0 --model 1x16x2"
ends_well() { # FAULT PATH VERDICT KERNELS OPTION...: check the line, and which attention ran
    fault=$1 path=$2 word=$3 kernels=$4
    shift 4
    run 0 env SGT_HOST_FAULT="$fault" sgt-train $cuda --run r --force --verbose "$@"
    stderr_matches "^sgt-train: self-check: $path is not used: $word \\("
    [ "$(grep -c 'self-check' .stderr)" -eq 1 ] || fail 'not one line'
    stderr_has "sm_90, $kernels kernels, "
}
rm -rf cache
run 0 sgt-train $cuda --run r --force --quiet
cp $verdicts kept
rm -rf cache
ends_well attention_kernel:wrong 'attention own' wrong "cuDNN's attention"
# The verdict is stored: although no fault is planted now, nothing is checked again.
run 0 sgt-train $cuda --run r --force --quiet
stderr_matches '^sgt-train: self-check: attention own is not used: wrong \(the output in bf16 has a relative error of 1, '
stderr_lines 1
# The checks above give these verdicts. To save time, they are stored by hand here; the fault is
# still planted.
trains() {
    sed "/\"$2\"/,/\]/{s/\"ok\"/\"$3\"/; s/\"\"/\"planted\"/}" kept > $verdicts
    ends_well "$@"
}
trains attention_kernel:crash 'attention own' crashed "cuDNN's attention" --deterministic
trains attention_kernel:hang 'attention own' hung 'naive attention' --document-mask
trains cudnn:crash 'attention cudnn' crashed 'our attention'
trains product_slope:crash "products with GELU's slope" crashed 'our attention' --document-mask
# A variant: a run that uses it would fail because of its fault. After the self-check, a run does not
# use it.
hopper='--model 1x128x2 --document-mask'
run 139 env SGT_HOST_FAULT=attention_hopper_kernel:crash sgt-train $cuda --run r --force --quiet --no-self-check $hopper
trains attention_hopper_kernel:crash 'attention hopper' crashed 'our attention' $hopper

# Heads of size 12 use naive attention. If that fails, no path is left.
rm -rf cache
run 1 env SGT_HOST_FAULT=causal_softmax_kernel:crash sgt-train $cuda --run none --model 1x24x2 \
    --quiet
stderr_has 'sgt-train: --attention auto: the verdict of the self-check is "crashed": signal 11, Segmentation fault: a planted crash (--no-self-check'
stderr_lines 2
absent none

# ---- a failed path that is requested by name is refused with one line ----
refuses() { # FAULT MESSAGE OPTION...
    fault=$1 message=$2
    shift 2
    run 1 env SGT_HOST_FAULT="$fault" sgt-train $cuda --run refused --quiet "$@"
    grep -v ' is not used: ' .stderr > .rest
    [ "$(cat .rest)" = "sgt-train: $message (--no-self-check uses it anyway)" ] || fail "not: $message"
    absent refused
}
crashed='the verdict of the self-check is "crashed": signal 11, Segmentation fault: a planted crash'
rm -rf cache
refuses 'attention_kernel:crash cudnn:crash causal_softmax_kernel:crash' "--attention own: $crashed" --attention own
refuses '' "--attention cudnn: $crashed" --attention cudnn
refuses '' "--attention naive: $crashed" --attention naive
rm -rf cache
refuses product_mixed:crash "--optimizer muon: $crashed" --optimizer muon
rm -rf cache
refuses product_plain:crash "cuBLASLt: $crashed"

# ---- a path that could not be checked: `auto` does not use it, and it is refused by name ----
sed '/"attention cudnn"/,/\]/{s/"ok"/"absent"/; s/""/"no plan"/}' kept > $verdicts
run 0 sgt-train $cuda --run r --force --verbose
absent='the verdict of the self-check is "absent": no plan (--no-self-check uses it anyway)'
stderr_has "sgt-train: attention: own (cuDNN's cannot be used: $absent)"
stderr_has 'sm_90, our attention kernels, '
refuses '' "--attention cudnn: ${absent%% (*}" --attention cudnn
run 0 sgt-train $cuda --run r --force --quiet --attention cudnn --no-self-check

# Products that could not be checked are not used either: a run that used them would crash.
for product in 'products with bias:product_bias' 'products with GELU:product_gelu' \
    "products with GELU's slope:product_slope"; do
    sed "/\"${product%:*}\"/,/\]/{s/\"ok\"/\"absent\"/; s/\"\"/\"no plan\"/}" kept > $verdicts
    run 0 env SGT_HOST_FAULT="${product#*:}:crash" sgt-train $cuda --run r --force --quiet
done
sed '/"products for Muon"/,/\]/{s/"ok"/"absent"/; s/""/"no plan"/}' kept > $verdicts
refuses '' "--optimizer muon: ${absent%% (*}" --optimizer muon

# The engine that cuDNN chooses for a run may expect clear sums of dQ, unlike the ones checked.
cp kept $verdicts
for SGT_HOST_CUDNN in adds-short 1; do
    run 0 sgt-train $cuda --run r --force --quiet --attention cudnn --gelu erf
    grep -o '"grad_norm": *[^,]*' r/log.jsonl > norm.$SGT_HOST_CUDNN
done
same norm.adds-short norm.1

# ---- --no-self-check, a cache that is damaged or not writable, a check that cannot run ----
rm -rf cache
run_silent sgt-train $cuda --run r --force --quiet --no-self-check
absent $verdicts
mkdir -p cache/sgt
for damage in 's/"ok"/"fine"/' 's/"products"/"product"/' '1s/.*/{/'; do
    sed "$damage" kept > $verdicts
    run_silent sgt-train $cuda --run r --force --quiet
    same $verdicts kept
done
: > file
run 0 env XDG_CACHE_HOME="$PWD/file" sgt-train $cuda --run r --force --quiet
stderr_matches '^sgt-train: self-check: its results cannot be kept for the next run: .*/file: is a file, not a folder$'
stderr_lines 1

# Only one process checks at a time. A process that finds the lock taken waits, and then reads the
# verdicts.
rm -f $verdicts
flock cache/sgt/self-check.lock sh -c "sleep 3; cp kept $verdicts" &
run_silent env SGT_HOST_FAULT=all_gather:crash sgt-train $cuda --run r --force --quiet
wait

# ---- a card that only one process may use: nothing is checked ----
rm -rf cache
run 0 env SGT_HOST_DEVICE=exclusive sgt-train $cuda --run r --force --quiet
stderr_is 'sgt-train: self-check: not run: self-check: the device is used by another process'
absent $verdicts

# ---- a resume whose attention has failed since: a line says so ----
rm -rf cache
run 0 env SGT_HOST_FAULT=attention_kernel:wrong sgt-train $cuda --run r --force --quiet
rm -rf cache
run 0 env SGT_HOST_FAULT=cudnn:crash sgt-train $cuda --run r --resume --steps 2 --quiet
stderr_matches "^sgt-train: continuing with cuda, sm_90, our attention, .*, but the checkpoint is from cuda, sm_90, cuDNN's attention, "

# ---- two ranks: one checks, and both use its verdicts. Without NCCL the
# run is refused with one message ----
. "$ROOT/tests/cli/ranks.inc"
rm -rf cache
two any env SGT_HOST_FAULT=all_gather:crash sgt-train $cuda --run ranks --quiet
[ "${codes% *}" = ' 1' ] || fail "exit codes$codes"
stderr_has "sgt-train: NCCL: $crashed (--no-self-check uses it anyway)"
absent ranks
