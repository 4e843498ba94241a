# gpu-check.sh with the host build instead of a card, at small shapes: all parts as they run on a card; with missing
# libraries; with kernels that fail, crash or hang; and with too little time. Then gpu-build.sh without its compilers.
# In make check-all only: it trains on the host in place of a GPU, for some minutes.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"
[ ! -e /dev/nvidia0 ] || skip 'there is a GPU here: tools/gpu-check.sh itself shows more'
B=$BIN/..
[ -x "$B/tests/check-cuda-pretend" ] || skip 'check-cuda-pretend is not built'
cuda_on_the_host
data d
export TMPDIR="$PWD" CUDA_HOME="$PWD/toolkit" XDG_CACHE_HOME="$PWD/cache" GPU_CHECK_SMALL="$PWD/d"
export GPU_CHECK_PATIENCE=10 # results must not depend on other load of the machine
export LD_LIBRARY_PATH="$PWD/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT SGT_HOST_CUDNN SGT_HOST_DEVICE SGT_HOST_FAULT

# ---- the bundle, with the host's programs ----

mkdir -p b/bin b/tools b/tests stand libraries toolkit
ln -s "$B"/host/bin/sgt-train "$B"/host/bin/sgt-bench "$B"/host/bin/check-step "$B"/bin/sgt-tokenize b/bin
ln -s "$B"/tests/check-cuda-pretend b/bin/check-cuda-device
ln -s "$ROOT/tests/data" "$ROOT/tests/peers" b/tests
ln -s "$ROOT/README.md" "$ROOT/loader" "$ROOT/kernels" "$ROOT/train" b
cp -r "$ROOT/tools/gpu-check.sh" "$ROOT/tools/gpu" b/tools
echo 0123456789ab > b/commit
stand() { # FILE: make a program from standard input
    { echo '#!/bin/sh' && cat; } > "$1"
    chmod +x "$1"
}
stand stand/nvidia-smi << 'END'
case "$*" in *gpu=name*) echo 'the host' ;; *driver_version*) echo 13.0 ;; *total*) echo '1024 MiB' ;;
-L) echo 'GPU 0: the host' && [ -z "${TWO:-}" ] || echo 'GPU 1: the host' ;; esac
END
stand stand/compute-sanitizer << 'END'
echo '========= Error: Device not supported' && exit 1
END
stand stand/ldconfig << 'END'
END
stand stand/python << 'END'
exit 1
END
gpu() { # EXIT NAME=VALUE... -- OPTION...: gpu-check.sh -o r.json. EXIT any: 0 or 1, as fast as the machine is
    want=$1
    shift
    set=''
    while [ "$1" != -- ]; do set="$set $1" && shift; done
    shift
    echo "$set gpu-check.sh $*" > .ran
    code=0
    # shellcheck disable=SC2086
    env PATH="$PWD/stand:$PATH" PYTHON="$PWD/stand/python" $set b/tools/gpu-check.sh -o r.json "$@" \
        > .stdout 2> .stderr || code=$?
    [ "$code" = "$want" ] || { [ "$want" = any ] && [ "$code" -le 1 ]; } || fail "exit code $code, not $want"
    stderr_is ''
    ! command -v python3 > /dev/null || python3 -m json.tool r.json > .json || fail 'r.json is no JSON'
}
fresh() { rm -f r.json r.json.log; }

# ---- missing libraries; then failing kernels ----

gpu 0 -- smoke
stdout_matches '^skip 15 steps, cudnn, graphs, fused: no libcudnn.so.9 on this machine$'
[ "$(grep -c '^pass 15 steps, ' .stdout)" -eq 8 ] || fail 'not 8 ways without cuDNN'
stdout_matches '^info first step, B=2 T=64 bf16: .*, sm_90, our attention$'
fresh
# a library that exists but cannot be loaded: 4 variants of a step fail, and so does the choice among them
: > libraries/libcudnn.so.9
gpu 1 -- smoke --skip no --skip own --skip naive
stdout_has 'fail 15 steps, cudnn, graphs, fused: exit 1: sgt-bench step: --attention cudnn: cuDNN: libcudnn.so.9 is not'
stdout_matches '^fail first step, .*: cuDNN is there \(.*/libraries/libcudnn.so.9\) and was not taken: '
fresh
rm libraries/libcudnn.so.9
# An error, crash or hang of a kernel cancels the steps that need it, and no others.
gpu 1 SGT_HOST_FAULT=attention_kernel:error -- smoke --skip 'no graphs'
stdout_matches '^fail 15 steps, own, graphs, fused: exit 1: sgt-bench step: '
stdout_matches '^    [|] sgt-bench step: '
stdout_matches '^fail 15 steps, own, graphs, not fused: exit 1: '
stdout_matches '^pass 15 steps, naive, graphs, fused: '
grep -q '^sgt-bench step: .' r.json.log || fail 'the log has nothing of it'
# Without the fault, the next call continues.
gpu 0 -- smoke --again
stdout_matches '^kept 15 steps, naive, graphs, fused: '
stdout_matches '^pass 15 steps, own, graphs, fused: '
fresh
gpu 1 SGT_HOST_FAULT=causal_softmax_kernel:crash -- smoke --skip 'not fused' --skip 'no graphs'
stdout_matches '^fail 15 steps, naive, graphs, fused: exit [1-9]'
stdout_matches '^pass 15 steps, own, graphs, fused: '
fresh
gpu 1 SGT_HOST_FAULT=each_kernel:hang GPU_CHECK_PATIENCE=1 -- smoke --skip ', fused' --skip 'no graphs' \
    --skip naive --skip 'first step'
