# gpu-check.sh with the host build instead of a GPU, at small shapes. All parts run as on a GPU;
# then each with too little time, with missing libraries, and with kernels that fail or crash.
# In make check-all only: it trains on the host in place of a GPU, for some minutes.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/clock.inc"
B=$BIN/..
[ -x "$B/tests/check-cuda" ] || skip 'check-cuda is not built'
cuda_on_the_host
export XDG_CACHE_HOME="$PWD/cache" GPU_CHECK_SMALL=1
export LD_LIBRARY_PATH="$PWD/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT SGT_HOST_CUDNN SGT_HOST_DEVICE SGT_HOST_FAULT

# ---- the bundle, with the host's programs ----

bundle
mkdir libraries
data b/data/shards
ln -s "$B"/host/bin/sgt-train "$B"/host/bin/sgt-bench b/bin
ln -s "$ROOT/tests/data" "$ROOT/tests/peers" "$ROOT/tests/gpu-results" b/tests
export CHECK_CUDA="$B/tests/check-cuda"
stand b/bin/check-cuda-device << 'END'
[ "$*" = --list ] || exec "$CHECK_CUDA" "$@"
"$CHECK_CUDA" --list | grep -vE '^(cuda_large|host|launch)_' # these are only the host's
END
stand stand/nvidia-smi << 'END'
case "$*" in *gpu=name*) echo 'the host, 13.0, 1024 MiB' ;;
*) echo '1500, 2600, 300, 50' ;; esac
END
stand stand/compute-sanitizer << 'END'
while [ "${1#*/}" = "$1" ]; do shift; done
exec "$@"
END
stand stand/python << 'END'
echo "ModuleNotFoundError: No module named 'torch'" >&2
exit 1
END
check='b/tools/gpu-check.sh -o r.jsonl'
gpu() { # EXIT [NAME=VALUE]... $check OPTION...
    want=$1
    shift
    rm -f r.jsonl r.jsonl.*
    gpu_check "$want" r.jsonl "$@"
}

# ---- all parts, with the stand-in for cuDNN ----

: > libraries/libcudnn.so.9
gpu 0 SGT_HOST_CUDNN=1 $check --budget 560 versions first profile ab early-launch products ablation compile cases curves last \
    --skip 'of mmap,overlap' # the next run has this chain
stdout_matches '^pass self-check: [0-9]+ ok, of driver [0-9.]+, .*cudnn [0-9.]+'
grep -q '"libraries": {"driver": "[0-9.]*", .*"cudnn": "[0-9.]*"' r.jsonl || fail 'no versions'
stdout_matches '^info step, B=2 T=16 bf16: [0-9.]+ tokens/s, .*, loss [0-9.]+, sm_90, .* attention$'
stdout_matches '^info data wait, of a step: [0-9.]+ %$'
for b in 2 1; do
    stdout_matches "^info kernels of a step, B=$b T=16 bf16: [1-9][0-9]* rows, as above, idle [0-9.]+ ms of [0-9.]+ ms$"
    stdout_matches "^info --variant default,early-launch, B=$b, to base: [0-9.]+ times$"
    stdout_has "skip torch.compile, B=$b T=16 bf16, after ours: ModuleNotFoundError: No module named 'torch'"
    stdout_matches "^info ours, B=$b T=16 bf16: [0-9.]+ tokens/s, "
done
stdout_matches '^info matrix products: [1-9][0-9]* rows, as above$'
stdout_matches '^info products of the head, 8 rows: 3 rows, as above$'
stdout_matches '^info attention: [1-9] rows, as above$'
for row in mmap recompute cold; do stdout_matches "^info row $row: [0-9.]+ ms a step$"; done
stdout_matches '^     kernels: ([1-9][0-9]*) of [1-9][0-9]* cases passed$'
for a in cudnn own; do stdout_matches "^info curve in bf16, $a attention: loss off by .*; no PyTorch to compare with$"; done
stdout_has 'pass compute-sanitizer racecheck, cuda_attention_hopper_backward_bf16: '
stdout_matches '^info step again, B=2 T=16 bf16: '
stdout_matches '^[0-9]+ passed, 0 failed, [0-9]+ skipped$'

# ---- a budget that runs out in each part: finished checks keep their
# results, and the next part runs ----

cat > took << 'END'
*self-check* 10000
*size?2*--data*--data* 10000
*size?1*--parts* 10000
*layer?head* 10000
*ablation*mmap,overlap* 9999
*torch_step.py?1x16x2?1* 10000
*case?cublaslt_epilogue_f32* 10000
*attention?own* 10000
*racecheck*backward* 10000
END
gpu 1 SGT_HOST_CUDNN=1 $check --budget 560
: > took
over="stopped after [0-9]+ s, because the part's time was over"
stdout_matches "^cut  self-check: $over$"
stdout_matches "^cut  step, B=2 T=16 bf16: $over$"
stdout_matches "^info kernels of a step, B=2 T=16 bf16: [1-9][0-9]* rows, as above, "
stdout_matches "^cut  kernels of a step, B=1 T=16 bf16: $over$"
stdout_matches '^info base 0, B=2: [0-9.]+ tokens/s, '
stdout_matches '^info --variant default,early-launch, B=1, to base: [0-9.]+ times$' # the last of all variants
stdout_matches '^info matrix products: [1-9][0-9]* rows, as above$'
stdout_matches "^cut  products of the head, 8 rows: $over$"
stdout_matches '^info row tied: [0-9.]+ ms a step$'
stdout_matches '^info ablation, from mmap to tied: [0-9.]+ times$'
stdout_matches "^cut  ablation of mmap,overlap,.*: $over$"
stdout_matches '^info ours, B=2 T=16 bf16: [0-9.]+ tokens/s, '
stdout_has 'fail torch.compile, B=1 T=16 bf16, before ours: did not end within 90 s'
stdout_matches "^cut  torch.compile, B=1 T=16 bf16, after ours: $over$"
stdout_matches "^cut  kernel cases: the part's time is over, [1-9][0-9]* have not run: first cublaslt_epilogue_f32$"
grep -q '"pass", "name": "kernel cublaslt_epilogue_f16"' r.jsonl || fail 'the case before it has no result'
stdout_matches '^info curve in bf16, cudnn attention: loss off by '
stdout_matches "^cut  curve in bf16, own attention: $over$"
stdout_has 'pass compute-sanitizer racecheck, cuda_attention_hopper_bf16: '
stdout_has 'fail compute-sanitizer racecheck, cuda_attention_hopper_backward_bf16: did not end within 25 s'
stdout_matches "^cut  step again, B=2 T=16 bf16: $over$"
grep -q '"complete": true' r.jsonl || fail 'the run came to its end'
[ "$(cat clock)" -eq 1560 ] || fail 'the last part does not end with the budget'

# ---- missing libraries, failing kernels ----

rm libraries/libcudnn.so.9
gpu 0 $check first --skip versions
stdout_matches '^info step, B=2 T=16 bf16: .*, sm_90, our attention$'
gpu 1 SGT_HOST_FAULT=attention_kernel:error $check curves --skip versions
stdout_matches '^skip curve in bf16, cudnn attention: sgt-train: .*libcudnn.so.9 was not found'
stdout_matches '^fail curve in bf16, own attention: exit 1: sgt-train: '
stdout_matches '^    [|] sgt-train: '
grep -q '^sgt-train: .' r.jsonl.log || fail 'the log has nothing of it'
