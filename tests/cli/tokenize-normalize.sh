# tokenize-normalize.sh: --normalize gives the tokens of the normalized text, for any unit size,
# format and number of threads. Also text that normalization does not change, and the normal form
# that a set records.

# The text has e with a separate accent, a ligature, a Hangul syllable as separate letters, and a
# byte that is not UTF-8.
printf 'cafe\314\201 \357\254\201n \341\204\222\341\205\241\341\206\253\n\377e\314\201' > raw.txt
printf 'caf\303\251 \357\254\201n \355\225\234\n\377\303\251' > nfc.txt
printf 'caf\303\251 fin \355\225\234\n\377\303\251' > nfkc.txt

tokens_as() { # OUT TEXT: check that OUT has the tokens of TEXT without --normalize
    rm -rf plain
    run 0 sgt-tokenize --quiet "$2" plain
    same "$1/train_000000.bin" plain/train_000000.bin
}
for form in nfc nfkc; do
    run 0 sgt-tokenize --quiet --normalize $form raw.txt $form
    tokens_as $form $form.txt
    grep -q "\"normalize\": \"$form\"" $form/manifest.json || fail "the manifest does not say $form"
    grep -q "^\"normalizer\":{\"type\":\"$(echo $form | tr a-z A-Z)\"},$" $form/tokenizer.json ||
        fail 'tokenizer.json does not'
done
run 0 sgt-tokenize --quiet --normalize none raw.txt none
tokens_as none raw.txt
same_folders none plain
run 0 sgt-tokenize --quiet nfc.txt same
run_failure 'nfkc: made with --normalize nfkc, now nfc (--force replaces it)' sgt-tokenize --normalize nfc raw.txt nfkc
run_failure 'nfkc: made with --normalize nfkc, now not given (--force replaces it)' sgt-tokenize raw.txt nfkc

# The normal form in a set's tokenizer.json is also used with --vocab, unless an option overrides
# it.
run 0 sgt-tokenize --quiet --vocab nfc/tokenizer.json raw.txt again
same again/train_000000.bin nfc/train_000000.bin
run 0 sgt-tokenize --quiet --vocab nfc/tokenizer.json --normalize none raw.txt undone
same undone/train_000000.bin none/train_000000.bin

# Together with other changes of the text: invalid UTF-8 becomes U+FFFD. A literal end-of-text token
# stays one, but normalizing fullwidth characters does not make one.
run 0 sgt-tokenize --quiet --normalize nfc --invalid-utf8 replace raw.txt replaced
printf 'caf\303\251 \357\254\201n \355\225\234\n\357\277\275\303\251' > replaced.txt
tokens_as replaced replaced.txt
printf 'e\314\201<|endoftext|>\314\201 \357\274\234|endoftext|\357\274\236' > literal.txt
run 0 sgt-tokenize --quiet --normalize nfkc --special eot literal.txt literal
check 'one end of text, and one before it all' \
    [ "$(od -An -v -tu2 -w2 -j1024 literal/train_000000.bin | grep -c 50256)" -eq 2 ]

# Many documents, and large ones that are cut into units, with any number of threads; also as JSONL.
repeated 4800 raw.txt raw.txt nfc.txt > large.txt # more than 360 KB; a unit has 256 KiB
repeated 4800 nfc.txt nfc.txt nfc.txt > large-nfc.txt
run 0 sgt-tokenize --quiet --threads 3 --normalize nfc large.txt large
tokens_as large large-nfc.txt
printf '{"text": "e\\u0301"}\n{"text": "\\u1112\\u1161\\u11ab"}\n' > lines.jsonl
printf '{"text": "\303\251"}\n{"text": "\355\225\234"}\n' > lines-nfc.jsonl
run 0 sgt-tokenize --quiet --normalize nfc lines.jsonl lines
tokens_as lines lines-nfc.jsonl

# A vocabulary is trained on the normalized text.
run 0 sgt-tokenize --quiet --normalize nfc --train-vocab 262 large.txt trained
run 0 sgt-tokenize --quiet --train-vocab 262 large-nfc.txt trained-nfc
same trained/merges.txt trained-nfc/merges.txt
grep -q '^"normalizer":{"type":"NFC"},$' trained/tokenizer.json || fail 'the vocabulary does not say nfc'

run_usage '--normalize nfd: must be one of none|nfc|nfkc; did you mean nfc?' sgt-tokenize --normalize nfd raw.txt n
absent n
