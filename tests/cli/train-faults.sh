# sgt-train on a CPU with each system call and allocation disturbed in turn (faults.inc), from the
# start and after a resume: files that cannot be created, written, flushed or renamed; data that a
# reader cannot read; failed allocations; threads that cannot be started; clocks that jump; SIGKILL
# at each call that changes a file.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/faults.inc"
. "$ROOT/tests/cli/train.inc"

need_faults
work_in_memory
data d
validation d
echo '{}' > d/tokenizer.json # is copied to the checkpoints unchanged

whole() {
    same_facts undisturbed/log.jsonl run/log.jsonl
    same undisturbed/latest run/latest
    [ "$(names run)" = "$(names undisturbed)" ] || fail "the run holds $(ls run | xargs)"
    for folder in run/step-*; do
        [ -e "undisturbed/${folder#run/}" ] || continue # only if a save failed, or the names would differ
        facts_of $folder .got
        facts_of "undisturbed/${folder#run/}" .want
        cmp -s .got .want || fail "$folder differs from that of an undisturbed run"
    done
}
# names RUN: print the files that must exist. The memory log may be missing if it could not be
# measured or opened, and a file system may refuse to remove the owner file. If a save failed and
# training continued, the checkpoints before the last may be those of other steps.
names() { ls "$1" | grep -v -e memory -e owner | grep -v "^$earlier"; }
# A checkpoint with its final name must be complete, and `latest` must name one.
kept() {
    for name in run/step-*; do
        [ -e "$name" ] || continue
        exists "$name/state.json"
        for file in model optimizer; do same "$name/$file.safetensors" "each/${name#run/}/$file.safetensors"; done
    done
    [ ! -e run/latest ] || exists "run/$(cat run/latest)"
    ! grep -q 'is not saved: training continues' .stderr || earlier=step-0000000[245]
}
files() {
    disturb $changes:kill
    disturb $changes:EIO
    disturb $writes:ENOSPC
    disturb $transfers,openat,fsync:EINTR
    disturb clone,clone3,vfork:EAGAIN
}
reading() {
    disturb $reads:EIO
    disturb $transfers:short
    disturb memory:fail 3
}
looking() { # disturb each system call that looks up a file
    prepare
    "$faults" -o .seen access:count $again || fail 'undisturbed, but counted'
    read -r places _ < .seen
    for n in $(seq "$places"); do disturb_at access:EIO "$n"; done
}
prepare() { earlier=none; rm -rf run; [ ! -e begun ] || cp -r begun run; }
options="--quiet $small --eval-every 2 --save-every 2 --keep 2 --resume-or-start"
run 0 sgt-train $options --steps 6 --loader preload --run each --keep 6
run 0 sgt-train $options --steps 6 --loader preload --run undisturbed

again="sgt-train $options --steps 6 --loader preload"
looking # a tokenizer that cannot be examined must not count as missing
files
reading
disturb memory@libxxhash:fail
for jump in back forward wild; do disturb clock:$jump; done
cp -r undisturbed begun # the run, two steps before its end
rm -r begun/step-00000006
sed 's/6/4/' undisturbed/latest > begun/latest
again="sgt-train $options --steps 6 --loader mmap"
prepare
run 1 "$faults" getdents64:EIO:1 $again # a run whose folder cannot be read must not count as one without checkpoints
stderr_is 'sgt-train: run: Input/output error'
kept
looking # a log that cannot be checked must not count as empty
files
reading
again="sgt-train $options --steps 6 --loader uring"
reading
disturb clone,clone3,vfork,io_uring_setup,io_uring_enter,io_uring_register:EAGAIN
faults_sum 1000
