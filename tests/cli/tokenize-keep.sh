# tokenize-keep.sh: --keep-fields stores fields of JSONL lines, or columns of Parquet, in
# sources.jsonl.
. "$ROOT/tests/cli/parquet.inc"
work_in_memory
data=$ROOT/tests/data/parquet

# ---- JSONL: values are copied as they are written, whatever their
# type; a missing field gives null ----
cat > a.jsonl << 'END'
{"url": "http:\/\/a", "t\u0065xt": "one \u0041", "n": {"x": [1, {"y": null}], "x2": 0}}

{"text": "two", "d\u0061te": "2025-01-01", "url": "first", "n": {"x": {"deep": "\""}}, "url": -1.5e3}
{"n": 1, "url": true, "text": "three"}
END
printf plain > b.txt
touch -d @1700000000 a.jsonl b.txt
run_silent sgt-tokenize --quiet --keep-fields url,n.x,date a.jsonl b.txt out
cat > want << 'END'
{"document": 1, "split": "train", "fields": {"url": "http:\/\/a", "n.x": [1, {"y": null}], "date": null}}
{"document": 3, "split": "train", "fields": {"url": -1.5e3, "n.x": {"deep": "\""}, "date": "2025-01-01"}}
{"document": 4, "split": "train", "fields": {"url": true, "n.x": null, "date": null}}
END
grep '^{"document"' out/sources.jsonl > got
same got want
run 0 sgt-tokenize --quiet a.jsonl b.txt plain
for f in train_000000.bin train_000000.idx; do same plain/$f out/$f; done
grep -v '^{"document"' out/sources.jsonl > files
same files plain/sources.jsonl
run 0 sgt-inspect --verify out
cp -r out hurt
sed 2d out/sources.jsonl > hurt/sources.jsonl
run_failure 'hurt/sources.jsonl: line 3: 3 documents, but the lines before it list fields of 2' sgt-inspect --verify hurt
sed '4 s/3/x/g' out/sources.jsonl > hurt/sources.jsonl
run_failure 'hurt/sources.jsonl: line 4: expected a JSON object with documents and tokens' sgt-inspect --verify hurt
run_prints 'already complete, nothing to do' sgt-tokenize --keep-fields url,n.x,date a.jsonl b.txt out
run_unforced 'out: made with --keep-fields url,n.x,date, now url' sgt-tokenize --keep-fields url a.jsonl b.txt out

# A bad line has no entry. The other entries have the number of their line, and name their split.
{ echo '{"url": 1}' && cat a.jsonl && echo '{"url": 2, "text": "\377"}' && echo '{"url": 3, "text": "last"}'; } > bad.jsonl
run 0 sgt-tokenize --quiet --skip-bad --keep-fields url bad.jsonl bad
[ "$(grep -c '^{"document"' bad/sources.jsonl)" -eq 4 ] || fail "$(cat bad/sources.jsonl)"
grep -qx '{"document": 7, "split": "train", "fields": {"url": 3}}' bad/sources.jsonl || fail "$(cat bad/sources.jsonl)"

# A literal end-of-text token in the first line begins another document, which has the number of
# that line.
printf '{"url": 1, "text": "a<|endoftext|>b"}\n{"url": 2, "text": "c"}\n' > first.jsonl
run 0 sgt-tokenize --quiet --special eot --keep-fields url first.jsonl first
[ "$(sed -n 's/^{"document": \([0-9]*\),.*/\1/p' first/sources.jsonl | tr '\n' ' ')" = '1 1 2 ' ] || fail "$(cat first/sources.jsonl)"

