# sgt-inspect --compare: sets with the same tokens are equal, however they are cut into shards.
# Otherwise, the first difference is shown.
. "$ROOT/tests/cli/shards.inc"

texts in 90000
run 0 sgt-tokenize --quiet --split 30% --shard-tokens 5k in a
run 0 sgt-tokenize --quiet --split 30% --shard-tokens 7777 in b
tokens=$(sgt-inspect a --json | sed -n 's/^  "tokens": \([0-9]*\),/\1/p')
commas() { echo "$1" | sed ':a; s/\B[0-9]\{3\}\>/,&/; ta'; }
run_prints 'a and b: the same tokens' sgt-inspect --compare a b
fact a "path a, tokens $tokens, shards [0-9]+, fingerprint [0-9a-f]{16}"
stderr_is ''
run_prints '"same": true' sgt-inspect --compare --json b a
stdout_has '"same_vocabulary": true' '"first_difference": null'
run_says '' sgt-inspect --compare --quiet a b

# One changed token of the train split: token 13,333 is token 3,333 of a's third shard.
cp -r a hurt
byte=$((1024 + 2 * 3333))
was=$(od -An -tu2 -j $byte -N 2 a/train_000002.bin | tr -d ' ')
now=$(((was & 65280) | (was + 1 & 255)))
patch hurt/train_000002.bin $byte $((now & 255))
run 1 sgt-inspect --compare b hurt
stdout_has 'b and hurt: differ from token 13,333 of train on'
around() { echo "id $1, from 13327, ids \[([0-9]+,){6}$1(,[0-9]+){6}\], text .*"; }
fact a "shard b/train_000001.bin, token 5556, byte $((1024 + 2 * 5556)), $(around "$was")" \
    b "shard hurt/train_000002.bin, token 3333, byte $byte, $(around "$now")" split train token 13,333
sgt-inspect b --split train --decode 13327:13 > text
[ -n "$(tr -d '\n' < text)" ] || fail 'nothing to be decoded'
run 1 sgt-inspect --compare b hurt --json
stdout_has '"same": false' '"split": "train"' '"token": 13333' '"shard": "b/train_000001.bin"' "\"id\": $was"
stdout_has '"from": 13327'
sgt-inspect b --split train --decode 13327:13 --json | grep '"text"' | sed 's/^ *//' > text
grep -qF "$(cat text)" .stdout || fail "the text is not $(cat text)"
run 1 sgt-inspect --compare --quiet b hurt
stdout_is ''
stderr_is ''
run 0 sgt-inspect --compare b hurt --split val

# A set that is a prefix of the other, and a shard, which has no split.
shard one.bin 50256 15496 995
shard two.bin 50256 15496 995 0 198
run 1 sgt-inspect --compare one.bin two.bin
stdout_is 'one.bin and two.bin: differ from token 3 on
  a                  path one.bin, tokens 3, shards 1
  b                  path two.bin, tokens 5, shards 1
  a                  ends_after 3, from 0, ids [50256,15496,995], text <|endoftext|>Hello world
  b                  shard two.bin, token 3, byte 1030, id 0, from 0, ids [50256,15496,995,0,198], '\
'text <|endoftext|>Hello world!\x0a
  token              3'
run 1 sgt-inspect --compare two.bin one.bin --json
stdout_has '"shard": null'
mkdir c d
cp one.bin c/train_000000.bin
cp one.bin d/val_000000.bin
run 1 sgt-inspect --compare c d
stdout_has 'c and d: differ from token 0 of train on' 'ends_after 0'
run 0 sgt-inspect --compare c one.bin # a shard has no split: all tokens are compared in order
stdout_has 'c and one.bin: the same tokens'
ids 50256 15496 995 > raw.bin
run 0 sgt-inspect --compare one.bin raw.bin

# Differences at the edges of the blocks that are read, and at the edges of shards.
seq 1 300000 > numbers.txt
run 0 sgt-tokenize --quiet --shard-tokens 131072 numbers.txt x
for place in 0 131071 131072 262143 262144; do
    rm -rf y && cp -r x y
    byte=$((1024 + 2 * (place % 131072)))
    flip y/train_00000$((place / 131072)).bin $byte
    run 1 sgt-inspect --compare x y
    stdout_has "x and y: differ from token $(commas $place) of train on"
done

# Equal ids of different vocabularies count as different tokens.
cp -r a other
for shard in other/*.bin; do patch $shard 24 1; done
rm other/manifest.json
run 1 sgt-inspect --compare a other
stdout_has 'a and other: the same ids, but different vocabularies'
fact b "path other, tokens $tokens, shards [0-9]+, fingerprint [0-9a-f]{16}"
run 1 sgt-inspect --compare a other --json
stdout_has '"same": false' '"same_vocabulary": false'

# an unreadable set is a failure, not a difference
run_failure 'nowhere: No such file or directory (make a folder of shards with sgt-tokenize)' sgt-inspect --compare a nowhere
run_usage '--compare: expected two sets, A and B, not 1' sgt-inspect --compare a
run_usage '--export: expected two paths, not 0 (sgt-inspect --export npy SET OUT)' sgt-inspect --export npy
run_usage '--compare: cannot be combined with --export (run them one after the other)' sgt-inspect --compare --export npy a b
run_usage '--compare: cannot be combined with --verify (run them one after the other)' sgt-inspect --compare --verify a b
