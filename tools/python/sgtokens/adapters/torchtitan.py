"""torchtitan's data loader: ({"input": x}, y), and the Stateful protocol that its checkpoints use.
Set config.dataloader = Config(dataset_path="out/"). In versions of torchtitan whose TrainSpec has a
`build_dataloader_fn`, let that function return DataLoader(path, rows, seq, rank, ranks). The state
can be loaded with another number of ranks if a batch over all ranks has as many rows."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Tuple

from .. import Loader


class DataLoader:
    def __init__(self, path: str, rows: int, seq: int, rank: int = 0, ranks: int = 1, **more: Any):
        given = {"epochs": None, **more}
        self.data = Loader(path, batch=rows * ranks, seq=seq, rank=rank, ranks=ranks, **given)

    def __iter__(self) -> Iterator[Tuple[Dict[str, Any], Any]]:
        for x, y, *where in self.data:  # with documents=True, the model gets their positions
            yield ({"input": x, "positions": where[0].positions} if where else {"input": x}), y

    def state_dict(self) -> Dict[str, Any]:
        return self.data.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if state:  # empty in the checkpoint of a run that had another loader
            self.data.load_state_dict(state)


with suppress(ImportError, AttributeError):  # there is no torchtitan, or an older one
    from torchtitan.components.dataloader import BaseDataLoader

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):  # type: ignore[misc]
        options: Dict[str, Any] = field(default_factory=dict)  # more options of sgtokens.Loader

        def build(self, *, dp_rank: int, dp_world_size: int, **given: Any) -> DataLoader:
            shape = given["local_batch_size"], given["seq_len"]
            return DataLoader(self.dataset_path, *shape, dp_rank, dp_world_size, **self.options)
