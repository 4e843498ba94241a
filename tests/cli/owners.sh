# owners.sh: two programs never write to one OUT or RUN at the same time, even if flock is refused
# or always succeeds. The second program is refused. A dead owner is replaced at once. An owner on
# another machine is replaced after a minute without a sign of life (here: 1.2 s). PAIRS pairs of
# writers that start at random delays never mix their files (SEED=N repeats the delays).
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/owners.inc"
work_in_memory
pairs=${PAIRS:-3} seed=${SEED:-$$}
echo "SEED=$seed PAIRS=$pairs"
data d
mkdir corpus
head -c 9000 "$ROOT/tokenize/vocab/gpt2.bpe" > corpus/a
cp corpus/a corpus/b.slow
echo 'until [ -e go ]; do sleep .02; done; exec cat "$1"' > wait.sh
echo 'exec sgt-tokenize --threads 1 --shard-tokens 1k --filter "slow=sh wait.sh" "$@"' > tokenize
sed 's/--shard-tokens 1k/--train-vocab 260/' tokenize > learn
touch go
run 0 sh tokenize --quiet corpus one
loud="sgt-train $small --steps 1000000 --save-every 3 --run run"
endless="$loud --quiet"
run 0 sgt-train --quiet $small --steps 3 --run three
run 0 sh learn --quiet corpus vocab
lost='this file was removed, or replaced by another program that writes here, so this program stops'
waits='waiting for up to 60 s to see whether the process that this file names is still running (it cannot be looked up from here)'
guards='only a file that names the writer, not a lock, keeps a second writer out'
# on_refusal FLOCK PROGRAM: check that stderr reports a refused flock exactly once, and only if
# FLOCK is an error
on_refusal() {
    case $1 in
    E*) [ "$(grep -cE "^$2: cannot be locked on this file system \\(.+\\): $guards\$" .stderr)" -eq 1 ] || fail 'not said once' ;;
    *) ! grep -q 'cannot be locked' .stderr || fail 'it says that flock is refused' ;;
    esac
}

# ---- the owner is running, then killed ----
for flock in '' lies ENOLCK ENOSYS EOPNOTSUPP EIO; do
    rm -rf out go run v
    begin "$flock" '' out/.work/sources.jsonl sh tokenize --quiet corpus out
    run 1 on "$flock" '' sh tokenize corpus out
    stderr_has 'sgt-tokenize: out: another sgt-tokenize is using this folder (wait until it ends)'
    on_refusal "$flock" 'sgt-tokenize: out'
    run 1 on "$flock" '' sh tokenize --quiet corpus out
    stderr_is 'sgt-tokenize: out: another sgt-tokenize is using this folder (wait until it ends)'
    kill_begun
    touch go
    run 0 on "$flock" '' sh tokenize corpus out
    ! grep -qF "$waits" .stderr || fail 'it waits for a dead process'
    same_folders out one

    begin "$flock" '' run/latest $endless
    run 1 on "$flock" '' $loud --force
    stderr_has 'sgt-train: run: another sgt-train is writing to this run (wait for it, or use another --run)'
    on_refusal "$flock" 'sgt-train: run'
    run 1 on "$flock" '' $endless --force
    stderr_is 'sgt-train: run: another sgt-train is writing to this run (wait for it, or use another --run)'
    kill_begun
    exists run/owner
    run 1 on "$flock" '' env SGT_TEST_RENAME=1 timeout 20 $endless --force # imitates a folder of another user
    stderr_has 'sgt-train: run/owner: cannot remove: Permission denied'
    run 0 on "$flock" '' sgt-train --quiet $small --steps 3 --run run --force
    ! grep -qF "$waits" .stderr || fail 'it waits for a dead process'
    [ "$(ls -A run)" = "$(ls -A three)" ] || fail "the run holds $(ls -A run)"

    rm go
    begin "$flock" '' v/.work/owner sh learn --quiet corpus v
    run 1 on "$flock" '' sh learn corpus v
    stderr_has 'sgt-tokenize: v: another program is using this folder (wait until it ends)'
    on_refusal "$flock" 'sgt-tokenize: v'
    kill_begun
    touch go
    run_silent on "$flock" '' sh learn --quiet corpus v
    same_folders v vocab
done
# A vocabulary is refused in a folder that holds an unfinished set. The set stays.
rm -rf out go
begin '' '' out/.work/sources.jsonl sh tokenize --quiet corpus out
run 1 timeout 20 sh learn --force corpus out
stderr_is 'sgt-tokenize: out: another program is using this folder (wait until it ends)'
kill_begun
touch go
run 1 sh learn --quiet --force corpus out
stderr_is 'sgt-tokenize: out: holds an unfinished set, and finishing it would remove the vocabulary (name a new '\
'folder, or remove out/.work)'
run 0 sh tokenize --quiet corpus out
same_folders out one

