# tokenize-regex.sh: features of Hugging Face's tokenizer.json that PCRE2 or sgt handles differently. Patterns are
# translated, or refused with a message that names the reason (tests/tokenize/test_oniguruma.c tests each construct).
# The tokenizer.json of a set means the same to both. A merge listed twice counts once. Ignored fields give a notice.
. "$ROOT/tests/cli/lib.sh"
D=$ROOT/tests/data/vocab

# with NAME REGEX: write o200k's tokenizer.json with this pattern, given as JSON
with() {
    R=$2 awk '/"Regex":/ { print "\"Regex\": \"" ENVIRON["R"] "\""; next } { print }' "$D/o200k/tokenizer.json" > "$1"
}
# tokenized OUT OPTION...: tokenize and print the ids
tokenized() {
    out=$1
    shift
    rm -rf "$out"
    run 0 sgt-tokenize --quiet "$@" text "$out"
    stderr_is ''
    tail -c +1027 "$out/train_000000.bin" > "$out.ids"
}
printf 'one\ntwo  three\n\nfour 0xBEEF\n  last' > text

# same_as REGEX PATTERN [REGEX]: a pattern of Hugging Face's gives the ids of our equivalent
# PATTERN. The last REGEX is how the set's tokenizer.json has the pattern
same_as() { # REGEX PATTERN [REGEX as it is written for Hugging Face again]
    with hf.json "$1"
    tokenized hf --vocab hf.json
    tokenized ours --vocab "$D/o200k/tokenizer.json" --pattern "$2"
    same hf.ids ours.ids
    tokenized again --vocab hf/tokenizer.json
    same again.ids hf.ids
    [ "$(field fingerprint again/manifest.json)" = "$(field fingerprint hf/manifest.json)" ] ||
        fail "$1: the set carries another vocabulary"
    same again/tokenizer.json hf/tokenizer.json
    grep -qF "\"Regex\":\"${3:-$1}\"" hf/tokenizer.json || fail "$1: Hugging Face's library is given another pattern"
}
same_as '^ *\\p{L}' '(?m:^) *\p{L}'
same_as '\\p{L}+$' '\p{L}+(?m:$)'
same_as '\\h+' '[0-9A-Fa-f]+' '[0-9A-Fa-f]+'
same_as '\\p{L}{1,2}+' '(?:\p{L}{1,2})+' '(?:\\p{L}{1,2})+'
same_as '(?m).{2}' '(?s).{2}'
with line.json '^ *\\p{L}'
tokenized line --vocab line.json
tokenized whole --vocab "$D/o200k/tokenizer.json" --pattern '^ *\p{L}' # at the beginning of the text only
! cmp -s line.ids whole.ids || fail 'the ends of lines make no difference'
grep -qF '"Regex":"\\A *\\p{L}"' whole/tokenizer.json || fail 'Hugging Face would split at every line'
tokenized again --vocab whole/tokenizer.json
same again.ids whole.ids
run 0 sgt-inspect --decode 0:100 whole
stdout_has 'two  three'

# The whole text is one piece without a split rule.
L='"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false },'
L=$L awk '/"type": "Sequence"/ { skip = 1; print ENVIRON["L"] } /"post_processor"/ { skip = 0 } !skip { print }' \
    "$D/o200k/tokenizer.json" > one.json
tokenized one --vocab one.json
tokenized ours --vocab "$D/o200k/tokenizer.json" --pattern '(?s).+'
same one.ids ours.ids
grep -qF '"Regex":"(?m).+"' one/tokenizer.json || fail 'Hugging Face has no (?s)'

# A tokenizer.json of an older release has its pattern in PCRE2's syntax.
sed 's/"Regex":"[^"]*"/"Regex":"^ *\\\\p{L}"/; s/,"pcre2":"[^"]*"//' whole/tokenizer.json > older.json
tokenized older --vocab older.json
same older.ids whole.ids

