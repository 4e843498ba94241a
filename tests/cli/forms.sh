# forms.sh: a matrix of programs and kinds of files. A row of the table is a kind of file, a column
# is a way to call a program. A cell holds the expected exit code and a word of the legend, which
# stands for the essential words of the message. No program may misread a file without a message.
#
# Columns: FILE: sgt-tokenize FILE. FOLDER: sgt-tokenize of a folder with FILE and a text. train:
# sgt-train --data FILE, and also sgt-eval --data FILE. inspect: sgt-inspect FILE. eval: sgt-eval
# MODEL FILE, whose lines are questions. (tests/python has messages of the Python package.)

forms() {
    cat << 'END'
# kind            FILE     FOLDER   train    inspect  eval
text.txt          0text    0text    1text    1text    1no
text.txt.gz       0text    0text    1gzip    1gzip    1no
text.txt.zst      0text    0text    1zstd    1zstd    1no
text-gz           0text    0text    1gzip    1gzip    1no
text-zst          0text    0text    1zstd    1zstd    1no
text.gz.gz        1gzip    0gzip    1gzip    1gzip    1no
text.bin          0text    0text    1text    1text    1no
cut.txt.gz        1cut     1cut     1gzip    1gzip    1no
latin1.txt        0latin   0latin   1text    1text    1no
empty.txt         0empty   0empty   1empty   1no      1empty
lines.jsonl       0jsonl   0jsonl   1prompt  1json    0asked
lines.jsonl.gz    0jsonl   0jsonl   1gzip    1gzip    1no
lines.json        0lines   0lines   1json    1json    0asked
lines.json.zst    0lines   0lines   1zstd    1zstd    1no
lines             0lines   0lines   1json    1json    0asked
array.json        1array   0array   1json    1json    1no
array.json.gz     1array   0array   1gzip    1gzip    1no
pretty.json       0brace   0brace   1json    1json    1no
pretty.json.gz    0brace   0brace   1gzip    1gzip    1no
prompts.jsonl     1field   1field   0prompts 1json    1asks
rows.parquet      0rows    0rows    1par     1par     1no
rows              0rows    0rows    1par     1par     1no
rows-cut          1par     0par     1par     1par     1no
a.tar             1tar     0tar     1tar     1tar     1no
a.cpio            1cpio    0cpio    1cpio    1cpio    1no
a.warc            1warc    0warc    1warc    1warc    1no
a.zip             1zip     0zip     1zip     1zip     1no
a.7z              17z      07z      17z      17z      1no
a.xz              1xz      0xz      1xz      1xz      1no
a.bz2             1bz2     0bz2     1bz2     1bz2     1no
a.png             1png     0png     1png     1png     1no
a.jpeg            1jpeg    0jpeg    1jpeg    1jpeg    1no
a.arrow           1arrow   0arrow   1arrow   1arrow   1no
stream.arrow      1stream  0stream  1stream  1stream  1no
a.pdf             1pdf     0pdf     1pdf     1pdf     1no
program           1elf     0elf     1elf     1elf     1no
model.safetensors 1tensors 0tensors 1tensors 1tensors 1no
16le.txt          116le    016le    116le    116le    1no
16be.txt          116be    016be    116be    116be    1no
32le.txt          132le    032le    132le    132le    1no
32be.txt          132be    032be    132be    132be    1no
mark-16le.txt     116      016      116      116      1no
mark-16be.txt     116      016      116      116      1no
mark-32le.txt     132      032      132      132      1no
mark-32be.txt     132      032      132      132      1no
ids16.bin         1bytes   0bytes   0ids     0ids     1no
ids16             1bytes   0bytes   0ids     1no      1no
ids32.bin         1num     0num     1wide    1wide    1no
ids32             1num     0num     1wide    1wide    1no
ids16.npy         1npy     0npy     1npy     1npy     1no
shard.bin         1bytes   0bytes   0ids     0ids     1no
END
}

