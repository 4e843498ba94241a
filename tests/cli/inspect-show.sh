# sgt-inspect on shards of other programs: facts, decoded text and refusals.
. "$ROOT/tests/cli/shards.inc"

# "<|endoftext|>Hello world!\n" and "<|endoftext|>Hello"
shard one.bin 50256 15496 995 0 198 50256 15496
run 0 sgt-inspect one.bin
stdout_is 'one.bin: a shard of tokens
  tokens         7
  format         llm.c
  disk bytes     1.0 KiB
  shards         1'
stderr_is ''
run_says '' sgt-inspect --quiet one.bin

run 0 sgt-inspect --verify one.bin
fact verified yes
! grep -q checksums .stdout || fail 'checksums that no header has'

run_says 'Hello world!' sgt-inspect one.bin --decode 1:4
check "the text's own bytes" test "$(wc -c < .stdout)" -eq 13
run_says '<|endoftext|>' sgt-inspect one.bin --decode 5
run_says '<|endoftext|>Hello' sgt-inspect one.bin --decode 5:100
stderr_is 'sgt-inspect: one.bin has only 7 tokens'
run_says '<|endoftext|>Hello' sgt-inspect one.bin --decode 5:100 --quiet
stderr_is ''
run_failure 'one.bin: --decode 7:1: there is no token 7, the last is 6' sgt-inspect one.bin --decode 7:1
run_usage '--decode: needs a value (FROM:COUNT)' sgt-inspect one.bin --decode ''
for bad in : x 1: 1:0 1:-1 1:2:3 -1:2 1.5:2 18446744073709551615:2 99999999999999999999; do
    run_usage "--decode $bad: expected a whole number, or two, as in 100:20, the second at least 1" \
        sgt-inspect one.bin --decode "$bad"
done

# JSON stays valid for any bytes: token 187 is the byte 0xff alone, which is not UTF-8.
shard odd.bin 15496 187 198
run_prints "\"text\": \"Hello$(printf '\357\277\275')\\n\"" sgt-inspect odd.bin --decode 0:3 --json
run 0 sgt-inspect odd.bin --decode 0:3
printf 'Hello\377\n' > want
same want .stdout
run_prints '"kind": "shard"' sgt-inspect one.bin --json
stdout_has '"tokens": 7' '"documents": null' '"xxh3": null'
stderr_is ''

# A folder of two shards is read in the order of their names, train before val.
mkdir set
shard set/val_000000.bin 198 198
shard set/train_000001.bin 0 0 0
shard set/train_000000.bin 15496 995
run 0 sgt-inspect set
stdout_is 'set: a set of shards without a manifest
  tokens         7
  format         llm.c
  disk bytes     3.0 KiB
  train          shards 2, tokens 5
  val            shards 1, tokens 2
  shards         3'
run_says 'Hello world!!!' sgt-inspect set --decode 0:7
check 'all seven tokens' test "$(wc -c < .stdout)" -eq 16
run 0 sgt-inspect set --decode 0:2 --split val
check 'two line ends' test "$(wc -c < .stdout)" -eq 2
run 0 sgt-inspect set/ --split train
fact tokens 5 shards 2

# files without a header
ids 15496 995 0 > raw.bin
run 0 sgt-inspect raw.bin
stdout_is 'raw.bin: a shard of tokens
  tokens         3
  format         raw
  disk bytes     6 B
  shards         1'
run_says 'Hello world!' sgt-inspect raw.bin --decode 0:3 --verify
mkdir nano
cp raw.bin nano/train.bin
ids 198 > nano/val.bin
run_says 'Hello world!' sgt-inspect nano --raw 16 --decode 0:4
run 0 sgt-inspect nano
fact tokens 4 format raw
printf x >> raw.bin
run_failure 'raw.bin: 7 bytes: the size of a file of 16-bit tokens must be a multiple of 2' sgt-inspect raw.bin

# Nouns agree with their counts, and a count of zero is not printed.
ids 198 > one.bin
run 0 sgt-inspect one.bin --decode 0:9 --quiet
run_tells 'sgt-inspect: one.bin has only 1 token' sgt-inspect one.bin --decode 0:9
run_prints 'one.bin and one.bin: the same tokens' sgt-inspect --compare one.bin one.bin
: > none.txt
run 0 sgt-tokenize --quiet none.txt none
run 0 sgt-inspect none
stdout_is 'none: a set of shards, made by sgt-tokenize
'"$(sed 1d .stdout)"
fact files 1 documents 1
! grep -q ' 0' .stdout || fail 'a count of zero'
printf 'a text' > few.txt
run 0 sgt-tokenize --quiet few.txt few
run 0 sgt-inspect few
fact bytes '6 B' tokens 3
run_prints 'batch 0: 1 row of 1 token' sgt-inspect --batch 0 --batch-size 1 --seq-len 1 few

