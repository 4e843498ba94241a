# tokenize-largest.sh: a vocabulary of the largest size, 1,048,576 ids: its last merges at every CPU
# level, its files, and reading it back from the set that it made.
# In make check-all only: files of 60 MB are written and read.
. "$ROOT/tests/cli/wide.inc"

work_in_memory
wide_vocabulary merges.txt 982783
check 'merges for all ids but those of bytes and of the end of text' [ "$(wc -l < merges.txt)" -eq 1048320 ]

# Words that need the last merges. The first letter comes before the second in the alphabet, so the
# first pair of letters is merged before the middle pair.
awk 'BEGIN {
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
    for (n = 982782; n > 978000; n--) {
        a = int(n / 32768); b = int(n / 1024) % 32; c = int(n / 32) % 32
        if (a >= b) continue
        print substr(letters, a + 1, 1) substr(letters, b + 1, 1) substr(letters, c + 1, 1) substr(letters, n % 32 + 1, 1)
        print 256 + 65536 + n, 198 > "expected"
    }
}' > words
check 'of ids near the end' [ "$(head -1 expected)" = '1048574 198' ]
for level in $(cpu_levels); do
    run 0 sgt-tokenize --quiet --cpu $level --pattern gpt2 --vocab merges.txt words $level
    check 'the vocabulary, and its end of text' [ "$(od -An -td4 -w8 -j16 -N8 $level/train_000000.bin | xargs)" = '1048576 1048575' ]
    od -An -v -tu4 -w8 -j1028 $level/train_000000.bin | awk '{ print $1, $2 }' > got
    same got expected
    same_folders plain $level
done

# The set's own tokenizer.json, with each merge as one string and as two.
run 0 sgt-tokenize --quiet --vocab plain words again
same_folders -x manifest.json plain again
sed '/^"merges":/{ s/","/"],["/g; s/ /","/g; s/:\[/:[[/; s/\]}}$/]]}}/; }' plain/tokenizer.json > pairs.json
run 0 sgt-tokenize --quiet --force --vocab pairs.json words again
same_folders -x manifest.json plain again
run 0 sgt-inspect --decode 1:1000000 again
same .stdout words
run 0 sgt-tokenize --quiet --vocab plain --shards megatron words megatron
same megatron/tokenizer.json plain/tokenizer.json
