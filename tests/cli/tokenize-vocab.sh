# tokenize-vocab.sh: --vocab and --pattern give the ids of Hugging Face's tokenizers and of tiktoken
# from the same files (tests/data/vocab, next to the script that made them). Also files that are
# refused, and sets that carry their vocabulary.
D=$ROOT/tests/data/vocab

check "GPT-2's merges are the published file" \
    grep -qF "$(sha256sum < "$ROOT/tokenize/vocab/gpt2.bpe" | cut -d ' ' -f 1)" "$ROOT/tokenize/vocab/gpt2.md"

# ids_are FILE OPTION...: tokenize text.txt, or the file $text, compare its ids, without the first end
# of text, with those in FILE, and decode them to text.txt
ids_are() {
    expected=$1
    shift
    rm -rf out
    run 0 sgt-tokenize --quiet "$@" "${text:-$D/text.txt}" out
    tail -c +1027 out/train_000000.bin > ids
    same ids "$expected"
    run_same "$D/text.txt" sgt-inspect --decode 1:100000 out
}

ids_are "$D/hf.ids" --vocab "$D/trained"
check 'end of text is id 0' [ "$(od -An -tu2 -j1024 -N2 out/train_000000.bin | tr -d ' ')" = 0 ]
cp -r out trained
ids_are "$D/hf.ids" --vocab "$D/trained/merges.txt"
ids_are "$D/hf.ids" --vocab "$D/trained/vocab.json"
ids_are "$D/hf.ids" --vocab trained/tokenizer.json
cp "$D/trained/vocab.json" alone.json # a vocabulary whose ids serve as ranks
ids_are "$D/hf.ids" --vocab alone.json
ids_are "$D/hf-o200k.ids" --vocab "$D/o200k"
grep -q '"fingerprint": "'"$(field fingerprint out/manifest.json)" out/manifest.json || fail 'no fingerprint'
cp -r out o200k
ids_are "$D/hf-o200k.ids" --vocab o200k/tokenizer.json # the set's own tokenizer.json is sufficient
same out/tokenizer.json o200k/tokenizer.json
same out/train_000000.bin o200k/train_000000.bin
ids_are "$D/tiktoken-r50k.ids" --vocab "$D/ranks.tiktoken"
check 'end of text comes last' [ "$(od -An -tu2 -j1024 -N2 out/train_000000.bin | tr -d ' ')" = 699 ]
for name in r50k cl100k o200k; do
    ids_are "$D/tiktoken-$name.ids" --vocab "$D/ranks.tiktoken" --pattern "$(cat "$D/$name.pattern")"
done
# A pattern given by name, and the same pattern as a text that is not recognized, so PCRE2 splits.
for name in cl100k o200k; do
    ids_are "$D/tiktoken-$name.ids" --vocab "$D/ranks.tiktoken" --pattern "(?:$(cat "$D/$name.pattern"))"
    ids_are "$D/tiktoken-$name.ids" --vocab "$D/ranks.tiktoken" --pattern $name
done
cp -r out carried
ids_are "$D/tiktoken-o200k.ids" --vocab carried/tokenizer.json

# GPT-2's own merges with another pattern. GPT-2's own pattern, given by name, changes nothing.
printf "ab12 cd 345" > in.txt
run_says '' sgt-tokenize --quiet --pattern '\p{L}+|\p{N}' in.txt digits
run 0 sgt-inspect --decode 0:100 digits
run 0 sgt-tokenize --quiet in.txt plain
run 0 sgt-tokenize --quiet --pattern "$(cat "$D/r50k.pattern")" in.txt named
same_folders plain named
run_failure_about 'digits: made with a different vocabulary: fingerprint ' sgt-tokenize in.txt digits

# The same tokens with fewer merges, as in a truncated file, are another vocabulary. A set of it is not
# taken for complete, and a run that was begun with it is not resumed, with all merges.
cp -r "$D/trained" cut
head -300 "$D/trained/merges.txt" > cut/merges.txt
run 0 sgt-tokenize --quiet --vocab cut "$D/text.txt" fewer
good=$(field fingerprint trained/manifest.json) bad=$(field fingerprint fewer/manifest.json)
cp -r fewer set
run_unforced "set: made with a different vocabulary: fingerprint $bad, now $good" \
    sgt-tokenize --quiet --vocab "$D/trained" "$D/text.txt" set
