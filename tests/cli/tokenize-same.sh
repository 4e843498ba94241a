# tokenize-same.sh: a set counts as complete, and a run is resumed, only if the inputs have the same
# bytes. Files whose device, inode, size and time equal the recorded ones are not read again.

other() { # FILE COMMAND...: COMMAND must be refused because FILE has other bytes, and must change nothing
    file=$1
    shift
    for out; do :; done
    run_unforced "$out: made from different inputs: the content of $file has changed" "$@"
}

same_but_stat() { # A B: all files are the same, except for the recorded stat of the inputs
    rm -rf .a .b
    cp -r "$1" .a
    cp -r "$2" .b
    sed -i 's/"stat": "[0-9a-f]*"//' .a/sources.jsonl .b/sources.jsonl
    same_folders .a .b
}

# Other files with the same names and sizes.
mkdir dA dB
printf 'aaaa bbbb\n' > dA/p0.txt
printf 'cccc dddd\n' > dB/p0.txt
printf '{"text":"aaaa"}\n' > dA/p1.jsonl
printf '{"text":"aaaa"}\n' > dB/p1.jsonl
run 0 sgt-tokenize --quiet dA a
run 0 sgt-tokenize --quiet dB b
cp -r a o
other dB/p0.txt sgt-tokenize dB o
same_folders o a
run 0 sgt-inspect --verify --quiet o
run 0 sgt-tokenize --quiet --force dB o
same_folders o b
other dA/p0.txt sgt-tokenize dA o

# --force makes a complete set again, even from the same inputs.
run_prints '2 documents, 1 shard' sgt-tokenize --force dB o
! grep -q 'already complete' .stdout || fail 'it was not made anew'

# Copies are read and compared: their stat differs.
cp -r dB copy
run_prints 'already complete' sgt-tokenize copy o
printf 'cccc dddx\n' > copy/p0.txt
other copy/p0.txt sgt-tokenize copy o
# A file whose stat is unchanged counts as unchanged. If its stat differs, its bytes are compared.
touch -d @1600000000 copy/p0.txt
run 0 sgt-tokenize --quiet copy known
grep -q '"path": "p0.txt", "size": 10, "mtime": 1600000000, "stat": "[0-9a-f]\{16\}",' known/sources.jsonl ||
    fail "$(cat known/sources.jsonl)"
printf 'cccc dddd\n' > copy/p0.txt
touch -d @1600000000 copy/p0.txt
run_prints 'already complete' sgt-tokenize copy known
touch -d @1600000001 copy/p0.txt
other copy/p0.txt sgt-tokenize copy known
# A list of inputs without hashes is damaged.
sed 's/, "xxh3": "[0-9a-f]*"//' known/sources.jsonl > kept
cp kept known/sources.jsonl
run_failure 'known: its list of inputs is damaged (--force replaces it)' sgt-tokenize copy known

# Compressed files and the output of filters are compared by their text.
mkdir packed
gzip -nc dA/p0.txt > packed/a.gz
cat dA/p0.txt > packed/b.pdf
filter='pdf=cat {}'
run 0 sgt-tokenize --quiet --filter "$filter" packed p
gzip -nc dB/p0.txt > packed/a.gz
other packed/a.gz sgt-tokenize --filter "$filter" packed p
gzip -nc dA/p0.txt > packed/a.gz
cat dB/p0.txt > packed/b.pdf
other packed/b.pdf sgt-tokenize --filter "$filter" packed p
cat dA/p0.txt > packed/b.pdf
run_prints 'already complete' sgt-tokenize --filter "$filter" packed p


# ---- an interrupted run ----
mkdir cA
cp "$ROOT/tokenize/text/unicode_tables.c" cA/a
repeated 40 "$ROOT/tokenize/text/unicode_tables.c" > cA/b # more than a block of the hash
cp cA/a cA/c
printf 'bad \377' > cA/stop
cp -r cA cB
options='--quiet --threads 1 --invalid-utf8 fail --shard-tokens 100k'
interrupt() {
    printf 'bad \377' > cA/stop
    touch -d @1700000000 cA/*
    rm -rf o
    run 1 sgt-tokenize $options cA o
    exists o/train_000003.bin
    printf 'good!' > cA/stop
    touch -d @1700000000 cA/stop
}
printf 'good!' > cB/stop
touch -d @1700000000 cB/*
cp -rp cB whole
run 0 sgt-tokenize $options cB undisturbed
# A changed file is refused: one that was read completely, and the file in which the run stopped.
for name in a b; do
    interrupt
    tr 0-9 1-90 < whole/$name > cB/$name
    other cB/$name sgt-tokenize $options cB o
    run 0 sgt-tokenize $options cA o
    same_but_stat o undisturbed
    cp -p whole/$name cB/$name
done
# Copies of the same files complete the run. So does --force with other files.
interrupt
run 0 sgt-tokenize $options whole o
same_but_stat o undisturbed
interrupt
tr 0-9 1-90 < whole/b > cB/b
run 0 sgt-tokenize $options --force cB o
run 0 sgt-tokenize $options cB b2
same_folders o b2
# The same if the file in which the run stopped is compressed, here without compression, so that its
# size does not depend on the text.
stored() { "${PYTHON:-python3}" -c 'import gzip, sys
sys.stdout.buffer.write(gzip.compress(sys.stdin.buffer.read(), 0))'; }
rm cB/b
stored < whole/b > cA/b.gz
tr 0-9 1-90 < whole/b | stored > cB/b.gz
rm cA/b
interrupt
other cB/b.gz sgt-tokenize $options cB o
run 0 sgt-tokenize $options cA o
run 0 sgt-inspect --compare o undisturbed

# ---- ranks that are not connected ----
mkdir rA rB
for i in 1 2 3 4; do
    printf 'aaaa %s\n' $i > rA/$i
    printf 'bbbb %s\n' $i > rB/$i
done
run 0 sgt-tokenize --quiet --rank 1 --ranks 2 rA r
other rB/3 sgt-tokenize --quiet --rank 0 --ranks 2 rB r
rm -r r
for rank in 0 1; do run 0 sgt-tokenize --quiet --rank $rank --ranks 2 rA r; done
run 0 sgt-tokenize --quiet rA one
same_folders r one
other rB/1 sgt-tokenize --quiet --rank 0 --ranks 2 rB r
