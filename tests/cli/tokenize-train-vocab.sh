# tokenize-train-vocab.sh: --train-vocab gives the same bytes as Hugging Face's trainer for the same
# text, with any number of threads, files and formats. The expected files are in tests/data/vocab,
# next to the script that made them.
D=$ROOT/tests/data/vocab

run_silent sgt-tokenize --train-vocab 700 "$D/text.txt" v
stdout_matches '^v: 700 tokens from 5,376 pieces$'
stdout_matches '^  distinct pieces +1,040$'
same v/merges.txt "$D/trained/merges.txt"
same v/vocab.json "$D/trained/vocab.json"
check 'three files and no more' [ "$(ls v | tr '\n' ' ')" = 'merges.txt tokenizer.json vocab.json ' ]

# --vocab reads the vocabulary from any of its files.
for from in v v/tokenizer.json v/merges.txt v/vocab.json; do
    run 0 sgt-tokenize --quiet --vocab $from "$D/text.txt" out
    tail -c +1027 out/train_000000.bin > ids
    same ids "$D/hf.ids"
    same out/tokenizer.json v/tokenizer.json
    rm -rf out
done

# With another pattern, the merges equal those of Hugging Face's trainer.
run 0 sgt-tokenize --quiet --pattern "$(cat "$D/o200k.pattern")" --train-vocab 700 "$D/text.txt" o200k
run 0 sgt-tokenize --quiet --vocab o200k "$D/text.txt" out
tail -c +1027 out/train_000000.bin > ids
same ids "$D/hf-o200k.ids"

# The text may be divided into any number of documents, in any format, with any number of threads:
# only its pre-tokens count. A newline before a letter is a pre-token by itself, whether or not a
# document ends there, so single lines have the pre-tokens of the whole text.
printf 'one two, one two three\nand one, and two\n' > lines.txt
mkdir split
head -1 lines.txt > split/a
tail -1 lines.txt > split/b
printf '{"text": "one two, one two three\\n"}\n{"x": 1}\n{"text": "and one, and two\\n"}\n' > lines.jsonl
run 0 sgt-tokenize --quiet --train-vocab 265 lines.txt whole
run 0 sgt-tokenize --quiet --train-vocab 265 --threads 3 split several
same_folders whole several
run_prints_like '^  bad lines +1$' sgt-tokenize --train-vocab 265 --skip-bad lines.jsonl json
same_folders whole json
gzip -k lines.txt
run 0 sgt-tokenize --quiet --train-vocab 265 lines.txt.gz packed
same_folders whole packed
run 0 sgt-tokenize --quiet --train-vocab 265 - stream < lines.txt
same_folders whole stream
for threads in 1 2 5; do
    run 0 sgt-tokenize --quiet --threads $threads --train-vocab 2000 "$D" "$ROOT/tokenize" t$threads
    same_folders t1 t$threads
done

# The most frequent pair is merged first. Of equally frequent pairs, the pair with lower ids is
# merged first, as in Hugging Face's trainer.
printf 'aaaa aaaa bcbc' > counts.txt
# aa occurs 6 times, counting overlaps, and is merged first. Each of the two other pairs then occurs
# twice.
run 0 sgt-tokenize --quiet --train-vocab 260 counts.txt counts
check 'merges in order' [ "$(tail -n +2 counts/merges.txt | tr '\n' '|')" = 'a a|b c|aa aa|' ]

# The text yields fewer tokens than were requested.
run 0 sgt-tokenize --train-vocab 1000 counts.txt few
stderr_is 'sgt-tokenize: no pair of tokens is left to merge: the vocabulary has 263 tokens, not 1000'
check 'all merges' [ "$(tail -n +2 few/merges.txt | tr '\n' '|')" = 'a a|b c|aa aa|Ġ bc|Ġ aaaa|Ġbc bc|' ]
: > nothing.txt
run 0 sgt-tokenize --quiet --train-vocab 257 nothing.txt none
check 'no merges' [ "$(cat none/merges.txt)" = '#version: 0.2' ]
run 0 sgt-tokenize --quiet --vocab none counts.txt bytes
check 'a token a byte' [ "$(wc -c < bytes/train_000000.bin)" -eq $((1024 + 2 * 15)) ]