same_folders set fewer
run 0 sgt-tokenize --quiet --force --vocab "$D/trained" "$D/text.txt" set
same_folders set trained
run 1 sgt-inspect --compare trained fewer
stdout_has "trained and fewer: have different vocabularies, and differ from token " "fingerprint $good" "fingerprint $bad"
mkdir corpus
repeated 20 "$D/text.txt" > corpus/large
printf 'bad \377' > corpus/stop
options='--quiet --threads 1 --invalid-utf8 fail --shard-tokens 5k'
run_failure_about 'corpus/stop: offset 4: not UTF-8' sgt-tokenize $options --vocab cut corpus begun
exists begun/train_000002.bin
printf 'good!' > corpus/stop
run_unforced "begun: made with a different vocabulary: fingerprint $bad, now $good" \
    sgt-tokenize $options --vocab "$D/trained" corpus begun

# Decoding gives back the text, also from a single shard.
run 0 sgt-inspect --decode 0:100000 trained
{ printf '<|endoftext|>'; cat "$D/text.txt"; } > decoded
same .stdout decoded

# ---- refused ----

refused() { # MESSAGE VOCAB [OPTION]...
    message=$1
    shift
    run 1 sgt-tokenize --vocab "$@" in.txt refused
    stdout_is ''
    case $message in
    *')') ;;
    *) message="$message (expected a complete byte-level BPE vocabulary: tokenizer.json, merges.txt, vocab.json or "\
".tiktoken)" ;;
    esac
    stderr_is "sgt-tokenize: $message"
    absent refused
}
refused "nowhere: No such file or directory (pass gpt2, a model's tokenizer.json, or a tiktoken file such as "\
"o200k_base.tiktoken)" nowhere
mkdir empty
refused 'empty: holds no tokenizer.json, vocab.json or merges.txt' empty
: > empty.tiktoken
refused 'empty.tiktoken: holds no tokens' empty.tiktoken

R=$D/ranks.tiktoken
# Each of these functions writes a vocabulary to $made: NAME and a fault.
ranks() { made=$1.tiktoken && { cat "$R" && echo "$2"; } > "$made"; } # LINE: ranks with one more line
edit() {                                                              # SED: the trained one with vocab.json edited
    made=$1
    mkdir "$1"
    cp "$D/trained/merges.txt" "$1"
    sed "$2" "$D/trained/vocab.json" > "$1/vocab.json"
}
merges() { edit "$1" 's/$//' && echo "$2" >> "$1/merges.txt"; } # LINE: the trained one with one more merge
hf() { made=$1.json && sed "$2" "$D/o200k/tokenizer.json" > "$made"; } # SED: o200k's tokenizer.json edited
# faulty FUNCTION NAME FAULT MESSAGE: the file that FUNCTION writes must be refused with MESSAGE
faulty() {
    "$1" "$2" "$3"
    refused "$made$4" "$made"
}
faulty ranks big 'QUFBQQ== 1048576' ': id 1048576 is too large (sgt supports at most 1048576 ids)'
faulty ranks base64 'QUFBQQ 699' ': line 700: expected a token in base64, a space, and its rank'
faulty ranks rank 'QUFBQQ== 6x' ': line 700: expected a token in base64, a space, and its rank'
faulty ranks twice 'IQ== 699' ': tokens 0 and 699 are the same: !'
faulty ranks id 'QUFBQQ== 3' ': two tokens have id 3'
faulty ranks hole 'QUFBQQ== 702' ': no token has id 699, but ids go up to 703'
# A rank may be lower than the ranks of the token's halves (tests/tokenize has such ranks), unless
# that leaves the order of merges unclear.
{ cat "$R"; echo 'cXpx 699'; echo 'cXo= 700'; } > clash.tiktoken # qzq, qz
refused 'clash.tiktoken: token 699 (qzq): its place in the order of merges is ambiguous' clash.tiktoken
# A pre-token that is a token becomes that token, even if no merges lead to it.
{ cat "$R"; echo 'QXFYelE= 699'; echo 'QXFYelFBcVh6UUFxWHpRQQ== 700'; } > unmade.tiktoken
printf 'AqXzQ xAqXzQ AqXzQAqXzQAqXzQA\nAqXzQAqXzQAqXzQA' > unmade.txt
run 0 sgt-tokenize --quiet --vocab unmade.tiktoken unmade.txt unmade-set
od -An -v -tu2 -w2 -j1024 unmade-set/train_000000.bin | tr -d ' ' > ids
check 'a short and a long piece' [ "$(grep -cx '699\|700' ids)$(sed -n 2p ids)$(tail -1 ids)" = 2699700 ]
run 0 sgt-tokenize --quiet --vocab unmade-set unmade.txt unmade-again
same unmade-again/train_000000.bin unmade-set/train_000000.bin
grep -q '"ignore_merges":true' unmade-set/tokenizer.json || fail "Hugging Face's library would merge it"
sed 's/"ignore_merges":true/"ignore_merges":false/' unmade-set/tokenizer.json > merged.json
run_failure_about 'unmade-set: made with a different vocabulary: fingerprint ' sgt-tokenize --vocab merged.json unmade.txt unmade-set
sed 1d "$R" | awk '{ print $1, NR - 1 }' > byte.tiktoken
refused 'byte.tiktoken: is not byte-level: no token consists of only the byte 0x21' byte.tiktoken
# A file with the first ranks of GPT-2 was cut off, unless --pattern marks it as a vocabulary of its
# own.
refused "$D/begins.tiktoken: begins like the ranks of GPT-2, but ends after 1500 of them: is it truncated? (--pattern \
accepts it as a separate vocabulary)" "$D/begins.tiktoken"
run_silent sgt-tokenize --quiet --vocab "$D/begins.tiktoken" --pattern gpt2 in.txt begins
check 'end of text comes last' [ "$(od -An -tu2 -j1024 -N2 begins/train_000000.bin | tr -d ' ')" = 1500 ]
# If exactly one id below the largest is missing, it is the end-of-text id.
awk '{ print $1, $2 + ($2 >= 300) }' "$R" > left.tiktoken
run 0 sgt-tokenize --quiet --vocab left.tiktoken in.txt left
check 'end of text is id 300' [ "$(od -An -tu2 -j1024 -N2 left/train_000000.bin | tr -d ' ')" = 300 ]

