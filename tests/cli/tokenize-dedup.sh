# tokenize-dedup.sh: --dedup keeps the first of equal documents, drops the others and counts them.
# The result does not depend on ranks, splits or threads. No other document is dropped.

work_in_memory

mkdir corpus kept
head -c 300000 "$ROOT/tokenize/vocab/gpt2.bpe" > corpus/a1
head -c 299999 "$ROOT/tokenize/vocab/gpt2.bpe" > corpus/a2 # a prefix of another text is a different text
{ head -c 299999 corpus/a1 && echo; } > corpus/a3   # a text of the same length with another last byte is different too
cp corpus/a1 corpus/b
: > corpus/c
: > corpus/d
printf 'not UTF-8: \377' > corpus/e
printf 'not UTF-8: \376' > corpus/f # different bytes, although both are replaced by U+FFFD
printf 'x' > corpus/g
{
    printf '{"text": "one"}\n{"text": "two"}\n{"text": "one"}\n{"text": "\\u006fne"}\n{"text": "x"}\n{"text": ""}\n'
    printf '{"text": "One"}\n{"text": "two "}\n'
} > corpus/h.jsonl
gzip -n < corpus/a1 > corpus/z.gz
touch -d @1700000000 corpus/*
# Kept: a1 a2 a3 c e f g, and the lines one, two, One, "two ". Dropped: b, d, one of the two equal
# lines, x, the empty line and z.gz.
cp corpus/a1 corpus/a2 corpus/a3 corpus/c corpus/e corpus/f corpus/g kept
printf '{"text": "one"}\n{"text": "two"}\n{"text": "One"}\n{"text": "two "}\n' > kept/h.jsonl
shards() { # OUT OUT: check that both have the same shards
    for a in "$1"/*.bin "$1"/*.idx; do same "$a" "$2/${a##*/}"; done
    [ "$(ls "$1"/*.bin | wc -l)" = "$(ls "$2"/*.bin | wc -l)" ] || fail "$1 and $2 have not as many shards"
}
run 0 sgt-tokenize --quiet --shard-tokens 10k kept plain
run 0 sgt-tokenize --json --shard-tokens 10k --dedup corpus out
for what in 'duplicates 7' 'documents 11' 'files 11'; do
    [ "$(field ${what% *} .stdout)" = "${what#* }" ] || fail "$what: $(cat .stdout)"
done
shards out plain
grep -q '^  "duplicates": 7$' out/manifest.json || fail 'the manifest does not count them'
grep -q '^  "dedup": true$' out/manifest.json || fail 'the manifest does not say so'
[ "$(wc -l < out/sources.jsonl)" -eq 11 ] || fail 'sources.jsonl does not list all files'
ls -A out | grep -v -e bin -e idx | paste -sd' ' > names
[ "$(cat names)" = 'manifest.json sources.jsonl tokenizer.json' ] || fail "OUT holds $(cat names)"
run 0 sgt-inspect --quiet --verify out
run_prints '7 duplicates removed' sgt-tokenize --shard-tokens 10k --dedup corpus told

# ---- the same documents for any number of ranks (tests/tokenize has threads, splits and --shuffle) ----
for i in 3 1 0 2; do run 0 sgt-tokenize --quiet --shard-tokens 10k --dedup --rank $i --ranks 4 corpus ranks; done
same_folders ranks out
# Without duplicates, the count is 0, and the shards equal those of a set without --dedup.
run 0 sgt-tokenize --quiet --shard-tokens 10k --dedup kept clean
shards clean plain
grep -q duplicates clean/manifest.json && fail 'none is counted'
# Texts are compared after normalization and after invalid UTF-8 has been replaced.
run 0 sgt-tokenize --json --invalid-utf8 replace --dedup corpus/e corpus/f replaced
[ "$(field documents .stdout)" = 2 ] || fail "$(cat .stdout)"
# Standard input can be deduplicated too.
run 0 sgt-tokenize --json --dedup corpus/g - stdin < corpus/g
[ "$(field duplicates .stdout)" = 1 ] || fail "$(cat .stdout)"

# ---- refused ----
run_unforced 'out: made with --dedup true, now not given' sgt-tokenize --shard-tokens 10k corpus out
run_unforced 'plain: made with --dedup not given, now true' sgt-tokenize --shard-tokens 10k --dedup kept plain

# ---- damaged records of documents are found ----
run 0 sgt-tokenize --quiet --shard-tokens 10k --dedup --rank 0 --ranks 2 corpus damaged
truncate -s -24 damaged/.work/part-000000/documents.sgt
run 1 sgt-tokenize --quiet --shard-tokens 10k --dedup --rank 1 --ranks 2 corpus damaged
stderr_matches '^sgt-tokenize: damaged/\.work/part-000000/documents.sgt: has [0-9]+ bytes, expected [0-9]+ for [0-9]+ '\
'documents \(remove its folder, and run the command of its rank again\)$'
rm -r damaged/.work/part-000000
run 0 sgt-tokenize --quiet --shard-tokens 10k --dedup --rank 0 --ranks 2 corpus damaged
same_folders damaged out
