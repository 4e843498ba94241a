"""python -m sgt.bench OUT/ [--batch 32] [--seq 1024] [--seconds 1]: the speed of batches, beside
other ways to make them in Python from the same set, in alternating turns of one process. Each
figure is the median of five turns. A peer that is not installed is left out.

python -m sgt.bench --texts FILE...: the speed of encode_batch, beside sgt-bench tokenize, each file
being a text. Both have the texts in memory, start their threads and begin with empty caches of
words. encode_batch also turns strings into UTF-8 and keeps the ids of all texts, as arrays;
sgt-bench has UTF-8 and writes the ids of each piece over those of the one before. Where other
programs run, trust the ratio of CPU times."""

import argparse
import statistics
import time
from typing import Any, Dict, Iterator, List, Tuple

from . import Loader
from ._bench_peers import Make, peers
from ._bench_texts import main as encode_texts


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


if __name__ == "__main__":
    main()
