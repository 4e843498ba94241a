# tokenize-out.sh: OUT belongs to one command. A different command is refused unless --force is
# given.

mkdir in
for i in 1 2 3; do echo "text number $i" > in/$i.txt; done
touch -d @1600000000 in/*
run 0 sgt-tokenize --quiet in out
cp -r out kept
refused() { # MESSAGE COMMAND...: check exit code 1, this line, an empty stdout, and an unchanged OUT
    message=$1
    shift
    run 1 "$@"
    stdout_is ''
    stderr_is "sgt-tokenize: $message"
    same_folders out kept
}

# A set made with other options is refused. The message names the option.
refused 'out: made with --split none, now 50% (--force replaces it)' sgt-tokenize --split 50% in out
refused 'out: made with --shard-tokens 100000000, now 7 (--force replaces it)' sgt-tokenize --shard-tokens 7 in out
refused 'out: made with --special none, now eot (--force replaces it)' sgt-tokenize --special eot in out
refused 'out: made with --invalid-utf8 keep, now fail (--force replaces it)' \
    sgt-tokenize --quiet --json --invalid-utf8 fail in out

# Other inputs are refused: a file of another size, one more, one fewer, another name.
echo more >> in/2.txt
refused 'out: made from different inputs: in/2.txt had 14 bytes, now 19 (--force replaces it)' sgt-tokenize in out
echo "text number 2" > in/2.txt
touch -d @1600000000 in/2.txt
echo x > in/4.txt
refused 'out: made from different inputs: input 4 was none, now in/4.txt (--force replaces it)' sgt-tokenize in out
rm in/4.txt
mv in/3.txt ..3
refused 'out: made from different inputs: input 3 was 3.txt, now none (--force replaces it)' sgt-tokenize in out
mv ..3 in/0.txt
refused 'out: made from different inputs: input 1 was 1.txt, now in/0.txt (--force replaces it)' sgt-tokenize in out
mv in/0.txt in/3.txt

# The inputs' time stamps, location and spelling of paths do not matter.
touch -d @1700000000 in/1.txt
run_silent sgt-tokenize in out
stdout_has 'already complete'
cp -rp in moved
run_prints 'already complete' sgt-tokenize moved/1.txt moved/2.txt moved/3.txt out
same_folders out kept

# --force replaces the old set completely, even if the command is the same.
run 0 sgt-tokenize --quiet --split 50% --shard-tokens 3 in many
n=$(ls many | wc -l)
run 0 sgt-tokenize --force --split none in many
is "$(ls -A many | paste -sd' ')" 'manifest.json sources.jsonl tokenizer.json train_000000.bin train_000000.idx'
same many/train_000000.bin out/train_000000.bin
run 0 sgt-tokenize --force in many
! grep -q 'already complete' .stdout || fail 'it was not made anew'
same many/train_000000.bin out/train_000000.bin

# Missing shards and wrong sizes are found. --force makes the set again.
truncate -s -2 many/train_000000.bin
run_failure 'many/train_000000.bin: has 1052 bytes, but 1054 were written (--force starts over)' sgt-tokenize in many
rm many/train_000000.bin
run_failure 'many/train_000000.bin: was written earlier, but cannot be found: No such file or directory (--force '\
'starts over)' \
    sgt-tokenize in many
run 0 sgt-tokenize --force in many
same many/train_000000.bin out/train_000000.bin
echo '{' > many/manifest.json
run_failure_about 'sgt-tokenize: many/manifest.json: ' sgt-tokenize in many
run 0 sgt-tokenize --force in many
echo garbage > many/sources.jsonl
run_failure 'many: its list of inputs is damaged (--force replaces it)' sgt-tokenize in many
rm many/sources.jsonl
run_failure 'many/sources.jsonl: No such file or directory (--force starts over)' sgt-tokenize in many
run 0 sgt-tokenize --force in many

# OUT is refused if it is a folder of other files, which may be an INPUT if the user forgot OUT, or
# if it is a file.
mkdir other
echo precious > other/train_000000.txt
run_failure "other: OUT is not empty, and has neither manifest.json nor .work/journal (name a new folder, or \
--force adds the shards to it)" sgt-tokenize in other
[ "$(ls -A other)" = train_000000.txt ] || fail 'something was written beside what is there'
run 0 sgt-tokenize --force in other
[ "$(cat other/train_000000.txt)" = precious ] || fail '--force removed what is not ours'
same other/train_000000.bin out/train_000000.bin
run_failure 'in/1.txt: OUT is a file, not a folder (name another OUT)' sgt-tokenize in in/1.txt
run_failure 'in/1.txt/out: Not a directory' sgt-tokenize in in/1.txt/out
mkdir empty deep
run 0 sgt-tokenize in empty
run 0 sgt-tokenize in deep/a/b
same_folders empty deep/a/b
mkdir -p foreign/.work
echo mine > foreign/.work/mine
mkdir -p raced/part/.work/part-000001 raced/owner/.work
: > raced/owner/.work/owner-000001
for out in part owner; do run 0 sgt-tokenize --quiet in raced/$out; done # a rank began as the last one ended, and was killed
run_failure 'foreign/.work: holds files that sgt did not create (move them, or name another OUT)' sgt-tokenize in foreign
[ "$(cat foreign/.work/mine)" = mine ] || fail "somebody else's .work was emptied"

# A symbolic link .work is not followed, whether it leads to a folder or to nothing.
mkdir linked theirs
echo precious > theirs/a.tmp
for to in nowhere ../theirs; do
    ln -s $to linked/.work
    run 1 timeout -k 1 60 sgt-tokenize --force in linked
    stderr_is 'sgt-tokenize: linked/.work: is not a folder (remove it, or name another OUT)'
    rm linked/.work
done
[ "$(ls -A theirs linked | tr -s '\n' ' ')" = 'linked: theirs: a.tmp ' ] || fail 'a linked .work was written to'

# If the list of inputs is a FIFO, the program does not block.
run 0 sgt-tokenize in piped
rm piped/sources.jsonl
mkfifo piped/sources.jsonl
run 1 timeout -k 1 60 sgt-tokenize in piped
stderr_is 'sgt-tokenize: piped/sources.jsonl: is not a regular file (--force starts over)'
