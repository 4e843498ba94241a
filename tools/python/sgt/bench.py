"""python -m sgt.bench OUT/ [--batch 32] [--seq 1024] [--seconds 1]: the speed of batches, beside
other ways to make them in Python from the same set, in alternating turns of one process. Each
figure is the median of five turns. A peer that is not installed is left out."""

import argparse
import glob
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

from . import Loader

Make = Callable[[], Any]


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


def numpy_peers(folder: str, batch: int, seq: int) -> Iterator[Tuple[str, Make]]:
    """Yield ways to make random windows: views of memory, and nanoGPT's loop over mapped files."""
    shards = sorted(glob.glob(f"{folder}/train_*.bin"))
    maps = [np.memmap(shard, "<u2", "r", offset=1024) for shard in shards]
    ram = np.concatenate(maps)
    view = np.lib.stride_tricks.sliding_window_view(ram, seq + 1)
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


def torch_peers(folder: str, batch: int, seq: int) -> Iterator[Tuple[str, Make]]:
    """PyTorch's DataLoader over a mapped file."""
    try:
        import torch
        from torch.utils.data import DataLoader, Dataset
    except ImportError:
        return
    shard = sorted(glob.glob(f"{folder}/train_*.bin"))[0]

    class Windows(Dataset):  # type: ignore[misc]
        def __init__(self) -> None:
            self.map = np.memmap(shard, "<u2", "r", offset=1024)

        def __len__(self) -> int:
            return len(self.map) - seq - 1

        def __getitem__(self, i: int) -> Any:
            row = torch.from_numpy(self.map[i : i + seq + 1].astype(np.int64))
            return row[:-1], row[1:]

    for workers in (0, 2):
        sampler = torch.utils.data.RandomSampler(Windows(), replacement=True, num_samples=1 << 40)
        batches = iter(DataLoader(Windows(), batch, sampler=sampler, num_workers=workers))
        yield f"DataLoader int64, {workers} workers", batches.__next__


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
    parser.add_argument("folder", help="a set of shards, at least 100 MB to be telling")
    parser.add_argument("--batch", type=int, default=32, help="rows of a batch")
    parser.add_argument("--seq", type=int, default=1024, help="tokens of a row")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn")
    args = parser.parse_args()
    shape = args.folder, args.batch, args.seq
    makers = [*own(*shape), *numpy_peers(*shape), *torch_peers(*shape)]
    tokens = args.batch * args.seq
    rates: Dict[str, List[float]] = {name: [] for name, _ in makers}
    for _ in range(5):
        for name, make in makers:
            rates[name].append(rate(make, args.seconds, tokens))
    medians = {name: statistics.median(r) for name, r in rates.items()}
    print(f"million tokens a second, {args.batch} x {args.seq}, and ratio to numpy of that type")
    for name, median in medians.items():
        base = medians["numpy int32" if "int32" in name else "numpy int64"]
        print(f"{name:32} {median:9.1f} {median / base:7.2f}")


if __name__ == "__main__":
    main()
