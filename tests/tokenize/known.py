#!/usr/bin/env python3
"""known.py FOLDER LEVEL...: are the ids of vocabularies in use those of tiktoken and of tokenizers, at each of these CPU
levels? FOLDER holds the wheels of litellm, llama-models, mistral-common and dashscope, which carry the ranks.

The text: this repository's, words of every script, every code point in many contexts, runs, random mixes of tokens,
and 10^7 bytes of which many are not UTF-8. tiktoken encodes it by its own or the models' own patterns, and tokenizers by
a tokenizer.json that is built here from the ranks as transformers builds it; sgt reads that file, too. Special tokens
must have the ids that tiktoken and the models give them. Prints a line for each vocabulary and way, and exits with 1 if
an id differs."""
import base64
import glob
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import unicodedata
import zipfile

import numpy as np
import tiktoken
import tiktoken_ext.openai_public
import tokenizers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QWEN = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"""
        r"""\s+(?!\S)|\s+""")
QWEN_SPECIAL = "<|endoftext|>", "<|im_start|>", "<|im_end|>"  # those that all versions of Qwen have
CACHES = "litellm/litellm_core_utils/tokenizers/"
# name: wheel, file in it, end of text, number of special tokens that are known by name, tokenizer.json too?
KNOWN = {
    "cl100k": ("litellm", CACHES + "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 100257, 5, True),
    "o200k": ("litellm", CACHES + "fb374d419588a4632f3f557e76b4b70aebbca790", 199999, 2, True),
    "llama3": ("llama_models", "llama_models/llama3/tokenizer.model", 128001, 5, True),
    "llama4": ("llama_models", "llama_models/llama4/tokenizer.model", 200001, 8, False),
    "tekken": ("mistral_common", "mistral_common/data/tekken_240911.json", 2, 0, False),
    "qwen": ("dashscope", "dashscope/resources/qwen.tiktoken", 151643, 3, False),
}
FUZZ, FUZZED = 100, 100000  # files, and bytes of each
folder, *levels = sys.argv[1:]


def reference(name, wheel, ranks):
    """Return tiktoken's encoding, with the pattern and the special tokens of tiktoken or of the model."""
    if wheel == "litellm":
        tiktoken_ext.openai_public.load_tiktoken_bpe = lambda *a, **k: ranks
        return tiktoken.Encoding(**tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS[name + "_base"]())
    if wheel == "llama_models":
        sys.path.insert(0, glob.glob(f"{folder}/{wheel}-*.whl")[0])
        tokenizer = __import__(f"llama_models.{name}.tokenizer", fromlist=["Tokenizer"])
        return tokenizer.Tokenizer(pathlib.Path(name)).model
    special = {t: len(ranks) + i for i, t in enumerate(QWEN_SPECIAL)}
    return tiktoken.Encoding(name, pat_str=QWEN, mergeable_ranks=ranks, special_tokens=special)


# ---- text ----


def texts(odd):
    """Texts whose ids are compared, each as one document. odd: tokens, to be mixed."""
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    mixed, letters = points[:], {}
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
    for c in points:  # the first word of its name tells a letter's script
        if unicodedata.category(c)[0] in "LMN":
            letters.setdefault(unicodedata.name(c, "").split(" ")[0], []).append(c)
    for of in letters.values():
        yield "".join("".join(r.choices(of, k=r.randint(1, 9))) + r.choice([" ", " ", ", ", ".\n"]) for _ in range(500))
    alphabets = ["abcdefghij 'stlRE\n\t0123", "\u4e2d\u6587\u65e5\u672c\u8a9e\u306e\u30ab\u30bf", "\u0410\u0411\u0432\u0433\u0434 ",
                 points, odd, odd]
    for _ in range(200):
        yield "".join(r.choice(r.choice(alphabets)) for _ in range(5000))


