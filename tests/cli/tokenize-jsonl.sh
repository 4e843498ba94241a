# tokenize-jsonl.sh: JSONL, compressed or not: documents, bad lines, and runs that resume within a
# file.


# The text field of each line is a document; documents are in the order of lines. Blank lines are
# skipped. The last line may lack its newline.
mkdir in
printf '{"id":1,"text":"Hello world"}\n\n  \t\r\n{"text":"","x":[{}]}\r\n{"text":"Hello\\u0020\\u0077orld"}' \
    > in/a.jsonl
printf '\357\273\277{"text":"Hello world"}\n' > in/b.NDJSON
: > in/c.jsonl
printf '\n\n' > in/d.jsonl
printf '{"test":"x"}\n' > in/e.txt
for f in in/*; do touch -d @1700000000 $f; done
run_prints 'out: 17 tokens, 5 documents, 1 shard' sgt-tokenize in out
stdout_matches '^46 B of text in 5 files'
want='50256 15496 995 50256 50256 15496 995 50256 15496 995 50256 4895 9288 2404 87 20662 198'
is "$(ids_of out/train_000000.bin)" "$want"
cat > want << 'END'
{"path": "a.jsonl", "size": 90, "mtime": 1700000000, "stat": "HASH", "documents": 3, "bytes": 22, "tokens": 7, "xxh3": "HASH"}
{"path": "b.NDJSON", "size": 26, "mtime": 1700000000, "stat": "HASH", "documents": 1, "bytes": 11, "tokens": 3, "xxh3": "HASH"}
{"path": "c.jsonl", "size": 0, "mtime": 1700000000, "stat": "HASH", "documents": 0, "bytes": 0, "tokens": 0, "xxh3": "HASH"}
{"path": "d.jsonl", "size": 2, "mtime": 1700000000, "stat": "HASH", "documents": 0, "bytes": 0, "tokens": 0, "xxh3": "HASH"}
{"path": "e.txt", "size": 13, "mtime": 1700000000, "stat": "HASH", "documents": 1, "bytes": 13, "tokens": 7, "xxh3": "HASH"}
END
sed 's/"[0-9a-f]\{16\}"/"HASH"/g' out/sources.jsonl > got
same got want
run 0 sgt-inspect --verify out

# A bad line is an error that names file, line and byte, and leaves nothing. With --skip-bad, the
# line is skipped and counted.
bad() { # LINE MESSAGE
    printf '{"text":"a"}\n\n%b\n{"text":"b"}' "$1" > bad.jsonl
    run_failure "bad.jsonl: line 3: $2 (${3:-}--skip-bad skips such lines)" sgt-tokenize bad.jsonl out-bad
    absent out-bad
    run_prints 'out-bad: 4 tokens, 2 documents' sgt-tokenize --skip-bad bad.jsonl out-bad
    stdout_has '1 bad line, row or end of a file skipped'
    grep -q '"bad_lines": 1$' out-bad/manifest.json || fail "no bad line in manifest.json"
    run 0 sgt-tokenize --json --skip-bad --force --threads 1 bad.jsonl out-bad
    stdout_has '"bad_lines": 1, "lone_surrogates": 0'
    rm -r out-bad
}
# If all lines are bad, it is an error that nothing is left, as for files that are not text.
printf '{"txt":"a"}\n{"txt":"b"}\n' > all-bad.jsonl
run_failure 'all-bad.jsonl: nothing to tokenize: --skip-bad skipped every line, row or file, 2 in all (run without it '\
'to see the first error)' sgt-tokenize --skip-bad all-bad.jsonl out-bad
absent out-bad
run 1 sgt-tokenize --skip-bad --shuffle 1 all-bad.jsonl out-bad
stderr_has 'all-bad.jsonl: nothing to tokenize: --skip-bad skipped every line, row or file, 2 in all '
absent out-bad
bad '{"text":1}' 'the field is not a string' '--field NAME selects the field with the text, '
bad '{"txt":"a"}' 'the field is missing' '--field NAME selects the field with the text, '
bad '{"text":"a","\355\240\200":1}' 'byte 14: not UTF-8' # tests/tokenize/test_json_line.c has the others
# Files with byte order marks were joined, possibly without a newline between them. The command in
# the message repairs the file.
mark='a byte order mark where files were joined: '
sed="sed -E 's/^\\s*\\xEF\\xBB\\xBF//; s/}\\s*\\xEF\\xBB\\xBF\\s*(\\{|\$)/}\\n\\1/g'"
bad '\0357\0273\0277{"text":"c"}' "byte 1: $mark$sed removes it"
bad ' \t\0357\0273\0277 {"text":"c"}' "byte 3: $mark$sed removes it"
bad '{"text":"c"} \0357\0273\0277 {"text":"d"}\0357\0273\0277' "byte 14: $mark$sed removes it"
for locale in C C.UTF-8; do
    LC_ALL=$locale sh -c "$sed bad.jsonl" > mended.jsonl
    run_prints 'out-mended: 8 tokens, 4 documents' sgt-tokenize --force mended.jsonl out-mended
done

# Values that Python's json module writes, but that are not JSON, are accepted in fields that are
# not kept.
printf '{"a":[NaN,-Infinity],"text":"a","b":Infinity}\n' > python.jsonl
run_prints 'out-python: 2 tokens, 1 document' sgt-tokenize --keep-fields a,b python.jsonl out-python
grep -qF '"fields": {"a": null, "b": null}}' out-python/sources.jsonl || fail 'what is not JSON is kept'
run_failure 'python.jsonl: line 1: byte 37: NaN or Infinity, which is not text (--skip-bad skips such lines)' \
    sgt-tokenize --field b python.jsonl out-field

# The message has the same line number for any number of threads and after a resume. Complete shards
# before that line are kept.
awk 'BEGIN { for (i = 1; i < 30000; i++) printf "{\"n\":%d,\"text\":\"some words of number %d\"}\n", i, i }' \
    > many.jsonl
{ cat many.jsonl && echo '{' && cat many.jsonl; } > broken.jsonl
for t in 1 4; do
    rm -rf out-many
    run_failure 'broken.jsonl: line 30000: byte 2: expected a name in quotes (--skip-bad skips such lines)' \
        sgt-tokenize --quiet --threads $t --shard-tokens 10k broken.jsonl out-many
    exists out-many/train_000010.bin
    run 1 sgt-tokenize --quiet --threads $t --shard-tokens 10k broken.jsonl out-many
    stderr_has 'broken.jsonl: line 30000: byte 2:'
done

# --field with nested names; strings with lone surrogates.
printf '{"a":{"b":"Hello world"},"text":{"b":1}}\n' > nested.jsonl
run 0 sgt-tokenize --field a.b nested.jsonl out-nested
[ "$(ids_of out-nested/train_000000.bin)" = '50256 15496 995' ] || fail 'nested'
grep -q '"field": "a.b"' out-nested/manifest.json || fail 'the field is not in manifest.json'
run_unforced 'out-nested: made with --field a.b, now a.c' sgt-tokenize --field a.c nested.jsonl out-nested
run_unforced 'out-nested: made with --skip-bad false, now true' sgt-tokenize --field a.b --skip-bad nested.jsonl out-nested
printf '{"text":"\\ud83d\\ude00"}\n{"text":"\\ude00\\ud83d"}\n' > halves.jsonl
run_prints '2 lone surrogates in JSONL, replaced by U+FFFD' sgt-tokenize halves.jsonl out-halves
grep -q '"lone_surrogates": 2$' out-halves/manifest.json || fail 'lone surrogates in manifest.json'

# Standard input can be JSONL. (tests/tokenize compares files of JSONL, compressed or not, with files
# of text.)
run_prints ', 29,999 documents' sgt-tokenize --format jsonl - out-stdin < many.jsonl
# ---- JSONL in files with other endings ----

# JSONL is recognized by its first two lines under any name, compressed or not. The tokens are those
# that the usual name gives. One line reports this, however many files there are.
mkdir plain other
head -3000 many.jsonl > plain/a.jsonl
printf '{"text":"one"}\n' > plain/b.jsonl
printf '{"text":"two"}' > plain/c.jsonl
{ printf '\357\273\277\n\r\n{"text":"three","n":[{}]}\r\n\n' && printf '{"text":"four"}'; } > plain/d.jsonl
gzip -c plain/a.jsonl > other/a.json.gz
cp plain/b.jsonl other/b.JL
zstd -q -c plain/c.jsonl > other/c.JSON.ZST 2> .zstd || cp plain/c.jsonl other/c.json
cp plain/d.jsonl other/d
run 0 sgt-tokenize --quiet plain as-named
run_prints ', 3,004 documents' sgt-tokenize other as-found
stderr_is 'sgt-tokenize: other/a.json.gz: read as JSONL, because its lines are JSON objects '\
'with the field "text" (4 such files; --format text reads them as text)'
same as-named/train_000000.bin as-found/train_000000.bin
same as-named/train_000000.idx as-found/train_000000.idx
grep -q '"path": "b.JL", "size": 15, "format": "jsonl", "mtime"' as-found/sources.jsonl || fail 'sources.jsonl'
run 0 sgt-tokenize other/d one-file
stderr_is 'sgt-tokenize: other/d: read as JSONL, because its lines are JSON objects with the '\
'field "text" (1 such file; --format text reads them as text)'
stdout_has ', 2 documents'
# A file of 15 bytes that was a text, and is now one line of JSONL.
printf 'fifteen bytes.\n' > turned
run 0 sgt-tokenize --quiet turned turned-out
cp plain/b.jsonl turned
run_unforced 'turned-out: made from different inputs: turned had 15 bytes, now 15 of JSONL' sgt-tokenize --quiet turned turned-out
options='--quiet --split 30% --shard-tokens 2k' # names differ: compare it with itself
run 0 sgt-tokenize $options other x1
for rank in 0 1 2; do run 0 sgt-tokenize $options --rank $rank --ranks 3 other x2; done
same_folders x1 x2
run 0 sgt-tokenize --quiet --train-vocab 260 --json other vocab
[ "$(field documents .stdout)" -eq 3004 ] || fail 'documents of --train-vocab'

# Standard input and the output of filters are recognized when they are read. A filter's prefix or
# --format can override this.
run_prints ', 3,000 documents' sgt-tokenize - from-stdin < plain/a.jsonl
stderr_is 'sgt-tokenize: standard input: read as JSONL, because its lines are JSON objects '\
'with the field "text" (--format text reads them as text)'
run 0 sgt-tokenize --quiet plain/a.jsonl a-file
same from-stdin/train_000000.bin a-file/train_000000.bin
printf '{"text":"only"}' | run 0 sgt-tokenize - short-stdin
stdout_has ': 2 tokens, 1 document'
run_prints ', 1 document,' sgt-tokenize --format text - text-stdin < plain/a.jsonl
stderr_is ''
mkdir filtered
cp plain/a.jsonl filtered/a.x
cp plain/b.jsonl filtered/b.x
run_prints ', 3,001 documents' sgt-tokenize --filter x=cat --shard-tokens 2k --keep-fields n filtered by-filter
stderr_is 'sgt-tokenize: filtered/a.x: read as JSONL, because its lines are JSON objects with '\
'the field "text" (--format text reads them as text)'
grep -q '{"document": 2, "split": "train", "fields": {"n": 2}}' by-filter/sources.jsonl || fail 'fields of a filter'
run_prints ', 2 documents' sgt-tokenize --filter x=text:cat filtered by-text
stderr_is ''

# A filter that fails at first: the run resumes when it works.
printf '#!/bin/sh\ncat "$1"; [ -e now-it-works ]\n' > fails
chmod +x fails
run 1 sgt-tokenize --quiet --filter x=./fails --shard-tokens 2k filtered resumed
touch now-it-works
run 0 sgt-tokenize --quiet --filter x=./fails --shard-tokens 2k filtered resumed
run 0 sgt-tokenize --quiet --filter x=./fails --shard-tokens 2k filtered undisturbed
same_folders resumed undisturbed

# Any other text that begins with a brace is text. One line counts such files.
mkdir text-like
printf '{"name":"x","version":"1.0.0","text":{"a":1}}\n' > text-like/package.json
printf '{\n  "text": "a",\n  "b": 1\n}\n' > text-like/pretty.json
printf '{"type":"FeatureCollection","features":[{"text":"a"}]}' > text-like/map.geojson
printf '{\n "cells": [\n  {"text": "a"}\n ]\n}\n' > text-like/book.ipynb
printf '{ he said, and left. }\nThen "text": nothing.\n' > text-like/story.txt
printf '{"text":"a"}\nand then a line that is none\n' > text-like/first.txt
printf '{"text":"a"} {"text":"b"}\n' > text-like/two.txt
printf '{"text":1}\n' > text-like/number.json
printf 'A story.\n{"text":"a"}\n' > text-like/late.txt
run_prints ', 9 documents' sgt-tokenize text-like as-text
stderr_is 'sgt-tokenize: text-like/book.ipynb: read as text: it begins with a brace, but its first lines are not JSON '\
'objects with the field "text" (8 such files; --field NAME selects another field)'
run 0 sgt-tokenize --quiet --format text text-like as-told
same as-text/train_000000.bin as-told/train_000000.bin
run 0 sgt-tokenize - text-stdin2 < text-like/package.json
stderr_is 'sgt-tokenize: standard input: read as text: it begins with a brace, but its first lines are not JSON '\
'objects with the field "text" (--field NAME selects another field)'
printf '{"body":"a"}\n{"body":"b"}\n' > body.json
run_prints ', 2 documents' sgt-tokenize --field body body.json by-field

# Lines may be long: the first 16 MiB of a stream are examined. If the first line is longer, the
# file is text.
long() { printf '{"text":"%s"}\n' "$(head -c "$1" /dev/zero | tr '\0' a | sed 's/aaaaaaaaaa/some words/g')"; }
{ long 5000000 && long 3000000 && long 9000000; } > long.json
run_prints ', 3 documents' sgt-tokenize long.json long-lines
gzip -1 -c long.json > long2.json.gz
run_prints ', 3 documents' sgt-tokenize long2.json.gz long-packed
run_prints ', 3 documents' sgt-tokenize - long-stdin < long.json
same long-lines/train_000000.bin long-packed/train_000000.bin
same long-lines/train_000000.bin long-stdin/train_000000.bin
{ long 9000000 && long 9000000; } > second.json # the second line ends after 16 MiB
run_prints ', 2 documents' sgt-tokenize second.json long-second
long 17000000 > beyond.json
run_prints ', 1 document,' sgt-tokenize beyond.json long-beyond
stderr_has 'beyond.json: read as text: it begins with a brace, but its first lines are not JSON objects with the '\
'field "text"'
rm -r long*

# A JSON array of such objects is not JSONL.
mkdir arrays
printf '[{"text":"a"},{"text":"b"}]' > arrays/a.json
printf '\n[\n  {\n    "id": 1,\n    "text": "a"\n  },\n  {"text": "b"}\n]\n' > arrays/b.json
printf '[1, 2]\n' > arrays/c.json
printf '[{"body":"a"}]\n' > arrays/d.json
printf 'text' > arrays/e.txt
run 0 sgt-tokenize arrays out-arrays
cat > want << 'END'
sgt-tokenize: arrays/a.json: skipped: a JSON array, not JSON Lines (jq -c '.[]' converts it, and --format text reads it as text)
sgt-tokenize: arrays/b.json: skipped: a JSON array, not JSON Lines (jq -c '.[]' converts it, and --format text reads it as text)
END
same .stderr want
stdout_has ', 3 documents'
gzip arrays/a.json
run_failure "standard input: a JSON array, not JSON Lines (jq -c '.[]' converts it, and --format "\
'text reads it as text)' sgt-tokenize - out-array < arrays/b.json
run_failure "arrays/b.json: a JSON array, not JSON Lines (jq -c '.[]' converts it, and --format "\
'text reads it as text)' sgt-tokenize --filter json=cat arrays/b.json out-array
absent out-array
run 0 sgt-tokenize --binary keep arrays out-keep
stderr_is 'sgt-tokenize: arrays/a.json.gz: read as text, although it is a JSON array (2 such files; jq -c '\''.[]'\'' converts it to JSON Lines)'
stdout_has ', 5 documents'
run_silent sgt-tokenize --format text arrays out-told
stdout_has ', 5 documents'
