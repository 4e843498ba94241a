#!/usr/bin/env python3
"""make_seeds.py: write small seeds of file formats to tests/fuzz/seeds. It does not make the seeds of
text and JSON lines, nor inputs that once broke a property. Needs zstd. Run it in
tests/fuzz/seeds."""
import gzip, json, os, struct, subprocess

def put(family, name, data):
    os.makedirs(family, exist_ok=True)
    with open(os.path.join(family, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())

def zstd(data, *options):
    return subprocess.run(["zstd", "-qc", *options], input=data, stdout=subprocess.PIPE, check=True).stdout

# ---- packed ----
text = b"One line, and another one line, and another.\n" * 3
gz = lambda data: gzip.compress(data, mtime=0)
put("packed", "gz", gz(text))
put("packed", "gz-members-padded", gz(text) + gz(b"") + gz(b"more") + bytes(5))
put("packed", "gz-cut", gz(text)[:-9])
put("packed", "gz-name", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03name\0" + gz(text)[10:])
put("packed", "gz-much", gz(bytes(300000)))
put("packed", "zst", zstd(text))
put("packed", "zst-checked", zstd(text, "--check", "-19"))
put("packed", "zst-frames-skippable", zstd(text) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(b"more"))
put("packed", "zst-cut", zstd(text)[:-5])
put("packed", "zst-much", zstd(bytes(4 << 20)))
put("packed", "zst-window", b"\x28\xb5\x2f\xfd\x00\xf8" + b"\x01\x00\x00") # states a window above 2 GiB

# ---- shards ----
def header(tokens, revision=1, vocab=50257, eot=50256):
    words = [20240520, 1, tokens, revision, vocab, eot] if revision else [20240520, 1, tokens]
    return struct.pack("<%di" % len(words), *words).ljust(1024, b"\0")

def pair(shard, index=b""):
    return struct.pack(">H", len(shard)) + shard + index

ids = struct.pack("<12H", 50256, 1, 2, 3, 4, 50256, 5, 6, 7, 8, 9, 10)
put("shard", "ours", pair(header(12) + ids))
put("shard", "ours-indexed", pair(header(12) + ids, struct.pack("<2Q", 0, 5)))
put("shard", "index-past-the-end", pair(header(12) + ids, struct.pack("<2Q", 0, 12)))
put("shard", "index-unsorted", pair(header(12) + ids, struct.pack("<3Q", 5, 5, 0)))
put("shard", "llmc", pair(header(12, 0) + ids))
put("shard", "raw", pair(ids))
put("shard", "more-than-there-is", pair(header(2**31 - 1) + ids))
put("shard", "negative", pair(header(-1) + ids))
put("shard", "id-beyond", pair(header(12, vocab=8, eot=3) + ids))

def megatron(sizes, documents, begins=None, kind=8):
    at, pointers = 0, []
    for n in sizes:
        pointers.append(at)
        at += 2 * n
    pointers = begins or pointers
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, kind, len(sizes), len(documents)) +
            struct.pack("<%di" % len(sizes), *sizes) + struct.pack("<%dq" % len(pointers), *pointers) +
            struct.pack("<%dq" % len(documents), *documents))
put("shard", "megatron", pair(ids, megatron([5, 3, 4], [0, 1, 3])))
put("shard", "megatron-overlapping", pair(ids, megatron([5, 3, 4], [0, 1, 3], [0, 4, 16])))
put("shard", "megatron-counts", pair(ids, megatron([5, 3, 4], [0, 1, 3]).replace(struct.pack("<Q", 3), b"\xff" * 8, 1)))
put("shard", "megatron-negative", pair(ids, megatron([5, -3, 10], [0, 1, 3])))

# ---- manifest ----
shard = {"file": "train_000000.bin", "split": "train", "tokens": 12, "documents": 2, "xxh3": "0123456789abcdef"}
totals = {"tokens": 12, "documents": 2, "bytes": 60, "files": 1, "invalid_utf8": 0}
manifest = {"version": 1, "options": {"format": "auto"},
            "vocabulary": {"name": "gpt2", "fingerprint": "d7f9b057243f9be1", "size": 50257, "eot": 50256},
            "shards": [shard], "totals": totals, "invalid_utf8_at": []}
def manifest_with(**changes):
    return json.dumps({**manifest, **changes})
put("manifest", "whole", manifest_with())
put("manifest", "all-fields", manifest_with(totals={**totals, "bad_lines": 1, "lone_surrogates": 2, "duplicates": 3},
    invalid_utf8_at=[{"path": "a\x1b[31m", "offset": 3}]))
