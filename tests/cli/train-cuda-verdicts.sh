# The self-check in brief, CUDA on the host: all paths are right. An injected fault keeps its path out of training,
# with one line, and the verdict is stored. train-cuda-selfcheck.sh injects every fault into every path.
# In make check-all only: it needs CUDA's backend on the host.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"
cuda_on_the_host
data d
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME

run 0 sgt-train --self-check --device cuda
stderr_is ''
stdout_lines 17
[ "$(grep -c ' ok *$' .stdout)" -eq 15 ] || fail 'a path is out'
stdout_matches '^  attention cudnn +absent '
rm -rf cache

options="--data d --device cuda --seq-len 16 --batch-size 2 --steps 1 --eval-every 0 --model 1x16x2 --run r --force"
for fault in SGT_HOST_FAULT=attention_kernel:wrong NO_FAULT=; do
    run 0 env $fault sgt-train $options --quiet
    stderr_matches '^sgt-train: self-check: attention own is left out: wrong \(the output in bf16 is off by 1 of its size, '
    stderr_lines 1
done
