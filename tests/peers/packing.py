#!/usr/bin/env python3
"""packing.py OUT T: the share of tokens that nanochat's rule crops from a set of shards.

nanochat fills a row of T+1 tokens from a buffer of 1,000 documents: the longest one that fits, and
if none does, the shortest, whose rest is lost. The documents of OUT's training shards (lengths
from its .idx files) pass through the buffer four times. Only documents that left the buffer count:
the longest stay in it. `sgt-inspect OUT --sampling packed --seq-len T` prints the share for sgt."""
import bisect
import glob
import sys

import numpy as np

BUFFER, PASSES = 1000, 4


def lengths(out):
    """Return the number of tokens of each document."""
    all_of = []
    for path in sorted(glob.glob(out + "/train_*.bin")):
        tokens = np.fromfile(path, dtype="<i4", count=3)[2]
        starts = np.fromfile(path[:-3] + "idx", dtype="<u8").astype(np.int64)
        all_of += np.diff(np.append(starts, tokens)).tolist()
    return all_of


def cropped(documents, room):
    """Return the number of tokens that are cropped and the number in rows."""
    buffer, taken, lost, rows = [], 0, 0, 0
    while taken < PASSES * len(documents):
        left = room
        while left > 0:
            while len(buffer) < BUFFER:
                bisect.insort(buffer, documents[taken % len(documents)])
                taken += 1
            fit = bisect.bisect_right(buffer, left)
            if fit:
                left -= buffer.pop(fit - 1)
            else:
                lost += buffer.pop(0) - left
                left = 0
        rows += 1
    return lost, rows * room


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: packing.py OUT T")
    documents = lengths(sys.argv[1])
    lost, used = cropped(documents, int(sys.argv[2]) + 1)
    share = 100 * lost / (lost + used)
    print(f"{len(documents)} documents of {np.mean(documents):.0f} tokens: {share:.1f} % cropped")