# Mistral's tekken.json: the same ranks after three special tokens, of which </s> is the third.
{
    printf '{"config": {"pattern": "%s", "default_vocab_size": 702, "default_num_special_tokens": 3}, "vocab": [' \
        "$(sed 's/\\/\\\\/g' "$D/o200k.pattern")"
    awk '{ printf "%s{\"rank\": %d, \"token_bytes\": \"%s\", \"token_str\": \"\\u0000\"}", (NR > 1 ? ", " : ""), $2, $1 }' "$R"
    echo ']}'
} > tekken.json
run_silent sgt-tokenize --vocab tekken.json "$D/text.txt" tekken
check 'end of text is id 2' [ "$(od -An -tu2 -j1024 -N2 tekken/train_000000.bin | tr -d ' ')" = 2 ]
od -An -v -tu2 -w2 "$D/tiktoken-o200k.ids" | awk '{ print $1 + 3 }' > expected
od -An -v -tu2 -w2 -j1026 tekken/train_000000.bin | awk '{ print $1 }' > ids
same ids expected
sed 's/"rank": 5,/"rank": 6,/' tekken.json > rank.json
refused 'rank.json: vocab: rank 5 is missing, or not in base64' rank.json
sed 's/special_tokens": 3/special_tokens": -3/' tekken.json > negative.json
refused 'negative.json: config: default_num_special_tokens or default_vocab_size is missing or invalid' negative.json

faulty edit no-eot 's/"<|endoftext|>":0/"<|other|>":0/' \
    ': has no end-of-text token (looked for <|endoftext|>, <|end_of_text|>, </s>, <eos>, <|eos|>, <｜end▁of▁sentence｜>, '\
'[EOS], <EOS_TOKEN>, <EOT>)'
for eot in '</s>' '<｜end▁of▁sentence｜>' '[EOS]' '<EOT>'; do
    rm -rf other-eot named-s
    edit other-eot 's|"<.endoftext.>":0|"'"$eot"'":0|'
    printf '%s' "a${eot}b<|endoftext|>" > literals.txt
    run 0 sgt-tokenize --quiet --vocab other-eot --special eot literals.txt named-s
    check 'one end of text before all, and one in the text' \
        [ "$(od -An -v -tu2 -w2 -j1024 named-s/train_000000.bin | grep -cw 0)" -eq 2 ]
    run_says "${eot}a${eot}b<|endoftext|>" sgt-inspect --decode 0:100 named-s