for name, file in {"above": "../x.bin", "absolute": "/etc/passwd", "dots": "..", "escape": "\x1b]0;x\x07.bin"}.items():
    put("manifest", "file-" + name, manifest_with(shards=[{**shard, "file": file}]))
put("manifest", "negative", manifest_with(shards=[{**shard, "tokens": -1}]))
put("manifest", "too-many-tokens", manifest_with(shards=[{**shard, "tokens": 2**62}]))
put("manifest", "twice", manifest_with()[:-1] + ', "version": 1}')
put("manifest", "deep", '{"version": ' + "[" * 3000 + "]" * 3000 + "}")

# ---- tensors and checkpoints ----
def tensors(head, data, length=None):
    head = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + data
def tensor(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
two = {"__metadata__": {"format": "pt"}, "a": tensor(0, 24, [2, 3]), "b": tensor(24, 32, [4], "BF16")}
put("safetensors", "two", tensors(two, bytes(range(32))))
put("safetensors", "kinds", tensors({"a": tensor(0, 8, [1], "F64"), "b": tensor(8, 12, [2], "F16"),
                                     "c": tensor(12, 20, [1], "I64"), "d": tensor(20, 20, [0])}, bytes(range(20))))
for name, change in {"overlapping": {"b": tensor(20, 28, [4], "BF16")}, "gap": {"b": tensor(26, 34, [4], "BF16")},
                     "huge": {"b": tensor(24, 2**63 - 1, [2**61])}, "overflowing": {"b": tensor(24, 32, [2**33, 2**33])},
                     "negative": {"b": tensor(-8, 0, [2])}, "backwards": {"b": tensor(32, 24, [2])},
                     "same": {"b": tensor(0, 24, [6])}, "past": {"b": tensor(24, 4096, [1018])}}.items():
    put("safetensors", name, tensors({**two, **change}, bytes(range(32))))
put("safetensors", "unsorted", tensors(dict(reversed(list(two.items()))), bytes(range(32))))
put("safetensors", "twice", tensors(b'{"a": %s, "a": %s}' % ((json.dumps(tensor(0, 4, [1])).encode(),) * 2), bytes(4)))
put("safetensors", "long-header", tensors(two, bytes(32), 2**63))
put("safetensors", "deep", tensors(b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}", b""))

config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 300, "n_positions": 16,
          "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False, "n_inner": None,
          "scale_attn_weights": True, "add_cross_attention": False, "scale_attn_by_inverse_layer_idx": False}
put("config", "whole", json.dumps(config))
put("config", "plain", json.dumps({k: config[k] for k in list(config)[:6]}))
put("config", "huge", json.dumps({**config, "n_layer": 2**32, "n_embd": 2**31}))
put("config", "negative", json.dumps({**config, "n_positions": -1}))

def llmc(version, L=1, C=2, V=3, P=2, padded=4, size=None):
    n = padded * C + P * C + L * (12 * C * C + 13 * C) + 2 * C if size is None else size
    return struct.pack("<8i", 20240326, version, P, V, L, 1, C, padded).ljust(1024, b"\0") + bytes(n * (4 if version == 3 else 2))
put("llmc", "float", llmc(3))
put("llmc", "bfloat", llmc(5, L=2, C=1))
put("llmc", "huge", llmc(3, L=1024, C=32768, V=65536, P=1 << 20, padded=2**31 - 1, size=0))
put("llmc", "negative", llmc(3, L=-1, size=0))

options = {"data": "out", "model": "2x8x2", "sampling": "documents", "pad-id": 3, "lr": 1e-3, "betas": "0.9,0.95",
           "precision": "fp16", "loss-scale": 1024, "seed": 7, "no-tie": True, "steps": 100}
state = {"version": 1, "step": 20, "tokens": 640, "documents": 3,
         "sampler": {"sampling": "shuffle", "seed": 1, "next_batch": 20},
         "schedule": {"kind": "cosine", "lr": 1e-3, "min_lr": 1e-4, "warmup": 2, "steps": 100},
         "scaler": {"scale": 65536.0, "good_steps": 3, "skipped": 0}, "data": {"hash": "0123456789abcdef"},
         "machine": {"device": "cpu", "cpu_level": "avx512", "library": "oneDNN 2.6.3"}, "options": options}
put("state", "whole", json.dumps(state))
put("state", "options", json.dumps(options))
put("state", "init", json.dumps({"init": "gpt2", "seed": 2}))
put("state", "minus-zero", json.dumps({"lr": -0.0, "loss-scale": 1}))
put("state", "negative", json.dumps({**state, "schedule": {**state["schedule"], "warmup": -1, "steps": -1}}))
put("state", "huge", json.dumps({**state, "step": 2**62, "tokens": 2**63 - 1}))
put("state", "spikes", json.dumps({**state, "spikes": {"taken": 2, "spikes": 1, "loss": [1.0, 2.0], "norm": [1.0, 2.0]}}))

# ---- vocabularies ----
order = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
order += [b for b in range(256) if b not in order]
letters = [chr(b) if i < 188 else chr(256 + i - 188) for i, b in enumerate(order)]
vocab = {c: i for i, c in enumerate(letters)}
def tokenizer(merges, **more):
    tokens = dict(vocab)
    for m in merges:
        tokens[m.replace(" ", "")] = len(tokens)
    tokens["<|endoftext|>"] = len(tokens)
    return json.dumps({"added_tokens": [{"id": len(tokens) - 1, "content": "<|endoftext|>", "special": True}],
                       "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
                       "model": {"type": "BPE", "vocab": tokens, "merges": merges}, **more},
                      ensure_ascii=False, separators=(",", ":"))
put("vocab", "merges", "#version: 0.2\nt h\nth e\nĠ the\ni n\na t\n")
put("vocab", "merges-twice", "t h\nt h\nth e\n")
put("vocab", "tokenizer", tokenizer(["t h", "th e", "Ġ the"]))
put("vocab", "tokenizer-rule", tokenizer(["a b"], normalizer={"type": "NFC"}, pre_tokenizer={"type": "Sequence",
    "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+|."}, "behavior": "Isolated", "invert": False},
                      {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}))
