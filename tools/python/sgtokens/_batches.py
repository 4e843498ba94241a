"""What a batch consists of, and where: new arrays, a ring that the library's threads fill ahead of
time, and copies on a device."""

import math
import sys
from ctypes import byref, c_void_p
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _native as c
from ._native import Handle, OutOfMemoryError
from ._native import loader_library as library

# dtype: number in sgt_output, bytes of an id
OUTPUTS = {"uint16": (0, 2), "int32": (1, 4), "int64": (2, 8)}
PAGE = 4096


class Documents(NamedTuple):
    """Where documents begin in the rows of a batch. Attention kernels that take cu_seqlens keep
    attention within the part of a document that is in a row."""

    positions: Any  # (rows, seq) int32: distance of each input from its document's start
    ids: Any  # (rows, seq) int32: the document's number in the row, from 0; -1 is padding
    cu_seqlens: Any  # (parts + 1) int32: where parts begin in the rows * seq inputs, and the end


class Kind(NamedTuple):
    """The type and the shape of a batch's arrays."""

    torch: Any  # the module, or None for numpy
    dtype: str
    rows: int
    seq: int

    @property
    def is_rows(self) -> bool:
        """Return whether x and y are views of rows of seq + 1 ids."""
        return self.dtype == "uint16"

    def views(self, buffer: Any, targets_at: int) -> Tuple[Any, Any]:
        """Return x and y as views of a buffer; y is at byte `targets_at`, unless it has rows."""
        rows, seq = self.rows, self.seq
        if not self.torch:
            typed = buffer.view(self.dtype)
        else:
            typed = self.torch.from_numpy(buffer).view(getattr(self.torch, self.dtype))
        if self.is_rows:
            both = typed[: rows * (seq + 1)].reshape(rows, seq + 1)
            return both[:, :-1], both[:, 1:]
        at = targets_at // OUTPUTS[self.dtype][1]
        count = rows * seq
        return typed[:count].reshape(rows, seq), typed[at : at + count].reshape(rows, seq)

    def fresh(self, count: int) -> Tuple[Any, Any, Any, int, Optional[int]]:
        """Return room for `count` batches: x and y, the arrays that own their memory, and the
        addresses to write inputs (or rows) and targets to."""
        shape = (count, self.rows, self.seq + (1 if self.is_rows else 0))
        owners = [self._empty(shape) for _ in range(1 if self.is_rows else 2)]
        at = [a.data_ptr() if self.torch else a.ctypes.data for a in owners]
        if self.is_rows:
            return owners[0][..., :-1], owners[0][..., 1:], owners, at[0], None
        return owners[0], owners[1], owners, at[0], at[1]

    def _empty(self, shape: Tuple[int, ...]) -> Any:
        try:
            if not self.torch:
                return np.empty(shape, self.dtype)
            return self.torch.empty(shape, dtype=getattr(self.torch, self.dtype))
        except Exception:  # of several classes, and torch's text has several lines
            size = math.prod(shape) * OUTPUTS[self.dtype][1]
            raise OutOfMemoryError(f"arrays of {size} bytes: out of memory") from None

    def buffer(self, size: int, pinned: bool) -> Tuple[Any, int]:
        """Return a buffer of `size` bytes that begins at a page, and its address. It is an array:
        to share a tensor with another process moves it, and frees its memory, which the library
        goes on writing to. No caller sees the tensor that owns the pinned memory."""
        if pinned:
            owner = self.torch.empty(size + PAGE, dtype=self.torch.uint8, pin_memory=True)
            array = owner.numpy()
        else:
            array = np.empty(size + PAGE, np.uint8)
        skip = -array.ctypes.data % PAGE
        array = array[skip : skip + size]
        return array, array.ctypes.data

    def documents(self, batch: c.LoaderBatch) -> Documents:
        """Return copies of what the library found about the documents of a batch."""
        rows, seq = self.rows, self.seq
        positions, ids = (np.empty((rows, seq), np.int32) for _ in range(2))
        to = None, positions.ctypes.data, ids.ctypes.data
        library.sgt_loader_expand_starts(byref(batch), rows, seq, *to)
        begins = np.diff(ids, axis=1, prepend=-2) != 0  # ids of a row count its documents
        cuts = np.append(np.flatnonzero(begins), rows * seq).astype(np.int32)
        arrays = (positions, ids, cuts)
        if self.torch:
            arrays = tuple(self.torch.from_numpy(a) for a in arrays)
        return Documents(*arrays)


def find_torch(arrays: str) -> Any:
    """Return the module torch if batches are tensors, or None if they are numpy's arrays."""
    if arrays == "numpy":
        return None
    try:
        import torch
    except ModuleNotFoundError as missing:
        if arrays == "torch" or missing.name != "torch":  # torch is there, but cannot be imported
            raise
        return None
    return torch


