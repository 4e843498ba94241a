"""nanoGPT's get_batch. In train.py, replace the function with

    from sgtokens.adapters.nanogpt import GetBatch
    get_batch = GetBatch(data_dir, batch_size, block_size, device)

and save get_batch.state_dict() in the checkpoint. A folder with nanoGPT's train.bin and val.bin
works as it is, or with raw=32 if its ids are uint32. Under torchrun, each rank gets its own rows.
"""

from typing import Any, Dict, Tuple

from .. import Loader
from .._loader import find_ranks


class GetBatch:
    def __init__(self, folder: str, rows: int, seq: int, device: str = "cpu", **more: Any) -> None:
        ranks = more.get("ranks") or find_ranks(None, None)[1]
        self._given = {"batch": rows * ranks, "seq": seq, "epochs": None, **more}
        self._folder, self._device = folder, None if device == "cpu" else device
        self._data: Dict[str, Loader] = {}

    def _of(self, split: str) -> Loader:
        if split not in self._data:
            self._data[split] = Loader(self._folder, split=split, **self._given).to(self._device)
        return self._data[split]

    def __call__(self, split: str) -> Tuple[Any, Any]:
        x, y = next(iter(self._of(split)))
        return x, y

    def state_dict(self) -> Dict[str, Any]:
        return {split: data.state_dict() for split, data in self._data.items()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        for split, saved in state.items():
            self._of(split).load_state_dict(saved)