done
faulty edit json 's/^{/{,/' '/vocab.json: line 1: string or '"'}' expected near ','"
faulty edit twice 's/"!":1/"!":1,"!":1/' '/vocab.json: line 1: duplicate object key near '"'\"!\"'"
faulty edit text 's/"!":1/"!":"1"/' '/vocab.json: token !: its id is not a whole number'
faulty edit pieces 's/"!":1/"▁!":1/' "/vocab.json: is not byte-level: token 1 (▁!) is not in GPT-2's byte alphabet"
faulty merges unknown 'Q Qqq' ': merge 444: its right token is not in the vocabulary'
faulty merges unmade 'Q Q' ': merge 444: its result is not in the vocabulary'
faulty merges script 'Q 中' "/merges.txt: line 445: expected two tokens in GPT-2's byte alphabet, separated by a space"
faulty merges line Qq "/merges.txt: line 445: expected two tokens in GPT-2's byte alphabet, separated by a space"
edit order 's/$//'
{ sed -n 1p "$D/trained/merges.txt"; echo 'ĠĠ ĠĠ'; sed 1d "$D/trained/merges.txt" | grep -v '^ĠĠ ĠĠ$'; } \
    > order/merges.txt
refused 'order: merge 2 makes token 257 (  ), which an earlier merge already uses' order

faulty hf isolated 's/"Isolated"/"Removed"/' \
    ': pre_tokenizer: Split is supported only with a Regex whose matches are Isolated (--pattern replaces it)'
hf inverted 's/"Isolated"/"Removed"/; s/"invert": false/"invert": true/'
ids_are "$D/hf-o200k.ids" --vocab inverted.json # this pattern matches all text, so nothing lies between matches
faulty hf between 's/"Isolated"/"Removed"/; s/"invert": false/"invert": true, "pcre2": "a"/' \
    ': pre_tokenizer: Split is supported only with a Regex whose matches are Isolated (--pattern replaces it)'
faulty hf digits 's/"Split"/"Digits"/' ': pre_tokenizer: Digits is not supported (--pattern REGEX replaces it)'
run 0 sgt-tokenize --quiet --vocab digits.json --pattern "$(cat "$D/o200k.pattern")" "$D/text.txt" overridden
tail -c +1027 overridden/train_000000.bin > ids
same ids "$D/hf-o200k.ids"
faulty hf prefix 's/"add_prefix_space": false/"add_prefix_space": true/' \
    ': pre_tokenizer: ByteLevel with add_prefix_space changes the text (--pattern replaces it)'
faulty hf both 's/"use_regex": false/"use_regex": true/' \
    ": pre_tokenizer: Split followed by ByteLevel's own pattern is not supported (--pattern replaces both)"
faulty hf level 's/"ByteLevel"/"Split"/' \
    ': pre_tokenizer: Split is supported only with a Regex whose matches are Isolated (--pattern replaces it)'
faulty hf lower 's/"normalizer": null/"normalizer": {"type": "Lowercase"}/' \
    ': normalizer: Lowercase is not supported (only NFC and NFKC are)'
