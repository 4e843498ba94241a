# tokenize-packed.sh: inputs compressed as .gz and .zst, complete and damaged.
. "$ROOT/tests/cli/shards.inc"

head -c 300000 "$ROOT/tokenize/vocab/gpt2.bpe" > text
run 0 sgt-tokenize --quiet text out
expect_text() { # FILE: check that its text equals the file `text`
    run 0 sgt-tokenize --quiet --threads 2 "$1" "out-$1"
    same "out-$1/train_000000.bin" out/train_000000.bin
    rm -r "out-$1"
}

# Compressed files of one member, of several members with an empty one among them, and with zeros
# after the last member; endings in upper case.
gzip -c text > a.gz
expect_text a.gz
{ head -c 100001 text | gzip -1 && printf '' | gzip && tail -c +100002 text | gzip -9; } > b.GZ
expect_text b.GZ
{ cat a.gz && head -c 10000 /dev/zero; } > c.gz
expect_text c.gz
printf '' | gzip > empty.gz
run_prints 'out-empty: 1 token, 1 document' sgt-tokenize empty.gz out-empty
zcat a.gz | run 0 sgt-tokenize --quiet - out-pipe
same out-pipe/train_000000.bin out/train_000000.bin

skips='(--skip-bad skips the rest of such files)'
cut_off() { # FILE BYTES...: check that prefixes of these lengths are reported as cut off and leave nothing
    cut=cut.${1##*.} whole=$1
    shift
    for n in "$@"; do
        head -c "$n" "$whole" > "$cut"
        run 1 sgt-tokenize "$cut" out-cut
        stderr_is "sgt-tokenize: $cut: offset $n: truncated: the file ends in the middle of its compressed data $skips"
        absent out-cut
    done
}

# Damaged files: cut anywhere, or not gzip at all.
size=$(wc -c < a.gz)
cut_off a.gz 0 1 9 10 18 1000 $((size - 9)) $((size - 8)) $((size - 1))
cp text plain.gz
run_failure "plain.gz: offset 2: not gzip, or damaged: incorrect header check $skips" sgt-tokenize plain.gz out-plain

# Bytes after the last member that are not a member are ignored with a message, as gzip does, even a
# single byte, and also after zeros.
for after in '\n' 'garbage\n' '\0\0x' '\0\037' '\037\0'; do
    { cat a.gz && printf '%b' "$after"; } > after.gz
    rm -rf out-after
    run 0 sgt-tokenize after.gz out-after
    stderr_is "sgt-tokenize: after.gz: offset $size: trailing garbage ignored: $(($(wc -c < after.gz) - size)) B after the \
last gzip member"
    same out-after/train_000000.bin out/train_000000.bin
    stdout_has '1 bad line, row or end of a file skipped'
    grep -q '"bad_lines": 1$' out-after/manifest.json || fail 'what was ignored is not in manifest.json'
    run_silent sgt-tokenize --quiet --json --force after.gz out-after
    stdout_has '"bad_lines": 1, '
done
# Bytes after the last member that begin like a member are a member that is cut off, as for gzip.
for after in '\037' '\037\213' '\0\037\213' '\037\213\010'; do
    { cat a.gz && printf '%b' "$after"; } > next.gz
    run_failure "next.gz: offset $(wc -c < next.gz): truncated: the file ends in the middle of its compressed data $skips" \
        sgt-tokenize next.gz out-next
    run_prints '"bad_lines": 1, ' sgt-tokenize --quiet --json --skip-bad next.gz out-next
    rm -r out-next
done
mkdir many
for i in 1 2 3 4 5 6 7 8; do cp after.gz many/$i.gz; done
run 0 sgt-tokenize many out-after-many
stderr_lines 6
stderr_has 'sgt-tokenize: more compressed files with damage or trailing garbage: 3'
stdout_has '8 bad lines, rows or ends of files skipped'

# A changed byte anywhere after the header is found. Complete shards are kept, and the run continues
# when the file is restored.
for at in 30 $((size / 2)) $((size - 6)); do
    cp a.gz flipped.gz
    flip flipped.gz $at 16
    run 1 sgt-tokenize text flipped.gz out-flipped
    stderr_matches '^sgt-tokenize: flipped.gz: offset [0-9]+: (not gzip, or damaged: .*|truncated: .*)$'
    absent out-flipped
done
run 1 sgt-tokenize --shard-tokens 20k text flipped.gz out-flipped
exists out-flipped/train_000005.bin
cp a.gz flipped.gz
run 0 sgt-tokenize --quiet --shard-tokens 20k text flipped.gz out-flipped
run 0 sgt-tokenize --quiet --shard-tokens 20k text flipped.gz whole
same_folders out-flipped whole

# --skip-bad keeps the text before the damage. The rest of the file, from the damaged JSONL line on,
# counts as one bad line. The result is the same for any number of threads and ranks. A file without
# a good byte gives no document.
lines() { # FROM TO: print JSONL lines FROM to TO-1
    awk -v i="$1" -v n="$2" 'BEGIN { for (; i < n; i++) printf "{\"text\":\"%d is %d squared\"}\n", i * i, i }'
}
mkdir bad
head -c $((size / 2)) a.gz > bad/1.gz
lines 0 9000 | gzip > whole.jsonl.gz
head -c 20000 whole.jsonl.gz > bad/2.jsonl.gz
cp text bad/3.gz
cp text bad/5
skipping() { # OUT ARGUMENT...: tokenize the damaged files
    out=$1
    shift
    run 0 sgt-tokenize --skip-bad --shard-tokens 20k --split 30% "$@" bad "$out"
}
same_for_all() { # BAD: check that BAD lines are counted, for any number of threads and ranks
    rm -rf out-bad*
    skipping out-bad --threads 1
    cp .stderr said
    stdout_has "$1 bad lines, rows or ends of files skipped"
    for t in 2 5; do
        skipping out-bad$t --threads $t
        same_folders out-bad out-bad$t
    done
    for rank in 0 1 2; do skipping out-bad-ranks --rank $rank --ranks 3; done
    same_folders out-bad out-bad-ranks
}
same_for_all 3
cat > want << END
sgt-tokenize: bad/1.gz: offset $((size / 2)): truncated: the file ends in the middle of its compressed data: skipping the rest of the file
sgt-tokenize: bad/2.jsonl.gz: offset 20000: truncated: the file ends in the middle of its compressed data: skipping the rest of the file
sgt-tokenize: bad/3.gz: offset 2: not gzip, or damaged: incorrect header check: skipping the rest of the file
END
same said want
grep -q '"path": "3.gz".*"documents": 0, "bytes": 0, "tokens": 0' out-bad/sources.jsonl || fail "$(cat out-bad/sources.jsonl)"
rm bad/2.jsonl.gz bad/5
run 0 sgt-tokenize --quiet --skip-bad bad out-good
sgt-inspect --decode 1:200000 out-good > got 2> .decoded
head -c "$(wc -c < got)" text > want
[ "$(wc -c < got)" -gt 100000 ] || fail "only $(wc -c < got) bytes are left"
same got want
touch bad/1.gz # a new time stamp: the file is read and compared
run 0 sgt-tokenize --quiet --skip-bad bad out-good
# A file that is cut in its first line has one bad line, as has a file that is cut in a later line.
# A line that lacks only its newline is complete, and is kept.
bytes_of() { lines 0 9000 | head -c "$1" | gzip | head -c -8; } # without checksum and size
for cut in 1 10 24 25 26 30; do # the first line has 26 bytes
    bytes_of $cut > cut.jsonl.gz
    run 0 sgt-tokenize --quiet --json --skip-bad cut.jsonl.gz text "out-cut-$cut"
    stdout_has "\"documents\": $((1 + (cut > 24))), " '"bad_lines": 1, '
done
run_failure "bad/3.gz: nothing to tokenize: --skip-bad skipped every line, row or file, 1 in all (run without it \
to see the first error)" sgt-tokenize --quiet --skip-bad bad/3.gz out-none

command -v zstd > /dev/null || skip 'no zstd program; all else passed'
zstd -q -c text > a.zst
expect_text a.zst
{ head -c 100001 text | zstd -q -1 && printf '' | zstd -q && tail -c +100002 text | zstd -q -15 --check; } > b.zst
expect_text b.zst
size=$(wc -c < a.zst)
cut_off a.zst 0 1 3 10 1000 $((size - 1))
cp text plain.zst
run_failure "plain.zst: offset 0: not zstd, or damaged: Unknown frame descriptor $skips" sgt-tokenize plain.zst out-plain
# The frame's descriptor declares a window of 256 MiB (RFC 8878, 3.1.1.1.2: 2^(10 + 18)).
mkdir wide
cp a.zst wide
printf '\050\265\057\375\000\220\051\000\000hello' > wide/b.zst
filter='zst=zstd --long=31 -dc {}'
run_failure "wide/b.zst: offset 0: needs a zstd window of more than 128 MiB (--filter '$filter' decompresses such files)" \
    sgt-tokenize wide out-wide
cp text wide.txt
printf hello > hello.txt
run 0 sgt-tokenize --quiet wide.txt hello.txt out-wide
run 0 sgt-tokenize --quiet --filter "$filter" wide out-filtered
same out-filtered/train_000000.bin out-wide/train_000000.bin

# Damage in a block of zstd: the blocks before it are kept, in whatever sizes they are read.
lines 0 90000 | zstd -q --check > bad/4.jsonl.zst
flip bad/4.jsonl.zst 200000 255
cp a.zst bad/6.zst
flip bad/6.zst $(($(wc -c < a.zst) - 2)) 1
gzip -c text > bad/5.gz
same_for_all 4
grep -q 'bad/4.jsonl.zst: offset .*: skipping the rest of the file$' said || fail "$(cat said)"
