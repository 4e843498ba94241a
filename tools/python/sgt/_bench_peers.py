"""Other ways to make batches in Python from a set of shards, for sgt.bench."""

import glob
import tempfile
from typing import Any, Callable, Iterator, List, Tuple

import numpy as np

Make = Callable[[], Any]
Peers = Iterator[Tuple[str, Make]]
MOST_TOKENS = 1 << 26  # most tokens that Mosaic's own files are made of

_made: List[Any] = []  # temporary folders, which live until the program ends


def shards(folder: str) -> List[str]:
    return sorted(glob.glob(f"{folder}/train_*.bin"))


def mapped(shard: str) -> Any:
    return np.memmap(shard, "<u2", "r", offset=1024)


def numpy_peers(folder: str, batch: int, seq: int) -> Peers:
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


def torch_peers(folder: str, batch: int, seq: int) -> Peers:
    """PyTorch's DataLoader, in random order."""
    from torch.utils.data import DataLoader, RandomSampler

    data = Windows(shards(folder)[0], seq)
    for workers in (0, 2):
        sampler = RandomSampler(data, replacement=True, num_samples=1 << 40)
        batches = iter(DataLoader(data, batch, sampler=sampler, num_workers=workers))
        yield f"DataLoader int64, {workers} workers", batches.__next__


def grain_peers(folder: str, batch: int, seq: int) -> Peers:
    """Grain with its own threads, and with worker processes."""
    import grain

    rows = grain.MapDataset.source(Windows(shards(folder)[0], seq)).shuffle(seed=1).repeat()
    yield "Grain int64, threads", iter(rows.batch(batch).to_iter_dataset()).__next__
    options = grain.MultiprocessingOptions(num_workers=2)
    batches = iter(rows.batch(batch).to_iter_dataset().mp_prefetch(options))
    yield "Grain int64, 2 workers", batches.__next__


def mosaic_peers(folder: str, batch: int, seq: int) -> Peers:
    """Mosaic Streaming from a local folder in its own format."""
    import torch
    from streaming import MDSWriter, StreamingDataset

    class Rows(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, i: Any) -> Any:
            row = torch.from_numpy(super().__getitem__(i)["tokens"].astype(np.int64))
            return row[:-1], row[1:]

    tokens = np.asarray(mapped(shards(folder)[0])[:MOST_TOKENS])
    made = tempfile.TemporaryDirectory()
    _made.append(made)
    with MDSWriter(out=made.name, columns={"tokens": f"ndarray:uint16:{seq + 1}"}) as out:
        for at in range(0, len(tokens) - seq, seq):
            out.write({"tokens": tokens[at : at + seq + 1]})
    for workers in (0, 2):
        data = Rows(local=made.name, shuffle=True, batch_size=batch)
        loader = torch.utils.data.DataLoader(data, batch, num_workers=workers)
        yield f"Mosaic Streaming int64, {workers} workers", _endless(loader).__next__


def _endless(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def nemo_peers(folder: str, batch: int, seq: int) -> Peers:
    """NeMo AutoModel's dataset for such shards, which reads them in order."""
    import torch
    from nemo_automodel.components.datasets.llm.nanogpt_dataset import NanogptDataset

    def collate(rows: Any) -> Any:
        return [torch.tensor([row[name] for row in rows]) for name in ("input_ids", "labels")]

    for workers in (0, 2):
        data = NanogptDataset(shards(folder), seq)
        loader = torch.utils.data.DataLoader(data, batch, collate_fn=collate, num_workers=workers)
        yield f"NeMo AutoModel int64, {workers} workers", iter(loader).__next__


def peers(folder: str, batch: int, seq: int) -> Peers:
    """Yield a name and a function that makes a batch, for each peer that is installed."""
    for found in (numpy_peers, torch_peers, grain_peers, mosaic_peers, nemo_peers):
        try:
            yield from found(folder, batch, seq)
        except ImportError as error:
            print(f"{found.__doc__} Left out: {error}")