def find_worker() -> Tuple[int, int]:
    """Return this process's number among the workers of PyTorch's DataLoader, and how many there
    are; 0 and 0 if it is none of them."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    info = worker and worker.get_worker_info()
    return (info.id, info.num_workers) if info else (0, 0)


def may_pin(torch: Any) -> bool:
    """Return whether to pin the ring's memory: there is a GPU, and this process is not a worker,
    which must not start CUDA."""
    return bool(torch) and torch.cuda.is_available() and not find_worker()[1]


class Stream:
    """Batches first, first + 1, ... of a loader. A batch lies in the ring, and its buffer is reused
    when the next batch is taken. The ring's memory belongs to Python, so that arrays stay
    valid after the stream is closed."""

    def __init__(self, native: Handle, kind: Kind, first: int, slots: int, threads: int) -> None:
        self.kind = kind
        self.next = first  # index of the batch that take() returns next
        self.is_clean = True  # False while a call runs, and after one that was interrupted
        self._views: List[Optional[Tuple[Any, Any]]] = [None] * slots
        self._holds = False
        self._batch, self._error = c.LoaderBatch(), c.ErrorText()
        self._refs = byref(self._batch), byref(self._error)
        output, pinned = OUTPUTS[kind.dtype][0], may_pin(kind.torch)
        size = library.sgt_stream_bytes(native.pointer, output)
        try:
            made = [kind.buffer(size, pinned) for _ in range(slots)]
        except Exception:  # of several classes, and torch's text has several lines
            raise OutOfMemoryError(f"{slots} buffers of {size} bytes: out of memory") from None
        self._buffers, self._addresses = zip(*made)
        options = c.StreamOptions(first=first, output=output, slots=slots, threads=threads)
        options.buffers = (c_void_p * slots)(*self._addresses)
        functions = library.sgt_stream_open, library.sgt_stream_close
        given, kept = (native.pointer, byref(options)), (native, self._buffers)
        self.handle = c.open_handle(*functions, *given, kept=kept)

    def take(self) -> Tuple[Any, Any]:
        """Return x and y of the next batch."""
        pointer, (batch, error) = self.handle.pointer, self._refs
        self.is_clean = False
        if self._holds:
            library.sgt_stream_release(pointer, batch)
            self._holds = False
        rc = library.sgt_stream_next(pointer, batch, error)
        if rc < 0:
            c.check(rc, self._error)
        self._holds = True
        self.next += 1
        self.is_clean = True
        slot = self._batch.slot
        views = self._views[slot]
        if views and self.kind.torch and views[0].data_ptr() != self._addresses[slot]:
            views = None  # they were shared with another process, and moved
        return views or self._view(slot)

    def documents(self) -> Any:
        """Return the documents of the batch that take() returned last."""
        return self.kind.documents(self._batch)

    def _view(self, slot: int) -> Tuple[Any, Any]:
        targets = self._batch.targets
        at = targets - self._addresses[slot] if targets else 0
        pair = self._views[slot] = self.kind.views(self._buffers[slot], at)
        return pair


# ---- a device ----

Batch = Tuple[Any, ...]


class _Copy(NamedTuple):
    number: int
    batch: Batch
    done: Any  # an event of CUDA, or None


class Mover:
    """Copies batch k + 1 to the device, on a stream of its own, while batch k is in use."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = torch.device(device)
        self._side = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._ahead: Optional[_Copy] = None

    def batch(self, index: int, take: Callable[[int], Batch]) -> Batch:
        """Return batch `index` on the device. `take` returns any batch, in memory that its next
        call overwrites."""
        now = self._ahead
        self._ahead = None
        if now is None or now.number != index:
            now = self._copy(index, take(index))
        if now.done:
            now.done.synchronize()  # the next call of `take` overwrites what is copied
        self._ahead = self._copy(index + 1, take(index + 1))
        if self._side:
            current = self._torch.cuda.current_stream(self._device)
            current.wait_event(now.done)
            for tensor in _tensors(now.batch):
                tensor.record_stream(current)  # keep its memory until this stream's work is done
        return now.batch

    def forget(self) -> None:
        self._ahead = None

    def _copy(self, index: int, batch: Batch) -> _Copy:
        if not self._side:
            return _Copy(index, self._move(batch), None)
        with self._torch.cuda.stream(self._side):
            moved = self._move(batch)
            done = self._torch.cuda.Event()
            done.record(self._side)
        return _Copy(index, moved, done)

    def _move(self, batch: Batch) -> Batch:
        x, y = (t.to(self._device, non_blocking=True, copy=True) for t in batch[:2])
        rest = [type(d)(*(t.to(self._device, non_blocking=True) for t in d)) for d in batch[2:]]
        return (x, y, *rest)


def _tensors(batch: Batch) -> Batch:
    return (*batch[:2], *(t for d in batch[2:] for t in d))
