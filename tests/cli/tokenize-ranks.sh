# tokenize-ranks.sh: several ranks, started with --rank and --ranks or by mpirun, write the same
# bytes to OUT as one rank, whichever rank dies. Also combinations of options that are refused.
. "$ROOT/tests/cli/corpus.inc"

work_in_memory

some_corpus corpus
gzip -n < corpus/lines.jsonl > corpus/packed.jsonl.gz
printf 'not UTF-8: \377\376' > corpus/a
printf 'neither: \377\376\375' > corpus/zzz
touch -d @1700000000 corpus/*
files=$(ls corpus | wc -l)
options='--quiet --shard-tokens 1k --split 30%'
run 0 sgt-tokenize $options corpus one
[ "$(ls one/*.bin | wc -l)" -gt 20 ] || fail 'too few shards'
[ "$(grep -c offset one/manifest.json)" = 5 ] || fail 'the places of ill-formed UTF-8 are not in the manifest'

# ---- the same bytes for any number of ranks, in any order, with any threads.
# The last rank completes OUT ----
for ranks in 1 3 $((files + 3)); do
    rm -rf out
    for i in $(seq $((ranks - 1)) -1 0); do
        absent out/manifest.json
        run_says '' sgt-tokenize $options --threads $((1 + i % 3)) --rank $i --ranks $ranks corpus out
        stderr_is ''
    done
    same_folders out one
done
# Run both ranks at the same time, repeatedly: one may find OUT while the other creates it, and both
# may end at the same time.
for again in 1 2 3 4 5 6 7 8 9 10 11 12; do
    rm -rf out
    for i in 0 1 2 3; do sgt-tokenize $options --threads 1 --rank $i --ranks 4 corpus out 2> ".stderr$i" & done
    wait
    [ -z "$(cat .stderr[0-3])" ] || fail "side by side, $again: $(cat .stderr[0-3])"
    same_folders out one
done

# ---- their output ----
rm -rf out
talks='--shard-tokens 1k --split 30%'
run_says '' sgt-tokenize $talks --rank 1 --ranks 3 corpus out
stderr_is 'sgt-tokenize: out: part 2 of 3 is complete; parts still missing: 2 (the process that finishes the last part completes OUT)'
run_says '' sgt-tokenize $talks --json --rank 0 --ranks 3 corpus out
stderr_is 'sgt-tokenize: out: part 1 of 3 is complete; parts still missing: 1 (the process that finishes the last part completes OUT)'
run 0 sgt-tokenize $talks --json --rank 2 --ranks 3 corpus out
stdout_lines 1
stderr_is ''
for what in "files $files" "documents $((files + 598))" 'lone_surrogates 600'; do
    [ "$(field ${what% *} .stdout)" = "${what#* }" ] || fail "$what: $(cat .stdout)"
done
[ "$(($(field train_tokens .stdout) + $(field val_tokens .stdout)))" = "$(field tokens .stdout)" ] || fail 'tokens'
same_folders out one
# Any rank accepts a complete OUT.
run_prints 'already complete, nothing to do' sgt-tokenize $talks --rank 5 --ranks 9 corpus out

# ---- refused ----
run_usage '--rank: needs --ranks N, the number of processes' sgt-tokenize --rank 0 corpus out
run_usage '--ranks: needs --rank I, the number of this process' sgt-tokenize --ranks 2 corpus out
run_misuse 'rank: 2 must be below the number of ranks, 2 (ranks are numbered from 0)' sgt-tokenize --rank 2 --ranks 2 corpus out
run 1 env RANK=0 WORLD_SIZE=2 MASTER_ADDR=no..such MASTER_PORT=29500 sgt-tokenize corpus out
stderr_is 'sgt-tokenize: MASTER_ADDR=no..such: unknown host'
for has in MASTER_ADDR= MASTER_PORT=29500 MASTER_ADDR=here; do
    lacks=MASTER_ADDR
    [ $has != MASTER_ADDR=here ] || lacks=MASTER_PORT
    run 2 env $has RANK=1 WORLD_SIZE=2 sgt-tokenize corpus out
    stderr_has "sgt-tokenize: RANK is 1 and WORLD_SIZE is 2, but $lacks is not set (set it, or unset both to run this \
process alone)"
done
run_usage '--ranks 0: must be from 1 to 1000000' sgt-tokenize --ranks 0 --rank 0 corpus out
run 2 sgt-tokenize --rank 0 --ranks 2 - out2 < corpus/a
stderr_is 'sgt-tokenize: standard input (-) cannot be divided among ranks (save it as files first)'
absent out2
run_unforced 'out: made with --shard-tokens 1000, now 7' sgt-tokenize --rank 0 --ranks 2 --shard-tokens 7 --split 30% corpus out
refused() { # MESSAGE COMMAND...: check exit code 1, this line, and an unchanged OUT
    message=$1
    shift
    rm -rf kept
    cp -rp out kept
    run 1 "$@"
    stderr_is "sgt-tokenize: $message"
    same_folders -x owner out kept # the owner file of a dead process is removed
}
rm -rf out
run 0 sgt-tokenize $options --rank 0 --ranks 3 corpus out
refused 'out: made with --ranks 3, now 2 (--force replaces it)' sgt-tokenize $options --rank 1 --ranks 2 corpus out
refused 'out: made with --ranks 3, now not given (--force replaces it)' sgt-tokenize $options corpus out
refused 'out: made with --split 30%, now none (--force replaces it)' \
    sgt-tokenize --shard-tokens 1k --rank 1 --ranks 3 corpus out
echo x > corpus/zzzz
refused "out: made from different inputs: input $((files + 1)) was none, now corpus/zzzz (--force replaces it)" \
    sgt-tokenize $options --rank 1 --ranks 3 corpus out
rm corpus/zzzz
run 0 sgt-tokenize $options --force corpus out
same_folders out one
# ---- a rank is at work: refused are the same rank, a run without ranks, and other options ----
mkdir more
for i in 1 2 3 4; do cp "$ROOT/tokenize/vocab/gpt2.bpe" more/$i; done
run 0 sgt-tokenize $options more two
rm -rf out
sgt-tokenize $options --threads 1 --rank 1 --ranks 2 more out &
pid=$!
until [ -e out/.work/part-000001/train_000001.bin ] || [ -e out/.work/part-000001/val_000001.bin ]; do
    kill -0 $pid || fail 'ended too early'
done
kill -STOP $pid
absent out/.work/part-000001/manifest.json
run 1 sgt-tokenize $options --rank 1 --ranks 2 more out
stderr_is 'sgt-tokenize: out: another sgt-tokenize is using this folder as this rank (wait until it ends)'
for force in '' --force '--force --rank 0 --ranks 3'; do
    run_failure 'out: another sgt-tokenize is using this folder (wait until it ends)' sgt-tokenize $options $force more out
done
run_failure 'out: made with --ranks 2, now 3 (--force replaces it)' sgt-tokenize $options --rank 0 --ranks 3 more out
# The other rank completes its part while the first is stopped.
run 0 sgt-tokenize $options --rank 0 --ranks 2 more out
exists out/.work/part-000000/manifest.json
kill -TERM $pid
kill -CONT $pid
ended 130 $pid
run 0 sgt-tokenize $options --rank 1 --ranks 2 more out
same_folders out two

# Ranks do not continue a killed run without ranks, and a run without ranks does not continue
# theirs.
rm -rf out
begun_on_a_pipe out/train_000003.bin sgt-tokenize $options more - out
run_failure 'out: another sgt-tokenize is using this folder (wait until it ends)' sgt-tokenize $options --rank 0 --ranks 2 more out
end_begun
refused 'out: made with --ranks not given, now 2 (--force replaces it)' \
    sgt-tokenize $options --rank 0 --ranks 2 more out

# A rank without files leaves OUT as it was. If it removes an empty OUT while another rank begins,
# that rank creates it again.
if strace -o .traced true 2> /dev/null; then
    stopped() { # RANK CALL: start the rank and stop it after its first CALL; set $tracer and $pid
        strace -f -o "trace$1" -e trace="$2" -e inject="$2":signal=STOP:when=1 \
            sgt-tokenize --quiet --rank "$1" --ranks 2 big out &
        tracer=$!
        until grep -q 'stopped by SIGSTOP' "trace$1"; do kill -0 $tracer || fail "rank $1 ended too early"; done 2> .ended
        pid=$(pgrep -P $tracer)
    }
    head -c 100000 "$ROOT/tokenize/vocab/gpt2.bpe" > big
    run 0 sgt-tokenize --quiet big alone
    rm -rf out
    stopped 0 rmdir
    tracer0=$tracer pid0=$pid
    stopped 1 mkdir
    kill -CONT $pid0
    ended 0 $tracer0
    absent out
    kill -CONT $pid
    ended 0 $tracer
    same_folders out alone
fi

# ---- an error on one rank ends that rank; the parts of the others are kept ----
rm -rf out
run 0 sgt-tokenize $options --rank 1 --ranks 2 corpus out
inodes out/.work/part-000001 > had
(ulimit -f 1 && trap '' XFSZ && exec sgt-tokenize $options --rank 0 --ranks 2 corpus out) > .stdout 2> .stderr &&
    fail 'a full disk is no error'
stderr_matches '^sgt-tokenize: out/\.work/part-000000/.*: cannot (write|flush to disk): File too large$'
inodes out/.work/part-000001 > has
same had has
run 0 sgt-tokenize $options --rank 0 --ranks 2 corpus out
same_folders out one
# Damage to a complete part is found. --force makes that part again.
rm -rf out
run 0 sgt-tokenize $options --rank 1 --ranks 2 corpus out
rm out/.work/part-000001/train_000001.bin
run_failure_about 'out/.work/part-000001/train_000001.bin: was written earlier, but cannot be found: ' sgt-tokenize $options --rank 1 --ranks 2 corpus out
run 0 sgt-tokenize $options --force --rank 1 --ranks 2 corpus out
run 0 sgt-tokenize $options --rank 0 --ranks 2 corpus out
same_folders out one

# The rank that completes OUT also finds a wrong .idx file.
rm -rf out
run 0 sgt-tokenize $options --rank 1 --ranks 2 corpus out
printf '\005' | dd of=out/.work/part-000001/train_000000.idx bs=1 conv=notrunc 2> /dev/null
run_failure_like '^sgt-tokenize: out/\.work/part-000001/train_000000.idx: at byte 0: document 0 starts at token 5, '\
'expected the first token of its split \(remove its folder, and run the command of its rank again\)$' sgt-tokenize $options --rank 0 --ranks 2 corpus out
rm -r out/.work/part-000001
run 0 sgt-tokenize $options --rank 1 --ranks 2 corpus out
same_folders out one

# ---- with a launcher: ranks are connected (torchrun's variables, and mpirun) ----
. "$ROOT/tests/cli/ranks.inc"
rm -rf out
two 0 sgt-tokenize $talks corpus out
same_folders out one
stdout_has ' documents, '
[ ! -s .stdout1 ] && [ ! -s .stderr1 ] || fail 'rank 1 talks'
# The rank that reads a file reports what it leaves out of it. Rank 0 reports what every rank finds.
mkdir torn
for i in 1 2 3 4; do { cat corpus/packed.jsonl.gz && echo junk; } > torn/$i.jsonl.gz; done
printf '%%PDF-1.7\n' > torn/5
two 0 sgt-tokenize torn torn-out
stdout_has '4 bad lines, rows or ends of files skipped'
[ "$(grep -c 'torn/5: skipped: ' .stderr)" = 1 ] || fail "$(cat .stderr)"
for rank in 0 1; do
    [ "$(grep -c 'trailing garbage ignored: 5 B after' .stderr$rank)" = 2 ] || fail "rank $rank: $(cat .stderr$rank)"
done
two 0 sgt-tokenize $talks --json corpus out
stdout_lines 1
[ "$(field already_done .stdout)" = ' true' ] || [ "$(field already_done .stdout)" = true ] || fail "$(cat .stdout)"
two 1 sgt-tokenize $talks --special eot corpus out
stderr_is 'sgt-tokenize: out: made with --special none, now eot (--force replaces it)'
two 0 sgt-tokenize $talks --force --special eot corpus out
run 0 sgt-tokenize --quiet $talks --special eot corpus eot
same_folders out eot
# Connected ranks can also shuffle and deduplicate.
for also in --dedup '--shuffle 7 --dedup'; do
    run 0 sgt-tokenize --quiet $talks $also corpus alone --force
    rm -rf out
    two 0 sgt-tokenize --quiet $talks $also corpus out
    same_folders out alone
done
# If ranks have different options, all end, with one line from the rank that connected second.
other_options() { # OPTIONS-OF-RANK-0 OPTIONS-OF-RANK-1 REGEX
    rm -rf out
    pair 1 "sgt-tokenize $1 corpus out" "sgt-tokenize $2 corpus out"
    stderr_lines 1
    stderr_matches "^sgt-tokenize: (rank 1: )?out: made with $3 \(--force replaces it\)\$"
}
other_options "$talks" "$talks --special eot" '--special (none, now eot|eot, now none)'
other_options '--dedup' '' '--dedup (not given, now true|true, now not given)'
run 0 sgt-tokenize --quiet --train-vocab 300 corpus a/v
run 0 sgt-tokenize --quiet --train-vocab 301 corpus b/v
other_options '--vocab a/v' '--vocab b/v' 'a different vocabulary: fingerprint [0-9a-f]{16}, now [0-9a-f]{16}'
# Ranks that do not share a folder.
rm -rf out
pair 1 "sgt-tokenize $talks corpus out" "sgt-tokenize $talks corpus apart"
stderr_lines 1
stderr_matches '(out|apart)/\.work: the part of another rank is missing \(all ranks must share one folder\)$'
rm -rf out
command -v mpirun > /dev/null && [ -e "$BIN/../lib/libsgt-mpi.so" ] || skip 'no Open MPI; all else passed'
mpi="mpirun --allow-run-as-root --oversubscribe"
run 0 $mpi -n 3 sgt-tokenize $talks $also --json corpus out
stdout_lines 1
same_folders out alone
# If a rank is killed or stopped, or mpirun is, all ranks end, and the same command continues the
# run. After a signal, mpirun gives its ranks a second, in which they may complete OUT.
run 0 sgt-tokenize --quiet $talks --shuffle 3 more two --force
for how in killed stopped launcher; do
    rm -rf out
    $mpi -n 2 sgt-tokenize --quiet --threads 1 $talks --shuffle 3 more out > .stdout 2> .stderr &
    launcher=$!
    until [ -e out/.work/part-000000/train_000001.bin ]; do kill -0 $launcher || fail 'ended too early'; done
    rank=$(pgrep -P $launcher | tail -1)
    case $how in
    killed) kill -9 "$rank" ;;
    stopped) kill -TERM "$rank" ;;
    launcher) kill -INT $launcher ;;
    esac || { kill $launcher && fail "no rank to end"; }
    ! wait $launcher || [ $how = launcher ] || fail 'mpirun has ended well'
    [ $how = launcher ] || absent out/manifest.json
    [ $how != stopped ] || stderr_has 'sgt-tokenize: stopped (run the same command to continue)'
    run 0 $mpi -n 2 sgt-tokenize --quiet $talks --shuffle 3 more out
    same_folders out two
done
# --rank and --ranks override a launcher's variables.
rm -rf out
run 0 $mpi -n 1 sgt-tokenize $options --rank 1 --ranks 2 corpus out
run 0 $mpi -n 1 sgt-tokenize $options --rank 0 --ranks 2 corpus out
same_folders out one
