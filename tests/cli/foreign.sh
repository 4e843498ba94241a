# Every program here reads data sets of other programs: llm.c, modded-nanogpt, nanoGPT and
# Megatron-LM.
. "$ROOT/tests/cli/shards.inc"

# the ids of "Hello world!", of "\n" with an end of text, and of "Hello"
hello='15496 995 0 50256' line='198 50256' last='15496'
# shellcheck disable=SC2086
ids $hello $line $last > my-gpt2_text_document.bin
megatron my-gpt2_text_document 8 4 2 1

# tests/loader/test_foreign.c has the other names of such a file, its rows, and damage to it.
name=my-gpt2_text_document
run 0 sgt-inspect $name
stdout_is "$name: a shard of tokens
  tokens         7
  documents      3
  format         megatron
  disk bytes     14 B
  shards         1"
run_says 'Hello world!<|endoftext|>' sgt-inspect $name --decode 0:4 --verify
run_prints '2 tokens' sgt-inspect $name --batch 0 --batch-size 3 --seq-len 4 --sampling documents
stdout_has '1 token ' '4 tokens'
run_prints_like '"reader": "mmap"' sgt-bench loader $name --seq-len 4 --batch-size 2 --loader mmap --json
run_prints '"format": "megatron"' sgt-inspect $name --json
stdout_has '"documents": 3'
mkdir set
mv my-gpt2_text_document.* set
run 0 sgt-inspect set
stdout_is 'set: a set of shards without a manifest
  tokens         7
  documents      3
  format         megatron
  disk bytes     14 B
  train          shards 1, tokens 7, documents 3
  shards         1'
run 0 sgt-inspect --compare set set/my-gpt2_text_document
run 0 sgt-train --quiet --data set/my-gpt2_text_document --run run --model 1x8x1 --seq-len 4 --batch-size 1 --steps 2 \
    --device cpu
run_prints '"steps": 2' sgt-inspect run --json

# A resume is refused if the same tokens are divided into other documents.
megatron set/my-gpt2_text_document 8 4 3
run 1 sgt-train --data set --run run --resume --steps 3
stderr_is 'sgt-train: --data set: its tokens are not those that the run was trained on (restore them, or start a new --run)'

# Every program reports the damage in a damaged file.
megatron wide 5 2 1
ids 1 0 0 0 2 0 0 0 3 0 0 0 > wide.bin
wide='wide.idx: at byte 17: the tokens have type 5 (int64, 64 bits), but sgt reads only uint16, int16 and int32'
run_failure "$wide" sgt-inspect wide
run_failure "$wide" sgt-bench loader wide --seq-len 1
run_failure "$wide" sgt-train --data wide --run run2 --model 1x8x1 --seq-len 1 --device cpu
absent run2
rm wide.idx

# shards with modded-nanogpt's names
mkdir fineweb10B
shard fineweb10B/fineweb_train_000001.bin 15496 995
shard fineweb10B/fineweb_train_000002.bin 0 198
shard fineweb10B/fineweb_val_000000.bin 15496 0
run 0 sgt-inspect fineweb10B
stdout_is 'fineweb10B: a set of shards without a manifest
  tokens         6
  format         llm.c
  disk bytes     3.0 KiB
  train          shards 2, tokens 4
  val            shards 1, tokens 2
  shards         3'
run_says 'Hello world!' sgt-inspect fineweb10B --decode 0:4 --split train
run 0 sgt-train --quiet --data fineweb10B --run run3 --model 1x8x1 --seq-len 1 --batch-size 1 --steps 2 --eval-every 1 \
    --device cpu
check 'evaluated on its val split' grep -q '"val_loss"' run3/log.jsonl

# files of nanoGPT
mkdir nano
ids 15496 995 0 > nano/train.bin
ids 198 198 > nano/val.bin
no_header="nano/train.bin has no header: reading it as nanoGPT's 16-bit ids"
run_says 'Hello world!' sgt-inspect nano --decode 0:5
run_silent sgt-bench loader nano --seq-len 1 --batch-size 2 --loader mmap --json --quiet
run_notes "sgt-bench loader: $no_header" sgt-bench loader nano --seq-len 1 --batch-size 2 --loader mmap --json
run 0 sgt-train --data nano --run run4 --model 1x8x1 --seq-len 1 --batch-size 1 --steps 2 --eval-every 1 --device cpu
stderr_has "sgt-train: $no_header"
check 'said once' test "$(grep -c 'no header' .stderr)" -eq 1
check 'evaluated on its val.bin' grep -q '"val_loss"' run4/log.jsonl
stderr_has "sgt-train: nano: its vocabulary is unknown: GPT-2's is assumed, and validation shows no bits per byte (copy the tokenizer.json of the data there)"
! grep -q val_bits run4/log.jsonl || fail 'bits per byte of a vocabulary that is only assumed'
run_prints 'bits per byte' sgt-eval run4 --data nano --seq-len 1
# nanoGPT's meta.pkl belongs to a vocabulary of characters, not to GPT-2's.
touch nano/meta.pkl
for set in nano nano/val.bin; do
    run_notes "sgt-eval: $set: no bits per byte, because its meta.pkl has a vocabulary other than GPT-2's" \
        sgt-eval run4 --data $set --seq-len 1
    ! grep -q 'bits per byte' .stdout || fail "$(cat .stdout)"
