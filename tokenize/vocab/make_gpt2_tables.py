#!/usr/bin/env python3
# python3 tokenize/vocab/make_gpt2_tables.py: write tokenize/vocab/gpt2.tables from gpt2.bpe. The file holds what takes
# longest to compute from the merges, so that programs start at once. Little-endian 16-bit numbers:
#
#   50,000 pairs   the two ids that merge n (from 0) joins; they become id 256 + n
#   8,192 factors  of the perfect hash of those pairs (vocab.h), for 2^17 slots
#
# tests/tokenize/test_vocab.c compares a vocabulary made of them with the one that vocab.c makes from gpt2.bpe.
import os
import struct

HASH, GROUPS, SLOTS_LOG = 0x9E3779B1, 8192, 17
here = os.path.dirname(os.path.abspath(__file__))


def printable(b):
    return 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE


def merges():
    order = [b for b in range(256) if printable(b)] + [b for b in range(256) if not printable(b)]
    others = [b for b in range(256) if not printable(b)]
    ids = {chr(b if printable(b) else 0x100 + others.index(b)): i for i, b in enumerate(order)}
    pairs = []
    for line in open(os.path.join(here, "gpt2.bpe"), encoding="utf-8").read().splitlines()[1:]:
        left, right = line.split(" ")
        pairs.append((ids[left], ids[right]))
        ids[left + right] = 255 + len(pairs)
    return pairs


def factors(pairs):
    groups = [[] for _ in range(GROUPS)]
    for left, right in pairs:
        h = (left << 16 | right) * HASH & 0xFFFFFFFF
        groups[h >> 19].append(h)
    chosen, taken = [1] * GROUPS, bytearray(1 << SLOTS_LOG)
    for g in sorted(range(GROUPS), key=lambda g: -len(groups[g])):  # a stable sort: groups of equal size stay in order
        for factor in range(1, 65536, 2):
            slots = [(h * factor & 0xFFFFFFFF) >> (32 - SLOTS_LOG) for h in groups[g]]
            if len(set(slots)) == len(slots) and not any(taken[s] for s in slots):
                break
        else:
            raise SystemExit("no factor for group %d" % g)
        chosen[g] = factor
        for s in slots:
            taken[s] = 1
    return chosen


pairs = merges()
numbers = [i for p in pairs for i in p] + factors(pairs)
with open(os.path.join(here, "gpt2.tables"), "wb") as f:
    f.write(struct.pack("<%dH" % len(numbers), *numbers))
