# tokenize-dry-run.sh: sgt-tokenize --dry-run writes nothing. It counts files and bytes, and
# documents if that needs no reading of text. It assumes four bytes of text per token, and says so.

# estimate OPTION... INPUT...: the estimate must be one line of JSON. Tokenizing the same inputs
# must give the estimated numbers of files, documents and shards.
estimate() {
    run 0 sgt-tokenize --dry-run --json --quiet "$@"
    stdout_lines 1
    stderr_is ''
    cp .stdout dry
    rm -rf out
    run 0 sgt-tokenize --json --quiet "$@" out
    tokens=$(field tokens .stdout)
    for name in files documents shards; do
        [ "$name $(field $name dry)" = "documents null" ] || [ "$(field $name dry)" = "$(field $name .stdout)" ] ||
            fail "$name: $(field $name dry) in the dry run, $(field $name .stdout) in the run"
    done
}
is() { [ "$(field $1 dry)" = "$2" ] || fail "$1: $(field $1 dry), not $2"; } # FIELD VALUE

texts few 90000
: > few/empty
printf 'bad \377' > few/bad.txt
bytes=$(cat few/* | wc -c)
estimate few
is documents "$(ls few | wc -l)"
is bytes "$bytes"
is tokens $(((bytes + 3) / 4))
is disk_meanwhile 0
is disk_free null
said=$(field disk_bytes dry) disk=$(cat out/* | wc -c)
[ "$said" -gt $((disk / 2)) ] && [ "$said" -lt $((disk * 2)) ] || fail "$said bytes were said, OUT has $disk"
estimate --shuffle 5 few
is disk_meanwhile $((2 * $(field tokens dry) + 8 * $(field documents dry)))

# Rows of Parquet are counted. Documents are not counted if they are lines of JSONL, if --special
# eot may cut texts, or if a filter may print JSONL.
printf '{"text": "one\\u00e9"}\n{"text": ""}\n\n{"text": "three words here"}' > few.jsonl
estimate few.jsonl few/part-07
is documents null
is tokens $((($(cat few.jsonl few/part-07 | wc -c) + 3) / 4))
data=$ROOT/tests/data/parquet
estimate "$data/fallback.parquet" few/part-07
[ "$(field documents dry)" -gt 1 ] || fail 'rows are not counted'
estimate --special eot few/part-07
is documents null
printf 'a b c\n' > made.rev
estimate --filter rev=rev made.rev
is documents null
estimate --filter rev=text:rev made.rev
is tokens 2
is documents 1

# A compressed file is assumed to hold three times its size of text. For Parquet, this applies only
# to the text column.
gzip -nk few/part-07
size=$(wc -c < few/part-07.gz)
estimate few/part-07.gz
is bytes "$size"
is tokens $(((3 * size + 3) / 4))
mv few/part-07.gz .
estimate "$data/web.parquet"
[ $((4 * $(field tokens dry))) -lt $((3 * $(wc -c < "$data/web.parquet"))) ] || fail 'other columns count as text'
run 0 sgt-tokenize --dry-run "$data/web.parquet"
stdout_matches '^tokens      about [0-9,]+: bytes / 4, and compressed files are assumed to expand to 3 times their size$'
run 1 sgt-tokenize --dry-run --field no "$data/web.parquet"
stderr_matches "^sgt-tokenize: $data/web.parquet: no column \"no\" "

# With a pattern other than GPT-2's, the estimate is marked as inexact.
run 0 sgt-tokenize --quiet --train-vocab 280 --pattern llama3 few v
yes . | head -n 200000 > dots
run_prints 'tokens      about 100,000: bytes / 4' sgt-tokenize --dry-run --vocab v/tokenizer.json dots

# Nothing is written, whether OUT is given or not.
run 0 sgt-tokenize --dry-run few new
absent new
stdout_matches '^inputs      [0-9.]+ KiB in [0-9]+ files, [0-9]+ documents$'
stdout_matches '^tokens      about [0-9,]+: bytes / 4$'
stdout_matches '^disk        about [0-9.]+ MiB in 1 shard, [0-9.]+ [KMGT]iB free there$'
stdout_lines 3
run_prints_like '^inputs      [0-9.]+ KiB in [0-9]+ files$' sgt-tokenize --dry-run few few.jsonl
run 0 sgt-tokenize --dry-run --shuffle 1 few
stdout_matches '^disk        about [0-9.]+ MiB in 1 shard, and [0-9.]+ KiB more while running$'
run_says '' sgt-tokenize --dry-run --quiet few
run 0 sgt-tokenize --dry-run --json few few.jsonl # the last argument is an INPUT if it is a file
[ "$(field files .stdout)" -eq $(($(ls few | wc -l) + 1)) ] || fail 'the last input is not among the files'
stdout_has '"disk_free": null'
mkdir filled && cp few/part-07 filled
run 0 sgt-tokenize --dry-run --json few filled # also if it is a folder that sgt-tokenize did not make
[ "$(field files .stdout)" -eq $(($(ls few | wc -l) + 1)) ] || fail 'the last input is not among the files'
ls -lA --full-time out few filled > before
run 0 sgt-tokenize --dry-run --json few out # but this folder is OUT
[ "$(field files .stdout)" -eq "$(ls few | wc -l)" ] || fail 'OUT is among the files'
ls -lA --full-time out few filled > after
same before after

# Errors that the run would report before its first file are reported.
run_failure 'nowhere: No such file or directory' sgt-tokenize --dry-run nowhere out
run_misuse 'standard input (-) has an unknown size, so its tokens cannot be estimated (save '\
'it as a file first)' sgt-tokenize --dry-run - < few.jsonl
run_usage 'expected INPUT... OUT/ (such as: sgt-tokenize corpus/ out/)' sgt-tokenize --dry-run
