# tokenize-progress.sh: sgt-tokenize's progress bar on a terminal. One bar covers all inputs, by
# bytes, with MB/s, tokens/s and the time left. tests/base/test_progress.c tests the bar together
# with other lines.

mkdir in
for i in 1 2 3 4 5 6 7 8; do cat "$ROOT"/tokenize/vocab/gpt2.bpe > in/$i.txt; done
terminal 100 'sgt-tokenize in out > summary'
size=$(cat in/* | wc -c | awk '{ printf "%.1f MiB", $1 / 1048576 }')
grep -qE "^100%\|#{20}\| $size/$size \[00:0[0-9]<00:00, [0-9.]+ [kMG]B/s\] [0-9.]+ [kMG]tokens/s$" shown ||
    fail "no bar that is full at last: $(cat shown)"
! grep -vE '^ *[0-9]+%\|#* *\| [0-9.]+ [KM]?i?B/[0-9.]+ MiB \[' shown || fail 'that is more than the bar'

# Shuffling and deduplication read the documents twice. One bar covers both passes and counts the
# bytes of both.
full() { # BYTES: check that the last bar is full, at this size
    all=$(echo "$1" | awk '{ printf "%.1f MiB", $1 / 1048576 }')
    tail -1 shown | grep -qE "^100%\|#{20}\| $all/$all \[" || fail "no bar that is full at $all: $(cat shown)"
    ! grep -vE '^ *[0-9]+%\|#* *\| [0-9.]+ [KM]?i?B/[0-9.]+ MiB \[' shown || fail 'that is more than one bar'
}
run 0 sgt-tokenize --json in counted
tokens=$(field tokens .stdout) bytes=$(cat in/* | wc -c)
terminal 100 'sgt-tokenize --shuffle 3 in shuffled > summary'
full $((bytes + 2 * tokens)) # a single rank does not copy documents to buckets
terminal 100 'sgt-tokenize --dedup in unique > summary'
full $((bytes + 2 * tokens))
grep -q '^7 duplicates' summary || fail "they are the same file: $(cat summary)"
run 0 sgt-tokenize --rank 1 --ranks 2 in ranked
terminal 100 'sgt-tokenize --rank 0 --ranks 2 in ranked > summary'
full $((bytes / 2 + 2 * tokens))

# The size of standard input is unknown, so no time left is printed. Both rates count from the start
# of the program, so a late text cannot have more tokens than bytes per second. (The last bar is
# drawn when all data is on disk.)
terminal 100 '(sleep .5; cat in/1.txt; sleep .3; cat in/2.txt; sleep .3; cat in/3.txt) | sgt-tokenize - fed > summary'
grep -qE '^[0-9.]+ [KM]iB \[00:0[0-9], [0-9.]+ [kM]B/s\] [0-9.]+ [kM]tokens/s$' shown || fail "no bar: $(cat shown)"
[ "$(wc -l < shown)" -ge 2 ] || fail "it did not move: $(cat shown)"
! grep -q '%' shown || fail "a part of nobody knows what: $(cat shown)"
all=$(cat in/[123].txt | wc -c | awk '{ printf "%.1f MiB", $1 / 1048576 }')
tail -1 shown | grep -q "^$all \[" || fail "not $all at last: $(cat shown)"
sed '$d' shown | sed 's/.*, \(.*\)B\/s\] \(.*\)tokens\/s$/\1\n\2/; s/ k/e3/g; s/ M/e6/g; s/ G/e9/g' > rates
awk 'NR % 2 { bytes = $1 } NR % 2 == 0 && $1 > bytes { bad = 1 } END { exit bad || NR < 2 }' rates ||
    fail "more tokens than bytes a second: $(cat shown)"

# A notice has a line of its own, and a failure is printed below the bar.
printf '%%PDF-1.4 no text' > in/8.txt
terminal 100 'sgt-tokenize in noticed > summary'
grep -q '^sgt-tokenize: in/8.txt: ' shown || fail "no notice: $(cat shown)"
terminal 100 'sgt-tokenize --quiet in quiet > summary'
[ ! -s shown ] || fail "--quiet said: $(cat shown)"
cp in/7.txt in/8.txt

# On a terminal that cannot move its cursor, no line is redrawn.
TERM=dumb
terminal 100 'sgt-tokenize in dumb > summary'
! grep -q "$(printf '\033')" .shown || fail "an escape sequence: $(cat -v .shown)"
! grep -q '%|' .shown || fail "a bar: $(cat -v .shown)"

# On a narrow terminal, the summary and the options of an inspected set wrap between words.
rm -rf narrow
echo 'a b' > narrow.txt
terminal 40 'sgt-tokenize --split none narrow.txt narrow; sgt-inspect narrow | grep -c .'
grep -q '^4 B of text in 1 file, ' shown || fail "no summary: $(cat shown)"
[ "$(widest shown)" -le 40 ] || fail "wider than 40 columns: $(cat shown)"
terminal 48 'sgt-inspect narrow'
sed -n '/^  options/,$p' shown > lines
[ "$(wc -l < lines)" -ge 4 ] && [ "$(widest lines)" -le 48 ] || fail "options wider than 48 columns: $(cat lines)"
