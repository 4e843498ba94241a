#!/usr/bin/env python3
"""Writes tests/data/vocab/normalize.txt: the normal forms that Python's unicodedata gives for every
code point that it knows. It was run by Python 3.11, which has Unicode 14: make_normalize.py

There is a line for each range of assigned code points without surrogates: first, last, and two
CRC-32 of UTF-8 text, in NFC and in NFKC. The text has, for each code point of the range, each of
CONTEXTS with the code point in place of @, each followed by a newline. Not part of the build."""
import os
import unicodedata
import zlib

# The same list, in the same order, is in tests/tokenize/test_normalize.c; @ stands for the code
# point.
CONTEXTS = ["@", "a@", "@\u0301", "\u1100@", "@\u1161\u11A8", "e\u0323@\u0302", "\u4e2d@\u0345", "\uFF76@", "@@"]


def assigned():
    first = None
    for cp in range(0x110001):
        known = cp < 0x110000 and unicodedata.category(chr(cp)) not in ("Cn", "Cs")
        if known and first is None:
            first = cp
        if not known and first is not None:
            yield first, cp - 1
            first = None


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocab", "normalize.txt")
    with open(path, "w") as f:
        for first, last in assigned():
            text = [c.replace("@", chr(cp)) for cp in range(first, last + 1) for c in CONTEXTS]
            crcs = [zlib.crc32("".join(unicodedata.normalize(form, t) + "\n" for t in text).encode())
                    for form in ("NFC", "NFKC")]
            f.write(f"{first:x} {last:x} {crcs[0]:08x} {crcs[1]:08x}\n")


if __name__ == "__main__":
    main()