stdout_matches '^fail 15 steps, own, graphs, not fused: '
fresh

# ---- with cuDNN's stand-in and two cards: all parts until the time limit, then the missing ones ----

: > libraries/libcudnn.so.9
gpu 0 SGT_HOST_CUDNN=1 -- smoke --skip 'first step'
[ "$(grep -c '^pass 15 steps, ' .stdout)" -eq 12 ] || fail 'not 12 ways with cuDNN'
gpu 1 SGT_HOST_CUDNN=1 -- parity --seconds 8
stdout_matches "^cut  deterministic: the part's 8 s are over$"
grep -q '"complete": true' r.json || fail 'the run came to its end'
gpu 1 SGT_HOST_CUDNN=1 -- kernels --seconds 20
stdout_matches "^cut  kernel cases: the part's 20 s are over, [0-9]+ have not run: first [a-z0-9_]+$"
passed=$(grep -c '"result": "pass", "name": "kernel ' r.json)
[ "$passed" -gt 0 ] || fail 'no kernel passed in 20 s'
gpu 1 SGT_HOST_CUDNN=1 -- kernels --seconds 20
[ "$(grep -c '"result": "pass", "name": "kernel ' r.json)" -gt "$passed" ] || fail 'the second call went no further'
fresh
gpu 0 SGT_HOST_CUDNN=1 -- conformance
stdout_matches '^     wrapper: [1-9][0-9]* of [1-9][0-9]* cases passed$'
gpu 0 SGT_HOST_CUDNN=1 -- parity --skip cudnn --skip tf32 --skip fp16
stdout_matches '^pass steps of the fixtures in bf16: [1-9][0-9]* passed, 0 failed, '
stdout_matches '^info curve in bf16, own attention: .*; no PyTorch to hold it to$'
stdout_matches '^pass curve in fp32, auto attention: loss off by '
stdout_matches '^pass deterministic: the same losses and norms twice, 1 steps in bf16$'
gpu any -- speed --skip 'step, B=1' --skip T=32 --skip products --skip ablation --skip 'first step'
stdout_matches '^info step, B=2 T=64 fp16: [0-9.]+ tokens/s, '
stdout_matches '^(pass|fail) fp16 with scaler against bf16: [0-9.]+ times '
stdout_matches '^(pass|fail) data wait, of a step: [0-9.]+ % '
stdout_matches '^info attention: [1-9] rows, as above$'
gpu any -- peer variants --skip B=1
stdout_has "skip torch.compile flash, B=2 T=64 bf16, turn 1: no PyTorch in $PWD/stand/python"
stdout_has 'skip B=2 T=64 bf16 against torch.compile: a figure is missing'
stdout_matches '^(skip variants: this sgt-bench step has no --variants|(info|fail) variant .*)$'
fresh
gpu 0 TWO=1 -- ranks
stdout_matches '^pass NCCL, one rank: ok   nccl_one_rank '
stdout_matches "^pass training, 2 ranks: [0-9.e-]+ nats from one rank's losses "
fresh
gpu 1 TWO=1 SGT_HOST_FAULT=norm_squares_kernel:error -- ranks
stdout_matches '^fail training, 2 ranks: exit [1-9]'

# ---- gpu-build.sh, with compilers that only record their calls ----

build=$ROOT/tools/gpu-build.sh
mkdir -p r/tools r/build/gpu-bundle/bin r/build/gpu-bundle/lib
cp -r "$ROOT/kernels" "$ROOT/train" "$ROOT/loader" r
mkdir r/tests && cp -r "$ROOT/tests/kernels" r/tests
cp "$build" r/tools
stand stand/nvcc << 'END'
echo "$*" >> "$CALLS"
case "$*" in *"$BAD") echo "$BAD: error: it is bad" && exit 1 ;; esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && touch "$2"; shift; done
END
cp stand/nvcc stand/cc
build() { # EXIT NAME=VALUE...
    want=$1
    shift
    rm -f calls
    run "$want" env NVCC="$PWD/stand/nvcc" CC="$PWD/stand/cc" CALLS="$PWD/calls" BAD=nothing "$@" r/tools/gpu-build.sh
}
build 1
stderr_is 'gpu-build.sh: build/gpu-bundle/link/libsgt-train.a is not there: make gpu-bundle makes it'
mkdir r/build/gpu-bundle/link
touch r/build/gpu-bundle/link/libsgt-train.a
echo 0123456789ab > r/build/gpu-bundle/commit
build 1 BAD=kernels/cuda/gelu.cu
stderr_is 'kernels/cuda/gelu.cu: error: it is bad
gpu-build.sh: not compiled: kernels/cuda/gelu.cu '
absent r/build/gpu-bundle/lib/libsgt-cuda.so
build 0
stdout_matches '^build/gpu-bundle: 1 files compiled for sm_90a, linked; [0-9]+ s$'
exists r/build/gpu-bundle/lib/libsgt-cuda.so
exists r/build/gpu-bundle/bin/check-cuda-device
check 'two links and a file' test "$(grep -c . calls)" -eq 3
grep -q -- '--wrap=__cudaLaunchKernel' calls || fail 'launches do not come by the tests'
touch r/kernels/cuda/device.cuh
build 0 ARCH=80
check 'a header: all again' test "$(grep -c 'arch=compute_80,code=sm_80' calls)" -gt 20
run 2 "$build" --fast
stderr_is 'gpu-build.sh: --fast: no such option (gpu-build.sh [BUNDLE])'
run 1 env NVCC=no-such-compiler r/tools/gpu-build.sh
stderr_is 'gpu-build.sh: no-such-compiler is not there'