put("vocab", "tokenizer-repeated-id", tokenizer(["t h"]).replace('"th":256', '"th":255'))
put("vocab", "tokenizer-huge-id", tokenizer(["t h"]).replace('"th":256', '"th":9223372036854775807'))
put("vocab", "tokenizer-deep", '{"model": {"merges": ' + "[" * 3000 + "]" * 3000 + "}}")
import base64
ranks = [bytes([b]) for b in range(256)] + [b"th", b"the", b" the"]
put("vocab", "tiktoken", b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(ranks)))

# ---- the journal of sgt-tokenize, lists of files, arguments, names ----
def journal(number, hash, invalid=()): # `hash`: XXH3 of 24 of these numbers
    return json.dumps({"version": 3, "fingerprint": "d7f9b057243f9be1", "options": {"format": "auto"}, "begun": 1,
                       "checkpoint": [number] * 24, "xxh3": hash, "invalid": list(invalid)})
put("journal", "whole", journal(1, "2a1750de5c819d20", [[0, 17], [1, 0]]))
put("journal", "torn", journal(1, "2a1750de5c819d20")[:-20])
put("journal", "huge", journal(-1, "1455c7b8a9047a38", [[-1, -1]]))
put("journal", "new", journal(0, "0c2722aa3370cd20").replace('"begun": 1', '"begun": 0'))
put("list", "paths", "a\nb.jsonl\n\nd\n")
put("list", "linked", "d/up\n../in\n-\n@list\n")
put("list", "nul", b"a\0b\na\n")
put("list", "long", "a" * 4000 + "\n")
put("options", "all", "--count\n12\n--size=64MiB\n--real\n3e-4\n--percent=1%\n-t\ntext\n--choice\ntwo\n--list=a\n--list=b\n-f\nin\n--\n-out")
put("options", "numbers", "1.5M\n512k\n0x10\n1e3\n18446744073709551615\n18446744073709551616\n1.0000005M\n4GiB\n9007199254740993\n.5\n-1\ninf\nnan\n1%\n4096B\n51000005M")
put("options", "wrong", "--cuont\n12")
put("printable", "escapes", b"a\x1b[31m\x1b]0;title\x07\x9b31m\xc2\x9b\r\n\x7f\xe2\x80\xae\xff")
put("printable", "long", b"\xf0\x9f\x98\x80" * 300 + b"\x1b")
put("sampler", "some", bytes(range(1, 60)))
for i in range(5):
    put("sampler", "kind-%d" % i, bytes([0, 0, 0, 0, 0, 0, 0, i, 0, 0, 0, 0, 0, 1, 2, 3, 4 * (i % 2), i, 15] + [0, 40, 1, 0, 0, 9, 0, 3, 2, 1] + [0, 0, 0, 0, 9, 2]))
line = lambda step: '{"step":%d,"loss":1.5}\n' % step
put("log", "whole", "\x05" + "".join(map(line, range(7))))
put("log", "out-of-order", "\x05" + line(1) + line(0) + line(1) + "x\n" + line(3) + '{"step":-1}\n' + line(2**62) + line(4)[:-1])
put("log", "long", "\x02" + line(0) + " " * 3000 + line(1))
put("log", "nul", b"\x03" + line(0).encode() + b'{"step":1}\0\n' + line(2).encode())
