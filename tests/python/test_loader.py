"""Batches: their content and order, and how a loader resumes."""

import contextlib
import copy
import json
import pathlib
import pickle
import re
import sys
import weakref
from collections import deque
from functools import partial
from itertools import islice

import numpy as np
import pytest
from conftest import same

import sgtokens


def tokens_of(folder):
    shards = sorted(pathlib.Path(folder).glob("train_*.bin"))
    return [np.fromfile(s, "<u2", offset=1024) for s in shards]


def test_sequential_is_the_files_own_order(load, folder):
    data = load(sampling="sequential")
    tokens = tokens_of(folder)[0]
    x, y = data[0]
    assert x.shape == (4, 32) and x.dtype == np.int64
    assert (x.reshape(-1) == tokens[: 4 * 32]).all()
    assert (y.reshape(-1) == tokens[1 : 4 * 32 + 1]).all()


def test_a_text_as_tokens(tmp_path):
    """Text is read as tokens only if raw= is given."""
    book = tmp_path / "book.txt"
    book.write_text("It was the best of times. " * 100)
    with pytest.raises(sgtokens.FormatError, match="text, not 16-bit tokens"):
        sgtokens.Loader(book, batch=2, seq=4)
    for raw in 16, True:
        x, _ = sgtokens.Loader(book, batch=2, seq=4, raw=raw, arrays="numpy", sampling="sequential")[0]
        assert x[0, 0] == int.from_bytes(b"It", "little")


@pytest.mark.parametrize("width", ["uint32", "int64"])
def test_wide_ids_are_not_read_as_narrow_ones(load, tmp_path, width):
    wide = tmp_path / "train.bin"
    np.arange(100, 400, dtype=width).tofile(wide)
    for path, raw in (wide, 0), (wide, 16), (tmp_path, 16), (tmp_path, 0):
        with pytest.raises(sgtokens.Error, match=r"train.bin: (32|64)-bit ids without a header"):
            sgtokens.Loader(path, batch=2, seq=4, raw=raw)
    if width == "uint32":
        for dtype in "int32", "int64":
            x, y = load(tmp_path, batch=2, seq=4, raw=32, dtype=dtype, sampling="sequential")[0]
            assert (x == [[100, 101, 102, 103], [104, 105, 106, 107]]).all() and (y == x + 1).all()
        with pytest.raises(ValueError, match="4-byte ids do not fit into u16 rows"):
            load(tmp_path, batch=2, seq=4, raw=32, dtype="uint16")[0]


def test_a_folder_of_nanogpt(tmp_path, caplog):
    np.arange(300, dtype="<u2").tofile(tmp_path / "train.bin")
    data = sgtokens.Loader(tmp_path, batch=2, seq=4, arrays="numpy", sampling="sequential")
    assert (data[0][0] == [[0, 1, 2, 3], [4, 5, 6, 7]]).all()
    said = f"{tmp_path}/train.bin has no header: reading it as nanoGPT's 16-bit ids"
    assert [(r.name, r.getMessage()) for r in caplog.records] == [("sgtokens", said)]


@pytest.mark.parametrize("name", ["LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"])
def test_more_copies_than_memory(load, monkeypatch, caplog, name):
    """Each process preloads a copy. If not all fit, the default is mmap, and preload is refused."""
    want = load()[3]
    monkeypatch.setenv(name, "1000000000")
    data = load()
    assert data.reader.startswith("preload (mmap: the set needs 1 MiB in each of 1000000000 ")
    assert caplog.messages[-1].endswith(" MiB of memory: reading with mmap instead")
    assert (data[3][0] == want[0]).all()
    with pytest.raises(sgtokens.Error, match=r"\(use the reader mmap or uring, which "):
        load(reader="preload")
    assert load(reader="mmap").reader == "mmap"


@pytest.mark.parametrize("value", ["two", "-1", "0", "2.5", ""])
@pytest.mark.parametrize("name, least", [("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_WORLD_SIZE", 1)])
def test_a_launcher_that_names_no_number(load, monkeypatch, name, least, value):
    for variable in "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE":
        monkeypatch.setenv(variable, str(int(variable != "RANK")))
    monkeypatch.setenv(name, value)
    if value == str(least) or (not value and name.startswith("LOCAL")):
        load()
        return
    with pytest.raises(sgtokens.UsageError, match=f"^{name}={value}: expected a whole number of at least {least}$"):
        load()


