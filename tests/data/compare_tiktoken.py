#!/usr/bin/env python3
"""Compares sgt-tokenize with tiktoken, id for id (tiktoken with GPT-2's ranks from
openai-whisper). Not part of the build.

compare_tiktoken.py OUT INPUT...
    OUT was made from the same INPUTs (UTF-8 text files, or folders of them) with --split none and
    no other option that changes tokens. Every document is encoded again, and all ids and the order
    of the documents are compared.
compare_tiktoken.py --mix BYTES [--seed N] [--cpu LEVEL] [--bin build/bin] INPUT...
    Generate this many bytes of text (such as 64M or 1G), 64 MB at a time, and compare. The text
    mixes parts of INPUTs, every code point in varying context, runs of one character, white space,
    contractions, random words, and INPUTs with some characters replaced. Each 64 MB are tokenized
    at a random CPU level (or at LEVEL), with a random number of threads. They have every code point
    at least once.

The last line has the numbers of bytes, documents, tokens and differences. The exit code is 1 if
there is a difference.

2026-11-21, EPYC Zen 4: --mix 192M --seed 7, 256M 11, 200M 21 --cpu auto (AVX-512), 160M 22
--cpu avx2, 128M 31 --cpu auto, and 210 MB of files as they are (English, code, many scripts):
792,522,537 tokens, 0 differences."""
import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

from make_tokenize_vectors import CONTEXTS, encoding

EOT = 50256
PIECE = 64 << 20


def files(inputs):
    """Yield (path, its path in sources.jsonl) in sgt-tokenize's order: within a folder, by the
    bytes of the relative path."""
    for top in inputs:
        if not os.path.isdir(top):
            yield top, os.path.basename(top)
            continue
        found = [os.path.join(d, f) for d, _, names in os.walk(top) for f in names]
        for path in sorted(found, key=lambda p: os.fsencode(os.path.relpath(p, top))):
            yield path, os.path.relpath(path, top)


def start():
    global ENCODING
    ENCODING = encoding()


def encode(path):
    with open(path, newline="", encoding="utf-8") as f:
        return np.array([EOT] + ENCODING.encode_ordinary(f.read()), dtype="<u2"), os.path.getsize(path)


def compare(out, inputs, pool):
    """Return (bytes, documents, tokens by tiktoken, tokens by sgt-tokenize, differences)."""
    inputs = list(files(inputs))
    with open(os.path.join(out, "manifest.json")) as f:
        shards = [s["file"] for s in json.load(f)["shards"]]
    with open(os.path.join(out, "sources.jsonl")) as f:
        sources = [json.loads(line)["path"] for line in f]
    assert sources == [name for _, name in inputs], "not the same files in the same order"
    ours = np.concatenate([np.fromfile(os.path.join(out, s), dtype="<u2", offset=1024) for s in shards])
    at = size = wrong = 0
    for (path, _), (ids, n) in zip(inputs, pool.imap(encode, [p for p, _ in inputs], chunksize=32)):
        if not np.array_equal(ours[at:at + len(ids)], ids):
            wrong += 1
            print(f"{path}: differs within tokens {at} to {at + len(ids)}")
        at, size = at + len(ids), size + n
    return size, len(inputs), at, len(ours), wrong + (at != len(ours))


