"""python -m sgt.bench OUT/ [--batch 32] [--seq 1024] [--seconds .5]: the speed of batches, iterated
over and by number, beside numpy's random windows of the same set in memory, in alternating turns
of one process. Each figure is the median of five turns. `sgt-bench loader OUT/ --peer python3`
measures nanoGPT's loop and PyTorch's DataLoader, beside the library without this package."""

import argparse
import glob
import itertools
import statistics
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

from . import Loader

Make = Callable[[], Any]


def ways(folder: str, batch: int, seq: int) -> Iterator[Tuple[str, Make]]:
    """Yield the ways to make a batch."""
    Loader(folder, batch=batch, seq=seq, arrays="numpy")  # if it cannot be read, this says why
    shards = sorted(glob.glob(f"{folder}/train_*.bin"))
    tokens = np.concatenate([np.memmap(shard, "<u2", "r", offset=1024) for shard in shards])
    view = np.lib.stride_tricks.sliding_window_view(tokens, seq + 1)
    random = np.random.default_rng(1)
    for dtype in ("int32", "int64"):
        given: Dict[str, Any] = {"batch": batch, "seq": seq, "dtype": dtype, "arrays": "numpy"}

        def windows(dtype: str = dtype) -> Any:
            rows = view[random.integers(0, len(view), batch)]
            return rows[:, :-1].astype(dtype), rows[:, 1:].astype(dtype)

        yield f"sgt {dtype}", iter(Loader(folder, epochs=None, **given)).__next__
        yield (
            f"sgt {dtype}, data[k]",
            map(Loader(folder, **given).__getitem__, itertools.count()).__next__,
        )
        yield f"numpy {dtype}", windows


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sgt.bench", description=__doc__)
    parser.add_argument("folder", help="a set of shards, at least 100 MB to be telling")
    parser.add_argument("--batch", type=int, default=32, help="rows of a batch")
    parser.add_argument("--seq", type=int, default=1024, help="tokens of a row")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn")
    if "--texts" in sys.argv:
        parser.error("--texts is gone: type sgt-bench tokenize FILE...")
    args = parser.parse_args()
    makers = [*ways(args.folder, args.batch, args.seq)]
    rates: Dict[str, List[float]] = {name: [] for name, _ in makers}
    for _ in range(5):
        for name, make in makers:
            rates[name].append(rate(make, args.seconds, args.batch * args.seq))
    medians = {name: statistics.median(r) for name, r in rates.items()}
    print(f"million tokens a second, {args.batch} x {args.seq}, and ratio to numpy of that type")
    for name, median in medians.items():
        base = medians["numpy int32" if "int32" in name else "numpy int64"]
        print(f"{name:20} {median:9.1f} {median / base:7.2f}")


if __name__ == "__main__":
    main()
