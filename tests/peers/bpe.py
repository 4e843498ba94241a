#!/usr/bin/env python3
"""Other implementations of byte-pair encoding, to compare with sgt-tokenize. Prints one JSON line.

    bpe.py PEER memory DIR|@LIST [OPTION]...    encode text that is in memory, from empty caches,
                                                and then the same text again
    bpe.py PEER disk DIR|@LIST OUT [OPTION]...  read files, write ids of 16 or 32 bits to OUT; the
                                                caller times the process
    bpe.py datasets disk @LIST OUT [OPTION]...  the same for the column `text` of Parquet files,
                                                with tiktoken

PEER: gigatoken (0.10.0), quicktok (PyPI: quicktok-v1), riptoken or tiktoken. DIR: its *.txt files.
@LIST: a file of paths, with a NUL after each. This script needs numpy. The last form needs tiktoken
and datasets. GPT-2's vocabulary needs openai-whisper (--no-deps), which has its ranks. toktok-rs is
left out because it counts tokens and does not return them."""
import argparse
import base64
import glob
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor

CHUNK = 20_000_000  # characters per call, faster with gigatoken for 100 MB of text or more
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
QUICKTOK = dict(cl100k="cl100k_base", o200k="o200k_base", llama3="llama3", qwen2="qwen3")


def options():
    a = argparse.ArgumentParser()
    a.add_argument("peer", choices=["gigatoken", "quicktok", "riptoken", "tiktoken", "datasets"])
    a.add_argument("where", choices=["memory", "disk"])
    a.add_argument("texts")
    a.add_argument("out", nargs="?", default=os.devnull)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--vocab", default="gpt2", help="gpt2, or a file of ranks as tiktoken has them")
    a.add_argument("--pattern", help="pattern that splits text")
    a.add_argument("--name", default="gpt2", help="name that sgt has for the pattern")
    a.add_argument("--eot", type=int, default=50256, help="id that begins each document on disk")
    o = a.parse_args()
    if o.name == "gpt2":
        o.pattern = GPT2  # the fastest spelling
    return o


def paths(texts):
    if not texts.startswith("@"):
        return sorted(glob.glob(texts + "/**/*.txt", recursive=True))
    with open(texts[1:], "rb") as f:
        return [os.fsdecode(p) for p in f.read().split(b"\0")[:-1]]


def ranks(o):
    """Return the path of a file of ranks."""
    if o.vocab != "gpt2":
        return o.vocab
    whisper = importlib.util.find_spec("whisper")
    if not whisper:
        sys.exit("ModuleNotFoundError: No module named 'whisper' (pip install --no-deps openai-whisper)")
    return os.path.join(os.path.dirname(whisper.origin), "assets", "gpt2.tiktoken")


def merges(o):
    with open(ranks(o), "rb") as f:
        return {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in f}


def read(path):
    with open(path, encoding="utf-8", errors="replace", newline="") as f:
        return f.read()


# ---- tokenizers ----


def tiktoken_encoding(o):
    import tiktoken

    return tiktoken.Encoding(o.name, pat_str=o.pattern, mergeable_ranks=merges(o), special_tokens={"<|eot|>": o.eot})


def riptoken_encoding(o):
    import riptoken

    return riptoken.CoreBPE(merges(o), {}, o.pattern)


def gigatoken_tokenizer(o):
    import gigatoken

    return gigatoken.Tokenizer.from_tiktoken(ranks(o), o.name)


def quicktok_encoding(o):
    """Return quicktok's own copy of the vocabulary. Its last token must equal that of the file."""
    import quicktok

    if o.name not in QUICKTOK:
        sys.exit(f"quicktok has no vocabulary for the pattern {o.name}")
    e, (last, rank) = quicktok.get_encoding(QUICKTOK[o.name]), max(merges(o).items(), key=lambda m: m[1])
    if e.decode_bytes([rank]) != last:
        sys.exit(f"{o.vocab}: is not the vocabulary that quicktok has for the pattern {o.name}")
    return e


def encoder(o):
    """Return a function that encodes a list of texts to lists or arrays of ids, by the tokenizer's
    fastest call."""
    if o.peer == "gigatoken":
        e = gigatoken_tokenizer(o)
        return lambda texts: e.backend.encode_batch(texts, parallel=o.threads > 1)
    if o.peer == "quicktok":
        e = quicktok_encoding(o)
        return lambda texts: e.encode_batch(texts, o.threads)[:1]
    e = riptoken_encoding(o) if o.peer == "riptoken" else tiktoken_encoding(o)
    if o.threads == 1:
        return lambda texts: [e.encode_ordinary(t) for t in texts]
    return e.encode_ordinary_batch


# ---- in memory ----


