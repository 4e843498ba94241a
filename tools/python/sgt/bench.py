"""python -m sgt.bench OUT/ [--batch 32] [--seq 1024] [--seconds 1]: the speed of batches, beside
other ways to make them in Python from the same set, in alternating turns of one process. Each
figure is the median of five turns. A peer that is not installed is left out.

python -m sgt.bench --texts FILE...: the speed of encode_batch, beside sgt-bench tokenize, each file
being a text. Both have the texts in memory, start their threads and begin with empty caches of
words. encode_batch also turns strings into UTF-8 and keeps the ids of all texts, as arrays;
sgt-bench has UTF-8 and writes the ids of each piece over those of the one before. Where other
programs run, trust the ratio of CPU times."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, Tuple

from . import Loader, Tokenizer
from ._bench_peers import Make, peers

TURNS = 9  # of texts
Times = Tuple[float, float]  # seconds, and seconds of CPU time


def rate(make: Make, seconds: float, tokens: int) -> float:
    """Return the speed in millions of input tokens per second."""
    count, begin = 0, time.perf_counter()
    while True:
        for _ in range(8):
            make()
        count += 8
        passed = time.perf_counter() - begin
        if passed > seconds:
            return count * tokens / passed / 1e6


def own(folder: str, batch: int, seq: int) -> Iterator[Tuple[str, Make]]:
    """Iteration through the ring, and batches by number."""
    for dtype in ("int32", "int64"):
        given: Dict[str, Any] = {"batch": batch, "seq": seq, "dtype": dtype, "arrays": "numpy"}
        batches = iter(Loader(folder, epochs=None, **given))
        yield f"sgt {dtype}", batches.__next__
        yield f"sgt {dtype}, data[k]", numbered(Loader(folder, **given))


def numbered(data: Loader) -> Make:
    numbers = iter(range(1 << 60))
    return lambda: data[next(numbers)]


def batches(args: argparse.Namespace) -> None:
    shape = args.folder, args.batch, args.seq
    makers = [*own(*shape), *peers(*shape)]
    tokens = args.batch * args.seq
    rates: Dict[str, List[float]] = {name: [] for name, _ in makers}
    for _ in range(5):
        for name, make in makers:
            time.sleep(args.seconds / 4)  # the workers of the peer before fill their queues
            rates[name].append(rate(make, args.seconds, tokens))
    medians = {name: statistics.median(r) for name, r in rates.items()}
    print(f"million tokens a second, {args.batch} x {args.seq}, and ratio to numpy of that type")
    for name, median in medians.items():
        base = medians["numpy int32" if "int32" in name else "numpy int64"]
        print(f"{name:32} {median:9.1f} {median / base:7.2f}")
    others = {name: m for name, m in medians.items() if not name.startswith(("sgt", "numpy"))}
    best = max(others, key=lambda name: others[name])
    for name in ("sgt int32", "sgt int64"):
        print(f"{name} is {medians[name] / others[best]:.1f} times as fast as {best}")


# ---- texts ----


def read_texts(paths: List[str]) -> Tuple[List[str], List[str]]:
    """Return the files in the folders and files given, and their texts."""
    files: List[str] = []
    for path in map(pathlib.Path, paths):
        found = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        files += map(str, found)
    return files, [pathlib.Path(f).read_text("utf-8", "replace") for f in files]


def own_seconds(texts: List[str], threads: int) -> Times:
    """Return the time of encode_batch. As sgt-bench's, it is the median of three turns, each from
    empty caches, and the CPU time is the last turn's."""
    times = []
    for _ in range(3):
        tokenizer = Tokenizer()
        begin, cpu = time.perf_counter(), time.process_time()
        ids = tokenizer.encode_batch(texts, num_threads=threads)
        times.append(time.perf_counter() - begin)
        cpu = time.process_time() - cpu
        del ids  # to free them is not measured
    return statistics.median(times), cpu


def bench_seconds(files: List[str], threads: int) -> Times:
    """Return the time of the same encoder in C, on the files' bytes."""
    beside = os.path.join(os.path.dirname(sys.executable), "sgt-bench")
    program = beside if os.path.exists(beside) else "sgt-bench"
    with tempfile.NamedTemporaryFile("w") as names:
        names.write("\n".join(files))
        names.flush()
        command = [program, "tokenize", "--threads", str(threads), "--json", f"@{names.name}"]
        result = json.loads(subprocess.check_output(command))
    return float(result["seconds"]), float(result["cpu_seconds"])


def encode_texts(paths: List[str]) -> None:
    files, texts = read_texts(paths)
    size = sum(map(os.path.getsize, files))
    others = sum(len(t) for t in texts if not t.isascii()) / max(sum(map(len, texts)), 1)
    print(f"{len(files)} texts, {size} bytes; {others:.0%} of characters are in texts beyond ASCII")
    print("threads  encode_batch MB/s  sgt-bench MB/s  median of the ratios  by CPU time")
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        pairs = [(own_seconds(texts, threads), bench_seconds(files, threads)) for _ in range(TURNS)]
        own, bench = (size / statistics.median(wall for wall, _ in s) / 1e6 for s in zip(*pairs))
        wall, cpu = (statistics.median(b[i] / a[i] for a, b in pairs) for i in (0, 1))
        print(f"{threads:7} {own:18.1f} {bench:15.1f} {wall:21.2f} {cpu:12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sgt.bench", description=__doc__)
    parser.add_argument("folder", help="a set of shards, at least 100 MB to be telling", nargs="?")
    parser.add_argument("--texts", nargs="+", help="measure encode_batch on these files or folders")
    parser.add_argument("--batch", type=int, default=32, help="rows of a batch")
    parser.add_argument("--seq", type=int, default=1024, help="tokens of a row")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn")
    args = parser.parse_args()
    if args.texts:
        encode_texts(args.texts)
    elif args.folder:
        batches(args)
    else:
        parser.error("expected a set of shards, or --texts")


if __name__ == "__main__":
    main()