done
run_failure "nano/train.bin: cannot be decoded: its vocabulary is not GPT-2's (fingerprint 0000000000000000; \
the data's folder has no tokenizer.json)" sgt-inspect nano --decode 0:5
run 0 sgt-train --quiet --data nano/train.bin --run run5 --model 1x8x1 --seq-len 1 --batch-size 1 --steps 2 --device cpu

# 32-bit ids without a header are never read as 16-bit ids, not even as a numbered shard (see
# forms.sh for single files).
i=0
while [ $i -lt 40 ]; do ids $((100 + i)) 0 && i=$((i + 1)); done > wide.bin
mkdir wide32
cp wide.bin wide32/train_000000.bin
why='32-bit ids without a header, not 16-bit ones (sgt-inspect and sgt-bench loader read them with --raw 32, '\
'Python with raw=32; sgt-train and sgt-eval need a header)'
run_failure "wide.bin: $why" sgt-inspect --raw 16 wide.bin --batch 0 --batch-size 1 --seq-len 4
run_failure "wide32/train_000000.bin: $why" sgt-bench loader wide32 --seq-len 4 --batch-size 2
run_failure "wide32/train_000000.bin: $why" sgt-train --data wide32 --run run6 --model 1x8x1 --seq-len 4 --device cpu
absent run6
wide='not 32-bit ids: token 0 would be 65223680, which no vocabulary has (read 16-bit ids with --raw 16, in Python with raw=16)'
ids 15360 995 0 198 > narrow16.bin
run_failure "narrow16.bin: $wide" sgt-bench loader --raw 32 narrow16.bin --seq-len 1 --batch-size 1

# Ids of 4 bytes, which --raw 32, type 4 in a Megatron-LM .idx, or llm.c's header for Llama 3
# announces.
mkdir four four/nano four/megatron four/llmc
ids32() { for id; do le32 "$id"; done; }
ids32 100256 5 128000 7 > four/nano/train.bin
cp four/nano/train.bin four/megatron/a_text_document.bin
megatron four/megatron/a_text_document 4 3 1
{ le32 20240801 && le32 7 && le32 4 && head -c 1012 /dev/zero && cat four/nano/train.bin; } > four/llmc/web_train_000000.bin
for name in '--raw 32 four/nano' four/megatron four/llmc; do
    # shellcheck disable=SC2086
    run 0 sgt-inspect $name --verify
    fact tokens 4 verified yes
    # shellcheck disable=SC2086
    run 0 sgt-inspect $name --batch 0 --batch-size 1 --seq-len 3 --json
    stdout_matches '"inputs": *\[\[100256, *5, *128000\]\], *"targets": *\[\[5, *128000, *7\]\]'
    # shellcheck disable=SC2086
    run_prints_like '"output": "i32-rows"' sgt-bench loader $name --seq-len 3 --batch-size 1 --loader preload --json
done
run 0 sgt-inspect --compare four/llmc four/megatron
ids32 100256 5 62464 7 > other32.bin # 128000 without its upper 16 bits
run 1 sgt-inspect --compare --raw 32 --json four/nano/train.bin other32.bin
stdout_has '"byte": 8,' '"id": 128000,' '"id": 62464,'
ids 5 5 > narrow.bin # ids of 2 and 4 bytes are compared by value
ids32 5 5 > five32.bin
mkdir five && { le32 20240801 && le32 7 && le32 2 && head -c 1012 /dev/zero && cat five32.bin; } > five/train_000000.bin
run 0 sgt-inspect --compare narrow.bin five/train_000000.bin
{ le32 20240520 && le32 1 && le32 2 && head -c 1012 /dev/zero && cat narrow.bin; } > five/train_000001.bin
alike='shards that are read together must share a vocabulary'
run_failure "five/train_000001.bin: 16-bit ids, but five/train_000000.bin has 32-bit ones: $alike" sgt-inspect --verify five
for name in megatron llmc; do
    for more in '--run run6' '--estimate-memory'; do
        run_failure "--data four/$name: the vocabulary size is unknown, because the shards have no header "\
'(tokenize with sgt-tokenize, or use --init DIR)' sgt-train --data four/$name --model 1x8x1 --seq-len 3 --device cpu $more
    done
done
ids32 16 17 > four/nano/val.bin
run_prints 'val            shards 1, tokens 2' sgt-inspect four/nano --raw 32

# With --raw 16, even a text file is read as tokens.
yes 'It was the best of times.' | head -c 4096 > book.bin
run 0 sgt-inspect --raw 16 book.bin
fact tokens 2,048
