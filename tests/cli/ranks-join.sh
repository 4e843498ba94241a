# ranks-join.sh: ranks that wait for the others, and failures before all ranks have connected. The
# first signal ends a waiting rank. A port that is in use, and an option that is wrong on one rank,
# give one message.
. "$ROOT/tests/cli/ranks.inc"
echo text > text
command='sgt-tokenize --quiet text out'
stops() { # SIGNAL PID: the first signal must end the process, without a message
    kill -"$1" "$2"
    ended 130 "$2"
    cat .stdout? .stderr? > .stderr
    stderr_is ''
    absent out
}

# ---- a rank waits: for rank 0, which was not started; for rank 1; while
# connected to rank 0, for rank 2 ----
next_port
for signal in INT TERM; do
    for rank in 1 0; do
        start $rank $command
        handles $pid
        stops $signal $pid
    done
done
world=3
next_port
start 0 $command
pid0=$pid
start 1 $command
until [ "$(readlink /proc/$pid/fd/* | grep -c '^socket:')" = 2 ]; do kill -0 $pid || fail 'rank 1 has ended'; done
stops TERM $pid
stops TERM $pid0

# ---- a rank that has waited for seconds says for which rank. Commands that
# need no other rank do not wait ----
world=2
for rank in 0 1; do
    next_port
    start $rank sgt-tokenize text out
    eval pid$rank=$pid port$rank=$port
done
for rank in 0 1; do
    eval pid=\$pid$rank
    until [ -s .stderr$rank ]; do kill -0 $pid && sleep .1 || break; done
    kill -TERM $pid
    ended 130 $pid
done
cat .stderr? > .stderr
hint='(to run this process alone, unset WORLD_SIZE, which is 2)'
stderr_is "sgt-tokenize: waiting up to 120 s for rank 1 of 2 $hint
sgt-tokenize: waiting up to 120 s for rank 0 of 2 at 127.0.0.1, port $((port1 + 1)): Connection refused $hint"
for rank in 0 1; do
    start $rank sgt-tokenize --dry-run text
    ended 0 $pid
    [ "$(grep -c . .stdout$rank)" = $((3 - 3 * rank)) ] || fail "rank $rank: $(cat .stdout$rank)"
    run 0 env OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 sgt-train --estimate-memory --device cpu \
        --model 1x16x2 --batch-size 2
    [ "$(grep -c 'in all' .stdout)" = $((1 - rank)) ] || fail "rank $rank: $(cat .stdout)"
done
# ---- another program has the port: here a stopped rank 0, which does not answer ----
world=2
start 0 $command
other=$pid
handles $other
until grep -qi ":$(printf %04X $((port + 1))) 00000000:0000 0A" /proc/net/tcp; do kill -0 $other || fail 'it has ended'; done
kill -STOP $other
echo "rank 0 of 2: $command" > .ran
start 0 $command
ended 1 $pid
cat .stderr0 > .stderr
stderr_is "sgt-tokenize: rank 0 cannot listen at 127.0.0.1, port $((port + 1)): Address already in use (set a different MASTER_PORT: rank 0 listens on the port after it)"
: > .stderr0
start 1 sgt-tokenize text out
until [ -s .stderr1 ]; do kill -0 $pid && sleep .1 || break; done
kill -TERM $pid
ended 130 $pid
cat .stderr1 > .stderr
stderr_is "sgt-tokenize: waiting up to 120 s for rank 0 of 2 at 127.0.0.1, port $((port + 1)): a different program listens there (set a different \
MASTER_PORT) $hint"
: > .stderr1
kill -9 $other
wait $other 2> .ended

# ---- an option that is wrong on rank 1. The message comes after a delay, in which a launcher may
# end the rank, as it does if rank 0 has the same wrong option ----
for program in sgt-tokenize sgt-train; do
    launch 'sgt-tokenize --quiet text out' "$program --nonsense"
    ended 2 $pid1
    handles $pid0
    kill -TERM $pid0
    ended 130 $pid0
    cat .stdout? .stderr? > .stderr
    stderr_is "$program: rank 1: --nonsense: no such option
try '$program --help'"
    : > .stderr1
    start 1 $program --nonsense
    handles $pid
    stops TERM $pid
done
two 2 sgt-train --nonsense
stderr_is "sgt-train: --nonsense: no such option
try 'sgt-train --help'
sgt-train: rank 1: --nonsense: no such option
try 'sgt-train --help'"
