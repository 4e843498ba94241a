"""nanochat's tokenizing_distributed_data_loader_with_state, for shards of tokens. It yields
(inputs, targets, state); save the state in the checkpoint, and pass it to resume."""

from typing import Any, Dict, Iterator, Optional, Tuple

from .. import Loader
from .._loader import find_ranks

Item = Tuple[Any, Any, Dict[str, Any]]


def loader_with_state(
    folder: str,
    rows: int,
    seq: int,
    split: str = "train",
    device: Any = "cpu",
    resume_state_dict: Optional[Dict[str, Any]] = None,
    **more: Any,
) -> Iterator[Item]:
    """Yield batches of shape (rows, seq) for this rank, without end. sampling="packed" packs
    documents into rows like nanochat's best-fit loader."""
    ranks = more.get("ranks") or find_ranks(None, None)[1]
    data = Loader(folder, batch=rows * ranks, seq=seq, split=split, epochs=None, **more)
    if str(device) != "cpu":
        data.to(device)
    if resume_state_dict is not None:
        data.load_state_dict(resume_state_dict)
    for x, y in data:
        yield x, y, data.state_dict()


def loader(*given: Any, **more: Any) -> Iterator[Tuple[Any, Any]]:
    """Yield the batches without their state."""
    for x, y, _state in loader_with_state(*given, **more):
        yield x, y
