"""torchtitan's data loader: ({"input": x}, y), and the Stateful protocol that its checkpoints use.
Return one from the `build_dataloader_fn` of your TrainSpec:

    def build(dp_world_size, dp_rank, tokenizer, job_config, **_):
        t = job_config.training
        return DataLoader("out/", t.local_batch_size, t.seq_len, dp_rank, dp_world_size)

The state can be loaded with another number of ranks, if a whole batch has as many rows.
"""

from typing import Any, Dict, Iterator, Tuple

from .. import Loader


class DataLoader:
    def __init__(
        self, folder: str, rows: int, seq: int, rank: int = 0, ranks: int = 1, **more: Any
    ) -> None:
        given = {"epochs": None, "copy": True, **more}
        self.data = Loader(folder, batch=rows * ranks, seq=seq, rank=rank, ranks=ranks, **given)

    def __iter__(self) -> Iterator[Tuple[Dict[str, Any], Any]]:
        for x, y in self.data:
            yield {"input": x}, y

    def state_dict(self) -> Dict[str, Any]:
        return self.data.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if state:  # empty in the checkpoint of a run that had another loader
            self.data.load_state_dict(state)
