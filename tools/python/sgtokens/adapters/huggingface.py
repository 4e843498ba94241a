"""Hugging Face Trainer's train_dataset: an IterableDataset of rows.

    Trainer(model, TrainingArguments(..., max_steps=1000), train_dataset=Rows("out/", seq=1024))

Trainer forms the batches and divides the rows among the ranks, so the loader returns all rows. Its
models shift the labels themselves. A resumed Trainer skips the rows that it has seen. Each epoch
has a different order. Resume with the same dataloader_num_workers, because each worker forms
batches of its own rows.
"""

from typing import Any, Dict, Iterator

import torch
from torch.utils.data import IterableDataset

from .. import Loader
from .._batches import find_worker


class Rows(IterableDataset):  # type: ignore[misc]
    def __init__(self, path: str, seq: int = 1024, **more: Any) -> None:
        given = {"batch": 1, "rank": 0, "ranks": 1, "arrays": "torch", **more}
        self.data = Loader(path, seq=seq, **given)
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Take the rows of this epoch from now on. Trainer calls this."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.data.windows

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        worker, workers = find_worker()
        first, count = self.epoch * len(self.data), len(self.data)
        for k in range(first + worker, first + count, workers or 1):
            for x, y in zip(*self.data[k][:2]):
                labels = torch.cat([torch.full_like(y[:1], -100), y[:-1]])
                yield {"input_ids": x, "labels": labels}