faulty hf model 's/"type": "BPE"/"type": "Unigram"/' ': its model is Unigram, not BPE'
faulty hf fallback 's/"byte_fallback": false/"byte_fallback": true/' ': is not byte-level: it sets byte_fallback'
faulty hf suffix 's/"end_of_word_suffix": null/"end_of_word_suffix": "<\/w>"/' ': is not byte-level: it sets end_of_word_suffix'
faulty hf dropout 's/"dropout": null/"dropout": 0.1/' ': its model uses dropout'
# Like Qwen's file: NFC, merges as strings, a token that no merges lead to, and special tokens only
# among the added ones. One that is not called special is refused, unless it is a marker. Ids between
# added tokens are unused.
sed 's/é/e\xcc\x81/g; s/한/\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab/g' "$D/text.txt" > nfd.txt
text=nfd.txt ids_are "$D/hf-qwen.ids" --vocab "$D/qwen.json"
check 'three ids more' [ "$(od -An -td4 -j16 -N4 out/train_000000.bin | tr -d ' ')" = 703 ]
grep -o '"id":70[0-9],"content":"[^"]*"' out/tokenizer.json | cut -c6- | tr '\n' ' ' > listed
check 'their names' [ "$(cat listed)" = '700,"content":"<|endoftext|>" 701,"content":"<|unused_701|>" '\
'702,"content":"<tool_call>" ' ]
run_notes 'sgt-tokenize: qwen.json: <tool_call> in text is tokenized as ordinary text, not as the token of that '\
'name (the file does not mark it as special)' sgt-tokenize --vocab "$D/qwen.json" in.txt told
sed 's/<tool_call>/ tool_call /' "$D/qwen.json" > special.json
refused 'special.json: added_tokens: token 702 ( tool_call ) is not special, and sgt does not search text for such '\
'tokens before merging' special.json
faulty hf two 's/"<|endoftext|>": 0,/"<|endoftext|>": 700,/' ': token <|endoftext|> has two ids, 700 and 0'
hf regex 's/"Regex": "/&(/'
refused "regex.json: its pattern is unknown to sgt (pass it with --pattern, by a name such as cl100k or "\
"in PCRE2 syntax)" regex.json
faulty hf pcre2 's/"behavior": "Isolated"/"pcre2": "a(", &/' \
    ': its pattern: at byte 2: missing closing parenthesis (--pattern replaces it)'
hf cut '400,$d'
run_failure_like '^sgt-tokenize: cut.json: line [0-9]+: ' sgt-tokenize --vocab cut.json in.txt refused

# ---- settings and patterns that are not what they seem ----

# --special eot matches only the literal. Settings by which Hugging Face's library also takes
# blanks, matches only whole words, or searches the normalized text, are refused.
for setting in lstrip rstrip single_word normalized; do
    hf $setting 's/"'$setting'": false/"'$setting'": true/; s/"normalizer": null/"normalizer": {"type": "NFC"}/'
    run_failure "$setting.json: added_tokens: <|endoftext|> has $setting: true, which --special eot does not "\
"support (set it to false, or omit --special eot)" sgt-tokenize --vocab $setting.json --special eot in.txt refused
    run 1 sgt-tokenize --dry-run --vocab $setting.json --special eot in.txt
    stderr_has "$setting.json: added_tokens: <|endoftext|> has $setting: true"
    absent refused
    run 0 sgt-tokenize --vocab $setting.json in.txt stripped # without --special eot, the token is never found in text
    stderr_is ''
    rm -r stripped
done

# A notice says which pattern is assumed if neither the file nor --pattern gives one, except for
# GPT-2's own vocabulary.
said() { # VOCAB NAME [OPTION]...
    vocab=$1
    name=$2
    shift 2
    run 0 sgt-tokenize --vocab "$vocab" "$@" in.txt assumed
    line="sgt-tokenize: $name: has no pattern that splits text before merging, so GPT-2's is used (--pattern "\
"selects another, such as cl100k or o200k)"
    [ -n "$name" ] || line=
    stderr_is "$line"
    rm -r assumed
}
said "$D/ranks.tiktoken" ranks.tiktoken
said "$D/ranks.tiktoken" '' --pattern cl100k
said "$D/trained/merges.txt" merges.txt
said "$D/trained/vocab.json" vocab.json
said alone.json alone.json
said trained/tokenizer.json ''
said "$ROOT/tokenize/vocab/gpt2.bpe" ''
run 0 sgt-tokenize --dry-run --vocab "$D/ranks.tiktoken" in.txt
stderr_has 'ranks.tiktoken: has no pattern that splits text before merging'

# ---- unusable patterns ----

run_misuse 'pattern: at byte 3: missing closing parenthesis' sgt-tokenize --pattern 'a(b' in.txt refused
absent refused
head -c 200 /dev/zero | tr '\0' a > long.txt
echo ! >> long.txt
run 1 sgt-tokenize --pattern '(*LIMIT_MATCH=100)(a|aa)+$|.' long.txt refused
stderr_is "sgt-tokenize: pattern: with OUT's tokenizer.json, transformers may split text differently (its library "\
"reads some patterns differently)
sgt-tokenize: long.txt: pattern: at byte 0 of the text: match limit exceeded"
absent refused
