"""The speed of encode_batch beside that of sgt-bench tokenize, in alternating turns."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import List, Tuple

from ._tokenizer import Tokenizer

TURNS = 9
Times = Tuple[float, float]  # seconds, and seconds of CPU time


def read(paths: List[str]) -> Tuple[List[str], List[str]]:
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


def main(paths: List[str]) -> None:
    files, texts = read(paths)
    size = sum(map(os.path.getsize, files))
    others = sum(len(t) for t in texts if not t.isascii()) / max(sum(map(len, texts)), 1)
    print(f"{len(files)} texts, {size} bytes; {others:.0%} of characters are in texts beyond ASCII")
    print("threads  encode_batch MB/s  sgt-bench MB/s  median of the ratios  by CPU time")
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        pairs = [(own_seconds(texts, threads), bench_seconds(files, threads)) for _ in range(TURNS)]
        own, bench = (size / statistics.median(wall for wall, _ in s) / 1e6 for s in zip(*pairs))
        wall, cpu = (statistics.median(b[i] / a[i] for a, b in pairs) for i in (0, 1))
        print(f"{threads:7} {own:18.1f} {bench:15.1f} {wall:21.2f} {cpu:12.2f}")
