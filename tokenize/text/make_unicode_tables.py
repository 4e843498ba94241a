#!/usr/bin/env python3
"""Write tokenize/text/unicode_tables.c. Ask tiktoken (0.14.0, whose regex-syntax 0.8.11 knows Unicode 16.0) for the
class of every code point: a pattern of one class, applied to all code points, gives the characters of that class.
The build does not run this: the table is committed. python3 tokenize/text/make_unicode_tables.py > tokenize/text/unicode_tables.c"""
import tiktoken

BYTES = {bytes([i]): i for i in range(256)}
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def members(pattern):
    e = tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    return {ord(c) for i in range(0, len(SCALARS), 65536)
            for c in bytes(e.encode_ordinary("".join(map(chr, SCALARS[i:i + 65536])))).decode()}


def rows(values):
    return "\n".join("    " + " ".join(f"{v}," for v in values[i:i + 16]) for i in range(0, len(values), 16))


def bits(table, classes):
    """Return one bit per code point below U+0800, low bits first: 1 if its class is one of `classes`."""
    return [sum((table[at + i] in classes) << i for i in range(8)) for at in range(0, 0x800, 8)]


def put_blocks(name, index_name, table, bits):
    """Print a table with 8 / bits code points per byte, in blocks of 256 code points; equal blocks are stored once."""
    blocks, index, each = {}, [], 8 // bits
    for at in range(0, 0x110000, 256):
        packed = bytes(sum(table[at + i + j] << bits * j for j in range(each)) for i in range(0, 256, each))
        index.append(blocks.setdefault(packed, len(blocks)))
    assert len(blocks) <= 256
    print(f"const uint8_t {index_name}[0x1100] = {{\n{rows(index)}\n}};\n")
    print(f"const uint8_t {name}[][{256 // each}] = {{")
    for b in blocks:
        print("    {\n" + rows(b) + "\n    },")
    print("};\n")


def classified(*patterns):
    """Return for each code point the number, from 1, of the one pattern that matches it, or 0."""
    table = bytearray(0x110000)
    for value, pattern in enumerate(patterns, 1):
        for c in members(pattern):
            assert not table[c]
            table[c] = value
    return table


def main():
    assert tiktoken.__version__ == "0.14.0", "another tiktoken may follow another Unicode: think before you pin it"
    table = classified(r"\p{L}", r"\p{N}", r"\s")
    kinds = classified(r"\s", *(rf"\p{{{name}}}" for name in "N M Lu Lt Ll Lm Lo P S".split()))
    print("/* python3 tokenize/text/make_unicode_tables.py > tokenize/text/unicode_tables.c")
    print(" * The classes of unicode.h as tiktoken 0.14.0 has them: Unicode 16.0. */")
    print('#include "tokenize/text/unicode.h"\n')
    put_blocks("sgt_unicode_classes", "sgt_unicode_block", table, 2)
    put_blocks("sgt_unicode_kinds", "sgt_unicode_kind_block", kinds, 4)
    print(f"const uint8_t sgt_unicode_two_letter[256] = {{\n{rows(bits(table, {1}))}\n}};\n")
    print(f"const uint8_t sgt_unicode_two_rest[256] = {{\n{rows(bits(table, {2, 3}))}\n}};")


if __name__ == "__main__":
    main()