def in_memory(o, files):
    """Return the fields of the JSON line for text that is in memory."""
    forms = [1 << 62, CHUNK] if o.peer == "gigatoken" else [1 << 62]
    runs = [in_new_process(encode_twice, o, files, most) for most in forms]
    return dict(tokens=runs[0][0], seconds=min(r[1] for r in runs), warm_seconds=min(r[2] for r in runs))


def in_new_process(function, *arguments):
    """Call a function in a new process, so it cannot reuse memory that an earlier call has freed.
    Fail if that process dies; a Pool would then wait for ever."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(function, *arguments).result()


def encode_twice(o, files, most):
    """Encode files twice with a new tokenizer, about `most` characters per call. Return (tokens,
    seconds, seconds of the second time)."""
    calls, size = [[]], 0
    for text in map(read, files):
        if size >= most:
            calls.append([])
            size = 0
        calls[-1].append(text)
        size += len(text)
    encode, seconds = encoder(o), []
    for _ in range(2):
        tokens = taken = 0
        for texts in calls:
            t = time.perf_counter()
            ids = encode(texts)
            taken += time.perf_counter() - t
            tokens += sum(map(len, ids))
        seconds.append(taken)
    return tokens, *seconds


# ---- from disk to disk ----


def start(o):
    global ENCODING, OPTIONS
    ENCODING, OPTIONS = riptoken_encoding(o) if o.peer == "riptoken" else tiktoken_encoding(o), o


def encode_file(path):
    import numpy as np

    return np.array([OPTIONS.eot] + ENCODING.encode_ordinary(read(path))).astype(dtype(OPTIONS))


def dtype(o):
    return "<u2" if o.eot < 65536 else "<u4"


def flat_ids(o, files):
    """Return the ids of all files, and the position where the ids of each file begin."""
    import numpy as np

    if o.peer == "quicktok":
        ids, at = quicktok_encoding(o).encode_batch([read(p) for p in files], o.threads)
        return np.asarray(ids), at[:-1]
    import awkward
    import gigatoken

    ids = gigatoken_tokenizer(o).encode_files(gigatoken.TextFileSource(files))
    ends = np.cumsum(awkward.num(ids).to_numpy())
    return np.asarray(awkward.flatten(ids, axis=None)), np.concatenate([[0], ends])[:-1]


def to_disk(o, files):
    import numpy as np

    with open(o.out, "wb") as f:
        if o.peer in ("tiktoken", "riptoken"):
            with multiprocessing.Pool(o.threads, initializer=start, initargs=[o]) as pool:
                for ids in pool.imap(encode_file, files, chunksize=16):
                    ids.tofile(f)
        else:
            ids, at = flat_ids(o, files)
            np.insert(ids.astype(dtype(o)), at, o.eot).tofile(f)
        f.flush()
        if o.out != os.devnull:
            os.fsync(f.fileno())
        return f.tell() // int(dtype(o)[2])


def rows_to_disk(o, files):
    """Do as nanoGPT's data/openwebtext/prepare.py. The cache of `datasets` is next to `out`."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    import datasets
    import numpy as np

    encoding, cache = tiktoken_encoding(o), o.out + ".cache"

    def process(row):
        ids = [o.eot] + encoding.encode_ordinary(row["text"])
        return {"ids": ids, "len": len(ids)}

    try:
        rows = datasets.load_dataset("parquet", data_files=files, split="train", columns=["text"], cache_dir=cache)
        rows = rows.map(process, remove_columns=["text"], num_proc=o.threads)
        tokens, at = int(np.sum(rows["len"], dtype=np.uint64)), 0
        ids = np.memmap(o.out, dtype=dtype(o), mode="w+", shape=(tokens,))
        parts = min(1024, len(rows))
        for i in range(parts):
            part = np.concatenate(rows.shard(num_shards=parts, index=i, contiguous=True).with_format("numpy")["ids"])
            ids[at:at + len(part)] = part
            at += len(part)
        ids.flush()
        return tokens
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def main():
    o = options()
    begin = time.perf_counter()
    name = f"{o.peer} {importlib.metadata.version('quicktok-v1' if o.peer == 'quicktok' else o.peer)}"
    ranks(o)  # checked here: a Pool would restart a process that exits, again and again
    files = paths(o.texts)
    size = sum(map(os.path.getsize, files))
    if o.where == "memory":
        result = in_memory(o, files)
    else:
        tokens = (rows_to_disk if o.peer == "datasets" else to_disk)(o, files)
        result = dict(tokens=tokens, seconds=time.perf_counter() - begin)
    print(json.dumps(dict(result, peer=name, where=o.where, bytes=size, mb_per_s=size / 1e6 / result["seconds"])))


if __name__ == "__main__":
    main()
