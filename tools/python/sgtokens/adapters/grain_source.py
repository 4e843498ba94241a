"""Grain's RandomAccessDataSource: a record is batch k of the loader, or a row if batch=1.

    source = Source(sgtokens.Loader("out/", batch=32, seq=1024, arrays="numpy"))
    grain.MapDataset.source(source)

The loader's order is already shuffled. Grain pickles a source for its worker processes, and each of
them opens the set again: use reader="mmap" so that they share memory.
"""

from typing import Any, Dict, SupportsIndex

from .. import Loader


class Source:
    def __init__(self, data: Loader) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, record: SupportsIndex) -> Dict[str, Any]:
        k = record.__index__()
        if not 0 <= k < len(self):
            raise IndexError(f"record {k}: there are only {len(self)}")
        x, y = self.data[k][:2]
        return {"inputs": x, "targets": y}

    def __repr__(self) -> str:  # Grain compares it with that in a checkpoint: it must not change
        state = {**self.data.state_dict(), "rows": 0}
        return f"sgtokens.Source({state})"
