#!/usr/bin/env python3
"""Writes tests/data/vocab/rules.json: the ids that tiktoken gives for short texts, and where
Hugging Face's tokenizers split them, by the rules of tokenize/text/split.h.

    make_rules.py (needs tokenizers and tiktoken from PyPI)

{"rules": [{"name": NAME, "regex": PATTERN}, ...],
 "texts": [{"text": TEXT, "ids": [[...], ...], "ends": [[...], ...]}, ...]}

ids and ends have one list for each rule. ids: from tiktoken's Encoding with ranks.tiktoken. ends:
byte offsets in TEXT; those of cl100k are empty, because Hugging Face's library interprets that
pattern differently.

Made with tokenizers 0.23.3 (Oniguruma 6.9.10) and tiktoken 0.14.0. Not part of the build."""
import json
import os
import random

import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Regex, pre_tokenizers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocab")
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
NANOCHAT = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
            r"\s+(?!\S)|\s+")


def pattern_file(name):
    with open(os.path.join(HERE, f"{name}.pattern"), newline="") as f:
        return f.read()


RULES = [("cl100k", pattern_file("cl100k")), ("o200k", pattern_file("o200k")), ("llama3", LLAMA3),
         ("qwen2", LLAMA3.replace("{1,3}", "")), ("nanochat", NANOCHAT), ("minbpe", NANOCHAT.replace("{1,2}", "{1,3}"))]
BITS = [" ", " ", "  ", "\n", "\n\n", "\r\n", "\t", "\x85", "\xa0", "\u2028", "\u3000", "'", "'", "'s", "'S", "'\u017f",
        "'ll", "'LL", "'vE", "'re", "'d", "'l", "'x", "a", "b", "the", "The", "THE", "McX", "x", "A", "ZZ", "\u00e9",
        "\u00c9", "\u01c5", "\u02b0", "\u00aa", "\u4e2d", "\u6587", "\u0301", "\u0e31", "\u0939\u093f", "1", "23", "456",
        "7890", "\u0663", "\u00bd", "\u2163", "/", "//", ".", "!", "...", "-", "(", "\ufffd", "\U0001f600", "\U0001d400",
        "\U0001d41a", "\u17ff", "\U00016d40", "\U0001e5d0"]


def texts():
    yield "I'm HERE, they'LL say: \"it'S 12345 or \u0661\u0662\u0663\u0664?\"\r\n\r\n  (see //a/b/) \n\t'tis caf\u00e9 CAFE\u0301s\n "
    yield "  \n \n  x  \n"
    yield "getHTTPResponse XMLHttpRequest iPhone's \u00c9COLE\u4e2dABC\u4e2dABCdef \u0301x \u0301AB !\n/a !\n/-x '\u017fo\n\n"
    rng = random.Random(20)
    for i in range(60):
        bits = BITS if i % 3 else rng.sample(BITS, 5)
        yield "".join(rng.choice(bits) for _ in range(rng.randrange(2, 30)))


def main():
    ranks = load_tiktoken_bpe(os.path.join(HERE, "ranks.tiktoken"))
    encodings = [tiktoken.Encoding(name, pat_str=regex, mergeable_ranks=ranks, special_tokens={}) for name, regex in RULES]
    splits = [None if name == "cl100k" else pre_tokenizers.Split(Regex(regex), "isolated") for name, regex in RULES]
    rows = []
    for text in texts():
        ends = [[len(text[:end].encode()) for _, (_, end) in s.pre_tokenize_str(text)] if s else [] for s in splits]
        rows.append({"text": text, "ids": [e.encode_ordinary(text) for e in encodings], "ends": ends})
    with open(os.path.join(HERE, "rules.json"), "w", encoding="utf-8") as f:
        f.write('{"rules": [\n' + ",\n".join(json.dumps({"name": n, "regex": r}) for n, r in RULES))
        f.write('],\n"texts": [\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "]}\n")


if __name__ == "__main__":
    main()
