# tokenize-keep.sh: --keep-fields keeps fields of JSONL, and columns of Parquet, in sources.jsonl.
. "$ROOT/tests/cli/lib.sh"
work_in_memory
data=$ROOT/tests/data/parquet

# ---- JSONL: values as they are written, whatever their kind; null where there is none ----
cat > a.jsonl << 'END'
{"url": "http:\/\/a", "t\u0065xt": "one \u0041", "n": {"x": [1, {"y": null}], "x2": 0}}

{"text": "two", "d\u0061te": "2025-01-01", "url": "first", "n": {"x": {"deep": "\""}}, "url": -1.5e3}
{"n": 1, "url": true, "text": "three"}
END
printf plain > b.txt
touch -d @1700000000 a.jsonl b.txt
run 0 sgt-tokenize --quiet --keep-fields url,n.x,date a.jsonl b.txt out
stderr_is ''
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
run 0 sgt-tokenize --keep-fields url,n.x,date a.jsonl b.txt out
stdout_has 'complete already, nothing was done'
run 1 sgt-tokenize --keep-fields url a.jsonl b.txt out
stderr_is 'sgt-tokenize: out: made with --keep-fields url,n.x,date, now url (--force replaces it)'

# A bad line has no fields, and is not numbered otherwise; each split's documents are told apart.
{ echo '{"url": 1}' && cat a.jsonl && echo '{"url": 2, "text": "\377"}' && echo '{"url": 3, "text": "last"}'; } > bad.jsonl
run 0 sgt-tokenize --quiet --skip-bad --keep-fields url bad.jsonl bad
[ "$(grep -c '^{"document"' bad/sources.jsonl)" -eq 4 ] || fail "$(cat bad/sources.jsonl)"
grep -qx '{"document": 7, "split": "train", "fields": {"url": 3}}' bad/sources.jsonl || fail "$(cat bad/sources.jsonl)"

# ---- Parquet: the same as of the same rows in JSONL ----
run 0 sgt-tokenize --quiet --keep-fields url,date,score,count,small "$data/web.jsonl" lines
grep '^{"document"' lines/sources.jsonl > want
[ "$(wc -l < want)" -eq 100 ] || fail "$(wc -l < want) documents"
sed -i 's/\([0-9]\)\.0,/\1,/' want # of Python's 1.0
keep="--quiet --keep-fields url,date,score,count,small"
run 0 sgt-tokenize $keep "$data/web.parquet" rows
same lines/train_000000.bin rows/train_000000.bin
fields() { grep '^{"document"' "$1/sources.jsonl" > got && same got want; }
fields rows
run 0 sgt-inspect --verify rows

# Names with a dot in them, and numbers without a sign; one encoding is not read, and is not called damage.
run 0 sgt-tokenize --quiet --field a.b --keep-fields c.d.e,small,middle,large "$data/names.parquet" names
grep '^{"document"' names/sources.jsonl | cut -d' ' -f5- > got
cat > want-names <<'END'
"fields": {"c.d.e": "x", "small": 1, "middle": 1, "large": 4294967296}}
"fields": {"c.d.e": "y", "small": 255, "middle": 4294967295, "large": 18446744069414584320}}
"fields": {"c.d.e": "z", "small": 128, "middle": 2147483648, "large": 9223372036854775808}}
END
same got want-names
run 1 sgt-tokenize --quiet --field a.b --keep-fields delta "$data/names.parquet" delta
stderr_matches "^sgt-tokenize: $data/names\.parquet: offset [0-9]+: an encoding of numbers that is not read \(write it with \
PLAIN or a dictionary\)$"
absent delta

# They stay in the order of the input, whatever becomes of the documents; ranks and kills change nothing.
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
    rank=0
    while [ $rank -lt $ranks ]; do
        run 0 sgt-tokenize $keep --shard-tokens 700 --split 30% --rank $rank --ranks $ranks "$data/web.parquet" \
            "$data/web.jsonl" out
        rank=$((rank + 1))
    done
    same_folders out one
done
rm -rf out
for wait in .005 .01 .02 .04; do # killed somewhere, or done by then
    sgt-tokenize $keep --shard-tokens 700 --split 30% "$data/web.parquet" "$data/web.jsonl" out > .stdout 2> .stderr &
    pid=$!
    sleep $wait
    kill -KILL $pid 2> .kill
    wait $pid 2> .wait
done
run 0 sgt-tokenize $keep --shard-tokens 700 --split 30% "$data/web.parquet" "$data/web.jsonl" out
same_folders out one

# Rows without a document are counted, and nulls within a group are null.
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
    stderr_is "sgt-tokenize: $data/nested.parquet: --keep-fields: column \"list.list.element\" holds neither strings nor \
numbers, one a row"
    absent no
    ;;
esac
run 1 sgt-tokenize --quiet --keep-fields url,nope "$data/web.parquet" no
stderr_is "sgt-tokenize: $data/web.parquet: --keep-fields: column \"nope\" is missing"
absent no

# ---- wrong lists ----
wrong() { # LIST MESSAGE
    run 2 sgt-tokenize --keep-fields "$1" a.jsonl no
    stderr_is "sgt-tokenize: keep-fields: $2"
    absent no
}
wrong 'url,url' '"url" is there twice'
wrong 'url,' 'field: "": a name in it is empty'
wrong 'a"b' '"a"b" holds a quote, a backslash or a control character'
wrong 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q' 'more than 16 names'
run_usage '--train-vocab makes a vocabulary and no shards: not with --keep-fields' sgt-tokenize --train-vocab 300 \
    --keep-fields url a.jsonl no
