#!/usr/bin/env python3
"""Holds what sgt-tokenize wrote to tiktoken, id for id: compare_tiktoken.py OUT INPUT...

OUT made from the same INPUTs (text files and folders of them, UTF-8) with --split none and nothing else that changes
tokens. Every document is encoded by tiktoken (with openai-whisper's ranks), every id compared, and the order of the
documents too. Ends with one line of bytes, documents, tokens and differences; exit 1 where there is one.
Not part of the build."""
import json
import multiprocessing
import os
import sys

import numpy as np

from make_tokenize_vectors import encoding

EOT = 50256


def files(inputs):
    """(path, path as sources.jsonl has it), in sgt-tokenize's order: folders by the bytes of the path within them."""
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


def main():
    out, inputs = sys.argv[1], list(files(sys.argv[2:]))
    with open(os.path.join(out, "manifest.json")) as f:
        shards = [s["file"] for s in json.load(f)["shards"]]
    with open(os.path.join(out, "sources.jsonl")) as f:
        sources = [json.loads(line)["path"] for line in f]
    assert sources == [name for _, name in inputs], "not the same files in the same order"
    ours = np.concatenate([np.fromfile(os.path.join(out, s), dtype="<u2", offset=1024) for s in shards])
    at = size = wrong = 0
    with multiprocessing.Pool(2, start) as pool:
        for (path, _), (ids, n) in zip(inputs, pool.imap(encode, [p for p, _ in inputs], chunksize=32)):
            if not np.array_equal(ours[at:at + len(ids)], ids):
                wrong += 1
                print(f"{path}: differs within tokens {at} to {at + len(ids)}")
            at, size = at + len(ids), size + n
    wrong += at != len(ours)
    print(f"{size} bytes, {len(inputs)} documents, {at} tokens by tiktoken, {len(ours)} by sgt-tokenize, "
          f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
