#!/usr/bin/env python3
"""Writes the expected results of tests/tokenize, as tiktoken 0.14.0 gives them, to
tests/data/tokenize:

  blocks.txt   for each block of 256 code points: CRC-32 of the ids of each in each of CONTEXTS
  cases.txt    whole cases: hexadecimal UTF-8, a tab, the ids
  long.txt     a long run per line: repetitions, hexadecimal UTF-8, number of ids, CRC-32 of the ids
  utf8.txt     for each first byte of LEADS: CRC-32 of the text that replaces ill-formed strings of
               four bytes

make_tokenize_vectors.py needs tiktoken, and openai-whisper for GPT-2's ranks; it takes five
minutes. make_tokenize_vectors.py --classes prints the numbers with which test_vectors.c checks the
table of character classes. Not part of the build."""
import base64
import importlib.util
import itertools
import os
import random
import sys
import zlib

import tiktoken

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenize")
# GPT-2's pattern, as in tiktoken_ext/openai_public.py
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""

# The same list, in the same order, is in tests/tokenize/test_vectors.c; @ stands for the code
# point.
CONTEXTS = [
    "@", " @", "  @", "a@", "@a", "1@1", "'@", "@'s", "!@!", "\n@", "@ ", "@  @", "e@\u0301", " '@@", "@\n\n@",
    "\u4e2d@"
]
LEADS = [
    0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF,
    0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF
]


def encoding():
    path = os.path.join(os.path.dirname(importlib.util.find_spec("whisper").origin), "assets", "gpt2.tiktoken")
    with open(path, "rb") as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}
    return tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})


def packed(ids):
    return b"".join(i.to_bytes(2, "little") for i in ids)


def crc(ids):
    return f"{zlib.crc32(packed(ids)):08x}"


def blocks(e):
    for block in range(0x1100):
        if 0xD8 <= block < 0xE0:
            continue  # surrogates cannot be encoded
        texts = [c.replace("@", chr(block << 8 | i)) for i in range(256) for c in CONTEXTS]
        yield f"{block:04x} {crc(i for ids in e.encode_ordinary_batch(texts, num_threads=2) for i in ids)}"


SPACES = [
    " ", "\n", "\t", "\r", "\x0b", "\x0c", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f",
    "\u3000"
]
NOT_SPACES = ["\x1c", "\x1f", "\u180e", "\u200b", "\u2060", "\ufeff", "\x00"]
CONTRACTIONS = [q + c for q in ("'", "\u2019", "`") for c in (
    "s", "t", "m", "d", "ll", "ve", "re", "S", "T", "M", "D", "LL", "Ll", "lL", "VE", "Ve", "RE", "rE", "l", "v", "r",
    "x", "\u017f", "", "'", "1", " s", "\ns"
)]
SENTENCES = [
    "", "Hello, world!", "Hello world  how\n\nare you\n", "I've they'll WE'RE don't DON'T it's'd",
    "x'sure ''s '''t 's's 1's's !'s 's", "def f(x):\n    return x ** 2  # ok\n\tpass\n",
    "https://example.org/a?b=c&d=%20#e", "3.14159 1,000,000 0x1F 1e-9 \u00bd \u2163 \u0663\u0664 \u4e09",
    "caf\u00e9 cafe\u0301 nai\u0308ve \u00c5 A\u030a z\u0335\u0321\u0323",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002 \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 "
    "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0393\u03b5\u03b9\u03ac",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea "
    "\U0001f44d\U0001f3fd \u2764\ufe0f 1\ufe0f\u20e3",
    "<|endoftext|> <|endoftext|>x <|im_start|>", "\ufffd \ufffd\ufffd a\ufffdb \ufffd's", "\x00\x01\x02 \x7f",
    "a\u200bb \u2060 \ufeffBOM", "\U00016d40\U00010d4e\U0001e5d0 \U00010d40",
    "a\u0300\u0301\u0302\u0303 \u0300 \u0300x", " " * 3 + "a" + " " * 4 + "\n" * 3 + " b", "\r\n\r\n  x\r\n",
    "---===***___~~~", " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "A" * 40 + "b" * 33 + "9" * 50, " " + "\u3042" * 30,
    "\u0e01" * 40, "SolidGoldMagikarp  petertodd", "\u2028\u2029a", "e\u0301\u0301's",
]


