#!/usr/bin/env python3
"""Writes tests/data/vocab/regex.json: where Hugging Face's tokenizers split TEXT by the patterns that
tokenize/text/pattern.c spells for that library, or knows from its files, beside those of rules.json.

    make_regex.py (needs tokenizers from PyPI)

The file is [{"text": TEXT}, {"regex": PATTERN, "ends": [...]}, ...]; ends are byte offsets in TEXT. A list of patterns
splits one after the other.

Made with tokenizers 0.23.3 (Oniguruma 6.9.10). Not part of the build."""
import json
import os

from tokenizers import Regex, pre_tokenizers

TEXT = ("It's what \u017f and \u212a do:\n  def f(x):\n\treturn 'a1b22c333'\v\r\n\n$5.00 {x,y} [a] ^b \u00a0\u2028"
        "\u00df SS ss \u00c9t\u00e9 \u4e2d\u6587 \u0661\u0662 e\u0308 12345678 0xBEEF they'LL \n\n "
        "\u30ab\u30fc\u30fb\u30fbx  \u30021  \u3042 \U0001fae8x \u4e2d-\u6587\t7")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
    .replace(r"\r\n", "\r\n") + "\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]
REGEXES = [
    r"(?m).+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|"
    r"\s+(?!\S)|\s",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    DEEPSEEK,
]


def main():
    entries = [{"text": TEXT}]
    for regex in REGEXES:
        steps = regex if isinstance(regex, list) else [regex]
        split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(step), "isolated") for step in steps])
        ends = [len(TEXT[:end].encode()) for _, (_, end) in split.pre_tokenize_str(TEXT)]
        entries.append({"regex": regex, "ends": ends})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocab", "regex.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("[" + ",\n ".join(json.dumps(e) for e in entries) + "]\n")


if __name__ == "__main__":
    main()
