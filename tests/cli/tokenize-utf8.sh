# tokenize-utf8.sh: text that is not UTF-8, and a literal end of text.
. "$ROOT/tests/cli/lib.sh"

ids() { od -An -tu2 -v -w2 -j1024 "$1" | tr -d ' ' | paste -sd' '; }

# Ill-formed bytes: ff alone; c3 with nothing after it; e2 82, the start of a three-byte sequence,
# which counts as one; ed a0 80, a surrogate, which counts as three. Python writes as many U+FFFD.
mkdir in
printf 'ok' > in/a
printf 'a\377b\303 c\342\202d\355\240\200' > in/b
run 0 sgt-tokenize in keep
stderr_is ''
stdout_has '6 places not UTF-8, kept byte for byte (see --invalid-utf8); manifest.json names the first'
grep -q '"invalid_utf8": 6' keep/manifest.json || fail 'count in manifest.json'
offsets=$(for n in 1 3 6 9 10 11; do echo "{\"path\":\"b\",\"offset\":$n}"; done | paste -sd,)
[ "$(tr -d ' \n' < keep/manifest.json | sed 's/.*"invalid_utf8_at"://')" = "[$offsets]}" ] ||
    fail "places: $(tr -d ' \n' < keep/manifest.json | sed 's/.*"invalid_utf8_at"://')"
run 0 sgt-inspect keep --decode 2:100
od -An -tx1 .stdout | tr -d ' \n' | grep -q '61ff62c32063e28264eda080' || fail 'keep does not keep the bytes'

# --invalid-utf8 replace gives the tokens of the text that Python decodes with errors="replace".
mkdir twin
printf 'ok' > twin/a
printf 'a\357\277\275b\357\277\275 c\357\277\275d\357\277\275\357\277\275\357\277\275' > twin/b
run 0 sgt-tokenize --invalid-utf8 replace in replaced
stdout_has '6 places not UTF-8, replaced by U+FFFD; manifest.json names the first'
run 0 sgt-tokenize twin twins
same replaced/train_000000.bin twins/train_000000.bin
grep -q '"invalid_utf8": 0' twins/manifest.json || fail 'well-formed text was counted as ill-formed'

# --invalid-utf8 fail names file and offset, and leaves nothing.
run 1 sgt-tokenize --invalid-utf8 fail in failed
stderr_is 'sgt-tokenize: in/b: offset 1: not UTF-8 (--invalid-utf8 keep or replace reads it)'
stdout_is ''
absent failed
run 0 sgt-tokenize --invalid-utf8 fail twin failed

# Of many ill-formed places, all are counted and the first 16 are named.
mkdir many
head -c 300000 /dev/zero | tr '\0' '\200' > many/x
run 0 sgt-tokenize --json many out
[ "$(field invalid_utf8 .stdout)" = 300000 ] || fail 'count of many'
[ "$(grep -c '"offset"' out/manifest.json)" -eq 16 ] || fail 'places of many'

# A literal end of text is plain text, unless --special eot is given.
printf 'one<|endoftext|>two <|endoftext|><|endoftext|> <|endoftext' > special
run 0 sgt-tokenize special text
[ "$(ids text/train_000000.bin)" = '50256 505 27 91 437 1659 5239 91 29 11545 1279 91 437 1659 5239 91 6927 91 437 '\
'1659 5239 91 29 1279 91 437 1659 5239' ] ||
    fail "special none: $(ids text/train_000000.bin)"
run 0 sgt-tokenize --special eot special eot
[ "$(ids eot/train_000000.bin)" = '50256 505 50256 11545 220 50256 50256 1279 91 437 1659 5239' ] ||
    fail "special eot: $(ids eot/train_000000.bin)"