# ---- Parquet gives the same fields as the same rows in JSONL ----
run 0 sgt-tokenize --quiet --keep-fields url,date,score,count,small "$data/web.jsonl" lines
grep '^{"document"' lines/sources.jsonl > want
[ "$(wc -l < want)" -eq 100 ] || fail "$(wc -l < want) documents"
sed -i 's/\([0-9]\)\.0,/\1,/' want # Python writes 1.0
keep="--quiet --keep-fields url,date,score,count,small"
run 0 sgt-tokenize $keep "$data/web.parquet" rows
same lines/train_000000.bin rows/train_000000.bin
fields() { grep '^{"document"' "$1/sources.jsonl" > got && same got want; }
fields rows
run 0 sgt-inspect --verify rows

# Column names with a dot in them, and unsigned numbers.
run 0 sgt-tokenize --quiet --field a.b --keep-fields c.d.e,small,middle,large,delta "$data/names.parquet" names
grep '^{"document"' names/sources.jsonl | cut -d' ' -f5- > got
cat > want-names <<'END'
"fields": {"c.d.e": "x", "small": 1, "middle": 1, "large": 4294967296, "delta": 1}}
"fields": {"c.d.e": "y", "small": 255, "middle": 4294967295, "large": 18446744069414584320, "delta": 2}}
"fields": {"c.d.e": "z", "small": 128, "middle": 2147483648, "large": 9223372036854775808, "delta": 3}}
END
same got want-names

# Encodings that only numbers have, with the largest and smallest values of their types.
numbers=delta32,delta64,same,split32,split64,float,double
for from in jsonl parquet; do
    run 0 sgt-tokenize --quiet --keep-fields $numbers "$data/numbers.$from" numbers-$from
    grep '^{"document"' numbers-$from/sources.jsonl > got-$from
done
[ "$(wc -l < got-parquet)" -eq 40 ] || fail "$(wc -l < got-parquet) documents"
same got-parquet got-jsonl

# Damage gives one line. In names.parquet, a delta encoding holds the numbers 1, 2, 3. Its header
# has the block size 256, 4 miniblocks, 3 values and the first value, 1. The smallest difference, 1,
# and the bit widths of the miniblocks follow. An unsupported encoding is not reported as damage.
damaged() { # MESSAGE BYTES-BEFORE BYTES OFFSET-IN-THEM: replace the bytes there; expect MESSAGE
    at=$(LC_ALL=C grep -obUaP "$2" "$data/names.parquet" | cut -d: -f1)
    cp "$data/names.parquet" names.parquet
    printf "$3" | dd of=names.parquet bs=1 seek=$((at + $4)) conv=notrunc 2> .dd
    run 1 sgt-tokenize --quiet --field a.b --keep-fields delta names.parquet no
    stderr_matches "^sgt-tokenize: names\.parquet: offset [0-9]+: $1$"
    absent no
}
head='\x80\x02\x04\x03\x02\x02\x00'
damaged 'damaged page: its numbers are damaged \(fetch the file again\)' "$head" '\004' 3
damaged 'damaged page: its numbers are damaged \(fetch the file again\)' "$head" '\000' 2
damaged 'damaged page: its values end too early \(fetch the file again\)' "$head" '\002' 3
damaged 'damaged page: its values end too early \(fetch the file again\)' "$head" '\100' 6 # of 64: bytes are missing
page='\x15\x20\x2c\x15\x06\x15' # in the page's header: 3 values and their encoding
damaged 'unsupported encoding of numbers \(write the column with PLAIN or dictionary encoding\)' "$page" '\024' 6
damaged 'unsupported encoding of numbers \(write the column with PLAIN or dictionary encoding\)' "$page" '\014' 6 # for strings
damaged 'damaged page: its numbers are damaged \(fetch the file again\)' "$page" '\022' 6 # BYTE_STREAM_SPLIT, of 10 bytes
size=$(wc -c < "$data/numbers.parquet")
for step in $(seq 90); do # any wrong byte gives one line, or another number
    # shellcheck disable=SC2086
    wrong_byte "$data/numbers.parquet" $((size * step / 91)) 377 --keep-fields $numbers
done

