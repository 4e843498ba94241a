# sgt-inspect with each system call and allocation disturbed in turn (faults.inc): it prints its
# usual output or names the fault. layout-faults.sh covers --export.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/faults.inc"
. "$ROOT/tests/cli/train.inc"

need_faults
work_in_memory

small_corpus
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus a
data d
run 0 sgt-train --quiet $small --steps 4 --save-every 2

prepare() { :; }
whole() { same .stdout undisturbed.txt; }
prints() { # COMMAND...
    again=$*
    run 0 $again
    cp .stdout undisturbed.txt
    disturb $reads:EIO
    disturb write:EIO
    disturb write:ENOSPC
    disturb $transfers:short
    disturb $transfers,openat:EINTR
    disturb clone,clone3:EAGAIN
    disturb memory:fail
    disturb memory@libxxhash:fail
}
prints sgt-inspect a
prints sgt-inspect a --json
prints sgt-inspect a --verify --threads 1
prints sgt-inspect a --decode 3:400
prints sgt-inspect a --batch 0:2 --batch-size 2 --seq-len 32
prints sgt-inspect a --batch 0:2 --batch-size 2 --seq-len 32 --json --loader uring
prints sgt-inspect --compare a a
prints sgt-inspect run
prints sgt-inspect run/step-00000004 --json

faults_sum 1000
