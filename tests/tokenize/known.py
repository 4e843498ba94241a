#!/usr/bin/env python3
"""known.py FOLDER LEVEL...: are the ids of vocabularies in use those of tiktoken, at each of these CPU levels? FOLDER
holds the wheels of litellm, llama-models, mistral-common and dashscope, which carry the ranks. The text: this
repository's, every code point in many contexts, runs, and random mixes. Prints a line for each vocabulary and level;
exits with 1 if an id differs."""
import base64
import glob
import json
import os
import random
import subprocess
import sys
import zipfile

import numpy as np
import tiktoken

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# as in tiktoken_ext/openai_public.py, and in the models' own tokenizers
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"""
          r"""\s+(?!\S)|\s""")
O200K = "|".join([
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}""", r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""", r"""\s*[\r\n]+""", r"""\s+(?!\S)""", r"""\s+"""])
LLAMA = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"""
         r"""\s+(?!\S)|\s+""")
CACHES = "litellm/litellm_core_utils/tokenizers/"
# name: wheel, file in it, pattern, end of text
KNOWN = {
    "cl100k": ("litellm", CACHES + "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", CL100K, 100257),
    "o200k": ("litellm", CACHES + "fb374d419588a4632f3f557e76b4b70aebbca790", O200K, 199999),
    "llama3": ("llama_models", "llama_models/llama3/tokenizer.model", LLAMA, 128001),
    "llama4": ("llama_models", "llama_models/llama4/tokenizer.model", O200K, 200001),
    "tekken": ("mistral_common", "mistral_common/data/tekken_240911.json", None, 2),
    "qwen": ("dashscope", "dashscope/resources/qwen.tiktoken", LLAMA.replace("{1,3}", ""), 151643),
}
folder, *levels = sys.argv[1:]


def texts(odd):
    """Texts whose ids are compared, each as one document. odd: tokens, to be mixed."""
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    mixed = points[:]
    r = random.Random(1)
    r.shuffle(mixed)
    yield "".join(points)
    for between in "", " ", "a", "1", "'s", "\n":
        yield between.join(mixed[:200000])
    for path in glob.glob(ROOT + "/*/*.[ch1]") + glob.glob(ROOT + "/tokenize/*/*.c") + glob.glob(ROOT + "/tests/*/*.py"):
        with open(path, encoding="utf-8") as f:
            yield f.read()
    for run in "a", " ", "\n", "=", "0", "\u00e9", "\u4e2d", "\U0001f600", "ab", ".:":
        for n in 1, 7, 8, 15, 16, 63, 64, 65, 126, 127, 512, 513, 20000:
            yield run * n
    alphabets = ["abcdefghij 'stlRE\n\t0123", "\u4e2d\u6587\u65e5\u672c\u8a9e\u306e\u30ab\u30bf", "\u0410\u0411\u0432\u0433\u0434 ",
                 points, odd, odd]
    for _ in range(200):
        yield "".join(r.choice(r.choice(alphabets)) for _ in range(5000))


def ids_of(vocabulary, level, documents):
    """The ids that sgt-tokenize gives each document, of one file of JSONL."""
    with open("documents.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in documents)
    options = ["--quiet", "--force", "--cpu", level, "--normalize", "none", "--vocab", vocabulary]
    command = ["sgt-tokenize", *options, "documents.jsonl", "out"]
    subprocess.run(command, check=True)
    header = np.fromfile("out/train_000000.bin", "<u4", 8)
    assert header[0] == 20240801 and header[1] == 7
    ids = np.memmap("out/train_000000.bin", "<u4", "r", offset=1024)
    starts = np.fromfile("out/train_000000.idx", "<u8").tolist()
    assert all(ids[at] == header[5] for at in starts)
    return int(header[5]), [ids[a + 1 : b] for a, b in zip(starts, starts[1:] + [len(ids)])]


failed = False
for name, (wheel, inside, pattern, eot) in KNOWN.items():
    with zipfile.ZipFile(glob.glob(f"{folder}/{wheel}-*.whl")[0]) as z, open(name, "wb") as f:
        f.write(z.read(inside))
    first, lines = 0, open(name, "rb").read()
    if name == "tekken":  # ids are those of 1,000 special tokens, and then ranks
        tekken, first = json.loads(lines), 1000
        pattern = tekken["config"]["pattern"]
        ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in tekken["vocab"][: (1 << 17) - first]}
    else:
        ranks = {base64.b64decode(a): int(b) for a, b in map(bytes.split, lines.splitlines())}
    reference = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    odd = [t for t in (s.decode("utf-8", "ignore") for s in ranks) if t]
    documents = list(texts(odd))
    wanted = [[first + i for i in reference.encode_ordinary(t)] for t in documents]
    for level in levels:
        got_eot, got = ids_of(name, level, documents)
        bad = sum(g.tolist() != w for g, w in zip(got, wanted)) + (len(got) != len(wanted)) + (got_eot != eot)
        failed |= bad > 0
        print(f"{name}, {level}: {sum(map(len, wanted))} ids of {len(documents)} documents, {bad} differ")
sys.exit(failed)