# Kept fields are in the order of the input, whatever happens to the documents. Ranks and kills
# change nothing.
cat "$data/web.jsonl" "$data/web.jsonl" > twice.jsonl
run 0 sgt-tokenize --quiet --dedup --keep-fields url twice.jsonl dedup
[ "$(grep -c '^{"document"' dedup/sources.jsonl)" -eq 200 ] || fail 'duplicates have fields, too'
run 0 sgt-inspect --verify dedup
run 0 sgt-tokenize $keep --shuffle 5 --threads 3 "$data/web.parquet" shuffled
fields shuffled
run 0 sgt-tokenize $keep --shard-tokens 700 --split 30% "$data/web.parquet" "$data/web.jsonl" one
grep -q '"split": "val"' one/sources.jsonl || fail 'no document for validation'
for ranks in 2 4; do
    rm -rf out
    for rank in $(seq 0 $((ranks - 1))); do
        run 0 sgt-tokenize $keep --shard-tokens 700 --split 30% --rank $rank --ranks $ranks "$data/web.parquet" \
            "$data/web.jsonl" out
    done
    same_folders out one
done
rm -rf out
for wait in .005 .01 .02 .04; do # killed at some point, or finished before
    killed $wait sgt-tokenize $keep --shard-tokens 700 --split 30% "$data/web.parquet" "$data/web.jsonl" out
done
run 0 sgt-tokenize $keep --shard-tokens 700 --split 30% "$data/web.parquet" "$data/web.jsonl" out
same_folders out one

# Rows without a document are counted, and null values within a group are stored as null.
case $(codecs_of "${CC:-cc}") in
*snappy*)
    run 0 sgt-tokenize --quiet --skip-bad --field page.in.text --keep-fields page.url,id "$data/nested.parquet" nested
    head -3 nested/sources.jsonl > got
    cat > want << 'END'
{"document": 1, "split": "train", "fields": {"page.url": "0", "id": 0}}
{"document": 3, "split": "train", "fields": {"page.url": "2", "id": 2}}
{"document": 6, "split": "train", "fields": {"page.url": "5", "id": 5}}
END
    same got want
    run 1 sgt-tokenize --quiet --skip-bad --field page.in.text --keep-fields list.list.element "$data/nested.parquet" no
    stderr_is "sgt-tokenize: $data/nested.parquet: --keep-fields: column \"list.list.element\" does not hold \
one string or number per row"
    absent no
    ;;
esac
# Decimal numbers keep their decimal point.
run 0 sgt-tokenize --quiet --keep-fields small,large,whole "$data/decimals.parquet" decimals
sed -n 's/.*"fields": \(.*\)}$/\1/p' decimals/sources.jsonl > got
cat > want << 'END'
{"small": 12.34, "large": 0.000000000000000001, "whole": 7}
{"small": -0.05, "large": -0.999999999999999999, "whole": -8}
{"small": 0.00, "large": 0.500000000000000000, "whole": 9}
{"small": -9999999.99, "large": 0.000000000000000000, "whole": 0}
END
same got want
run 1 sgt-tokenize --quiet --keep-fields wide "$data/decimals.parquet" no
stderr_is "sgt-tokenize: $data/decimals.parquet: --keep-fields: column \"wide\" does not hold one string or number per row"
absent no
run 1 sgt-tokenize --quiet --keep-fields url,nope "$data/web.parquet" no
stderr_is "sgt-tokenize: $data/web.parquet: --keep-fields: column \"nope\" is missing"
absent no

# ---- wrong lists ----
wrong() { # LIST MESSAGE
    run_misuse "keep-fields: $2" sgt-tokenize --keep-fields "$1" a.jsonl no
    absent no
}
wrong 'url,url' '"url" is given twice'
wrong 'url,' 'field: "" contains an empty name'
wrong 'a"b' '"a"b" contains a quote, a backslash or a control character'
wrong 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q' 'more than 16 names'