# A literal end-of-text token counts as text, or as a separator with --special eot.
printf 'ab<|endoftext|>ab' > literal.txt
run 0 sgt-tokenize --quiet --special eot --train-vocab 300 literal.txt border
check 'one merge' [ "$(tail -n +2 border/merges.txt)" = 'a b' ]
run 0 sgt-tokenize --quiet --pattern '(?s).+' --train-vocab 300 literal.txt text
check 'no merge spells the end of text' [ "$(grep -o '"<|endoftext|>"' text/vocab.json | wc -l)" -eq 1 ]
run 0 sgt-tokenize --quiet --vocab text literal.txt apart

# Characters beyond ASCII, and bytes that are not UTF-8.
printf '\377\376\377\376 \377\376' > odd.bin
run 0 sgt-tokenize --json --train-vocab 258 odd.bin odd
check 'places that are not UTF-8' [ "$(field invalid_utf8 .stdout)" = 6 ]
check 'one merge of two odd bytes' [ "$(tail -n +2 odd/merges.txt)" = 'ÿ þ' ]
run 1 sgt-tokenize --invalid-utf8 fail --train-vocab 258 odd.bin bad
stderr_is 'sgt-tokenize: odd.bin: offset 0: not UTF-8 (--invalid-utf8 keep or replace accepts it)'
absent bad

# ---- refused ----

run 1 sgt-tokenize --train-vocab 300 counts.txt v
stderr_is 'sgt-tokenize: v: is not empty (name a new folder, or --force replaces the vocabulary in it)'
same v/merges.txt "$D/trained/merges.txt"
run 0 sgt-tokenize --quiet --force --train-vocab 300 counts.txt v
same v/merges.txt few/merges.txt
mkdir full
: > full/other
run 1 sgt-tokenize --train-vocab 300 counts.txt full
stderr_is 'sgt-tokenize: full: is not empty (name a new folder, or --force adds the vocabulary to it)'
mkdir full/.work
: > full/.work/lock # without a journal, no set is unfinished
run 0 sgt-tokenize --quiet --force --train-vocab 300 counts.txt full
same full/merges.txt few/merges.txt
run_usage '--train-vocab 256: must be from 257 to 1048576' sgt-tokenize --train-vocab 256 counts.txt n
run_usage '--train-vocab 1048577: must be from 257 to 1048576' sgt-tokenize --train-vocab 1048577 counts.txt n
for option in '--vocab gpt2' '--split 1%' '--shard-tokens 5' '--shuffle 1' --dedup --dry-run '--shards npy' \
    '--keep-fields url' '--ranks 2 --rank 0'; do
    # shellcheck disable=SC2086
    run_usage "--train-vocab makes a vocabulary, not shards: it cannot be combined with ${option%% *}" \
        sgt-tokenize --train-vocab 300 $option counts.txt n
done
run 2 sgt-tokenize --train-vocab 300 --pattern '[' counts.txt n
stderr_is 'sgt-tokenize: pattern: at byte 1: missing terminating ] for character class'
run_failure 'nowhere: No such file or directory' sgt-tokenize --train-vocab 300 nowhere n
run 1 sgt-tokenize --train-vocab 300 lines.jsonl n
stderr_is 'sgt-tokenize: lines.jsonl: line 2: the field is missing (--field NAME selects the field with the text, '\
'--skip-bad skips such lines)'
head -c 200 /dev/zero | tr '\0' a > long.txt
echo ! >> long.txt
run 1 sgt-tokenize --train-vocab 300 --pattern '(*LIMIT_MATCH=100)(a|aa)+$|.' long.txt n
stderr_is 'sgt-tokenize: long.txt: pattern: at byte 0 of the text: match limit exceeded'
absent n

# A run that is stopped while it reads leaves nothing.
mkfifo pipe
sleep 30 > pipe &
sleeper=$!
sgt-tokenize --train-vocab 300 - n < pipe > .stdout 2> .stderr &
pid=$!
wait_for_handler $pid
kill -TERM $pid
ended 130 $pid
kill $sleeper
stderr_is 'sgt-tokenize: stopped'
absent n

run 0 sgt-tokenize --json --train-vocab 260 counts.txt j
stdout_lines 1
for name in tokens pieces distinct_pieces documents bytes files invalid_utf8 bad_lines seconds mb_per_s; do
    stdout_has "\"$name\": "
done
