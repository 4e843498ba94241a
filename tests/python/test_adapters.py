"""The adapters for frameworks, called as the frameworks do. Those for torch need torch."""

import json
import pathlib
import pickle

import pytest
from conftest import same

import sgtokens
from sgtokens.adapters import grain_source, nanochat, nanogpt, torchtitan

ADAPTERS = pathlib.Path(sgtokens.__file__).parent / "adapters"


def test_nanogpt(folder, load):
    get_batch = nanogpt.GetBatch(folder, 4, 32, arrays="numpy")
    assert same(get_batch("train"), load()[0])
    assert get_batch("val")[0].shape == (4, 32)
    state = json.loads(json.dumps(get_batch.state_dict()))
    again = nanogpt.GetBatch(folder, 4, 32, arrays="numpy")
    again.load_state_dict(state)
    assert same(again("train"), load()[1])


def test_nanochat(folder, load):
    given = (folder, 4, 32)
    batches = nanochat.loader_with_state(*given, arrays="numpy")
    assert same(next(batches)[:2], load()[0])
    state = json.loads(json.dumps(next(batches)[2]))
    again = nanochat.loader_with_state(*given, resume_state_dict=state, arrays="numpy")
    assert same(next(again)[:2], load()[2])
    assert same(next(nanochat.loader(*given, arrays="numpy")), load()[0])


def test_torchtitan(folder, load):
    parts = [torchtitan.DataLoader(folder, 2, 32, r, 2, arrays="numpy") for r in range(2)]
    for r, part in enumerate(parts):
        batches = iter(part)
        next(batches)
        inputs, y = next(batches)
        assert same((inputs["input"], y), (a[r::2] for a in load()[1]))
    one = torchtitan.DataLoader(folder, 4, 32, arrays="numpy")
    one.load_state_dict({})
    one.load_state_dict(parts[0].state_dict())
    assert same((next(iter(one))[1],), load()[2][1:])


def test_torchtitan_itself(folder, load):
    pytest.importorskip("torchtitan")
    given = {"tokenizer": None, "seq_len": 32, "snapshot_every_n_steps": 1}
    config = torchtitan.Config(dataset_path=folder, options={"documents": True})
    for r in range(2):
        data = config.build(dp_world_size=2, dp_rank=r, local_batch_size=2, **given)
        inputs, y = next(iter(data))
        assert same((inputs["input"], y), (a[r::2] for a in load()[0]))
        assert inputs["positions"].shape == y.shape
    assert config.to_dict()["dataset_path"] == folder


def test_torchs_checkpoints(folder, load, tmp_path, torch):
    """The state is saved as torchtitan saves it, and loaded with another number of ranks."""
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    saved = torchtitan.DataLoader(folder, 2, 32, 1, 2)
    batches = iter(saved)
    for _ in range(3):
        next(batches)
    checkpoint.save({"dataloader": saved}, checkpoint_id=tmp_path)
    one = torchtitan.DataLoader(folder, 4, 32)
    checkpoint.load({"dataloader": one}, checkpoint_id=tmp_path)
    inputs, y = next(iter(one))
    assert isinstance(y, torch.Tensor) and same((inputs["input"], y), load()[3])


def test_grain(load):
    source = grain_source.Source(load())
    assert len(source) == len(load())
    record = pickle.loads(pickle.dumps(source))[5]
    assert same((record["inputs"], record["targets"]), load()[5])
    assert (
        repr(source) == repr(grain_source.Source(load())) != repr(grain_source.Source(load(seed=2)))
    )
    assert repr(source).startswith("sgtokens.Source({'version': 1, ")
    with pytest.raises(IndexError):
        source[len(source)]


@pytest.mark.parametrize("workers", [0, 2])
def test_grain_itself(load, workers):
    """Grain's iterators resume, and its worker processes open the data set again."""
    grain = pytest.importorskip("grain")
    source = grain_source.Source(load(reader="mmap"))
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    mapped = grain.MapDataset.source(source)
    assert same((mapped[3]["inputs"],), load()[3])
    assert same((mapped[1 : len(source)][4]["targets"],), load()[5][1:])
    dataset = mapped.repeat().to_iter_dataset()
    if workers:
        dataset = dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    batches = iter(dataset)
    for k in range(5):
        assert same((next(batches)["inputs"],), load()[k])
    again = iter(dataset)
    again.set_state(json.loads(json.dumps(batches.get_state())))
    assert same((next(again)["inputs"],), load()[5])


@pytest.fixture
def batches(load, torch):
    """A function that makes the dataset for torch's DataLoader."""
    from sgtokens.adapters.torch_dataset import Batches

    return lambda: Batches(load(arrays="torch", reader="mmap", batch=64))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_torch_workers_keep_the_order(load, batches, workers, torch):
    dataset = batches()
    data = dataset.data
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    count = 0
    for k, batch in enumerate(loader):
        assert same(batch, load(batch=64)[k])
        count += 1
    assert count == len(data)
    count *= not workers
    assert same(next(iter(loader)), load(batch=64)[count])  # new workers repeat the epoch
    if workers:
        data.seek(len(data))
        assert same(next(iter(loader)), load(batch=64)[len(data)])


