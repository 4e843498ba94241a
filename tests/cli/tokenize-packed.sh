# tokenize-packed.sh: inputs packed as .gz and .zst, whole and damaged.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/shards.inc"

head -c 300000 "$ROOT/tokenize/vocab/gpt2.bpe" > text
run 0 sgt-tokenize --quiet text out
expect_text() { # FILE: check that its text is that of the file `text`
    run 0 sgt-tokenize --quiet --threads 2 "$1" "out-$1"
    same "out-$1/train_000000.bin" out/train_000000.bin
    rm -r "out-$1"
}

# Packed files of one member, of several, with an empty one among them, and with zeros after the
# last; endings in upper case.
gzip -c text > a.gz
expect_text a.gz
{ head -c 100001 text | gzip -1 && printf '' | gzip && tail -c +100002 text | gzip -9; } > b.GZ
expect_text b.GZ
{ cat a.gz && head -c 10000 /dev/zero; } > c.gz
expect_text c.gz
printf '' | gzip > empty.gz
run 0 sgt-tokenize empty.gz out-empty
stdout_has 'out-empty: 1 token, 1 document'
zcat a.gz | run 0 sgt-tokenize --quiet - out-pipe
same out-pipe/train_000000.bin out/train_000000.bin

cut_off() { # FILE BYTES...: check that the first BYTES of it are reported as cut off, and leave nothing
    cut=cut.${1##*.} whole=$1
    shift
    for n in "$@"; do
        head -c "$n" "$whole" > "$cut"
        run 1 sgt-tokenize "$cut" out-cut
        stderr_is "sgt-tokenize: $cut: offset $n: cut off: the file ends in the middle of its compressed data"
        absent out-cut
    done
}

# Damaged files: cut anywhere, not gzip at all, or followed by other data.
size=$(wc -c < a.gz)
cut_off a.gz 0 1 9 10 18 1000 $((size - 9)) $((size - 8)) $((size - 1))
cp text plain.gz
run 1 sgt-tokenize plain.gz out-plain
stderr_matches '^sgt-tokenize: plain.gz: offset [0-9]+: not gzip, or damaged: incorrect header check$'
{ cat a.gz && echo garbage; } > after.gz
run 1 sgt-tokenize after.gz out-after
stderr_matches '^sgt-tokenize: after.gz: offset [0-9]+: not gzip, or damaged: incorrect header check$'
{ cat a.gz && printf '\0\0x'; } > after.gz
run 1 sgt-tokenize after.gz out-after
stderr_is "sgt-tokenize: after.gz: offset $((size + 2)): not gzip, or damaged: neither zeros nor the end follows zeros"

# A changed byte anywhere after the header is found. Whole shards stay, and with the repaired file
# the run continues.
for at in 30 500 $((size / 2)) $((size - 20)) $((size - 6)); do
    cp a.gz flipped.gz
    flip flipped.gz $at 16
    run 1 sgt-tokenize text flipped.gz out-flipped
    stderr_matches '^sgt-tokenize: flipped.gz: offset [0-9]+: (not gzip, or damaged: .*|cut off: .*)$'
    absent out-flipped
done
run 1 sgt-tokenize --shard-tokens 20k text flipped.gz out-flipped
exists out-flipped/train_000005.bin
cp a.gz flipped.gz
run 0 sgt-tokenize --quiet --shard-tokens 20k text flipped.gz out-flipped
run 0 sgt-tokenize --quiet --shard-tokens 20k text flipped.gz whole
same_folders out-flipped whole

command -v zstd > /dev/null || skip 'no zstd program; all else passed'
zstd -q -c text > a.zst
expect_text a.zst
{ head -c 100001 text | zstd -q -1 && printf '' | zstd -q && tail -c +100002 text | zstd -q -15 --check; } > b.zst
expect_text b.zst
size=$(wc -c < a.zst)
cut_off a.zst 0 1 3 10 1000 $((size - 1))
cp text plain.zst
run_failure 'plain.zst: offset 0: not zstd, or damaged: Unknown frame descriptor' sgt-tokenize plain.zst out-plain
# the frame's descriptor states a window of 256 MiB (RFC 8878, 3.1.1.1.2: 2^(10 + 18))
mkdir wide
cp a.zst wide
printf '\050\265\057\375\000\220\051\000\000hello' > wide/b.zst
filter='zst=zstd --long=31 -dc {}'
run_failure "wide/b.zst: offset 0: wants a window of more than 128 MiB (--filter '$filter' unpacks such files)" \
    sgt-tokenize wide out-wide
cp text wide.txt
printf hello > hello.txt
run 0 sgt-tokenize --quiet wide.txt hello.txt out-wide
run 0 sgt-tokenize --quiet --filter "$filter" wide out-filtered
same out-filtered/train_000000.bin out-wide/train_000000.bin
mkdir mixed
cp text mixed/1
cp a.zst mixed/2.zst
cp a.gz mixed/3.gz
cp b.zst mixed/4.zst
for t in 1 2 5; do run 0 sgt-tokenize --quiet --threads $t --split 50% --shard-tokens 30k mixed mixed$t; done
same_folders mixed1 mixed2
same_folders mixed1 mixed5
