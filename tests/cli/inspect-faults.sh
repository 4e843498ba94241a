# sgt-inspect with each system call and allocation disturbed in turn (faults.inc): it prints its usual output, or
# names the fault. With --merge, every file in OUT is complete, an older set stays until the new one replaces it, and
# a failed run removes the files that it made.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/faults.inc"
. "$ROOT/tests/cli/train.inc"

need_faults
work_in_memory

mkdir corpus more
for i in 1 2 3 4 5 6; do head -c 600 "$ROOT/tokenize/vocab/gpt2.bpe" | tail -c $((i * 90)) > corpus/$i; done
head -c 900 "$ROOT/tokenize/vocab/gpt2.bpe" > more/words
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus a
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% more b
run 0 sgt-tokenize --quiet --shard-tokens 500 --split 40% more old
data d
run 0 sgt-train --quiet $small --steps 4 --save-every 2

# ---- output ----

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
    sees_memory || return 0
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

# ---- --merge ----

run 0 sgt-inspect --merge --quiet a b undisturbed
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus more together
same_folders undisturbed together
old=none
prepare() {
    rm -rf out
    [ $old = none ] || cp -r $old out
}
whole() { # .work may remain if the file system refuses to remove it
    diff -r -x .work undisturbed out > .diff 2>&1 || { head -5 .diff; fail 'not the set of an undisturbed run'; }
}
is_over() { [ $old = none ] && [ -e out/manifest.json ]; }
kept() {
    for file in out/*; do
        [ -e "$file" ] || continue
        cmp -s "$file" "undisturbed/${file#out/}" || cmp -s "$file" "old/${file#out/}" || fail "$file is half done"
    done
    if [ -e out/manifest.json ]; then # a complete set, the old one or the new one
        is=undisturbed
        ! cmp -s out/manifest.json old/manifest.json || is=old
        for file in $is/*; do same "$file" "out/${file#*/}"; done
    fi
    # An unfinished merge is removed, and OUT can be made again. A merge that has replaced an older
    # set stays.
    [ $code -ne 1 ] || [ $old = old ] || [ -e out/manifest.json ] || grep -q ': out of memory$' .stderr || absent out
    [ $old = none ] || [ $code -ne 1 ] || exists out
}
again='sgt-inspect --merge --quiet a b out'
disturb_files
if sees_memory; then
    disturb memory:fail
    disturb memory@libxxhash:fail
fi
old=old
again="$again --force"
disturb $changes:kill
disturb $writes:ENOSPC
faults_sum 1000
