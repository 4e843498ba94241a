#!/usr/bin/env python3
"""Other implementations of GPT-2's tokenizer, to compare with sgt-tokenize. Prints one JSON line.

    bpe.py gigatoken|tiktoken memory DIR|@LIST [--threads N]    encode text that is in memory, from
                                                                empty caches
    bpe.py gigatoken|tiktoken disk DIR|@LIST OUT [--threads N]  read files, write 16-bit ids to OUT;
                                                                the caller times the process
    bpe.py datasets disk @LIST OUT [--threads N]                the same for the column `text` of
                                                                Parquet files, with tiktoken

DIR: all of its *.txt. @LIST: a file of paths, with a NUL after each. Needs gigatoken==0.10.0, or
tiktoken, or tiktoken and datasets; numpy; and openai-whisper (--no-deps), which has GPT-2's
ranks."""
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
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

EOT = 50256
CHUNK = 20_000_000  # characters a call: gigatoken's faster form from about 100 MB of text on
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def options():
    a = argparse.ArgumentParser()
    a.add_argument("peer", choices=["gigatoken", "tiktoken", "datasets"])
    a.add_argument("where", choices=["memory", "disk"])
    a.add_argument("texts")
    a.add_argument("out", nargs="?", default=os.devnull)
    a.add_argument("--threads", type=int, default=1)
    return a.parse_args()


def paths(texts):
    if not texts.startswith("@"):
        return sorted(glob.glob(texts + "/**/*.txt", recursive=True))
    with open(texts[1:], "rb") as f:
        return [os.fsdecode(p) for p in f.read().split(b"\0")[:-1]]


def ranks():
    whisper = importlib.util.find_spec("whisper")
    if not whisper:
        sys.exit("ModuleNotFoundError: No module named 'whisper' (pip install --no-deps openai-whisper)")
    return os.path.join(os.path.dirname(whisper.origin), "assets", "gpt2.tiktoken")


def read(path):
    with open(path, encoding="utf-8", errors="replace", newline="") as f:
        return f.read()


def tiktoken_encoding():
    import tiktoken

    with open(ranks(), "rb") as f:
        merges = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in f}
    return tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=merges, special_tokens={"<|endoftext|>": EOT})


def start():
    global ENCODING
    ENCODING = tiktoken_encoding()


def encode_file(path):
    import numpy as np

    return np.array([EOT] + ENCODING.encode_ordinary(read(path))).astype(np.uint16)


def gigatoken_tokenizer():
    import gigatoken

    with tempfile.TemporaryDirectory() as d:
        shutil.copy(ranks(), d + "/r50k_base.tiktoken")
        return gigatoken.Tokenizer.from_tiktoken(d + "/r50k_base.tiktoken")


def in_memory(peer, files, threads):
    """Return (seconds, tokens)."""
    if peer == "tiktoken":
        e = tiktoken_encoding()
        docs = [read(p) for p in files]
        t = time.perf_counter()
        ids = [e.encode_ordinary(d) for d in docs] if threads == 1 else e.encode_ordinary_batch(docs, num_threads=threads)
        return time.perf_counter() - t, sum(map(len, ids))
    return min(in_new_process(gigatoken_in_memory, files, most, threads) for most in (1 << 62, CHUNK))


def in_new_process(function, *arguments):
    """Call a function in a process of its own: memory that an earlier call has freed would help it. Fail if that
    process dies, for which a Pool would wait for ever."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(function, *arguments).result()


def gigatoken_in_memory(files, most, threads):
    """Return (seconds, tokens) of a new tokenizer that is given about `most` characters a call."""
    docs = [read(p) for p in files]
    e = gigatoken_tokenizer()
    seconds = tokens = i = 0
    while i < len(docs):
        j, size = i, 0
        while j < len(docs) and size < most:
            size += len(docs[j])
            j += 1
        part = docs[i:j]
        t = time.perf_counter()
        ids = e.backend.encode_batch(part, parallel=threads > 1)
        seconds += time.perf_counter() - t
        tokens += sum(map(len, ids))
        i = j
    return seconds, tokens


def to_disk(peer, files, out, threads):
    import numpy as np

    with open(out, "wb") as f:
        if peer == "tiktoken":
            with multiprocessing.Pool(threads, initializer=start) as pool:
                for ids in pool.imap(encode_file, files, chunksize=16):
                    ids.tofile(f)
        else:
            import awkward
            import gigatoken

            ids = gigatoken_tokenizer().encode_files(gigatoken.TextFileSource(files))
            at = np.concatenate([[0], np.cumsum(awkward.num(ids).to_numpy())])[:-1]
            flat = np.asarray(awkward.flatten(ids, axis=None)).astype(np.uint16)
            np.insert(flat, at, EOT).tofile(f)
        f.flush()
        if out != os.devnull:
            os.fsync(f.fileno())
        return f.tell() // 2


def rows_to_disk(files, out, threads):
    """What nanoGPT's data/openwebtext/prepare.py does; the cache of `datasets` is beside `out`."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    import datasets
    import numpy as np

    encoding, cache = tiktoken_encoding(), out + ".cache"

    def process(row):
        ids = [EOT] + encoding.encode_ordinary(row["text"])
        return {"ids": ids, "len": len(ids)}

    try:
        rows = datasets.load_dataset("parquet", data_files=files, split="train", columns=["text"], cache_dir=cache)
        rows = rows.map(process, remove_columns=["text"], num_proc=threads)
        tokens, at = int(np.sum(rows["len"], dtype=np.uint64)), 0
        ids = np.memmap(out, dtype=np.uint16, mode="w+", shape=(tokens,))
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
    name = f"{o.peer} {importlib.metadata.version(o.peer)}"
    ranks()  # here, because a process of a Pool that exits is started again and again
    files = paths(o.texts)
    size = sum(map(os.path.getsize, files))
    result = dict(peer=name, where=o.where, bytes=size)
    if o.where == "memory":
        seconds, result["tokens"] = in_memory(o.peer, files, o.threads)
    else:
        write = rows_to_disk if o.peer == "datasets" else partial(to_disk, o.peer)
        result["tokens"] = write(files, o.out, o.threads)
        seconds = time.perf_counter() - begin
    print(json.dumps(dict(result, seconds=seconds, mb_per_s=size / 1e6 / seconds)))


if __name__ == "__main__":
    main()
