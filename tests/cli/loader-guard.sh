# A shard is truncated while it is mapped: the command prints one line that names the shard and
# exits with 1; no signal kills it.
. "$ROOT/tests/cli/train.inc"

cut_short() { dd if=/dev/null of="$1" bs=1 seek="$2" 2> .dd || fail "dd: $(cat .dd)"; }

ended_with() { # LINE
    ended 1 $pid
    stdout_is ''
    stderr_lines 1
    stderr_has "$1"
}

# Training: the shard is truncated after a few steps, which are counted in the log.
data d
echo "sgt-train on d, which is cut short" > .ran
sgt-train $small --loader mmap --sampling random --steps 99999999 --save-every 0 --run run --quiet \
    > .stdout 2> .stderr &
pid=$!
while [ "$(cat run/log.jsonl 2> /dev/null | wc -l)" -lt 5 ]; do
    kill -0 $pid || fail "it ended before: $(cat .stderr)"
    sleep .05
done
cut_short d/train_000000.bin 4096
ended_with 'sgt-train: d/train_000000.bin: ends at byte 4096, in the middle of a window: cut short while in use'

# Measuring: each shard is opened more than once, so the truncation may come before one is opened.
data d
echo "sgt-bench loader on d, which is cut short" > .ran
sgt-bench loader d --loader mmap --outputs u16 --seq-len 64 --seconds 60 --quiet > .stdout 2> .stderr &
pid=$!
until grep -q train_000000.bin /proc/$pid/maps; do
    kill -0 $pid || fail "it ended before: $(cat .stderr)"
    sleep .05
done
cut_short d/train_000000.bin 4096
ended_with 'sgt-bench loader: d/train_000000.bin: '
