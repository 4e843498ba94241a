# tokenize-utf8.sh: text that is not UTF-8, and literal end-of-text tokens.


# Ill-formed bytes: a single ff; c3 with nothing after it; e2 82, the start of a three-byte
# sequence, which counts as one error; ed a0 80, a surrogate, which counts as three. Python decodes
# them to as many U+FFFD.
mkdir in
printf 'ok' > in/a
printf 'a\377b\303 c\342\202d\355\240\200' > in/b
run_silent sgt-tokenize in keep
stdout_has '6 invalid UTF-8 sequences, kept byte for byte (see --invalid-utf8); manifest.json lists the first ones'
grep -q '"invalid_utf8": 6' keep/manifest.json || fail 'count in manifest.json'
offsets=$(for n in 1 3 6 9 10 11; do echo "{\"path\":\"b\",\"offset\":$n}"; done | paste -sd,)
is "$(tr -d ' \n' < keep/manifest.json | sed 's/.*"invalid_utf8_at"://')" "[$offsets]}"
run 0 sgt-inspect keep --decode 2:100
od -An -tx1 .stdout | tr -d ' \n' | grep -q '61ff62c32063e28264eda080' || fail 'keep does not keep the bytes'

# --invalid-utf8 replace gives the tokens of the text that Python decodes with errors="replace".
mkdir twin
printf 'ok' > twin/a
printf 'a\357\277\275b\357\277\275 c\357\277\275d\357\277\275\357\277\275\357\277\275' > twin/b
run 0 sgt-tokenize --invalid-utf8 replace in replaced
stdout_has '6 invalid UTF-8 sequences, replaced by U+FFFD; manifest.json lists the first ones'
run 0 sgt-tokenize twin twins
same replaced/train_000000.bin twins/train_000000.bin
grep -q '"invalid_utf8": 0' twins/manifest.json || fail 'well-formed text was counted as ill-formed'

# --invalid-utf8 fail: the message names file and offset, and nothing is left.
run_failure 'in/b: offset 1: not UTF-8 (--invalid-utf8 keep or replace accepts it)' \
    sgt-tokenize --invalid-utf8 fail in failed
absent failed
run 0 sgt-tokenize --invalid-utf8 fail twin failed

# If there are many ill-formed sequences, all are counted and the first 16 are named.
mkdir many
head -c 300000 /dev/zero | tr '\0' '\200' > many/x
run 0 sgt-tokenize --json many out
[ "$(field invalid_utf8 .stdout)" = 300000 ] || fail 'count of many'
[ "$(grep -c '"offset"' out/manifest.json)" -eq 16 ] || fail 'places of many'

# A literal end-of-text token is plain text unless --special eot is given.
printf 'one<|endoftext|>two <|endoftext|><|endoftext|> <|endoftext' > special
run 0 sgt-tokenize special text
is "$(ids_of text/train_000000.bin)" '50256 505 27 91 437 1659 5239 91 29 11545 1279 91 437 1659 5239 91 6927 91 437 '\
'1659 5239 91 29 1279 91 437 1659 5239'
stdout_has '3 end-of-text strings in the documents, tokenized as ordinary text (with --special eot, each begins a document)'
[ "$(field eot_literals text/manifest.json)" -eq 3 ] || fail 'the manifest does not count literals'
run 0 sgt-tokenize --special eot special eot
is "$(ids_of eot/train_000000.bin)" '50256 505 50256 11545 220 50256 50256 1279 91 437 1659 5239'
stdout_has 'eot: 12 tokens, 4 documents,'
stdout_matches '^19 B of text in 1 file'
! grep -q literal .stdout || fail 'literals that begin documents are counted as text'

# With --special eot, each literal begins a document. The text before the first literal is a
# document too, unless it is empty.
documents() { # TEXT IDS STARTS: check the documents of the text, read in several ways
    printf "$1" > text.txt
    printf '{"text":"%s"}\n' "$(printf '%s' "$1" | sed 's/</\\u003c/g')" > text.jsonl
    for input in text.txt text.jsonl '--normalize nfc text.txt' '--pattern \p{L}+|. text.txt' -; do
        rm -rf out
        # shellcheck disable=SC2086
        run 0 sgt-tokenize --quiet --special eot $input out < text.txt
        [ "$(ids_of out/train_000000.bin)" = "$2" ] || fail "$input: $1: $(ids_of out/train_000000.bin)"
        [ "$(starts_of out/train_000000.idx)" = "$3" ] || fail "$input: $1 begins at: $(starts_of out/train_000000.idx)"
    done
}
documents 'a<|endoftext|>b<|endoftext|>c' '50256 64 50256 65 50256 66' '0 2 4'
documents '<|endoftext|>a<|endoftext|>b' '50256 64 50256 65' '0 2'
documents 'a<|endoftext|>' '50256 64 50256' '0 2'
documents '<|endoftext|>' '50256' '0'
documents 'a<|endoftext|><|endoftext|>b' '50256 64 50256 50256 65' '0 2 3'
documents '' '50256' '0'
printf 'caf\351<|endoftext|>\351' > odd.txt
run_failure_about 'odd.txt: offset 3: not UTF-8' sgt-tokenize --special eot --invalid-utf8 fail odd.txt odd
run 0 sgt-tokenize --special eot odd.txt odd
tr -d ' \n' < odd/manifest.json | grep -q '{"path":"odd.txt","offset":3},{"path":"odd.txt","offset":17}' ||
    fail 'offsets of ill-formed bytes'

# One file of many stories: --split, --shuffle and --dedup treat each story as a document. The
# result is the same for any threads and ranks.
stories() { awk 'BEGIN { for (i = 0; i < 4000; i++) printf "%sStory %d of many, told briefly.\n", i ? "<|endoftext|>" : "", i % 3000 }'; }
mkdir many-stories lines
stories > many-stories/a.txt
stories | gzip > many-stories/b.txt.gz
run_prints '"documents": 8000,' sgt-tokenize --json --special eot --split 10% --shard-tokens 10k many-stories m1
val=$(field val_tokens .stdout)
[ "$val" -gt 5000 ] && [ "$val" -lt 12000 ] || fail "$val tokens for validation"
for rank in 0 1; do
    run 0 sgt-tokenize --quiet --special eot --split 10% --shard-tokens 10k --threads 3 --rank $rank --ranks 2 many-stories m2
done
same_folders m1 m2
run 0 sgt-tokenize --quiet --special eot --dedup --shuffle 3 --json many-stories m3
[ "$(field documents .stdout)" -eq 3000 ] && [ "$(field duplicates .stdout)" -eq 5000 ] || fail 'duplicates'
run 0 sgt-tokenize --quiet --special eot --train-vocab 300 --json many-stories m4
[ "$(field documents .stdout)" -eq 8000 ] || fail 'documents of --train-vocab'
run_prints '7,998 end-of-text strings in the documents' sgt-tokenize --threads 1 many-stories m5
# A JSONL text that contains literals, with fields that are kept.
printf '{"text":"a<|endoftext|>b","n":7}\n{"text":"c","n":8}\n' > lines/a.jsonl
run_prints ', 3 documents,' sgt-tokenize --special eot --keep-fields n lines m7
[ "$(grep -c '{"document": 1, "split": "train", "fields": {"n": 7}}' m7/sources.jsonl)" -eq 2 ] || fail 'kept fields'
run_prints '1 end-of-text string in the documents, tokenized as ordinary text' sgt-tokenize lines m8