# A file without a header is read as tokens if its name ends in .bin, or with --raw; otherwise the message names its
# type, if known.
cp nano/train.bin tokens
run_failure 'tokens: unknown file format (for a shard without a header, pass --raw 16 or 32, or give it a name that '\
'ends in .bin)' sgt-inspect tokens
run 0 sgt-inspect --raw 16 tokens
fact tokens 3
for option in '--verify' '--decode 0:1' '--batch 0 --seq-len 1' '--json'; do
    run_failure_about 'sgt-inspect: tokens: unknown file format' sgt-inspect $option tokens
done
run_failure_about 'sgt-inspect: tokens: unknown file format' sgt-inspect --compare tokens nano/train.bin
run 0 sgt-inspect --compare --raw 16 tokens nano/train.bin
known() { # FILE WHAT
    run_failure "$1: $2" sgt-inspect "$1"
}
mkdir -p run/step-00000001
printf '{"step": 0, "loss": 10.8}\n{"step": 1, "loss": 10.7}\n' > run/log.jsonl
known run/log.jsonl 'part of a run, not a shard (pass run/)'
(cd run && known log.jsonl 'part of a run, not a shard (pass ./)') || exit 1
echo '{}' > run/step-00000001/config.json
: > run/step-00000001/model.safetensors
known run/step-00000001/model.safetensors 'part of a checkpoint, not a shard (pass run/step-00000001/)'
known few/manifest.json 'part of a set of shards, not a shard (pass few/)'
known few/train_000000.idx 'an index of documents, not a shard (pass few/train_000000.bin)'
printf '%%PDF-1.4' > paper # forms.sh has more kinds of files
known paper 'a PDF, not 16-bit tokens (tokenize text with sgt-tokenize)'

# Errors are reported with the offset of the byte or the index of the token.
run_failure 'nowhere: No such file or directory (make a folder of shards with sgt-tokenize)' sgt-inspect nowhere
mkdir empty
run 1 sgt-inspect empty
stderr_is 'sgt-inspect: empty: no shards named train_NNNNNN.bin or val_NNNNNN.bin (make them with sgt-tokenize)'
run_failure 'empty: no shards named val_NNNNNN.bin (make them with sgt-tokenize)' sgt-inspect empty --split val
mkdir empty/.work
run_failure 'empty: no shard is complete yet (repeat the sgt-tokenize command)' sgt-inspect empty
mkdir bad
printf 'no shard at all\n' > bad/train_000000.bin
run_failure_about 'bad/train_000000.bin: at byte 0: magic number' sgt-inspect bad
shard bad/train_000000.bin 1 2 3
truncate -s -2 bad/train_000000.bin
run_failure 'bad/train_000000.bin: 1028 bytes, but its header says 3 tokens, which take 1030 (cut short: make it '\
'again)' sgt-inspect bad --json
shard bad/train_000000.bin 1 2 50257
run 0 sgt-inspect bad
run_failure 'bad/train_000000.bin: token 2 (byte 1028): id 50257, expected below 50257' sgt-inspect bad --verify
run_failure 'bad/train_000000.bin: token 2 (byte 1028): id 50257, expected below 50257' sgt-inspect bad --decode 0:3

# wrong usage
run_usage 'expected a path: a folder of shards, a shard, a run or a checkpoint' sgt-inspect
run_usage 'expected one path, not 2 (--compare and --export take two)' sgt-inspect one.bin set
for check in checksum checksums check; do
    run_usage "--$check: no such option; did you mean --verify?" sgt-inspect --$check one.bin
done
run_usage '--batch: cannot be combined with --verify (run them one after the other)' \
    sgt-inspect one.bin --batch 0 --verify
for option in '--loader mmap' '--sampling random' '--seed 2' '--batch-size 2' '--seq-len 4' --documents; do
    run_usage "${option%% *}: needs --batch K" sgt-inspect one.bin $option
done

# A full disk at standard output is a failure.
if [ -w /dev/full ]; then
    for decode in '' '--decode 0'; do
        run 1 sh -c "sgt-inspect one.bin $decode > /dev/full"
        stderr_is 'sgt-inspect: standard output: No space left on device'
    done
fi

# On a terminal, a message begins on a new line, even if damage ends the text in the middle of a
# line.
command -v script > /dev/null || skip 'script is not there: nothing was shown on a terminal'
{ le32 20240520 && le32 1 && le32 70000 && head -c 1012 /dev/zero && head -c 139998 /dev/zero && ids 60000; } > late.bin
run 1 sgt-inspect late.bin --decode 0:70000
script -qec 'sgt-inspect late.bin --decode 0:70000' /dev/null < /dev/null > .shown 2> .script
tr -d '\r' < .shown | grep -v '^!*$' > shown
same shown .stderr
script -qec 'sgt-inspect one.bin --decode 1:1; echo prompt' /dev/null < /dev/null > .shown 2> .script
[ "$(tr -d '\r' < .shown | tail -1)" = prompt ] || fail "the prompt runs into the text: $(cat .shown)"
