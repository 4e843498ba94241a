# tokenize-dry-run.sh: sgt-tokenize --dry-run writes nothing. It is exact if it reads everything; otherwise it is
# right within the error that it states.
. "$ROOT/tests/cli/lib.sh"
work_in_memory

# estimate OPTION... INPUT...: compare the estimate with tokenizing the same inputs. The stated
# error is two standard errors. The test allows twice the stated error, which chance exceeds once in
# 15,000 times. The same inputs always give the same estimate.
estimate() {
    run 0 sgt-tokenize --dry-run --json --quiet "$@"
    stdout_lines 1
    stderr_is ''
    cp .stdout dry
    rm -rf out
    run 0 sgt-tokenize --json --quiet "$@" out
    about=$(field tokens dry) error=$(field tokens_error dry) tokens=$(field tokens .stdout)
    off=$((about > tokens ? about - tokens : tokens - about))
    case $error in
    null) ;;
    *) [ "$off" -le $((2 * error)) ] || fail "$about ± $error tokens were said, there are $tokens" ;;
    esac
}
exact() {
    estimate "$@"
    [ "$error" -eq 0 ] || fail "± $error tokens"
    [ "$(field documents dry)" -eq "$(field documents .stdout)" ] || fail "$(field documents dry) documents"
    [ "$(field shards dry)" -eq "$(field shards .stdout)" ] || fail "$(field shards dry) shards"
    disk=$(cat out/* | wc -c)
    said=$(field disk_bytes dry)
    [ "$said" -gt $((disk - disk / 100 - 2000)) ] && [ "$said" -lt $((disk + disk / 100 + 2000)) ] ||
        fail "$said bytes were said, OUT has $disk"
}

mkdir few
texts few 90000
: > few/empty
printf 'bad \377' > few/bad.txt
exact few
[ "$(field invalid_utf8 dry)" -eq 1 ] || fail 'ill-formed UTF-8 was not seen'
exact --shard-tokens 3k few
exact --special eot few/part-07
exact --normalize nfkc few
[ "$(field disk_meanwhile dry)" -eq 0 ] || fail 'parts of what?'
exact --shuffle 5 few
[ "$(field disk_meanwhile dry)" -eq $((2 * tokens + 8 * $(field documents .stdout))) ] || fail 'parts take no disk'
printf 'a b c\n' > few/made.rev
exact --filter rev=rev few
rm few/made.rev
printf '{"text": "one\\u00e9"}\n{"text": ""}\n\n{"text": "three words here"}' > few.jsonl
exact few.jsonl few/part-07
exact "$ROOT/tests/data/parquet/fallback.parquet" few.jsonl
exact --keep-fields text,url --shuffle 1 "$ROOT/tests/data/parquet/web.jsonl" "$ROOT/tests/data/parquet/web.parquet"
fields=$(grep '^{"document"' out/sources.jsonl | wc -c)
said=$(($(field disk_meanwhile dry) - 2 * tokens - 8 * 200))
[ $said -gt $((fields - fields / 50)) ] && [ $said -lt $((fields + fields / 50)) ] || fail "$said bytes of fields, not $fields"
run 1 sgt-tokenize --dry-run --keep-fields no "$ROOT/tests/data/parquet/web.parquet"
stderr_is "sgt-tokenize: $ROOT/tests/data/parquet/web.parquet: --keep-fields: column \"no\" is missing"
exact few/empty

# Nothing is written, with or without OUT.
run 0 sgt-tokenize --dry-run few new
absent new
stdout_matches '^inputs      [0-9.]+ KiB in [0-9]+ files, [0-9]+ documents$'
stdout_matches '^tokens      [0-9,]+$'
stdout_matches '^disk        [0-9.]+ MiB in 1 shard, [0-9.]+ [KMGT]iB free there$'
stdout_matches '^time        about ([0-9]+ m|[0-9.]+ )s on this machine, [0-9]+ threads?$'
stdout_has 'in samples  1 place not UTF-8'
run 0 sgt-tokenize --dry-run few
stdout_matches '^disk        [0-9.]+ MiB in 1 shard$'
run 0 sgt-tokenize --dry-run --quiet few
stdout_is ''
run 0 sgt-tokenize --dry-run --json few few.jsonl # the last argument is an INPUT if it is a file
[ "$(field files .stdout)" -eq $(($(ls few | wc -l) + 1)) ] || fail 'the last input is not among the files'
stdout_has '"disk_free": null'
mkdir filled && cp few/part-07 filled
run 0 sgt-tokenize --dry-run --json few filled # or if it is a folder that sgt-tokenize did not make
[ "$(field files .stdout)" -eq $(($(ls few | wc -l) + 1)) ] || fail 'the last input is not among the files'
ls -lA --full-time out few filled > before
run 0 sgt-tokenize --dry-run --json few out # but this folder is OUT
[ "$(field files .stdout)" -eq "$(ls few | wc -l)" ] || fail 'OUT is among the files'
ls -lA --full-time out few filled > after
same before after

# Samples of text, of many files, of JSONL with long and short lines, of packed files, and of all of
# them together.
i=0
while [ $i -lt 18 ]; do
    cat "$ROOT"/tokenize/vocab/gpt2.bpe "$ROOT"/tokenize/text/unicode_tables.c "$ROOT"/README.md
    i=$((i + 1))
done > text.txt
[ "$(wc -c < text.txt)" -gt 9000000 ] || fail 'too little text to be sampled'
estimate text.txt
[ "$(field samples dry)" -eq 256 ] && [ "$error" -gt 0 ] || fail 'that was not sampled'
[ $((error * 5)) -lt "$tokens" ] || fail "± $error is not worth saying"
run 0 sgt-tokenize --dry-run --json text.txt
sed 's/"seconds".*//' dry > first
sed 's/"seconds".*//' .stdout > second
same first second
mkdir many
split -b 3000 text.txt many/p
estimate --threads 2 many
awk '{ gsub(/[\\"\t]/, ""); n = 1 + (NR * 7919) % 997
    if (n < 4) n = 20000; line = line " " $0
    if (length(line) > 3 * n) { printf "{\"id\": %d, \"page\": {\"text\": \"%s\"}}\n", NR, line; line = "" } }' \
    text.txt > lines.jsonl
tr -d '\000-\011\013-\037\200-\377' < lines.jsonl > l && mv l lines.jsonl
[ "$(wc -c < lines.jsonl)" -gt 8500000 ] || fail 'too few lines to be sampled'
estimate --field page.text lines.jsonl
[ "$(field documents_exact dry)" = false ] || fail 'lines were counted'
about=$(field documents dry) documents=$(wc -l < lines.jsonl)
off=$((about > documents ? about - documents : documents - about))
[ $((off * 5)) -lt "$documents" ] || fail "$about documents were said, there are $documents"
gzip -1k text.txt lines.jsonl
exact text.txt.gz few # small on disk, so it is read as a whole
estimate --field page.text text.txt text.txt.gz many lines.jsonl lines.jsonl.gz
[ "$error" != null ] && [ "$error" -gt 0 ] || fail "± $error of packed files that were unpacked as a whole"

# Of a few large packed files only the beginnings are read, so no error can be stated.
yes 'the same few words again and again' | head -c 300000000 | gzip -1 > large.gz
run 0 sgt-tokenize --dry-run --json large.gz text.txt
stdout_has '"tokens_error": null'
about=$(field tokens .stdout)
[ "$about" -gt 60000000 ] && [ "$about" -lt 80000000 ] || fail "$about tokens, 35 bytes of these are 8"
rm large.gz

# A line may be longer than the sample around it. Bad lines are counted. Failures of the real run
# are predicted.
{ printf '{"text": "' && tr -d '"\\\000-\037\200-\377' < text.txt && printf '"}\n'; } > long.jsonl
estimate long.jsonl
sed '2 s/.*/{"no": "text"}/' few.jsonl > bad.jsonl
run 0 sgt-tokenize --dry-run bad.jsonl
stdout_has 'in samples  1 bad line or row (--skip-bad leaves such out)'
run 1 sgt-tokenize --dry-run nowhere out
stderr_is 'sgt-tokenize: nowhere: No such file or directory'
run 2 sgt-tokenize --dry-run - < few.jsonl
stderr_is 'sgt-tokenize: standard input (-) cannot be read twice: a dry run would use it up'
run_usage 'expected INPUT... and OUT (such as: sgt-tokenize corpus/ out/)' sgt-tokenize --dry-run
run_usage '--train-vocab makes a vocabulary and no shards: not with --dry-run' \
    sgt-tokenize --dry-run --train-vocab 300 few v
