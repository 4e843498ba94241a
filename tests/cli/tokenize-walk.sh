# tokenize-walk.sh: the code blocks of tokenize/parquet.md, as written, on small files.
mkdir fineweb
for i in 1 2 3; do cp "$ROOT/tests/data/parquet/web.parquet" fineweb/$i.parquet; done
awk '$0 == "```sh" { on = 1; next } $0 == "```" { on = 0 } on' "$ROOT/tokenize/parquet.md" > all.sh
[ "$(grep -c '^sgt-' all.sh)" -eq 8 ] || fail 'tokenize/parquet.md has other commands than this test runs'
sed 's/--steps 100/--steps 4/' all.sh > small.sh
run 0 sh -eu small.sh
stdout_matches '^\{"document": 1, "split": "(train|val)", "fields": \{"url": "http://a\.b/0.*, "date": null\}\}$'
stdout_has 'Once upon a time'
exists report.html
grep -q 'id="loss-compute"' both.html || fail 'no loss over compute'
