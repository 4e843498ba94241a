# tokenize-parquet.sh: Parquet gives the same shards as its texts in JSONL. A damaged file gives one
# line.
. "$ROOT/tests/cli/parquet.inc"
work_in_memory
data=$ROOT/tests/data/parquet

codecs='none zstd gzip'
case $(codecs_of "${CC:-cc}") in *snappy*) codecs="$codecs snappy" ;; esac
case $(codecs_of "${CC:-cc}") in *lz4*) codecs="$codecs lz4" ;; esac

# Write the rows that are not null as JSONL, by the same patterns as tests/data/make_parquet.py.
cp "$data/texts.jsonl" none.jsonl
awk 'NR % 3 != 2' none.jsonl > some.jsonl
awk 'NR == 1' none.jsonl > all.jsonl
awk '(NR - 1) % 7 != 3 && (NR - 1) % 3 != 1' none.jsonl > nested.jsonl
for nulls in none some all nested; do run 0 sgt-tokenize --quiet $nulls.jsonl want-$nulls; done
is() { # WANT OPTION... FILE
    texts=$1
    shift
    rm -rf out
    run_silent sgt-tokenize --quiet --skip-bad "$@" out
    same "want-$texts/train_000000.bin" out/train_000000.bin
    same "want-$texts/train_000000.idx" out/train_000000.idx
}
for codec in $codecs; do
    for version in 1 2; do
        for encoding in plain dict length delta; do
            is some --field ${encoding}_some "$data/$codec-v$version.parquet"
        done
    done
done
for encoding in plain dict length delta; do
    is none --threads 1 --field ${encoding}_none "$data/zstd-v2.parquet"
    is all --threads 1 --field ${encoding}_all "$data/zstd-v1.parquet"
done
is none "$data/fallback.parquet"
case $codecs in *snappy*) is nested --field page.in.text "$data/nested.parquet" ;; esac
cp "$data/zstd-v2.parquet" rows.data # the first and last bytes identify the format
is none --field plain_none rows.data
run_prints 'empty: 0 tokens, 0 documents, 0 shards' sgt-tokenize "$data/empty.parquet" empty

# With --special eot, a literal end-of-text token in a row begins a document, as in JSONL. The
# document keeps the row's fields.
run 0 sgt-tokenize --quiet --special eot --keep-fields url "$data/web.jsonl" want-web
is web --special eot --keep-fields url "$data/web.parquet"
check 'documents of the rows' [ "$(grep -c '"document"' out/sources.jsonl)" -eq 111 ]
check 'fields of the rows' [ "$(grep '"document"' out/sources.jsonl)" = "$(grep '"document"' want-web/sources.jsonl)" ]

# Pages of more rows than are decoded at once, which threads share (tests/data/make_parquet.py).
awk 'BEGIN { for (i = 0; i < 40000; i++) print "{\"text\": \"row " i % 7 "\"}" }' > long.jsonl
awk 'NR % 3 != 2' long.jsonl > long-some.jsonl
for texts in long long-some; do run 0 sgt-tokenize --quiet $texts.jsonl want-$texts; done
for encoding in plain dict length delta; do
    is long --threads 3 --field ${encoding}_none "$data/long.parquet"
    is long-some --threads 2 --field ${encoding}_some "$data/long.parquet"
done

# A dictionary whose strings are used in another order, or not at all (tests/data/make_parquet.py).
# Rows 41 and 42 are bad.
awk 'BEGIN { split("three,two é,one,two é", t, ",")
    for (i = 0; i < 60; i++) if (i != 40 && i != 41) print "{\"text\": \"" t[i % 4 + 1] "\"}" }' > order.jsonl
run 0 sgt-tokenize --quiet order.jsonl want-order
is order --threads 1 "$data/order.parquet"
is order --threads 3 "$data/order.parquet"

# A page that gzip compressed as two members: the length of a string, 2, and its bytes.
{
    printf 'PAR1\25\0\25\14\25\134\54\25\2\25\0\25\6\25\6\0\0'
    printf '\2\0\0\0' | gzip -nc && printf no | gzip -nc
    printf '\25\2\31\54\110\0\25\2\0\25\14\45\0\30\4text\0\26\2\31\34\31\34\46\10\34\25\14\31\25\0\31\30\4text\25\4\26\2'
    printf '\26\176\26\176\46\10\0\0\26\176\26\2\0\0\73\0\0\0PAR1'
} > members.parquet
run 0 sgt-tokenize --quiet members.parquet members
run_says no sgt-inspect --decode 1:9 members

# The files that Hadoop's programs write next to Parquet files count as hidden.
mkdir table
cp "$data/order.parquet" table/part-0.parquet
: > table/_SUCCESS
printf 'PAR1no rowsPAR1' > table/_metadata
cp table/_metadata table/_common_metadata
rm -rf out
run 0 sgt-tokenize --skip-bad table out
stderr_has 'sgt-tokenize: table/_SUCCESS: skipped: a hidden file or folder (3 in all below table; --hidden reads them)'
same want-order/train_000000.bin out/train_000000.bin
run_failure_like '^sgt-tokenize: table/_common_metadata: offset' sgt-tokenize --quiet --hidden table no