def fuzz(documents):
    """Byte strings: text with bytes changed, left out and put in, or none but random bytes."""
    r = random.Random(2)
    text = "".join(documents).encode()
    for i in range(FUZZ):
        at = r.randrange(len(text) - FUZZED)
        some = bytearray(text[at : at + FUZZED] if i % 4 else r.randbytes(FUZZED))
        for _ in range(FUZZED // r.choice([5, 50, 5000])):
            at = r.randrange(FUZZED)
            some[at : at + r.randint(0, 4)] = r.randbytes(r.randint(0, 4))
        yield bytes(some[:FUZZED]).ljust(FUZZED, b"\xe4")


def without_new(text, since=unicodedata):
    """Leave out code points that `since` does not know: other libraries may know what they are, or not."""
    return "".join(c for c in text if since.category(c) != "Cn")


# ---- other formats and programs ----


def huggingface(encoding, ranks):
    """Return a tokenizer.json as a dictionary, as transformers' TikTokenConverter makes one, with all ways to merge two
    tokens to another."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in visible)
    shown = {**{b: chr(b) for b in visible}, **{b: chr(256 + i) for i, b in enumerate(others)}}

    def show(token):
        return "".join(map(shown.__getitem__, token))

    merges = []
    for token in sorted(ranks, key=ranks.get):
        cuts = ((token[:i], token[i:]) for i in range(1, len(token)))
        ways = sorted((ranks[a], ranks[b], a, b) for a, b in cuts if a in ranks and b in ranks)
        merges += [[show(a), show(b)] for _, _, a, b in ways]
    special = encoding._special_tokens
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    # Oniguruma reads {1,3}+ as a repeat, and $ as the end of a line
    pattern = encoding._pat_str.replace(r"\p{N}{1,3}+", r"(?>\p{N}{1,3})").replace("$", r"\z")
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": None,
            "added_tokens": [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True} for t, i in special.items()],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
                      "vocab": {**{show(t): i for t, i in ranks.items()}, **special}, "merges": merges}}


def ids_of(vocabulary, inputs, *options):
    """Return the header that sgt-tokenize writes, and the ids of each document."""
    command = ["sgt-tokenize", "--quiet", "--force", "--binary", "keep", *options, "--vocab", vocabulary, *inputs, "out"]
    subprocess.run(command, check=True)
    header = np.fromfile("out/train_000000.bin", "<u4", 8)
    assert (header[0] == 20240801 and header[1] == 7) == (header[4] > 65536)
    ids = np.memmap("out/train_000000.bin", "<u4" if header[4] > 65536 else "<u2", "r", offset=1024)
    starts = np.fromfile("out/train_000000.idx", "<u8").tolist()
    assert all(ids[at] == header[5] for at in starts)
    return header, [ids[a + 1 : b] for a, b in zip(starts, starts[1:] + [len(ids)])]


failed = False


def compare(what, got, wanted, wrong=0):
    """Print how many documents have other ids than they should. wrong: faults found before."""
    global failed
    bad = wrong + sum(not np.array_equal(g, w) for g, w in zip(got, wanted)) + (len(got) != len(wanted))
    failed = failed or bool(bad > 0)
    print(f"{what}: {sum(map(len, wanted))} ids of {len(wanted)} documents, {bad} differ", flush=True)


def with_tokenizers(name, encoding, ranks, documents, wanted):
    """Compare tokenizers with tiktoken, and sgt with both by the tokenizer.json."""
    about = huggingface(encoding, ranks)
    clean = [without_new(t) for t in documents]
    wanted = [w if t == c else encoding.encode_ordinary(c) for t, c, w in zip(documents, clean, wanted)]
    peer = tokenizers.Tokenizer.from_str(json.dumps(about))
    peer.encode_special_tokens = True
    parts = (clean[i : i + 20] for i in range(0, len(clean), 20))  # fewer objects at a time than of all texts
    got = [e.ids for part in parts for e in peer.encode_batch_fast(part, add_special_tokens=False)]
    compare(f"{name}, tokenizers and tiktoken", got, wanted)
    if name == "llama3":  # what is between the matches, which is nothing
        about["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed", invert=True)
    with open("tokenizer.json", "w", encoding="utf-8") as f:
        json.dump(about, f)
    with open("clean.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in clean)
    for vocabulary in name, "tokenizer.json":
        header, got = ids_of(vocabulary, ["clean.jsonl"])
        wrong = int(header[5]) != KNOWN[name][2]
        if vocabulary == "tokenizer.json":
            with open("out/tokenizer.json", encoding="utf-8") as f:
                of = {t["content"]: t["id"] for t in json.load(f)["added_tokens"]}
            wrong += sum(of.get(t["content"]) != t["id"] for t in about["added_tokens"])
        compare(f"{name} by {vocabulary}", got, wanted, wrong)


for name, (wheel, inside, eot, named, has_json) in KNOWN.items():
    with zipfile.ZipFile(glob.glob(f"{folder}/{wheel}-*.whl")[0]) as z, open(name, "wb") as f:
        f.write(z.read(inside))
    first, lines = 0, open(name, "rb").read()
    if name == "tekken":  # ids are those of 1,000 special tokens, and then ranks
        tekken, first = json.loads(lines), 1000
        ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in tekken["vocab"][: (1 << 17) - first]}
        encoding = tiktoken.Encoding(name, pat_str=tekken["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    else:
        ranks = {base64.b64decode(a): int(b) for a, b in map(bytes.split, lines.splitlines())}
        encoding = reference(name, wheel, ranks)
    odd = [t for t in (s.decode("utf-8", "ignore") for s in ranks) if t]
    documents = list(texts(odd))
    with open("documents.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in documents)
    shutil.rmtree("fuzz", ignore_errors=True)
    os.mkdir("fuzz")
    fuzzed = list(fuzz(documents))
    for i, some in enumerate(fuzzed):
        pathlib.Path(f"fuzz/{i:03}").write_bytes(some)
    documents += [some.decode("utf-8", "replace") for some in fuzzed]
    wanted = [np.array(encoding.encode_ordinary(t)) + first for t in documents]
    texts_of = {first + i: t for t, i in ranks.items()}
    for level in levels:
        options = ["--cpu", level, "--normalize", "none"]
        header, got = ids_of(name, ["documents.jsonl", "fuzz"], *options, "--invalid-utf8", "replace")
        with open("out/tokenizer.json", encoding="utf-8") as f:
            special = {t["content"]: t["id"] for t in json.load(f)["added_tokens"]}
        special = {t: i for t, i in special.items() if not t.startswith("<|unused_")}
        wrong = (int(header[5]) != eot) + (header[4] != first + encoding.n_vocab)
        if not first:
            wrong += len(special) != named or any(encoding._special_tokens[t] != i for t, i in special.items())
        compare(f"{name}, {level}", got, wanted, wrong)
        # bytes that are not UTF-8 are tokens, and come back
        _, got = ids_of(name, ["fuzz"], *options, "--threads", "1")
        kept = [np.array(g) for g in got] if level == levels[0] else kept
        wrong = sum(b"".join(map(texts_of.get, g.tolist())) != some for g, some in zip(got, fuzzed))
        compare(f"{name}, {level}, not UTF-8", got, kept, wrong)
    if has_json:
        with_tokenizers(name, encoding, ranks, documents, wanted)
clean = [without_new(t, unicodedata.ucd_3_2_0).replace("dsml:", "") for t in documents[:-FUZZ:3]]
with open("clean.jsonl", "w", encoding="utf-8") as f:
    f.writelines(json.dumps({"text": t}) + "\n" for t in clean)
for name, eot in ("deepseek", 1), ("anthropic", 0):  # files of Hugging Face's library
    with zipfile.ZipFile(glob.glob(f"{folder}/litellm-*.whl")[0]) as z, open(name + ".json", "wb") as f:
        f.write(z.read(CACHES + name + "_tokenizer.json"))
    peer = tokenizers.Tokenizer.from_file(name + ".json")
    peer.encode_special_tokens = True
    wanted = [peer.encode(t, add_special_tokens=False).ids for t in clean]
    header, got = ids_of(name + ".json", ["clean.jsonl"])
    compare(f"{name} by its tokenizer.json", got, wanted, int(header[5]) != eot)
sys.exit(failed)