# ---- the owner is on another machine: running, then killed, then stopped for
# so long that it is replaced ----
rm -rf out go run
begin lies far out/.work/sources.jsonl sh tokenize --quiet corpus out
run 1 on lies near sh tokenize corpus out
stderr_has 'sgt-tokenize: out: another sgt-tokenize is using this folder (wait until it ends)'
run 1 on lies near sgt-inspect --export npy one out
stderr_is 'sgt-inspect: out: another program is using this folder (wait until it ends)'
kill_begun
touch go
# Two programs wait for the same owner.
on lies near sh tokenize --quiet corpus out 2> .stderr-other &
other=$!
run_any() { code=0 && "$@" > .stdout 2> .stderr || code=$?; }
run_any on lies near sh tokenize corpus out
stderr_has "out/.work/owner: $waits"
wait $other || [ $code -eq 0 ] || fail 'both are refused'
same_folders out one

# --export waits for a dead owner once, and then says what else may be done.
rm -rf out go
begin lies far out/.work/sources.jsonl sh tokenize --quiet corpus out
kill_begun
run 1 on lies near sgt-inspect --export npy one out
stderr_has '--force replaces'

rm -rf out go
begin lies far out/.work/sources.jsonl sh tokenize --quiet corpus out
kill -STOP $pid
touch go
began=$(date +%s%N)
run 0 on lies near sh tokenize --json corpus out
took=$((($(date +%s%N) - began) / 1000000))
check "a wait counts as work: $(field seconds .stdout) of $took ms" \
    awk "BEGIN { exit !($(field seconds .stdout) < $took / 1000 - 1.1) }"
same_folders out one
kill -CONT $pid
stopped_begun "sgt-tokenize: out/.work/owner: $lost"
same_folders out one

# A run that was killed before its first save has nothing to resume, so nobody waits for its owner.
begin lies far early/log.jsonl sgt-train $small --steps 1000000 --save-every 0 --run early
kill_begun
run 1 on lies near sgt-train --quiet --run early --resume
stderr_is 'sgt-train: early: no checkpoint to resume from (--resume-or-start starts at step 0)'

begin lies far run/latest $endless
run 1 on lies near $endless --force
stderr_has 'sgt-train: run: another sgt-train is writing to this run (wait for it, or use another --run)'
kill -STOP $pid
began=$(date +%s%N)
run_notes "run/owner: $waits" on lies near sgt-train $small --steps 3 --run run --force
took=$((($(date +%s%N) - began) / 1000000))
rate=$(sed -n 's/^100% 3\/3 .*, \([0-9.]*\) \([kM]*\)step\/s.*/\1\2/p' .stderr | sed 's/k/e3/; s/M/e6/')
check "the bar counts a wait as work: $rate steps a second, $took ms" \
    awk "BEGIN { exit !(3 / $rate < $took / 1000 - 1.1) }"
cp -r run kept
kill -CONT $pid
stopped_begun "sgt-train: run/owner: $lost"
same_folders -x tb run kept # the stopped program may still write some of its events

# Ranks: a rank that joins does not wait for the other ranks, whose machines may be gone. A rank
# that replaces an earlier process of the same rank waits for it.
rm -rf out go
begin lies far out/.work/part-000001/.work/sources.jsonl sh tokenize --quiet --rank 1 --ranks 2 corpus out
exists out/.work/owner-000001
run 1 on lies '' sh tokenize --rank 1 --ranks 2 corpus out
stderr_has 'sgt-tokenize: out: another sgt-tokenize is using this folder as this rank (wait until it ends)'
kill_begun
touch go
run 0 on lies near sh tokenize --rank 0 --ranks 2 corpus out
! grep -qF "$waits" .stderr || fail 'it waits for another rank'
run_notes "out/.work/owner-000001: $waits" on lies near sh tokenize --rank 1 --ranks 2 corpus out
same_folders out one

# While one rank watches the file of its earlier owner, here for a real minute, the other ranks need
# not wait.
rm -rf out go
begin '' far out/.work/part-000001/.work/sources.jsonl sh tokenize --quiet --rank 1 --ranks 2 corpus out
kill_begun
touch go
sh tokenize --rank 1 --ranks 2 corpus out 2> .stderr-begun &
pid=$!
wait_for_handler $pid
until grep -qF "out/.work/owner-000001: $waits" .stderr-begun; do kill -0 $pid || fail "$(cat .stderr-begun)"; done
run 0 sh tokenize --rank 0 --ranks 2 corpus out
kill -TERM $pid
ended 130 $pid

