# tokenize-resume.sh: if a run is stopped or killed, the same command completes it with the bytes of
# an undisturbed run. Complete shards are not written again. (tokenize-torture.sh kills at random
# moments, and tests/tokenize stops after each unit of work.)

work_in_memory

mkdir corpus
cp "$ROOT"/tokenize/[!e]*/*.[ch] corpus # not the examples: one has the name of another file
cp "$ROOT"/tokenize/vocab/gpt2.bpe corpus # one large document
gzip -n corpus/vocab.c # resume within compressed data and within JSONL too
sed 's/["\\]//g; s/	/ /g; s/.*/{"text":"&"}/' corpus/bpe.c > corpus/lines.jsonl
sed 's/["\\]//g; s/	/ /g; s/.*/{"text":"&"}/' corpus/feed.c corpus/source.c | gzip -n > corpus/more.jsonl.gz
# Literal end-of-text tokens: documents of one line to hundreds of lines in a text, and several
# documents in a line of JSONL.
awk '{ print (NR * NR % 89 == 1 ? "<|endoftext|>" : "") $0 }' corpus/*.h > corpus/stories.txt
sed 's/["\\]//g; s/	/ /g; s/ the /<|endoftext|>/g; s/.*/{"text":"&"}/' corpus/corpus.h corpus/feed.h > corpus/stories.jsonl
printf 'not UTF-8: \377\376' > corpus/zzz
touch -d @1700000000 corpus/zzz
again='sgt-tokenize --quiet --threads 2 --shard-tokens 2k --split 30% --special eot corpus'
run 0 $again undisturbed

# SIGINT and SIGTERM stop the run cleanly: exit code 130, one line, and completed work is kept.
for signal in INT TERM; do
    rm -rf out
    begun_on_a_pipe out/train_000003.bin sgt-tokenize --shard-tokens 5k corpus - out
    kill -$signal $pid
    ended 130 $pid
    stderr_is 'sgt-tokenize: stopped (run the same command to continue)'
    exists out/.work
    # A stopped run that reads standard input starts over without --force.
    run 0 sgt-tokenize --quiet --shard-tokens 5k corpus - out
    run 0 sgt-tokenize --quiet --shard-tokens 5k corpus - whole
    same_folders out whole
    rm -r whole
done

# Only one run at a time may use OUT, also with --shuffle (see owners.sh). Only the same command can
# continue an interrupted run.
rm -rf out
begun_on_a_pipe out/train_000003.bin sgt-tokenize --quiet --shard-tokens 5k corpus - out
end_begun
begun_on_a_pipe out2/.work/part-000000/train_000003.bin sgt-tokenize --quiet --shard-tokens 5k --shuffle 1 corpus - out2
run_failure 'out2: another sgt-tokenize is using this folder (wait until it ends)' sgt-tokenize --quiet --shard-tokens 5k --shuffle 1 corpus out2
end_begun
run_unforced 'out: made with --shard-tokens 5000, now 6000' sgt-tokenize --shard-tokens 6k corpus - out
run_failure_about 'sgt-tokenize: out: made from different inputs: input ' sgt-tokenize --shard-tokens 5k corpus out
run 0 sgt-tokenize --quiet --force --threads 2 --shard-tokens 2k --split 30% --special eot corpus out
same_folders out undisturbed

# If inputs have changed since the interruption, or files of the earlier run are missing, the
# command is refused.
interrupt() {
    rm -rf out
    killed_at out/train_000005.bin $again out
    # Try again if the run completed before it was killed, or if a split has no shard yet.
    [ ! -e out/manifest.json ] &&
        [ "$(sed 's/.*"checkpoint": \[//; s/\].*//' out/.work/journal | cut -d , -f 7)" -gt 0 ] || interrupt
}
interrupt
echo x >> corpus/zzz
run 1 $again out
stderr_is "sgt-tokenize: out: made from different inputs: corpus/zzz had 13 bytes, now 15 (--force replaces it)"
printf 'not UTF-8: \377\376' > corpus/zzz
touch -d @1700000000 corpus/zzz
# The summary states how much was there already and how much this run read.
inodes out | grep 'bin$' | sort > had
run 0 sgt-tokenize --threads 2 --shard-tokens 2k --split 30% --special eot corpus out
size='[0-9.]+ ([KM]i)?B'
stdout_matches "^$size of text in [0-9]+ files: $size in an earlier run, $size in this run, ([0-9]+ m|[0-9.]+ )s, "\
"[0-9.]+ [kMG]?B/s\$"
same_folders out undisturbed
inodes out | grep 'bin$' | sort > has
[ -s had ] && [ -z "$(comm -23 had has)" ] || fail 'whole shards were made again'
interrupt
run 0 sgt-tokenize --json --threads 2 --shard-tokens 2k --split 30% --special eot corpus out
read_here=$(field bytes_read .stdout)
[ "$read_here" -gt 0 ] && [ "$read_here" -lt "$(field bytes .stdout)" ] || fail "this run read $read_here bytes"
interrupt
rm out/train_000002.bin
run 1 $again out
stderr_is 'sgt-tokenize: out/train_000002.bin: was written earlier, but cannot be found: No such file or directory '\
'(--force starts over)'
run 0 $again --force out
same_folders out undisturbed
interrupt
truncate -s 100 out/.work/val_[0-9]*.bin.tmp
run 1 $again out
stderr_matches '^sgt-tokenize: out/\.work/val_[0-9]{6}\.bin\.tmp: has 100 bytes, but [0-9]+ were written \(--force starts '\
'over\)$'
run 0 $again --force out
same_folders out undisturbed
interrupt
rm out/.work/journal
run 1 $again out
stderr_is 'sgt-tokenize: out: OUT is not empty, and has neither manifest.json nor .work/journal (name a new folder, or '\
'--force adds the shards to it)'
# A damaged journal is refused, and so is one of another version.
for harm in 's/.$//' 's/"version": 3/"version": 2/'; do
    interrupt
    sed -i "$harm" out/.work/journal
    run_failure 'out/.work/journal: damaged, or written by a different version of sgt (finish with that version, or '\
'--force starts over)' $again out
done
run 0 $again --force out
same_folders out undisturbed