# legend COLUMN WORD: print the essential words of the message
legend() {
    case $1.$2 in
    inspect.no) echo 'unknown file format' ;;
    eval.no) echo 'line 1: not JSON: ' ;;
    eval.empty) echo 'no line in it: expected ' ;;
    eval.asked) echo 'items          50' ;;
    eval.asks) echo 'line 1: expected {"ctx": TEXT,' ;;
    train.prompts) echo '250 tokens in 50 completions' ;;
    train.prompt) echo 'line 1: expected {"prompt": TEXT, "completion": TEXT}' ;;
    train.empty | eval-data.empty) echo 'every shard has fewer than two tokens' ;;
    inspect.ids) echo "tokens         $ids" ;;
    eval-data.ids) echo "tokens          $((ids - ids % 4))" ;;
    *.ids) echo "$ids tokens" ;;
    *.lines) echo 'read as JSONL, because its lines are JSON objects with the field "text" (' ;;
    *.brace) echo 'read as text: it begins with a brace, but its first lines are not JSON objects with the field "text"' ;;
    *.wide) echo '32-bit ids without a header' ;;
    *.cut) echo 'offset 100: truncated: the file ends in the middle of its compressed data' ;;
    *.field) echo 'line 1: the field is missing (' ;;
    *.array) echo 'a JSON array, not JSON Lines (' ;;
    inspect.*) echo "$(name "$2"), not " ;;
    train.* | eval-data.*) echo "$(name "$2"), not 16-bit tokens (" ;;
    *) echo "$(name "$2"), not UTF-8 text (" ;;
    esac
}
name() {
    case $1 in
    text) echo text ;;
    json) echo JSON ;;
    gzip) echo 'gzip data' ;;
    zstd) echo 'Zstandard data' ;;
    par) echo 'a Parquet file' ;;
    tar | cpio | 7z) echo "a $1 archive" ;;
    warc | zip) echo "a $(echo "$1" | tr "[:lower:]" "[:upper:]") archive" ;;
    xz) echo 'xz data' ;;
    bz2) echo 'bzip2 data' ;;
    png | jpeg) echo "a $(echo "$1" | tr "[:lower:]" "[:upper:]") picture" ;;
    pdf) echo 'a PDF' ;;
    arrow) echo 'an Arrow file' ;;
    stream) echo 'an Arrow stream' ;;
    elf) echo 'an ELF program' ;;
    tensors) echo 'a safetensors file' ;;
    bytes) echo 'binary data' ;;
    num) echo '32-bit numbers' ;;
    npy) echo 'an array with the header of numpy.save' ;;
    16* | 32*) echo "UTF-$(echo "$1" | tr lebm 'LEBM')" ;;
    esac
}

# ---- the kinds of files ----

mkdir files work docs
cd work || exit 1
some() { for i in $(seq 50); do printf "$1" $i; done; } # FORMAT: print 50 lines, each with its number
kind() { cat > "../files/$1"; }                         # NAME: store standard input as a file of that kind
some 'It was the age of wisdom %d, it was the age of foolishness.\n' > text
some '{"text":"It was the age of wisdom %d","n":1}\n' > lines
for i in $(seq 50); do printf 'It was the age of wisdom %d' "$i" > ../docs/$((100 + i)); done
{ echo '[' && some '{"text":"It was %d."},\n' && printf '{"text":"It was."}\n]\n'; } > array
{ printf '{\n' && some '  "key %d": "It was the age of wisdom",\n' && printf '  "n": 1\n}\n'; } > pretty
cp text text.txt && cp lines lines.jsonl && cp lines lines.json && cp array array.json && cp pretty pretty.json
cp text.txt lines.jsonl lines.json array.json pretty.json ../files
for name in text.txt lines.jsonl array.json pretty.json; do gzip -c $name > ../files/$name.gz; done
for name in text.txt lines.json; do
    zstd -q -c $name > ../files/$name.zst 2> .zstd || rm ../files/$name.zst # the program may be missing
