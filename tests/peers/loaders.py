#!/usr/bin/env python3
"""Other ways to make batches of random windows, to compare with sgt's loader. All use one thread,
except PyTorch's workers.

    loaders.py DIR|@LIST [WIDTH]    standard input: lines of PEER OUTPUT B T SECONDS

DIR: shards DIR/*.bin, whose ids have WIDTH bytes, 2 (the default) or 4, and follow a header of
1,024 bytes. @LIST: a file with three words per shard, each with a NUL after it: path, bytes before
the first id, number of ids. The first line of output is a JSON object with numpy's version. Each
line of input then gets a JSON object: the number of batches that were made in about that time and
the seconds that they took, or an error. Peers:

    window  i32|u16|i32-rows    numpy's sliding_window_view of all ids in memory, indexed: one copy of B
                       rows of T+1 ids
    gather  i64|i32    the same memory, indexed by a (B, T+1) array of positions
    loop    i64        nanoGPT's get_batch: memory maps, one row at a time, stacked (x, then y)
    torch0  i64        PyTorch's DataLoader over single samples, in this process
    torch2  i64        the same with two workers

Needs numpy, and torch for its DataLoader."""
import glob
import json
import os
import sys
import time

import numpy as np

TYPES = {"u16": np.uint16, "i32-rows": np.uint32, "i32": np.int32, "i64": np.int64}


def shards(where, width):
    """Return (path, bytes before the first id, number of ids) of each shard."""
    if not where.startswith("@"):
        return [(p, 1024, (os.path.getsize(p) - 1024) // width) for p in sorted(glob.glob(where + "/*.bin"))]
    with open(where[1:], "rb") as f:
        words = [os.fsdecode(w) for w in f.read().split(b"\0")[:-1]]
    return [(words[i], int(words[i + 1]), int(words[i + 2])) for i in range(0, len(words), 3)]


def available():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable:"))


class Shards:
    def __init__(self, where, width=2):
        self.width = int(width)
        self.files = shards(where, self.width)
        self.rng = np.random.default_rng(0)
        self.maps = self.ids = None

    def ram(self):
        """Return an array of all ids in memory."""
        if self.ids is None:
            total = sum(n for _, _, n in self.files)
            need = self.width * total
            if need > 0.8 * available():
                raise MemoryError(f"{need >> 20} MiB of ids, {available() >> 20} MiB of memory are free")
            self.ids, at = np.empty(total, f"<u{self.width}"), 0
            for path, before, n in self.files:
                with open(path, "rb", buffering=0) as f:
                    f.seek(before)
                    view, done = memoryview(self.ids[at : at + n]).cast("B"), 0
                    while done < self.width * n:
                        done += f.readinto(view[done:]) or sys.exit(f"{path}: cut short")
                at += n
        return self.ids

    def mapped(self, T):
        """Return maps of the shards that have a window, and cumulative counts of windows."""
        if self.maps is None:
            self.maps = [np.memmap(p, f"<u{self.width}", "r", offset=b, shape=(n,)) for p, b, n in self.files]
        maps = [m for m in self.maps if len(m) > T]
        return maps, np.cumsum([len(m) - T for m in maps])


def window(s, output, B, T):
    ram = s.ram()
    view, kind = np.lib.stride_tricks.sliding_window_view(ram, T + 1), TYPES[output]
    if kind == ram.dtype:  # the output has the type of the stored ids
        return lambda: view[s.rng.integers(0, len(ram) - T, B)]
    return lambda: view[s.rng.integers(0, len(ram) - T, B)].astype(kind)


def gather(s, output, B, T):
    ram, row, kind = s.ram(), np.arange(T + 1), TYPES[output]
    return lambda: ram[s.rng.integers(0, len(ram) - T, B)[:, None] + row].astype(kind)


def loop(s, output, B, T):
    (maps, ends), kind = s.mapped(T), TYPES[output]

    def at():
        for i in s.rng.integers(0, ends[-1], B):
            k = int(np.searchsorted(ends, i, "right"))
            yield maps[k], int(i) - (int(ends[k - 1]) if k else 0)

    def batch():
        rows = list(at())
        x = np.stack([m[i : i + T].astype(kind) for m, i in rows])
        y = np.stack([m[i + 1 : i + 1 + T].astype(kind) for m, i in rows])
        return x, y

    return batch


def torch_loader(s, B, T, workers):
    import torch

    maps, ends = s.mapped(T)
    total = int(ends[-1])

    class Windows(torch.utils.data.Dataset):
        def __len__(self):
            return total

        def __getitem__(self, i):
            i = i * 2654435761 % total
            k = int(np.searchsorted(ends, i, "right"))
            i -= int(ends[k - 1]) if k else 0
            row = torch.from_numpy(maps[k][i : i + T + 1].astype(np.int64))
            return row[:-1], row[1:]

    rows = iter(range(1 << 62))
    batches = iter(torch.utils.data.DataLoader(Windows(), B, num_workers=workers, sampler=rows))
    return lambda: next(batches)


def make(s, peer, output, B, T):
    """Return a function that makes a batch."""
    if peer.startswith("torch"):
        return torch_loader(s, B, T, int(peer[5:]))
    return {"window": window, "gather": gather, "loop": loop}[peer](s, output, B, T)


def name(peer):
    if peer.startswith("torch"):
        return "torch " + sys.modules["torch"].__version__
    return "numpy " + np.__version__


def measure(batch, seconds):
    n, begin = 0, time.perf_counter()
    while True:
        batch()
        n += 1
        took = time.perf_counter() - begin
        if took >= seconds:
            return dict(batches=n, seconds=took)


def main():
    s, made = Shards(*sys.argv[1:]), {}
    print(json.dumps(dict(peer="numpy " + np.__version__)), flush=True)
    for line in sys.stdin:
        peer, output, B, T, seconds = line.split()
        key = (peer, output, int(B), int(T))
        try:
            if key not in made:
                made = {k: v for k, v in made.items() if k[2:] == key[2:]}  # end workers of other sizes
                made[key] = make(s, *key)
                made[key]()
            answer = dict(peer=name(peer), **measure(made[key], float(seconds)))
        except Exception as e:
            answer = dict(error=f"{type(e).__name__}: {e}".splitlines()[0])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