class Mixture:
    """An endless text, the same for the same seed and inputs."""

    def __init__(self, inputs, seed):
        self.random = random.Random(seed)
        self.texts = []
        for path, _ in self.random.sample(found := [f for f in files(inputs) if os.path.isfile(f[0])], min(len(found), 400)):
            with open(path, "rb") as f:
                f.seek(max(0, self.random.randrange(os.path.getsize(path) + 1) - (1 << 20)))
                self.texts.append(f.read(1 << 20).decode("utf-8", "replace"))
        self.texts = [t for t in self.texts if t] or ["no text"]
        self.point = self.random.randrange(0x110000)
        self.pieces = [self.stretch] * 12 + [self.changed] * 3 + [self.points] * 3 + [
            self.run, self.spaces, self.contractions, self.word, self.digits]

    def stretch(self):
        text = self.random.choice(self.texts)
        at = self.random.randrange(len(text))
        return text[at:at + int(self.random.expovariate(1 / 2000)) + 1]

    def changed(self):
        text = list(self.stretch())
        for _ in range(1 + len(text) // 20):
            text[self.random.randrange(len(text))] = self.character()
        return "".join(text)

    def character(self):
        kind = self.random.randrange(4)
        if kind == 0:
            return chr(self.random.randrange(128))
        return self.random.choice(self.random.choice(self.texts)) if kind < 3 else chr(self.random.randrange(0xD800))

    def points(self):
        """Return the next thousand code points, each within a random one of CONTEXTS."""
        made = []
        for _ in range(1000):
            self.point = (self.point + 1) % 0x110000
            if not 0xD800 <= self.point < 0xE000:
                made.append(self.random.choice(CONTEXTS).replace("@", chr(self.point)))
        return self.random.choice(["", " ", "\n"]).join(made)

    def run(self):
        return self.character() * int(self.random.expovariate(1 / 500))

    def spaces(self):
        return "".join(self.random.choices(" \n\t\r\u00a0\u2003\u3000\u0085\x0b\u180e", (9, 4, 2, 1, 1, 1, 1, 1, 1, 1),
                                           k=self.random.randrange(1, 40)))

    def contractions(self):
        return "".join(self.random.choices(["'", "s", "t", "re", "ve", "m", "ll", "d", " ", "S", "'s", "\u2019", "x"],
                                           k=self.random.randrange(1, 30)))

    def word(self):
        letters = self.random.choice(["etaoinshrdlu", "abcdefghijklmnopqrstuvwxyzABC", "\u0e01\u0e32\u0e23\u0e19",
                                      "=-*_#"])
        return "".join(self.random.choices(letters, k=int(self.random.expovariate(1 / 40)) + 1)) + " "

    def digits(self):
        return "".join(self.random.choices("0123456789.,\u0663\u00bd", k=self.random.randrange(1, 60)))

    def document(self):
        wanted, made, size = 10 ** self.random.uniform(0, 5.8), [], 0
        while size < wanted:
            made.append(self.random.choice(self.pieces)())
            size += len(made[-1])
        return "".join(made)


def mix(options):
    left = int(float(options.mix[:-1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[options.mix[-1]]) \
        if options.mix[-1] in "kMG" else int(options.mix)
    mixture, sums = Mixture(options.paths, options.seed), [0] * 5
    levels = [options.cpu] if options.cpu else ["auto", "plain", "avx2"]
    with multiprocessing.Pool(2, start) as pool:
        while left > 0:
            with tempfile.TemporaryDirectory() as folder:
                text, out, size, n = os.path.join(folder, "in"), os.path.join(folder, "out"), 0, 0
                os.mkdir(text)
                while size < min(left, PIECE):
                    document = mixture.document().encode()
                    with open(os.path.join(text, f"{n:06d}"), "wb") as f:
                        f.write(document)
                    size, n = size + len(document), n + 1
                threads, level = mixture.random.randrange(1, 5), mixture.random.choice(levels)
                subprocess.run([os.path.join(options.bin, "sgt-tokenize"), "--quiet", "--threads", str(threads),
                                "--cpu", level, "--shard-tokens", "3M", "--format", "text", text, out], check=True)
                result = compare(out, [text], pool)
            print(f"  {result[0]} bytes, {result[1]} documents, --cpu {level} --threads {threads}: "
                  f"{result[4]} differences", flush=True)
            sums = [a + b for a, b in zip(sums, result)]
            left -= size
    return sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mix")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu")
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()
    if options.mix:
        sums = mix(options)
    else:
        with multiprocessing.Pool(2, start) as pool:
            sums = compare(options.paths[0], options.paths[1:], pool)
    print("{} bytes, {} documents, {} tokens by tiktoken, {} by sgt-tokenize, {} differences".format(*sums))
    return 1 if sums[4] else 0


if __name__ == "__main__":
    sys.exit(main())
