# tokenize-jsonl.sh: JSONL, packed or not: what is a document, what is a bad line, and going on with a run in it.
. "$ROOT/tests/cli/lib.sh"

ids() { tail -c +1025 "$1" | od -An -v -tu2 | xargs; }

# A line's field is a document, in the order of lines; blank lines are none, and the last need not end.
mkdir in
printf '{"id":1,"text":"Hello world"}\n\n  \t\r\n{"text":"","x":[{}]}\r\n{"text":"Hello\\u0020\\u0077orld"}' > in/a.jsonl
printf '\357\273\277{"text":"Hello world"}\n' > in/b.NDJSON
: > in/c.jsonl
printf '\n\n' > in/d.jsonl
printf '{"text":"x"}\n' > in/e.txt
for f in in/*; do touch -d @1700000000 $f; done
run 0 sgt-tokenize in out
stdout_has 'out: 17 tokens, 5 documents, 1 shard'
stdout_matches '^46 B of text in 5 files'
[ "$(ids out/train_000000.bin)" = '50256 15496 995 50256 50256 15496 995 50256 15496 995 50256 4895 5239 2404 87 20662 198' ] ||
    fail "ids: $(ids out/train_000000.bin)"
cat > want << 'END'
{"path": "a.jsonl", "size": 90, "mtime": 1700000000, "documents": 3, "bytes": 22, "tokens": 7}
{"path": "b.NDJSON", "size": 26, "mtime": 1700000000, "documents": 1, "bytes": 11, "tokens": 3}
{"path": "c.jsonl", "size": 0, "mtime": 1700000000, "documents": 0, "bytes": 0, "tokens": 0}
{"path": "d.jsonl", "size": 2, "mtime": 1700000000, "documents": 0, "bytes": 0, "tokens": 0}
{"path": "e.txt", "size": 13, "mtime": 1700000000, "documents": 1, "bytes": 13, "tokens": 7}
END
same out/sources.jsonl want
run 0 sgt-inspect --verify out