# An empty owner file: its writer was killed while creating it.
rm -rf run
mkdir run
: > run/owner
run 0 on '' '' sgt-train --quiet $small --steps 3 --run run

# Owners that are not regular files.
for made in 'mkdir' 'ln -s nowhere' 'mkfifo'; do
    rm -rf run out
    mkdir -p run out/.work
    $made run/owner
    $made out/.work/owner
    for command in "sgt-train --quiet $small --steps 3 --run run" 'sgt-tokenize corpus/a out'; do
        run 1 timeout 20 $command
        stderr_matches '^sgt-[a-z]*: (run|out/.work)/owner: must be a regular file that names the process '\
'that writes here, but is a link, folder or device \(remove it\)$'
    done
done

# The wait, here of a real minute, can be interrupted.
rm -rf run out
mkdir -p run out/.work
echo elsewhere | tee run/owner out/.work/owner > out/.work/lock
run_terminated sgt-train --quiet $small --steps 3 --run run
stderr_has 'sgt-train: interrupted'
run_terminated sgt-tokenize corpus/a out
stderr_has 'sgt-tokenize: stopped (run the same command to continue)'
[ "$(cat run/owner out/.work/owner | xargs)" = 'elsewhere elsewhere' ] || fail 'an interrupted wait changes the file'

# ---- pairs of writers that start at random delays ----
awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 10000; i++) printf "%.3f\n", rand() * rand() * 0.2 }' > delays
exec 3< delays
# pair A B: start two commands, the second after a random delay; set $a and $b to their exit codes.
# At least one must succeed. The other may fail only because of the first.
pair() {
    echo "flock '$flock': $1; $2" > .ran
    on "$flock" '' $1 > .stdout1 2> .stderr1 &
    first=$!
    read -r delay <&3
    sleep "$delay"
    run_any on "$flock" '' $2
    b=$code a=0
    wait $first || a=$?
    cat .stderr1 >> .stderr
    ! grep -vE ': another sgt-(tokenize|train) |: made with |: cannot be locked |: this run already has step-' .stderr || fail "$a $b"
    [ $a -eq 0 ] || [ $b -eq 0 ] || fail "both are refused: $a $b"
}
# is_set A B: out must equal set A or set B. is_run A B: run must equal run A or run B.
is_set() {
    diff -rq out "$1" > .diff1 || diff -rq out "$2" > .diff2 || fail "a mixed set: $(head -n 3 .diff1 .diff2)"
}
is_run() {
    for which; do
        facts "$which/log.jsonl" > .facts1
        facts run/log.jsonl > .facts2
        if cmp -s .facts1 .facts2; then
            [ "$(ls -A run)" = "$(ls -A "$which")" ] || fail "the run holds $(ls -A run)"
            for step in run/step-*; do same "$step/model.safetensors" "$which/${step#run/}/model.safetensors"; done
            return
        fi
    done
    fail 'a mixed run'
}
tokenize="sgt-tokenize --quiet --threads 1 --split 20% corpus/a"
train="sgt-train --quiet $small --steps 8 --save-every 2"
for n in 1 2; do
    run 0 $tokenize set$n --shard-tokens ${n}50
    run 0 $train --run run$n --seed $n
done
refused=0
for n in $(seq "$pairs"); do
    force=
    [ $((n % 2)) -eq 0 ] || force=--force
    for flock in lies '' ENOLCK; do
        rm -rf out run
        pair "$tokenize out --shard-tokens 150 $force" "$tokenize out --shard-tokens 250 $force"
        is_set set1 set2
        refused=$((refused + (a > 0) + (b > 0)))
        pair "$train --run run --seed 1 $force" "$train --run run --seed 2 $force"
        is_run run1 run2
        refused=$((refused + (a > 0) + (b > 0)))
    done
done
echo "$((6 * pairs)) pairs: in $refused of them, one was refused"
[ "$refused" -gt 0 ] || fail 'no two programs have met'

# ---- three ranks without a launcher, two processes for each rank, one of them killed ----
tokenize="$tokenize --shard-tokens 150 --ranks 3"
for n in $(seq "$pairs"); do
    for flock in lies ENOLCK; do
        rm -rf out
        all=
        for rank in 0 1 2 2 1 0; do
            on "$flock" '' $tokenize --rank $rank out > .stdout 2> .stderr$rank &
            all="$all $!"
        done
        read -r delay <&3
        sleep "$delay"
        kill -KILL ${all##* } 2> .kill
        for pid in $all; do wait $pid 2> .wait || :; done
        for rank in 0 1 2; do run 0 on "$flock" '' $tokenize --rank $rank out; done
        is_set set1 set1
    done
done