done
kind lines < lines
kind text.bin < text
kind text-gz < ../files/text.txt.gz
cp ../files/text.txt.zst ../files/text-zst 2> .zstd
gzip -c ../files/text.txt.gz | kind text.gz.gz
head -c 100 ../files/text.txt.gz | kind cut.txt.gz
some 'Un caf\351 %d et un th\351\n' | kind latin1.txt
: | kind empty.txt
some '{"prompt":"It was %d","completion":" times"}\n' | kind prompts.jsonl
kind rows.parquet < "$ROOT/tests/data/parquet/numbers.parquet"
kind rows < "$ROOT/tests/data/parquet/numbers.parquet"
head -c 2000 "$ROOT/tests/data/parquet/numbers.parquet" | kind rows-cut
tar -cf a.tar text lines
kind a.tar < a.tar
some 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %02d\r\n\r\ntext\r\n\r\n' > a.warc
kind a.warc < a.warc
begins() { { printf "$2" && cat text ../files/text.txt.gz; } | kind "$1"; } # NAME BYTES
begins a.cpio "070701$(printf '%0104d' 0)text\\0"
begins a.zip 'PK\003\004\024\000\000\000\010\000'
begins a.7z '7z\274\257\047\034\000\004'
begins a.xz '\3757zXZ\000\000\004'
begins a.bz2 'BZh91AY&SY'
begins a.png '\211PNG\r\n\032\n\000\000\000\015IHDR'
begins a.jpeg '\377\330\377\340\000\020JFIF'
begins a.arrow 'ARROW1\000\000'
begins stream.arrow '\377\377\377\377\260\000\000\000'
begins a.pdf '%%PDF-1.7\n%%\342\343\317\323\n'
begins program '\177ELF\002\001\001\000'
wide() { # FILE UNIT NEW: replace each UNIT of the file, a regular expression, by NEW
    printf "$(od -An -v -to1 "$1" | sed "s/$2/$3/g" | tr -d '\n')"
}
byte=' \([0-7]*\)'
wide text "$byte" '\\\1\\000' > 16le
wide text "$byte" '\\000\\\1' > 16be
wide text "$byte" '\\\1\\000\\000\\000' > 32le
wide text "$byte" '\\000\\000\\000\\\1' > 32be
for order in 16le 16be 32le 32be; do kind $order.txt < $order; done
{ printf '\377\376' && cat 16le; } | kind mark-16le.txt
{ printf '\376\377' && cat 16be; } | kind mark-16be.txt
{ printf '\377\376\000\000' && cat 32le; } | kind mark-32le.txt
{ printf '\000\000\376\377' && cat 32be; } | kind mark-32be.txt
cd ..
# GPT-2 ids of 16 and 32 bits: with sgt's header, without a header, and as numpy.save writes them
run 0 sgt-tokenize --quiet files/text.txt set
cp set/train_000000.bin files/shard.bin
ids=$(field tokens set/manifest.json)
tail -c +1025 files/shard.bin > files/ids16
cp files/ids16 files/ids16.bin
wide files/ids16 "$byte$byte" '\\\1\\\2\\000\\000' > files/ids32
cp files/ids32 files/ids32.bin
{ printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<u2', 'fortran_order': False, 'shape': ($ids,), }" && cat files/ids16; } \
    > files/ids16.npy
run 0 sgt-train --quiet --data set --run run --model 1x8x1 --seq-len 4 --batch-size 1 --steps 1 --device cpu
cp run/step-00000001/model.safetensors files

# ---- the expected ids of a kind, as a single FILE and in the FOLDER with another text ----

echo 'a plain text' > plain
for word in text latin jsonl brace rows empty; do
    case $word in
    text) input=files/text.txt ;;
    latin) input=files/latin1.txt ;;
    jsonl) input=docs ;;
    brace) input=files/pretty.json ;;
    rows) input=$ROOT/tests/data/parquet/numbers.jsonl ;;
    empty) input=files/empty.txt ;;
    esac
    format=text
    [ $word != rows ] || format=jsonl
    run 0 sgt-tokenize --quiet --format $format "$input" want-$word
    { tail -c +1025 want-$word/train_000000.bin > want-$word.FILE; } 2> .tail
    case $word in text | latin)
        sgt-inspect --decode 1:9999 want-$word > decoded 2> .decoded
        same decoded "$input"
        ;;
    esac
