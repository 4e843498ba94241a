"""Loader: batches of a set. Batch k depends only on the set, the options, the seed and k."""

import operator
import os
import sys
import threading
from ctypes import byref, c_uint64, pointer
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from . import _native as c
from ._batches import OUTPUTS, Buffer, Documents, Kind, Mover, Stream, find_torch, find_worker
from ._native import Handle, Path, UnsupportedError, UsageError
from ._native import loader_library as library

__all__ = ["Documents", "Loader"]
VERSION = 1
_U32, _U64 = (1 << 32) - 1, (1 << 64) - 1


def _number_in(variable: str, least: int) -> int:
    """Return the number at the beginning of a launcher's variable, such as Slurm's 4(x2),3."""
    text = os.environ[variable]
    number = text.replace("(", ",").partition(",")[0]
    if not number.isdecimal() or int(number) < least:
        raise UsageError(f"{variable}={text}: expected a whole number of at least {least}")
    return int(number)


def find_ranks(rank: Optional[int], ranks: Optional[int]) -> Tuple[int, int]:
    """Return the rank and the number of ranks: the given ones, else torch.distributed's, else those
    in torchrun's variables, else 0 and 1."""
    if rank is None and ranks is None:
        torch = sys.modules.get("torch")
        distributed = getattr(torch, "distributed", None)
        if distributed and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            return _number_in("RANK", 0), _number_in("WORLD_SIZE", 1)
        return 0, 1
    if rank is None or ranks is None:
        raise UsageError("rank and ranks: give both or neither")
    return rank, ranks


def _count_copies() -> int:
    """Return how many processes on this machine will open the same set: the number that the
    launcher started here, times the number of workers of PyTorch's DataLoader."""
    names = "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"
    here = next((_number_in(name, 1) for name in names if os.environ.get(name)), 1)
    return here * (find_worker()[1] or 1)


def _name_of(dtype: Any) -> str:
    """Return the name of a dtype: "int64" for "int64", numpy.int64 and torch.int64."""
    return getattr(dtype, "__name__", str(dtype)).rpartition(".")[2]


class _Iterator:
    """Iterator over batches until there are no more. iter(take, None) cannot be used: without the
    GIL, it may lose a batch that one thread takes while another reaches the end."""

    def __init__(self, take: Any) -> None:
        self._take = take

    def __iter__(self) -> "_Iterator":
        return self

    def __next__(self) -> Any:
        batch = self._take()
        if batch is None:
            raise StopIteration
        return batch


