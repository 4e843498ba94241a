"""python -m sgt.bench OUT/ [--batch 32] [--seq 1024] [--seconds 1]: the speed of batches, beside
numpy, nanoGPT's loop and PyTorch's DataLoader on the same set, in alternating turns of one process.
Each figure is the median of five turns. If PyTorch is not installed, it is left out. `sgt-bench
loader OUT/ --peer python3` measures the same without the Python package."""

import argparse
import glob
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

from . import Loader

Make = Callable[[], Any]
Makers = Iterator[Tuple[str, Make]]


def shards(folder: str) -> List[str]:
    return sorted(glob.glob(f"{folder}/train_*.bin"))


def mapped(shard: str) -> Any:
    return np.memmap(shard, "<u2", "r", offset=1024)


# ---- ways to make a batch ----


def own(folder: str, batch: int, seq: int) -> Makers:
    """Iteration through the ring, and batches by number."""
    for dtype in ("int32", "int64"):
        given: Dict[str, Any] = {"batch": batch, "seq": seq, "dtype": dtype, "arrays": "numpy"}
        batches = iter(Loader(folder, epochs=None, **given))
        yield f"sgt {dtype}", batches.__next__
        yield f"sgt {dtype}, data[k]", numbered(Loader(folder, **given))


def numbered(data: Loader) -> Make:
    numbers = iter(range(1 << 60))
    return lambda: data[next(numbers)]


def numpy_peers(folder: str, batch: int, seq: int) -> Makers:
    """Random windows: views of memory, and nanoGPT's loop over a mapped file."""
    maps = [mapped(shard) for shard in shards(folder)]
    view = np.lib.stride_tricks.sliding_window_view(np.concatenate(maps), seq + 1)
    random = np.random.default_rng(1)

    def two_arrays(dtype: str) -> Make:
        def make() -> Any:
            rows = view[random.integers(0, len(view), batch)]
            return rows[:, :-1].astype(dtype), rows[:, 1:].astype(dtype)

        return make

    def nanogpt() -> Any:
        first = maps[0]
        starts = random.integers(0, len(first) - seq - 1, batch)
        x = np.stack([first[i : i + seq].astype(np.int64) for i in starts])
        return x, np.stack([first[i + 1 : i + seq + 1].astype(np.int64) for i in starts])

    yield "numpy int32", two_arrays("int32")
    yield "numpy int64", two_arrays("int64")
    yield "nanoGPT's loop int64", nanogpt


class Windows:
    """Windows of a mapped file, one after another, as int64 arrays."""

    def __init__(self, shard: str, seq: int) -> None:
        self.map, self.seq = np.asarray(mapped(shard)), seq

    def __len__(self) -> int:
        return (len(self.map) - 1) // self.seq

    def __getitem__(self, i: Any) -> Any:
        at = i * self.seq
        row = self.map[at : at + self.seq + 1].astype(np.int64)
        return row[:-1], row[1:]


def torch_peers(folder: str, batch: int, seq: int) -> Makers:
    """PyTorch's DataLoader, in random order."""
    try:
        from torch.utils.data import DataLoader, RandomSampler
    except ImportError as error:
        print(f"PyTorch's DataLoader is left out: {error}")
        return
    data = Windows(shards(folder)[0], seq)
    for workers in (0, 2):
        sampler = RandomSampler(data, replacement=True, num_samples=1 << 40)
        batches = iter(DataLoader(data, batch, sampler=sampler, num_workers=workers))
        yield f"DataLoader int64, {workers} workers", batches.__next__


# ---- measurement ----


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


def measure(args: argparse.Namespace) -> None:
    shape = args.folder, args.batch, args.seq
    makers = [*own(*shape), *numpy_peers(*shape), *torch_peers(*shape)]
    rates: Dict[str, List[float]] = {name: [] for name, _ in makers}
    for _ in range(5):
        for name, make in makers:
            time.sleep(args.seconds / 4)  # the workers of the peer before fill their queues
            rates[name].append(rate(make, args.seconds, args.batch * args.seq))
    medians = {name: statistics.median(r) for name, r in rates.items()}
    print(f"million tokens a second, {args.batch} x {args.seq}, and ratio to numpy of that type")
    for name, median in medians.items():
        base = medians["numpy int32" if "int32" in name else "numpy int64"]
        print(f"{name:32} {median:9.1f} {median / base:7.2f}")
    others = {name: m for name, m in medians.items() if not name.startswith(("sgt", "numpy"))}
    best = max(others, key=lambda name: others[name])
    for name in ("sgt int32", "sgt int64"):
        print(f"{name} is {medians[name] / others[best]:.1f} times as fast as {best}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sgt.bench", description=__doc__)
    parser.add_argument("folder", help="a set of shards, at least 100 MB to be telling", nargs="?")
    parser.add_argument("--texts", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, default=32, help="rows of a batch")
    parser.add_argument("--seq", type=int, default=1024, help="tokens of a row")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn")
    args = parser.parse_args()
    if args.texts:
        parser.error("--texts is gone: type sgt-bench tokenize FILE...")
    if not args.folder:
        parser.error("expected a set of shards")
    measure(args)


if __name__ == "__main__":
    main()