# All features of JSONL: an estimate, ranks, shuffling, deduplication, a vocabulary, a resumed run.
mkdir rows lines
for i in 1 2 3 4 5 6 7; do cp "$data/zstd-v1.parquet" rows/$i.parquet && cp none.jsonl lines/$i.jsonl; done
both() { # OPTION...: check that both inputs give the same shards
    rm -rf a b
    run 0 sgt-tokenize --quiet --field dict_none "$@" rows a
    run 0 sgt-tokenize --quiet "$@" lines b
    for f in b/*.bin b/*.idx; do same "$f" "a/${f#b/}"; done
}
both
run 0 sgt-tokenize --dry-run --json --field dict_none rows
[ "$(field documents .stdout)" -eq "$(field documents a/manifest.json)" ] || fail 'rows of a dry run'
for rank in 0 1; do run 0 sgt-tokenize --quiet --field dict_none --rank $rank --ranks 2 rows ranks; done
same a/train_000000.bin ranks/train_000000.bin
both --shuffle 3
both --dedup
run 0 sgt-tokenize --quiet --field dict_none --split 20% rows split # the split depends on the row number
exists split/val_000000.bin
run 0 sgt-tokenize --quiet --field dict_none --train-vocab 300 rows vocab-a
run 0 sgt-tokenize --quiet --train-vocab 300 lines vocab-b
same vocab-a/merges.txt vocab-b/merges.txt
both --shard-tokens 500
# Ranks divide a file between its row groups, here with other files around it. OUT equals that of
# one rank, even if ranks are killed and start again.
mkdir mixed
cp "$data/zstd-v1.parquet" mixed/b.parquet
cp none.jsonl mixed/a.jsonl
cp none.jsonl mixed/c.jsonl
some='--quiet --field plain_none --shard-tokens 500 --split 20%'
for input in "$data/zstd-v1.parquet" mixed; do
    sed 's/"text"/"plain_none"/' none.jsonl > mixed/a.jsonl
    cp mixed/a.jsonl mixed/c.jsonl
    rm -rf one
    run 0 sgt-tokenize $some "$input" one
    for ranks in 2 3 5 12; do # 12: more ranks than row groups
        rm -rf divided
        for rank in $(seq $((ranks - 1)) -1 0); do
            run 0 sgt-tokenize $some --rank $rank --ranks $ranks "$input" divided
            [ $ranks -ne 3 ] || [ $rank -eq 0 ] || exists divided/.work/part-00000$rank/manifest.json
        done
        same_folders divided one
    done
done
run_failure "$data/zstd-v1.parquet: row 26: the field is null (--field NAME selects the field with the text, \
--skip-bad skips such rows)" sgt-tokenize --quiet --field plain_some --rank 1 --ranks 2 "$data/zstd-v1.parquet" no
rm -rf no
eight='rows rows rows rows rows rows rows rows'
run 0 sgt-tokenize --quiet --field dict_none --shard-tokens 500 $eight whole
for rank in 0 1 2; do
    part="--quiet --field dict_none --shard-tokens 500 --rank $rank --ranks 3 $eight cut"
    for wait in .01 .02 .04; do
        killed $wait sgt-tokenize $part
    done
    run 0 sgt-tokenize $part
done
same_folders cut whole

# ---- refused files; the message names the reason ----
refused() { # MESSAGE OPTION... FILE
    message=$1
    shift
    run_failure "$message" sgt-tokenize --quiet "$@" no
    absent no
}
cp "$data/encrypted.parquet" "$data/encrypted-column.parquet" "$data/brotli.parquet" "$data/bytes.parquet" "$data/nested.parquet" "$data/zstd-v1.parquet" .
refused 'brotli.parquet: column "text" is compressed with brotli, which sgt does not support (write it with zstd or snappy, or read it through a '\
'command with --filter)' brotli.parquet
refused 'encrypted.parquet: encrypted (write it without encryption)' encrypted.parquet
refused 'encrypted-column.parquet: column "text" is encrypted (write it without encryption)' encrypted-column.parquet
refused 'bytes.parquet: row 2: byte 5: not UTF-8 (--skip-bad skips such rows)' bytes.parquet
refused 'zstd-v1.parquet: row 2: the field is null (--field NAME selects the field with the text, --skip-bad skips '\
'such rows)' --field plain_some zstd-v1.parquet
refused 'bytes.parquet: no column "page" (--field NAME selects the column with the text: text)' --field page bytes.parquet
refused 'nested.parquet: column "id" does not hold strings (--field NAME selects the column with the text: page.url, '\
'page.in.text)' --field id nested.parquet
refused 'nested.parquet: column "list.list.element" holds lists or groups, not one string per row (--field A.B names '\
"a column in a group; --filter 'parquet=jsonl:COMMAND' can join the strings of a list)" --field list.list.element nested.parquet

# ---- damage: any wrong byte gives one line that names the file, or only rows that can still be read ----
size=$(wc -c < zstd-v1.parquet)
for at in 1 7 50 90 300 600 900 1500 2500 4000 $((size - 2000)) $((size - 900)) $((size - 300)) $((size - 40)) \
    $((size - 8)) $((size - 6)) $((size - 1)); do
    for byte in 377 000 200; do wrong_byte zstd-v1.parquet "$at" $byte --field delta_none; done
done
# --skip-bad counts the rows of a damaged page as bad. If no further page can be found in the row
# group, the rest of its rows are bad too. The other rows are kept, for any number of threads and
# ranks, and in a resumed run.
rows_stay() { # DOCUMENTS BAD FILE COLUMN OFFSET: check both counts after the byte at OFFSET was changed
    cp "$data/$3.parquet" torn.parquet
    patch torn.parquet "$5" 255
    torn="--quiet --skip-bad --shard-tokens 100 --field $4"
    rm -rf torn*/
    run 0 sgt-tokenize $torn --json --threads 1 torn.parquet torn1
    [ "$(field documents .stdout) $(field bad_lines .stdout)" = "$1 $2" ] || fail "$(cat .stdout)"
    run 0 sgt-tokenize $torn --threads 3 torn.parquet torn3
    for rank in 0 1 2; do run 0 sgt-tokenize $torn --rank $rank --ranks 3 torn.parquet torn-ranks; done
    for wait in .01 .02 .03; do killed $wait sgt-tokenize $torn torn.parquet torn-killed; done
    run 0 sgt-tokenize $torn torn.parquet torn-killed
    for other in torn3 torn-ranks torn-killed; do same_folders torn1 $other; done
    touch -d @1700000000 torn.parquet
    run 0 sgt-tokenize $torn torn.parquet torn1
}
rows_stay 38 23 zstd-v1 plain_none 8  # header of the first page
rows_stay 51 10 zstd-v1 plain_none 600 # compressed data
rows_stay 10 51 fallback text 300      # header of the second page: no page after it can be found
rows_stay 75 25 web text 900
# Damage in a kept column, other than the text, is an error even with --skip-bad.
cp "$data/zstd-v1.parquet" torn.parquet
patch torn.parquet 600 255
run 1 sgt-tokenize --quiet --skip-bad --field delta_none --keep-fields plain_none torn.parquet torn-kept
stderr_matches '^sgt-tokenize: torn.parquet: offset [0-9]+: damaged page: .*'
# In a folder, a file whose end is missing is skipped as a whole.
mkdir ends
cp "$data/web.parquet" ends/a.parquet
run 0 sgt-tokenize --quiet --skip-bad ends ends-a
head -c 20000 "$data/web.parquet" > ends/b.parquet
: > ends/c.parquet
run 1 sgt-tokenize --quiet ends ends-b
stderr_has 'sgt-tokenize: ends/b.parquet: offset 19996: truncated: a Parquet file ends with PAR1, but this one does not (fetch '
rm -rf ends-b
run 0 sgt-tokenize --skip-bad ends ends-b
stderr_is 'sgt-tokenize: ends/b.parquet: skipped: a truncated Parquet file (fetch the file again)
sgt-tokenize: ends/c.parquet: skipped: a truncated Parquet file (fetch the file again)'
stdout_has '2 files skipped: not plain text (see --binary), or truncated Parquet'
same ends-a/train_000000.bin ends-b/train_000000.bin
rm ends/a.parquet
run_failure 'ends: nothing to tokenize: no file is plain text or complete Parquet (2 skipped; --filter '\
'converts files to text with a command)' sgt-tokenize --quiet --skip-bad ends ends-f
for size in 0 4 11 12 5000 $((size - 1)); do
    head -c "$size" zstd-v1.parquet > short.parquet
    run_failure_about 'sgt-tokenize: short.parquet: ' sgt-tokenize --quiet --field plain_none short.parquet no
done

# Two columns of one name are refused.
sed 's/date/text/g' "$data/web.parquet" > twice.parquet
run 1 sgt-tokenize twice.parquet out-twice
stderr_is 'sgt-tokenize: twice.parquet: two columns are named "text" (rename one of them)'
absent out-twice
# Rows are compared by the pages that hold their text, even if ranks divided the file.
mkdir same
cp "$data/web.parquet" same
for rank in 0 1 2; do run 0 sgt-tokenize --quiet --rank $rank --ranks 3 same apart; done
run 0 sgt-tokenize --quiet same rows-one
same_folders apart rows-one
touch -d @1700000000 same/*
run_prints 'already complete' sgt-tokenize same rows-one
sed 's/jumped dog/jumped cat/g' "$data/web.parquet" > same/web.parquet
run_unforced 'rows-one: made from different inputs: the content of same/web.parquet has changed' sgt-tokenize same rows-one
