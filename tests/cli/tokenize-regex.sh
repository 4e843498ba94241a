# tokenize-regex.sh: features of Hugging Face's tokenizer.json that PCRE2 or sgt handles
# differently. Known patterns are recognized by their text. Others are refused with a message that
# names --pattern. A set's tokenizer.json means the same to both libraries. A merge that is listed
# twice counts once. Ignored fields give a notice.
D=$ROOT/tests/data/vocab

# with FILE REGEX: write o200k's tokenizer.json to FILE, with this pattern as a JSON string
with() {
    R=$2 awk '/"Regex":/ { print "\"Regex\": \"" ENVIRON["R"] "\""; next } { print }' "$D/o200k/tokenizer.json" > "$1"
}
# tokenized OUT OPTION...: tokenize ./text and write its ids to OUT.ids
tokenized() {
    out=$1
    shift
    rm -rf "$out"
    run_silent sgt-tokenize --quiet "$@" text "$out"
    tail -c +1027 "$out/train_000000.bin" > "$out.ids"
}
printf 'one\ntwo  three\n\nfour 0xBEEF\n  last' > text

# same_as REGEX PATTERN: the pattern REGEX in Hugging Face's file must give the ids of our PATTERN.
# The set's tokenizer.json must have REGEX and give the same ids and fingerprint, even after another
# program has rewritten it without the member "pcre2".
same_as() {
    with hf.json "$1"
    tokenized hf --vocab hf.json
    tokenized ours --vocab "$D/o200k/tokenizer.json" --pattern "$2"
    same hf.ids ours.ids
    grep -qF "\"Regex\":\"$1\"" ours/tokenizer.json || fail "$1: Hugging Face's library is given another pattern"
    sed 's/"version":"1.0",/"version": "1.0",/; s/,"pcre2":"[^"]*"//' ours/tokenizer.json > written.json
    for vocab in ours/tokenizer.json written.json; do
        tokenized again --vocab $vocab
        same again.ids ours.ids
        is "$(field fingerprint again/manifest.json)" "$(field fingerprint ours/manifest.json)"
        same again/tokenizer.json ours/tokenizer.json
    done
}
rest=' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'
word="(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+"
same_as "$word|\\\\p{N}{1,3}|$rest" llama3
same_as "$word|\\\\p{N}|$rest" qwen2
same_as "$(sed 's/\\/&&/g' "$D/o200k.pattern")" o200k
word="'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}"
rest=' ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+'
same_as "$word+|\\\\p{N}{1,2}|$rest" nanochat
rest=' ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s'
same_as "$word++|(?>\\\\p{N}{1,3})|$rest" cl100k
# The pattern of Mistral's Tekken has no name here, and PCRE2 splits by it.
tekken=$(sed "s/(?i:'s|'t|'re|'ve|'m|'ll|'d)?//g; s/{1,3}//" "$D/o200k.pattern")
same_as "$(printf '%s' "$tekken" | sed 's/\\/&&/g')" "$tekken"

# Without a split rule, the whole text is one pre-token.
L='"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false },'
L=$L awk '/"type": "Sequence"/ { skip = 1; print ENVIRON["L"] } /"post_processor"/ { skip = 0 } !skip { print }' \
    "$D/o200k/tokenizer.json" > one.json
tokenized one --vocab one.json
same_as '(?m).+' '(?s).+'
same one.ids ours.ids

# Any other pattern is refused; --pattern can give it.
for regex in 'a|\\w+' '^ *\\p{L}' '\\p{L}*' '(' "$word++|\\\\p{N}{1,3}+|$rest"; do
    with bad.json "$regex"
    run_failure "bad.json: its pattern is unknown to sgt (pass it with --pattern, by a name such as cl100k or in "\
"PCRE2 syntax)" sgt-tokenize --vocab bad.json text refused
    absent refused
done
run 0 sgt-tokenize --quiet --vocab bad.json --pattern '\p{L}+' text given

# A PCRE2 pattern that is not known is stored in the set. A notice says that transformers may split
# differently.
run 0 sgt-tokenize --vocab "$D/o200k/tokenizer.json" --pattern '^\w+' text words
stderr_is "sgt-tokenize: pattern: with OUT's tokenizer.json, transformers may split text differently (its library reads some \
patterns differently)"
rm -r again
run 0 sgt-tokenize --quiet --vocab words/tokenizer.json text again
same again/train_000000.bin words/train_000000.bin
rm -r again
run_prints 'two  three' sgt-inspect --decode 0:100 words

# ---- a merge that is listed twice counts at its last position ----

cp -r "$D/trained" twice
{ sed -n 1p "$D/trained/merges.txt"; echo 'ĠĠ ĠĠ'; echo 't h'; sed 1d "$D/trained/merges.txt"; } > twice/merges.txt
run 0 sgt-tokenize --quiet --vocab twice "$D/text.txt" twice.out
tail -c +1027 twice.out/train_000000.bin > ids
same ids "$D/hf.ids"
run 0 sgt-tokenize --quiet --vocab "$D/trained" "$D/text.txt" once.out
is "$(field fingerprint twice.out/manifest.json)" "$(field fingerprint once.out/manifest.json)"
{ sed -n 1p "$D/trained/merges.txt"; echo 't h'; sed 1d "$D/trained/merges.txt"; } > alone.bpe
# If only merges determined the ids, such a token would have two ids, so the file is refused.
run_failure 'alone.bpe: tokens 256 and 454 are the same: th (expected a complete byte-level BPE vocabulary: '\
'tokenizer.json, merges.txt, vocab.json or .tiktoken)' sgt-tokenize --vocab alone.bpe text refused

# ---- truncation and padding ----

ignored() { # SED
    sed "$1" "$D/o200k/tokenizer.json" > cut.json
    rm -rf cut
    run 0 sgt-tokenize --vocab cut.json text cut
    stderr_has "sgt-tokenize: cut.json: its truncation and padding settings are ignored: documents are neither \
cut nor padded"
    [ "$(grep -c ignored .stderr)" -eq 1 ] || fail 'it is not said in one line'
    run_notes "truncation and padding settings are ignored" sgt-tokenize --vocab cut.json --dry-run text
}
T='{"direction":"Right","max_length":4,"strategy":"LongestFirst","stride":0}'
P='{"strategy":"BatchLongest","direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"x"}'
ignored "s/\"truncation\": null/\"truncation\": $T/; s/\"padding\": null/\"padding\": $P/"
run 0 sgt-tokenize --quiet --vocab "$D/o200k/tokenizer.json" text full
same cut/train_000000.bin full/train_000000.bin
rm -r cut
run_silent sgt-tokenize --quiet --vocab cut.json text cut
