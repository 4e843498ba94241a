# sgt-train --sampling packed: every reader gives the same run, which can be resumed at any step,
# over several epochs.
. "$ROOT/tests/cli/train.inc"
work_in_memory
mkdir d
head_of d/train_000000.bin 4000
validation d
options="--data d --model 1x16x2 --seq-len 32 --batch-size 4 --grad-accum 2 --lr 1e-3 --device cpu --threads 1
    --sampling packed --document-mask --save-every 7"

run 0 sgt-train $options --epochs 2.5 --eval-every 10 --run whole
stderr_matches '^sgt-train: packed: [0-9]+ rows per epoch, with [0-9.]+ documents each; [0-9.]+ % of the tokens are cropped$'
stderr_matches '^sgt-train: plan: .*, 2\.[56] epochs; '
steps=$(wc -l < whole/log.jsonl)
check 'several epochs' test "$steps" -gt 17
for reader in mmap uring; do
    run 0 sgt-train --quiet $options --epochs 2.5 --eval-every 10 --loader $reader --run $reader
    same_facts whole/log.jsonl $reader/log.jsonl
done
# The run is ended in the middle of an epoch, and resumed with another reader. Another sampling
# gives another run.
run 0 sgt-train --quiet $options --steps 9 --schedule constant --eval-every 0 --run cut
run 0 sgt-train --quiet $options --steps "$steps" --schedule constant --eval-every 0 --run constant
run 0 sgt-train --quiet --run cut --resume --steps "$steps" --loader uring
same_facts constant/log.jsonl cut/log.jsonl
last=$(cat constant/latest)
for name in model optimizer; do same constant/$last/$name.safetensors cut/$last/$name.safetensors; done
run_failure '--sampling: "shuffle" here, but it was "packed" in the run to resume (leave it out, or start a new '\
'--run)' sgt-train --quiet --run cut --resume --steps 99 --sampling shuffle
run 1 sgt-train --quiet $options --seq-len 9000 --run long
stderr_matches '^sgt-train: d: its [0-9]+ documents have only [0-9]+ tokens, but a packed row needs 9001 '\
'\(use a shorter sequence length, or more text\)$'
