"""PyTorch's IterableDataset, with torchdata's state_dict protocol. An item is a whole batch:

    data = Batches(sgtokens.Loader("out/", batch=32, reader="mmap"))
    DataLoader(data, batch_size=None, num_workers=2, persistent_workers=True)

The order is the loader's, with any number of workers. torchdata's StatefulDataLoader resumes it.
Without persistent workers, each `for` starts at data's position: call data.seek before it.
"""

from typing import Any, Dict, Iterator, Optional, Tuple

from torch.utils.data import IterableDataset

from .. import Loader
from .._batches import find_worker


class Batches(IterableDataset):  # type: ignore[misc]
    def __init__(self, data: Loader) -> None:
        self.data = data
        self._at: Optional[Tuple[int, int]] = None  # this worker's next batch, and the epoch's end

    def __iter__(self) -> Iterator[Any]:
        worker, workers = find_worker()
        length, position = len(self.data), self.data.position
        at, end = self._at or (position + worker, (position // length + 1) * length)
        while at < end:  # DataLoader takes a batch from each worker in turn
            batch = self.data[at]
            at += workers or 1
            self._at = at, end
            yield batch
        self._at = None
        self.data.seek(end)  # the next epoch

    def state_dict(self) -> Dict[str, Any]:
        return {"data": self.data.state_dict(), "at": self._at}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.data.load_state_dict(state["data"])
        self._at = tuple(state["at"]) if state["at"] else None
