#!/usr/bin/env python3
"""Writes tests/data/vocab/regex.json: where Hugging Face's tokenizers split TEXT by patterns that
PCRE2 would interpret differently, and by others that both interpret alike.

    make_regex.py (needs tokenizers from PyPI)

The file is [{"text": TEXT}, {"regex": PATTERN, "ends": [...]}, ...]; ends are byte offsets in TEXT.

Made with tokenizers 0.23.3 (Oniguruma 6.9.10). Not part of the build."""
import json
import os

from tokenizers import Regex, pre_tokenizers

TEXT = ("It's what \u017f and \u212a do:\n  def f(x):\n\treturn 'a1b22c333'\v\r\n\n$5.00 {x,y} [a] ^b \u00a0\u2028"
        "\u00df SS ss \u00c9t\u00e9 \u4e2d\u6587 \u0661\u0662 e\u0308 aaaaa 0xBEEF\n")
REGEXES = [
    r"^ *\p{L}+", r"\S+$", r"$", r"^", r"\A\p{L}+", r"\s\z", r"\s\Z", r"^.*$", r"(?m).+", r"(?m:^.{3})x?", r"(?:^|a)b?\S",
    r"\h+", r"\H+", r"[\h:]+", r"[^\h]+", r"\v+", r"[\v\n]+",
    r"a{1,2}+", r"(?:a{2}+|\d)+", r"a{,2}b?\d", r"a{2,}", r"\d{1,3}?", r"a++", r"a*+\d", r"(?>a|aa)\d?",
    r"\u0041\x{e9}|\u4e2d|\x49", r"\p{^L}+", r"[\p{L}\-']+", r"[^\S\n]+", r"[a-f\d]+|[\n-\r]", r"\$|\[|\{x",
    r"(?i:'s|'t|'re)|\p{L}+", r"(?i)[a-z]+", r"(?i:k)|(?i:s)", r"(?<=\n)\s*\S", r"(?<!a)a", r"(?=\d)\S",
    r"\p{Lu}\p{Ll}*|\p{M}|\p{Nd}+", r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++"
    r"[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
]


def main():
    entries = [{"text": TEXT}]
    for regex in REGEXES:
        split = pre_tokenizers.Split(Regex(regex), "isolated")
        ends = [len(TEXT[:end].encode()) for _, (_, end) in split.pre_tokenize_str(TEXT)]
        entries.append({"regex": regex, "ends": ends})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocab", "regex.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("[" + ",\n ".join(json.dumps(e) for e in entries) + "]\n")


if __name__ == "__main__":
    main()