refused() { # REGEX MESSAGE
    with bad.json "$1"
    run 1 sgt-tokenize --vocab bad.json text refused
    stdout_is ''
    stderr_is "sgt-tokenize: bad.json: its pattern: $2 (--pattern gives another)"
    absent refused
}
differs="Hugging Face's regex library and sgt's do not agree on it"
refused 'a|\\w+' "at byte 2: \\w: $differs"
refused ' ?[^(\\s|[.,!?])]+' 'at byte 8: [.: a set within a set'
refused '[a-z&&[^aeiou]]+' "at byte 4: &&: $differs"
refused '(?s).' "at byte 0: (?s): $differs"
refused '\\p{L}*' "at byte 0: it can match nothing, where Hugging Face's library splits and sgt's does not"
refused '(?=\\d)' "at byte 0: it can match nothing, where Hugging Face's library splits and sgt's does not"
run 0 sgt-tokenize --quiet --vocab bad.json --pattern '\p{L}+' text given

# A PCRE2 pattern that Hugging Face's library cannot express.
run 0 sgt-tokenize --vocab "$D/o200k/tokenizer.json" --pattern '\w+' text words
stderr_has "sgt-tokenize: pattern: at byte 0: \\w: $differs "\
"(transformers may split text otherwise by OUT's tokenizer.json)"
tokenized again --vocab words/tokenizer.json --quiet
same again/train_000000.bin words/train_000000.bin

# ---- a merge listed twice counts at its last place ----

cp -r "$D/trained" twice
{ sed -n 1p "$D/trained/merges.txt"; echo 'ĠĠ ĠĠ'; echo 't h'; sed 1d "$D/trained/merges.txt"; } > twice/merges.txt
run 0 sgt-tokenize --quiet --vocab twice "$D/text.txt" twice.out
tail -c +1027 twice.out/train_000000.bin > ids
same ids "$D/hf.ids"
run 0 sgt-tokenize --quiet --vocab "$D/trained" "$D/text.txt" once.out
[ "$(field fingerprint twice.out/manifest.json)" = "$(field fingerprint once.out/manifest.json)" ] ||
    fail 'a merge that is listed twice makes another vocabulary'
{ sed -n 1p "$D/trained/merges.txt"; echo 't h'; sed 1d "$D/trained/merges.txt"; } > alone.bpe
# If the merges determine the ids, such a token would have two ids, so the file is refused.
run 1 sgt-tokenize --vocab alone.bpe text refused
stderr_is 'sgt-tokenize: alone.bpe: tokens 256 and 454 are the same: th (expected a complete byte-level BPE: '\
'tokenizer.json, merges.txt, vocab.json or .tiktoken)'

# ---- truncation and padding ----

ignored() { # SED WORDS
    sed "$1" "$D/o200k/tokenizer.json" > cut.json
    rm -rf cut
    run 0 sgt-tokenize --vocab cut.json text cut
    stderr_has "sgt-tokenize: cut.json: its $2 ignored: documents are tokenized whole, and nothing is appended to them"
    [ "$(grep -c ignored .stderr)" -eq 1 ] || fail 'it is not said in one line'
    run 0 sgt-tokenize --vocab cut.json --dry-run text
    stderr_has "its $2 ignored"
}
T='{"direction":"Right","max_length":4,"strategy":"LongestFirst","stride":0}'
P='{"strategy":"BatchLongest","direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"x"}'
ignored "s/\"truncation\": null/\"truncation\": $T/" 'truncation is'
ignored "s/\"padding\": null/\"padding\": $P/" 'padding is'
ignored "s/\"truncation\": null/\"truncation\": $T/; s/\"padding\": null/\"padding\": $P/" 'truncation and padding are'
run 0 sgt-tokenize --quiet --vocab "$D/o200k/tokenizer.json" text full
same cut/train_000000.bin full/train_000000.bin
rm -r cut
run 0 sgt-tokenize --quiet --vocab cut.json text cut
stderr_is ''