def test_copies_of_slurm(load, monkeypatch):
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1")
    assert load().reader == "preload"
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "1000000000(x2),1")
    assert load().reader != "preload"


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
@pytest.mark.parametrize("reader", sgtokens._native.READERS)
def test_iteration_gives_the_numbered_batches(load, dtype, reader):
    data, plain = load(dtype=dtype, reader=reader), load()
    for k, (x, y) in zip(range(20), data):
        want = plain[k]
        assert x.dtype == dtype
        assert (x == want[0]).all() and (y == want[1]).all()
    xs, ys = data[3:7]
    for i in range(4):
        assert (xs[i] == plain[3 + i][0]).all() and (ys[i] == plain[3 + i][1]).all()


def test_dtypes_of_numpy_and_torch(load):
    types = [np.int32, np.dtype("int32")]
    with contextlib.suppress(ImportError):
        types.append(__import__("torch").int32)
    assert {load(dtype=t)[0][0].dtype for t in types} == {np.dtype("int32")}
    with pytest.raises(sgtokens.UsageError, match="dtype 'float32': expected one of"):
        load(dtype=np.float32)


def test_an_epoch_ends_and_the_next_one_goes_on(load):
    data = load()
    assert len(data) == -(-data.windows // 4)
    assert sum(1 for _ in data) == len(data) == data.position
    assert sum(1 for _ in data) == len(data)
    assert data.position == 2 * len(data)
    two = load(epochs=2)
    assert sum(1 for _ in two) == 2 * len(data)
    endless = iter(load(epochs=None))
    for _ in range(len(data) + 1):
        next(endless)


def test_ranks_share_a_batch(load):
    whole = load()
    parts = [load(rank=r, ranks=2) for r in range(2)]
    x = whole[7][0]
    assert parts[0].shape == (2, 32)
    for r, part in enumerate(parts):
        assert (part[7][0] == x[r::2]).all()


def test_ranks_come_from_torchruns_variables(load, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert load().shape == (2, 32)


def test_ranks_come_from_torch_distributed(load, monkeypatch, torch):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    monkeypatch.setenv("RANK", "0")  # torch.distributed has priority
    monkeypatch.setenv("WORLD_SIZE", "4")
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    try:
        assert all(map(np.array_equal, load()[3], load(rank=1, ranks=2)[3]))
        assert load(rank=0, ranks=1).shape == (4, 32)
    finally:
        torch.distributed.destroy_process_group()


@pytest.fixture(params=["numpy", "torch"])
def arrays(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
@pytest.mark.parametrize("sampling", ["shuffle", "documents", "packed"])
@pytest.mark.parametrize("documents", [False, True])
def test_batches_that_are_kept(load, arrays, dtype, sampling, documents):
    more = {"dtype": dtype, "sampling": sampling, "documents": documents}
    kept = list(islice(load(arrays=arrays, **more), 8))
    for k, (x, y, *where) in enumerate(kept):
        want = load(**more)[k]
        assert same((x, y), want[:2]) and len(where) == documents
        assert not documents or same(where[0], want[2])


def test_batches_of_wide_ids_that_are_kept(load, arrays, tmp_path):
    np.arange(66_000, 67_000, dtype=np.uint32).tofile(tmp_path / "train.bin")
    more = {"raw": 32, "sampling": "sequential", "batch": 2, "seq": 8, "vocab": 70_000}
    kept = list(islice(load(tmp_path, arrays=arrays, **more), 8))
    assert same([x for x, _ in kept], 66_000 + np.arange(8 * 16).reshape(8, 2, 8))


@pytest.mark.parametrize("window, most", [(0, 5), (1, 5), (3, 8)])
def test_buffers_of_batches_that_are_not_kept(load, arrays, window, most, monkeypatch):
    """Buffers are reused: there are the four of the ring, plus those that batches in use hold."""
    buffer, made = sgtokens._batches.Buffer, []

    def make(*given, **more):
        made.append(buffer(*given, **more))
        return made[-1]

    monkeypatch.setattr(sgtokens._batches, "Buffer", make)
    data, last = load(arrays=arrays, epochs=None), deque(maxlen=window)
    for k, (x, y) in zip(range(300), data):
        last.append((k, x, y))
    assert len(made) <= most
    for k, *batch in last:
        assert same(batch, load()[k])


def test_buffers_that_were_kept_are_freed(load):
    data = load(epochs=None)
    kept = list(islice(data, 100))
    owners = [weakref.ref(x.base) for x, _ in kept]
    first = kept[0]
    del kept
    places = {x.ctypes.data for _, (x, _y) in zip(range(300), data)}
    assert sum(owner() is not None for owner in owners) <= 9 and len(places) <= 9
    assert same(first, load()[0])


WAYS = """x.reshape(-1) x[0] x[:,3:] x.T y[1] memoryview(x) np.asarray(x)[1] torch.from_numpy(x)
torch.from_numpy(x)[0] np.lib.stride_tricks.as_strided(x) x.reshape(-1).view(np.uint8)"""
WAYS_OF_TORCH = """x.view(-1) x[0] x.T y[1] x.detach() x.numpy() x.numpy()[0] memoryview(x.numpy())
x.untyped_storage() torch.utils.dlpack.to_dlpack(x) x.share_memory_() y.share_memory_()[0]
pickle.loads(pickle.dumps(x)) copy.copy(x) x.unbind() x.unfold(0,2,1) x.view(torch.uint8)"""


@pytest.mark.parametrize(
    "arrays, way",
    [("numpy", way) for way in WAYS.split()] + [("torch", way) for way in WAYS_OF_TORCH.split()],
)
def test_whatever_refers_to_a_batch_keeps_it(load, arrays, way):
    torch = pytest.importorskip("torch") if "torch" in (arrays + way) else None
    scope = {"torch": torch, "np": np, "pickle": pickle, "copy": copy}

    def held_of(x, y):
        return eval(way, {**scope, "x": x, "y": y})

    def values(held):
        if "dlpack" in way:
            held = torch.utils.dlpack.from_dlpack(held)
        return [np.asarray(part) for part in (held if isinstance(held, tuple) else [held])]

    data = load(arrays=arrays)
    kept = [held_of(x, y) for _, (x, y) in zip(range(12), data)]
    for k, held in enumerate(kept):
        want = load(arrays=arrays)[k]
        assert all(map(np.array_equal, values(held), values(held_of(*want)))), k


def test_a_graph_of_autograd_keeps_its_batch(load, torch):
    """autograd saves embedding ids and loss targets, so they must not be overwritten."""
    weight = torch.rand(50257, 2, requires_grad=True)
    few = torch.rand(4, 32, 50257)

    def losses(batches):
        for x, y in batches:
            logits = few * weight[:, 0]
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            yield torch.nn.functional.embedding(x, weight).square().sum() + loss

    def gradients(of):
        return [torch.autograd.grad(loss, weight)[0] for loss in of]

    data = load(arrays="torch")
    got = gradients(list(losses(islice(data, 7))))
    want = gradients(losses(load(arrays="torch")[k] for k in range(7)))
    assert all(map(torch.equal, got, want))


@pytest.fixture
def pins(monkeypatch):
    """Pretend to pin memory, without a GPU. Return a list of weak references to that memory."""
    torch, pins = pytest.importorskip("torch"), []
    empty = torch.empty

    def fake(*given, pin_memory=False, **more):
        made = empty(*given, **more)
        pins.extend([weakref.ref(made.untyped_storage())] * pin_memory)
        return made

    monkeypatch.setattr(torch, "empty", fake)
    monkeypatch.setattr("sgtokens._batches.may_pin", lambda torch: True)
    return pins


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
@pytest.mark.parametrize("keep", [0, 1, 40])
def test_pinned_batches_are_torchs_memory(load, pins, keep, dtype):
    """torch reuses pinned memory when no tensor and no device copy uses it any more. So each batch
    has new memory, in tensors that torch has allocated, not in views of arrays."""
    data, last = load(arrays="torch", dtype=dtype, epochs=None), deque(maxlen=keep)
    for k, (x, y) in zip(range(100), data):
        assert x.untyped_storage() is y.untyped_storage() is pins[k]()
        assert same((x, y), load()[k])
        last.append((k, x, y))
        del x, y
    assert all(same(batch, load()[k]) for k, *batch in last)
    assert len(pins) == 103 and sum(made() is not None for made in pins) <= keep + 4


def test_state_survives_json_ranks_reader_and_batch(load):
    data = load()
    taken = iter(data)
    for _ in range(6):
        next(taken)
    state = json.loads(json.dumps(data.state_dict()))
    want = load()[6][0]
    for more in (
        {"reader": "mmap"},
        {"reader": "uring", "dtype": "uint16"},
        {"rank": 1, "ranks": 2},
        {"batch": 2},
        {"batch": 8},
    ):
        again = load(**more)
        again.load_state_dict(state)
        x, _ = next(iter(again))
        step = more.get("ranks", 1)
        expected = want[more.get("rank", 0) :: step]
        if more.get("batch") == 8:
            expected = load(batch=8)[3][0]
        assert (x == expected[: len(x)]).all(), more
    data.load_state_dict(state)
    assert (next(taken)[0] == want).all()  # an iterator that was already in use continues there


@pytest.mark.parametrize(
    "change, says",
    [
        ({"seed": 2}, "seed is 1 but was 2"),
        ({"seq": 64}, "sequence length is 32 but was 64"),
        ({"rows": 3}, "not a multiple of the batch size"),
        ({"hash": "00"}, "the data has hash"),
        ({"version": 9}, "has version 9"),
        ({"hash": None}, "damaged"),
        ({"sampling": "none"}, "damaged: sampling 'none': expected one of shuffle"),
        ({"rows": 1 << 70}, "damaged: rows: 1180591620717411303424 is out of range"),
        ({"seq": 1.0}, "damaged: seq: expected an integer, not float"),
    ],
)
def test_another_runs_state_is_refused(load, change, says):
    data = load()
    with pytest.raises(sgtokens.UsageError, match=says):
        data.load_state_dict({**data.state_dict(), **change})
    assert data.position == 0


def test_what_is_no_state_is_refused(load):
    state = load().state_dict()
    with pytest.raises(TypeError, match="expected a dict as state_dict returns, not str"):
        load().load_state_dict(json.dumps(state))
    del state["seed"]
    with pytest.raises(sgtokens.UsageError, match="damaged: it has no 'seed'"):
        load().load_state_dict(state)


def test_pickle_keeps_the_position(load):
    data = load()
    for _ in zip(range(3), data):
        pass
    again = pickle.loads(pickle.dumps(data))
    assert again.position == data.position
    assert (next(iter(again))[0] == load()[data.position][0]).all()


@pytest.mark.parametrize("sampling", ["shuffle", "random", "sequential", "packed"])
def test_documents_are_those_of_a_plain_search(load, sampling):
    """A document begins at each <|endoftext|>. A row may begin in the middle of a document."""
    data = load(documents=True, sampling=sampling, seq=48)
    for _, (x, _y, where) in zip(range(20), data):
        cuts, ids, positions = [], np.zeros(x.shape, int), np.zeros(x.shape, int)
        for row, column in np.ndindex(x.shape):
            if column == 0 or x[row, column] == 50256:
                cuts.append(row * 48 + column)
            ids[row, column] = sum(row * 48 < cut for cut in cuts)
            positions[row, column] = row * 48 + column - cuts[-1]
        assert where.cu_seqlens.tolist() == [*cuts, x.size]
        assert (where.ids == ids).all()
        in_first = ids == 0  # its document begins before the row
        assert (where.positions == positions)[~in_first].all()
        before = where.positions[:, :1] + np.arange(48)
        assert (where.positions == before)[in_first].all()
        assert all(a.dtype == np.int32 for a in where)


def test_documents_end_before_padding(tmp_path):
    for n in range(3):
        (tmp_path / f"{n}.txt").write_text("word" + " word" * 4 * n)
    sgtokens.tokenize(tmp_path, tmp_path / "out")
    given = {"batch": 3, "seq": 6, "arrays": "numpy", "sampling": "documents", "pad": 7}
    lengths = []
    for x, y, where in sgtokens.Loader(tmp_path / "out", documents=True, **given):
        real = [row[row >= 0].size for row in where.ids]
        for row, length in enumerate(real):
            assert (x[row, length:] == 7).all() and (x[row, :length] != 7).all()
            assert (y[row, length:] == -100).all() and (y[row, : length - 1] != 7).all()
            assert (where.ids[row, :length] == 0).all()
            assert (where.positions[row, :length] == np.arange(length)).all()
        edges = {edge for row, n in enumerate(real) for edge in (row * 6, row * 6 + n)}
        assert where.cu_seqlens.tolist() == sorted(edges | {x.size})
        lengths += real
    assert min(lengths) < 6 == max(lengths)


def test_packed_rows_begin_with_documents(load, folder):
    data = load(sampling="packed", documents=True)
    assert data.packing["rows"] == data.windows
    assert data.packing["tokens"] <= data.tokens
    assert data.packing["documents"] == (np.concatenate(tokens_of(folder)) == 50256).sum()
    for x, _y, where in data:
        assert (x[:, 0] == 50256).all() and (x[where.positions == 0] == 50256).all()
    with pytest.raises(AttributeError, match="^packing: needs sampling='packed', not 'shuffle'$"):
        load().packing  # noqa: B018
    assert not hasattr(load(), "packing")


LOADERS = (
    "batch_size:batch seq_len:seq block_size:seq context_length:seq num_threads:threads num_workers:threads loader:reader "
    "data_dir:path shuffle:sampling sede:seed world_size:ranks unheard:"
)
TOKENIZES = "output_dir:out input:inputs val_split:split overwrite:force shard_size:shard_tokens unheard:"


@pytest.mark.parametrize(
    "call, pair",
    [(sgtokens.Loader, p) for p in LOADERS.split()] + [(partial(sgtokens.tokenize, "in"), p) for p in TOKENIZES.split()],
)
def test_unknown_keyword(tmp_path, call, pair):
    word, _, meant = pair.partition(":")
    hint = f"; did you mean {meant}?" if meant else ""
    with pytest.raises(TypeError, match=f"^{word}: no such argument{re.escape(hint)}$"):
        call(tmp_path / "out", **{word: 1})


def test_mix_and_paths(folder, load, tmp_path):
    other = tmp_path / "other"
    sgtokens.tokenize(pathlib.Path(folder).parent / "corpus" / "00.txt", other)
    mix = sgtokens.Loader(f"{folder}:0.7,{other}:0.3", batch=4, seq=32, arrays="numpy")
    assert mix[0][0].shape == (4, 32)
    assert sgtokens.Loader(pathlib.Path(folder), arrays="numpy").tokens == load().tokens


@pytest.mark.parametrize(
    "more, error, says",
    [
        ({"sampling": "best"}, sgtokens.UsageError, "sampling 'best': expected one of shuffle"),
        ({"batch": 0}, sgtokens.UsageError, "batch: 0 is out of range, 1 to"),
        ({"slots": 1}, sgtokens.UsageError, "slots: 1 is out of range, 2 to 65536"),
        ({"threads": 0}, sgtokens.UsageError, "threads: 0 is out of range"),
        ({"rank": 2, "ranks": 2}, sgtokens.UsageError, "rank 2 of 2: must be below "),
        ({"rank": "0", "ranks": "2"}, TypeError, "ranks: expected an integer, not str"),
        ({"batch": 2.5}, TypeError, "batch: expected an integer, not float"),
        ({"epochs": -1}, sgtokens.UsageError, "epochs: -1 is out of range"),
        ({"split": None}, TypeError, "split: expected a str, not NoneType"),
        ({"split": "v\0al"}, sgtokens.UsageError, "contains a NUL"),
        ({"rank": 0, "ranks": 3}, sgtokens.UsageError, "3"),
        ({"rank": 1}, sgtokens.UsageError, "give both or neither"),
        ({"seq": 10**9}, sgtokens.Error, "1000000001|1000000000"),
        ({"split": "none"}, sgtokens.Error, "none"),
        ({"arrays": "jax"}, sgtokens.UsageError, "arrays 'jax': expected one of auto, torch, numpy"),
    ],
)
def test_wrong_arguments(load, more, error, says):
    with pytest.raises(error, match=says):
        load(**more)


@pytest.mark.parametrize("count", [10**12, 2**64])
def test_too_many_batches_at_once(load, count):
    with pytest.raises(sgtokens.OutOfMemoryError, match="^arrays of [0-9]+ bytes: out of memory$"):
        load()[:count]


def test_errors_are_of_pythons_kinds_too():
    with pytest.raises(OSError, match="nowhere: No such file .*make a folder of shards with sgt-tokenize"):
        sgtokens.Loader("nowhere")
    with pytest.raises(ValueError, match="contains a NUL"):
        sgtokens.Loader("nowhere\0")
    assert issubclass(sgtokens.OutOfMemoryError, MemoryError)
    assert issubclass(sgtokens.FormatError, ValueError)


def test_messages_are_the_librarys(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(sgtokens.FormatError, match=r"/manifest.json: .* again with --force\)$"):
        sgtokens.Loader(tmp_path)


def test_a_torch_that_cannot_be_imported_is_no_reason_for_numpy(load, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ImportError, match="libcudart"):
        load(arrays="auto")[0]


def test_indices(load):
    data = load()
    with pytest.raises(IndexError):
        data[-1]
    with pytest.raises(sgtokens.UsageError, match="64 bits"):
        data[2**64 - 1]
    for wrong in (slice(3, None), slice(1.5, 3), 1.0, "1"):
        with pytest.raises(TypeError):
            data[wrong]
    with pytest.raises(IndexError):
        data[2:-1]
    for wrong, error in ((2**64, sgtokens.UsageError), (-1, sgtokens.UsageError), (1.5, TypeError)):
        with pytest.raises(error):
            data.seek(wrong)
    assert data[123456789][0].shape == (4, 32)
    assert data[5:5][0].shape == (0, 4, 32)