done
run 0 sgt-tokenize --quiet plain plain-set
tail -c +1025 plain-set/train_000000.bin > plain-ids
for word in text latin jsonl brace rows empty; do cat want-$word.FILE plain-ids > want-$word.FOLDER; done
ln want-jsonl.FILE want-lines.FILE && ln want-jsonl.FOLDER want-lines.FOLDER

# ---- run and check each cell ----

forms | sed '1d; s/ .*//' | grep -v "$([ -e files/text.txt.zst ] && echo '^#' || echo 'zst$')" | sort > kinds
ls files | sort > made
same kinds made

# call COLUMN KIND: run the program of the column; set $code, and write .stdout and .stderr
call() {
    rm -rf out in
    code=0
    echo "$1 of $2" > .ran
    file=files/$2 options='--model 1x8x1 --seq-len 4 --batch-size 1 --steps 1 --device cpu'
    case $1 in
    FILE) sgt-tokenize "$file" out ;;
    FOLDER) mkdir in && ln "$file" in && ln plain in/zz && sgt-tokenize in out ;;
    train) sgt-train --data "$file" --run out $options ;;
    inspect) sgt-inspect "$file" ;;
    eval) sgt-eval --device cpu run "$file" ;;
    eval-data) sgt-eval --device cpu run --data "$file" --seq-len 4 ;;
    esac > .stdout 2> .stderr || code=$?
}

# is_right COLUMN CODE WORD KIND: check the result of call
is_right() {
    line=$(legend "$1" "$3")
    [ "$code" -eq "$2" ] || return
    if [ "$code" -eq 1 ]; then
        [ ! -s .stdout ] && [ ! -e out ] && grep -qF -e "$4: $line" .stderr && [ "$(wc -l < .stderr)" -eq 1 ]
        return
    fi
    case $1.$3 in
    FOLDER.* | FILE.*)
        tail -c +1025 out/train_000000.bin > .ids
        if [ -e "want-$3.$1" ]; then cmp -s .ids "want-$3.$1"; else cmp -s .ids plain-ids; fi || return
        case $3 in
        text | latin | jsonl | rows | empty) [ ! -s .stderr ] ;; # files whose names match their content: no notice
        lines | brace) grep -qF -e "$4: $line" .stderr && [ "$(wc -l < .stderr)" -eq 1 ] ;;
        *) grep -qF -e "$4: skipped: $line" .stderr && [ "$(wc -l < .stderr)" -eq 1 ] ;;
        esac
        ;;
    train.*) grep -qF "$4, $line" .stderr ;;
    *) grep -qF "$line" .stdout ;;
    esac
}

: > wrong
forms | sed 1d | while read -r kind cells; do
    [ -e "files/$kind" ] || continue
    # shellcheck disable=SC2086
    set -- $cells
    for column in FILE FOLDER train eval-data inspect eval; do
        [ $column = eval-data ] || { cell=$1 && shift; }
        case $column.$cell in eval-data.?prompt*) cell=1json ;; esac # only sgt-train reads prompts
        word=${cell#?}
        call $column "$kind"
        is_right $column "${cell%"$word"}" "$word" "$kind" ||
            echo "$column of $kind: not $cell, but $code: $(cat .stdout .stderr | head -3)" >> wrong
    done
done
[ ! -s wrong ] || { cat wrong && fail "$(grep -c ' of .*: not ' wrong) cells of the matrix are wrong"; }