def test_torchs_persistent_workers_take_the_next_epoch(load, batches, torch):
    given = {"batch_size": None, "num_workers": 2, "persistent_workers": True}
    loader = torch.utils.data.DataLoader(batches(), **given)
    want = load(batch=64)
    for epoch in range(2):
        for k, batch in enumerate(loader):
            assert same(batch, want[epoch * len(want) + k])


def test_devices_that_are_not_there(load, torch):
    data = load(arrays="torch")
    with pytest.raises(RuntimeError, match="bogus"):
        data.to("bogus")
    if not torch.cuda.is_available():
        with pytest.raises(sgtokens.UnsupportedError, match="device cuda: torch finds no GPU"):
            data.to("cuda")
    assert same(next(iter(data)), load()[0])


def test_batches_that_a_worker_sends(load, torch):
    class Mine(torch.utils.data.IterableDataset):
        def __init__(self, data):
            self.data = data

        def __iter__(self):
            return iter(self.data)

    mine = Mine(load(arrays="torch", batch=64, slots=2))
    got = list(torch.utils.data.DataLoader(mine, batch_size=None, num_workers=1))
    assert len(got) == len(mine.data)
    assert all(same(batch, mine.data[k]) for k, batch in enumerate(got))


@pytest.mark.parametrize("workers", [0, 2])
def test_torchdata_itself(load, batches, workers):
    """StatefulDataLoader resumes in the middle of an epoch, and continues with the next epoch."""
    pytest.importorskip("torchdata")
    from torchdata.stateful_dataloader import StatefulDataLoader

    given = {"batch_size": None, "num_workers": workers}
    loader, again = (StatefulDataLoader(batches(), **given) for _ in range(2))
    begun, want = iter(loader), load(batch=64)
    for k in range(3):
        assert same(next(begun), want[k])
    again.load_state_dict(loader.state_dict())
    rest = list(again)
    assert len(rest) == len(want) - 3
    assert all(same(b, want[3 + k]) for k, b in enumerate(rest))


def test_torch_tensors(load, torch):
    data = load(arrays="auto")
    x, y = next(iter(data))
    assert isinstance(x, torch.Tensor) and x.dtype == torch.int64
    assert same((x, y), load()[0]) and same(data[1], load()[1])
    torch.nn.functional.cross_entropy(torch.zeros(4 * 32, 50257), y.reshape(-1))


def test_torch_device(load, torch):
    """The copy to the device is one batch ahead of the loader's position."""
    data = load(arrays="torch").to("cpu")
    got = []
    for k, (x, y) in zip(range(5), data):
        assert data.position == k + 1
        got.append((x, y))
    assert all(same(b, load()[k]) for k, b in enumerate(got))
    data.seek(2)
    assert same(next(iter(data)), load()[2])


def test_hugging_face(folder, load, torch):
    from sgtokens.adapters.huggingface import Rows

    rows = Rows(folder, 32)
    row = next(iter(rows))
    want = load(batch=1)[0]
    assert same((row["input_ids"],), want[0])
    assert row["labels"][0] == -100 and same((row["labels"][1:],), (want[1][0][:-1],))
    loader = torch.utils.data.DataLoader(rows, batch_size=4, num_workers=2)
    assert sum(len(b["labels"]) for b in loader) == len(rows)
    rows.set_epoch(1)
    assert same((next(iter(rows))["input_ids"],), load(batch=1)[len(rows)][0])
    assert sum(1 for _ in rows) == len(rows)


@pytest.mark.parametrize("workers", [0, 2])
def test_trainer_itself(folder, load, tmp_path, workers, torch):
    """A Trainer that resumes a checkpoint sees the rows that come next."""
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    from sgtokens.adapters.huggingface import Rows

    class Model(transformers.GPT2LMHeadModel):
        def forward(self, input_ids=None, labels=None, **more):
            seen.append(input_ids.clone())
            return super().forward(input_ids=input_ids, labels=labels, **more)

    def train(steps, **given):
        seen.clear()
        torch.manual_seed(1)
        config = transformers.GPT2Config(n_embd=8, n_layer=1, n_head=1, n_positions=32)
        arguments = transformers.TrainingArguments(
            tmp_path, max_steps=steps, per_device_train_batch_size=4, save_steps=3, use_cpu=True,
            dataloader_num_workers=workers, report_to=[], disable_tqdm=True,
        )  # fmt: skip
        trainer = transformers.Trainer(Model(config), arguments, train_dataset=Rows(folder, 32))
        loss = trainer.train(**given).training_loss
        assert 0 < loss < 20

    seen = []
    train(3)
    order = [load(batch=1)[k][0][0] for k in range(24)]
    assert [len(rows) for rows in seen] == [4, 4, 4]
    assert same(torch.cat(seen), order[:12]) or workers  # workers make complete batches
    train(6)
    whole = torch.cat(seen)
    train(6, resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert same(torch.cat(seen), whole[12:])