class Loader:
    """Batches of token windows: x and y, each (batch / ranks, seq), y shifted by one token.

    `for x, y in data` continues at the loader's position, to the end of its epoch (without end if
    epochs=None). Threads of the library draw batches ahead of time. You may keep x and y: their
    memory is reused only when nothing refers to it any more. `data[k]` is batch k in new arrays, at
    any time. PyTorch's DataLoader(data) would read data[0], data[1], ... and ignore the position:
    give it Batches(data) from sgtokens.adapters.torch_dataset instead.

    path: a folder of shards, a shard, or several folders with weights, "web:0.7,books:0.3", as
        `sgt-train --data` takes it; a pathlib path is one folder or shard
    batch: rows per batch, over all ranks, like sgt-train's --batch-size; seq: tokens per row
    sampling: shuffle, random, block, sequential, documents or packed; seed: seed of the order
    reader: preload, mmap or uring; None: preload, or with a warning mmap, if memory is too small
        for a copy in each process on this machine (those of LOCAL_WORLD_SIZE, mpirun or srun, and
        a DataLoader's workers)
    split: which shards SPLIT_*.bin of a folder to use: train or val (see split of tokenize)
    rank, ranks: default: torch.distributed's, else torchrun's RANK and WORLD_SIZE, else 0 of 1
    dtype: int64, int32 or uint16, as a string or as a dtype of torch or numpy
    arrays: torch, numpy, or auto (torch if it is installed)
    documents: also return `Documents` (positions, ids, cu_seqlens): `for x, y, where in data`
    epochs: number of epochs of one `for`; None: without end
    vocab: refuse ids from this number on; 0: ids outside of the set's vocabulary
    pad: id that fills a row after a shorter document (sampling documents; None: the end of text).
        Its targets are -100, which cross_entropy ignores; but with uint16, they are pad itself
    raw: bits of an id, 16 or 32, in files without a header. nanoGPT's train.bin and val.bin in a
        folder are recognized without it if their ids have 16 bits
    slots, threads: number of batches drawn ahead of time, and of threads that draw them

    Any number of threads may use one loader. A forked process, and a process that unpickles a
    loader, opens the set again at its first batch, at the same position.
    """

    @c.suggests
    def __init__(
        self,
        path: Path,
        *,
        batch: int = 8,
        seq: int = 512,
        sampling: str = "shuffle",
        seed: int = 1,
        rank: Optional[int] = None,
        ranks: Optional[int] = None,
        reader: Optional[str] = None,
        split: str = "train",
        dtype: Any = "int64",
        arrays: str = "auto",
        documents: bool = False,
        epochs: Optional[int] = 1,
        vocab: int = 0,
        pad: Optional[int] = None,
        raw: int = 0,
        slots: int = 4,
        threads: int = 1,
    ) -> None:
        dtype = _name_of(dtype)
        rank, ranks = find_ranks(rank, ranks)
        c.index_of("dtype", dtype, tuple(OUTPUTS))
        c.index_of("arrays", arrays, ("auto", "torch", "numpy"))
        for name, number, least, most in (  # 0 would be the library's default, not an error
            ("batch", batch, 1, _U32), ("seq", seq, 1, _U32), ("ranks", ranks, 1, _U32),
            ("slots", slots, 2, 1 << 16), ("threads", threads, 1, 1024),
            ("epochs", epochs or 0, 0, _U64),
        ):  # fmt: skip
            c.check_range(name, number, least, most)
        self._path = path
        self._settings: Dict[str, Any] = {
            "batch": batch, "seq": seq, "sampling": sampling, "seed": seed, "rank": rank,
            "ranks": ranks, "reader": reader, "split": split, "vocab": vocab, "pad": pad,
            "raw": 16 if raw is True else raw, "documents": bool(documents),
        }  # fmt: skip
        self._dtype, self._arrays = dtype, arrays
        self._epochs, self._slots, self._threads = epochs, slots, threads
        self._device: Any = None
        self._position, self._is_closed = 0, False
        self._forget()
        self._ready()

    # ---- the set ----

    def _forget(self) -> None:
        """Reset the fields to the closed state: at first, after close, and in a forked process."""
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._native: Optional[Handle] = None
        self._stream: Optional[Stream] = None
        self._mover: Optional[Mover] = None
        self._cursors: List[Handle] = []  # cursors that no thread is using
        self._kind: Optional[Kind] = None

    def _ready(self) -> Handle:
        """Return this process's open loader, opening the set if necessary."""
        if self._pid != os.getpid():
            self._forget()
        native = self._native
        if native is None:
            with self._lock:
                native = self._native = self._native or self._open()
        return native

    def _open(self) -> Handle:
        if self._is_closed:
            raise UsageError(f"{os.fspath(self._path)}: the loader is closed")
        s = self._settings
        given = {
            **s, "reader": c.index_of("reader", s["reader"] or "preload", c.READERS),
            "sampling": c.index_of("sampling", s["sampling"], c.SAMPLINGS),
            "copies": _count_copies(), "may_map": not s["reader"], "pad": s["pad"] or 0,
            "split": c.text_of("split", s["split"]), "padded_by": s["pad"] is not None,
        }  # fmt: skip
        data = c.path_of(self._path)
        options = c.fill(c.LoaderOptions, notice=c.NOTICE, data=data, **given)
        if not isinstance(self._path, str):  # one set, whatever its name
            options.data, options.sets = None, pointer(c.LoaderSet(path=data))
            options.set_count = 1
        functions = library.sgt_loader_open, library.sgt_loader_close
        native = c.open_handle(*functions, byref(options))
        info = library.sgt_loader_get_info(native.pointer).contents
        self._info = c.LoaderInfo.from_buffer_copy(info)
        if self._info.reader_detail != b"preload":  # then a file cut short is an error, not SIGBUS
            c.call(library.sgt_loader_guard_sigbus)
        return native

    def close(self) -> None:
        """Free everything now. Arrays that were returned stay valid."""
        with self._lock:
            self._forget()
            self._is_closed = True

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        options = "_path _settings _dtype _arrays _epochs _slots _threads _device"
        kept = (*options.split(), "_position", "_is_closed")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @property
    def tokens(self) -> int:
        """Tokens in the set's used shards."""
        return int(self._described.tokens)

    @property
    def windows(self) -> int:
        """Rows of an epoch."""
        return int(self._described.windows_per_epoch)

    @property
    def packing(self) -> Dict[str, int]:
        """Contents of the rows in the first epoch with sampling="packed": the number of rows,
        documents, tokens of the documents, and tokens that were cropped."""
        info, sampling = self._described, self._settings["sampling"]
        if sampling != "packed":
            raise AttributeError(f"packing: needs sampling='packed', not {sampling!r}")
        found = info.windows_per_epoch, info.documents, info.packed_tokens, info.cropped
        return dict(zip(("rows", "documents", "tokens", "cropped"), map(int, found)))

    @property
    def vocab(self) -> int:
        """Exclusive upper bound of ids."""
        return int(self._described.vocab)

    @property
    def shape(self) -> Tuple[int, int]:
        """Shape of x and y: (rows of this rank, tokens per row)."""
        return int(self._described.local_batch), int(self._described.seq)

    @property
    def batch(self) -> int:
        """Rows per batch, over all ranks."""
        return int(self._described.batch)

    @property
    def reader(self) -> str:
        """The reader in use, and the fallbacks that it uses."""
        return (self._described.reader_detail or b"").decode()

    @property
    def _described(self) -> c.LoaderInfo:
        self._ready()
        return self._info

    def __len__(self) -> int:
        """Number of batches in an epoch, which uses each window once."""
        return -(-self.windows // self.batch)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self._settings.items() if v not in (None, False))
        return f"sgtokens.Loader({os.fspath(self._path)!r}, {given}, position={self._position})"

    # ---- batches in order ----

    @property
    def position(self) -> int:
        """Index of the batch that iteration returns next."""
        return self._position

    def seek(self, batch: int) -> None:
        """Continue at this batch."""
        batch = operator.index(batch)
        if not 0 <= batch <= _U64:
            raise UsageError(f"batch {batch}: must be from 0 to 2**64 - 1")
        self._ready()
        with self._lock:
            self._position = batch
            self._stream = self._mover = None

    def __iter__(self) -> Iterator[Any]:
        end = None
        if self._epochs is not None:
            end = (self._position // len(self) + self._epochs) * len(self)
        return _Iterator(lambda: self._next(end))

    def to(self, device: Any) -> "Loader":
        """Return batches on this torch device from now on. Each batch is copied on a separate
        stream while the batch before it is in use. Returns the loader."""
        if device is not None:
            torch = self._made_of().torch
            if not torch:
                raise UsageError("to: needs torch tensors, but the batches are numpy arrays")
            device = torch.device(device)
            if device.type == "cuda" and not torch.cuda.is_available():
                raise UnsupportedError(f"to: device {device}: torch finds no GPU")
        self._device = None if device is None else str(device)
        with self._lock:
            self._mover = None
        return self

    def _next(self, end: Optional[int]) -> Any:
        """Return the batch at the current position and advance; return None at batch `end`."""
        self._ready()
        with self._lock:
            index = self._position
            if end is not None and index >= end:
                return None
            if self._device is None:
                batch = self._take(index)
            else:
                self._mover = self._mover or Mover(find_torch("torch"), self._device)
                batch = self._mover.batch(index, self._take)
            self._position = index + 1
            return batch

    def _take(self, index: int) -> Tuple[Any, ...]:
        """Return batch `index` from the stream, which is opened anew if it is at another batch."""
        stream = self._stream
        if stream is None or stream.next != index or not stream.is_clean:
            self._stream = None  # close it before the next one allocates memory
            stream = self._stream = Stream(
                self._ready(), self._made_of(), index, self._slots, self._threads
            )
        try:
            batch: Tuple[Any, ...] = stream.take()
        except Exception:
            self._stream = None  # a further call tries again
            raise
        if self._settings["documents"]:
            batch = (*batch, stream.kind.documents(stream.batch.contents))
        return batch

    def _made_of(self) -> Kind:
        if self._kind is None:
            rows, seq = self.shape
            self._kind = Kind(find_torch(self._arrays), self._dtype, rows, seq)
        return self._kind

    # ---- any batch ----

    def __getitem__(self, index: Union[int, slice]) -> Any:
        """Return batch `index`; for a slice, all its batches in one array (count, rows, seq)."""
        if not isinstance(index, slice):
            return self._read(operator.index(index))
        if self._settings["documents"]:
            raise TypeError("slices need documents=False: take the batches one by one")
        if index.step not in (None, 1) or index.stop is None:
            raise TypeError("a slice of batches needs an end and a step of 1")
        first, end = operator.index(index.start or 0), operator.index(index.stop)
        if end < 0:
            raise IndexError(f"slice up to {end}: the end must not be negative")
        return self._read(first, max(end - first, 0))

    def _read(self, first: int, *count: int) -> Tuple[Any, ...]:
        if not 0 <= first <= _U64:
            raise IndexError(f"batch {first}: must be from 0 to 2**64 - 1")
        native, kind = self._ready(), self._made_of()
        buffer = Buffer(kind, *count)
        with self._lock:
            cursor = self._cursors.pop() if self._cursors else None
        if cursor is None:
            functions = library.sgt_cursor_open, library.sgt_cursor_close
            cursor = c.open_handle(*functions, native.pointer, kept=[native])
        given = first, *(count or (1,)), OUTPUTS[kind.dtype][0], buffer.inputs, buffer.size
        c.call(library.sgt_loader_read, native.pointer, cursor.pointer, *given)
        read = library.sgt_cursor_batch(cursor.pointer).contents
        x, y = buffer.views()
        batch = (x, y, kind.documents(read)) if self._settings["documents"] else (x, y)
        with self._lock:
            self._cursors.append(cursor)
        return batch

    # ---- resuming ----

    def state_dict(self) -> Dict[str, Any]:
        """Return the position and everything that determines the rows, as a dict for JSON."""
        native = self._ready()
        state = c.fill(c.LoaderState)
        with self._lock:
            c.call(library.sgt_loader_get_state, native.pointer, self._position, byref(state))
        fields = {field[0]: getattr(state, field[0]) for field in state._fields_[1:]}
        fields.update(hash=f"{state.hash:016x}", sampling=c.SAMPLINGS[state.sampling])
        return {"version": VERSION, **fields}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at the position of a saved loader, which must have had the same rows. The number
        of ranks and the reader may differ. The batch size may differ if it divides the number of
        rows drawn so far. If anything else differs, UsageError names it."""
        if not isinstance(state, Mapping):
            name = type(state).__name__
            raise TypeError(f"state: expected a dict as state_dict returns, not {name}")
        if state.get("version") != VERSION:
            raise UsageError(f"the state has version {state.get('version')}, not {VERSION}")
        native, next_ = self._ready(), c_uint64()
        try:
            fields = {name: state[name] for name in ("rows", "tokens", "seed", "seq", "pad")}
            sampling, digest = state["sampling"], int(state["hash"], 16)
            number = c.index_of("sampling", sampling, c.SAMPLINGS)
            saved = c.fill(c.LoaderState, hash=digest, sampling=number, **fields)
        except KeyError as name:
            raise UsageError(f"the state is damaged: it has no {name}") from None
        except (TypeError, ValueError) as why:
            raise UsageError(f"the state is damaged: {why}") from None
        c.call(library.sgt_loader_resume, native.pointer, byref(saved), byref(next_))
        self.seek(next_.value)