def cases(e):
    texts = list(SENTENCES)
    for n in (1, 2, 3):
        for s in itertools.product(SPACES[:6] + ["\xa0", "\u3000"], repeat=n):
            texts += ["".join(s), "a" + "".join(s) + "b"] if n < 3 else ["x" + "".join(s) + "1"]
    for s in SPACES + NOT_SPACES:
        texts += [s, s + "a", "a" + s, f"a{s}{s}b", f" {s}a", f"{s} a", f"{s}{s}", f"1{s}!{s}?", f"'{s}s", f"{s}'s"]
    for c in CONTRACTIONS:
        texts += [c, "I" + c, " " + c, c + "x", "1" + c + "e", "!" + c, "\n" + c, c + c]
    rng = random.Random(20240520)
    alphabet = SPACES + NOT_SPACES + list("'''''sdmtlvreSLVR a1!_.")
    alphabet += ["\u00e9", "\u0301", "\u4e2d", "\u0e01", "\u0663", "\u00bd", "\U0001f600", "\u200d", "\ufffd"]
    texts += ["".join(rng.choices(alphabet, k=rng.randrange(1, 24))) for _ in range(1500)]
    for text in dict.fromkeys(texts):
        yield f"{text.encode().hex()}\t{' '.join(map(str, e.encode_ordinary(text)))}"


def long_runs(e):
    rng = random.Random(1)
    letters = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=3000))
    thai = "".join(chr(0x0E01 + rng.randrange(46)) for _ in range(500))
    units = ("a", "=", "0", " ", "-", "\n", "\t", "\u00e9", "\u4e2d", "\U0001f600", "ab", " a", "A")
    runs = [(n, u) for n in (65, 127, 128, 129, 1000, 4097, 65536) for u in units]
    runs += [(1_000_000, u) for u in "a=0 _-"]
    runs += [(100, letters), (3, thai), (300, thai), (20000, "\u0e01\u0e32"), (30000, "\u65e5\u672c"), (100_000, "=-")]
    for times, unit in runs:
        ids = e.encode_ordinary(unit * times)
        yield f"{times} {unit.encode().hex()} {len(ids)} {crc(ids)}"


def ill_formed():
    """Yield CRCs of decoded ill-formed strings. Python's decoder replaces maximal ill-formed
    subparts, as Unicode recommends."""
    for first in LEADS:
        value = 0
        for rest in itertools.product(LEADS, repeat=3):
            value = zlib.crc32(bytes((first, *rest)).decode("utf-8", "replace").encode(), value)
        yield f"{first:02x} {value:08x}"


def classes():
    """Print the character classes, found by asking tiktoken about one code point at a time: does
    the class's pattern match it? tokenize/text/make_unicode_tables.py works differently."""
    table = bytearray(0x110000)
    ranks = {bytes([i]): i for i in range(256)}
    for value, pattern in ((1, r"\p{L}"), (2, r"\p{N}"), (3, r"\s")):
        e = tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for c in range(0x110000):
            if not 0xD800 <= c < 0xE000 and e.encode_ordinary(chr(c)):
                table[c] = value
    letters, numbers, spaces = (table.count(v) for v in (1, 2, 3))
    print(f"{zlib.crc32(table):08x}: {letters} letters, {numbers} numbers, {spaces} white space")


def main():
    assert tiktoken.__version__ == "0.14.0", "the frozen vectors are those of tiktoken 0.14.0"
    if sys.argv[1:] == ["--classes"]:
        return classes()
    e = encoding()
    os.makedirs(HERE, exist_ok=True)
    for name, lines in (("blocks", blocks(e)), ("cases", cases(e)), ("long", long_runs(e)), ("utf8", ill_formed())):
        text = "".join(line + "\n" for line in lines)
        with open(os.path.join(HERE, name + ".txt"), "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
