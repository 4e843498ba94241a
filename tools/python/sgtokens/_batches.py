"""Memory and types of batches: buffers, streams that threads fill ahead of time, device copies."""

import math
import sys
from collections import deque
from ctypes import POINTER, byref, c_void_p
from typing import Any, Callable, Deque, NamedTuple, Optional, Tuple

import numpy as np

from . import _native as c
from ._native import Handle, OutOfMemoryError
from ._native import loader_library as library

# dtype: number in sgt_output, bytes of an id
OUTPUTS = {"uint16": (0, 2), "int32": (1, 4), "int64": (2, 8)}
PAGE = 4096


class Documents(NamedTuple):
    """The documents in the rows of a batch. An attention kernel that takes cu_seqlens lets tokens
    attend only to tokens of the same document in the same row."""

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
        """Return whether x and y are views of the same rows of seq + 1 ids."""
        return self.dtype == "uint16"

    def documents(self, batch: c.LoaderBatch) -> Documents:
        """Return copies of the library's arrays about the documents of a batch."""
        found, shape = (batch.positions, batch.ids), (self.rows, self.seq)
        positions, ids = (np.ctypeslib.as_array(array, shape).copy() for array in found)
        begins = np.diff(ids, axis=1, prepend=-2) != 0  # ids of a row count its documents
        cuts = np.append(np.flatnonzero(begins), ids.size).astype(np.int32)
        arrays = (positions, ids, cuts)
        if self.torch:
            arrays = tuple(self.torch.from_numpy(a) for a in arrays)
        return Documents(*arrays)


class Buffer:
    """Memory of a batch, or of `count` batches. All arrays, tensors and autograd graphs that use
    the memory hold a reference to the array that owns it. Pinned memory is owned by torch, which
    reuses it once no tensor uses it and all copies of it to GPUs, on any stream, are complete."""

    def __init__(self, kind: Kind, *count: int, size: int = 0, pinned: bool = False) -> None:
        """Allocate `size` bytes, with the targets at their end; 0: as many bytes as are needed."""
        torch, shape = kind.torch, (*count, kind.rows, kind.seq + kind.is_rows)
        part = math.prod(shape) * OUTPUTS[kind.dtype][1]  # bytes of rows, of inputs or of targets
        size = self.size = size or (part if kind.is_rows else 2 * part)
        places = 0, size - part
        self._owner: Any = None  # of memory that is not pinned
        try:
            if pinned:
                memory = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)
            else:
                self._owner = np.empty(size + PAGE, np.uint8)
        except Exception as error:  # of several classes, and torch's text has several lines
            raise OutOfMemoryError(f"arrays of {size} bytes: out of memory") from error
        if pinned:
            self.inputs, dtype = memory.data_ptr(), getattr(torch, kind.dtype)
            arrays = (memory[at : at + part].view(dtype).view(shape) for at in places)
        else:
            begin = -self._owner.ctypes.data % PAGE
            self.inputs = self._owner.ctypes.data + begin
            arrays = (np.ndarray(shape, kind.dtype, self._owner, begin + at) for at in places)
        self._x, self._y = arrays
        if kind.is_rows:
            self._x, self._y = self._x[..., :-1], self._y[..., 1:]
        self._from = torch and not pinned and torch.from_numpy
        self._alone = sys.getrefcount(self._owner)

    def views(self) -> Tuple[Any, Any]:
        """Return x and y as new arrays or tensors over this memory."""
        x, y = self._x[...], self._y[...]
        return (self._from(x), self._from(y)) if self._from else (x, y)

    def is_free(self) -> bool:
        """Return whether no array or tensor uses the memory, which must not be pinned."""
        return sys.getrefcount(self._owner) <= self._alone


def find_torch(arrays: str) -> Any:
    """Return the module torch if batches are to be tensors, None if they are to be arrays."""
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
    """Return this process's index among the workers of PyTorch's DataLoader, and the number of
    workers. Return 0 and 0 if this process is not a worker."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    info = worker and worker.get_worker_info()
    return (info.id, info.num_workers) if info else (0, 0)


def may_pin(torch: Any) -> bool:
    """Return whether to pin the buffers' memory: if there is a GPU, and this process is not a
    DataLoader worker, which must not initialize CUDA."""
    return bool(torch) and torch.cuda.is_available() and not find_worker()[1]


class Stream:
    """Batches first, first + 1, ... of a loader, in buffers that threads of the library fill ahead
    of time. A buffer is reused once nothing uses its batch any more; if all buffers are in use, a
    new one is allocated. Pinned buffers are always new."""

    def __init__(self, native: Handle, kind: Kind, first: int, slots: int, threads: int) -> None:
        self.kind = kind
        self.next = first  # index of the batch that take() returns next
        self.is_clean = True  # False while a call runs, and after one that was interrupted
        self._given: Deque[Buffer] = deque()  # buffers of earlier batches, the oldest first
        self._slots, self._holds = slots, False
        self.batch = POINTER(c.LoaderBatch)()  # what the library says of the batch taken last
        self._error = c.ErrorText()
        self._refs = byref(self.batch), byref(self._error)
        self._is_pinned = may_pin(kind.torch)
        output = OUTPUTS[kind.dtype][0]
        self._size = library.sgt_stream_bytes(native.pointer, output)
        self._ring = [self._new() for _ in range(slots)]
        options = c.fill(c.StreamOptions, first=first, output=output, slots=slots, threads=threads)
        options.buffers = (c_void_p * slots)(*(buffer.inputs for buffer in self._ring))
        functions = library.sgt_stream_open, library.sgt_stream_close
        given, kept = (native.pointer, byref(options)), (native, self._ring)
        self.handle = c.open_handle(*functions, *given, kept=kept)

    def take(self) -> Tuple[Any, Any]:
        """Return x and y of the next batch."""
        pointer, (batch, error) = self.handle.pointer, self._refs
        self.is_clean = False
        if self._holds:
            slot, spare = self.batch.contents.slot, self._spare()
            if not self._is_pinned:
                self._given.append(self._ring[slot])
            self._ring[slot] = spare
            library.sgt_stream_release(pointer, self.batch, spare.inputs)
            self._holds = False
        rc = library.sgt_stream_next(pointer, batch, error)
        if rc < 0:
            c.check(rc, self._error)
        self._holds = True
        self.next += 1
        self.is_clean = True
        return self._ring[int(self.batch.contents.slot)].views()

    def _new(self) -> Buffer:
        return Buffer(self.kind, size=self._size, pinned=self._is_pinned)

    def _spare(self) -> Buffer:
        """Return a buffer that is not in use: the oldest one in a loop that keeps no batches."""
        for _ in range(len(self._given)):
            buffer = self._given.popleft()
            if buffer.is_free():
                return buffer
            if len(self._given) < self._slots:  # else who keeps it frees it
                self._given.append(buffer)
        return self._new()


# ---- a device ----

Batch = Tuple[Any, ...]


class _Copy(NamedTuple):
    number: int
    batch: Batch
    done: Any  # an event of CUDA, or None


class Mover:
    """Copies batch k + 1 to the device on a separate CUDA stream, while batch k is in use."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = torch.device(device)
        self._side = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._ahead: Optional[_Copy] = None

    def batch(self, index: int, take: Callable[[int], Batch]) -> Batch:
        """Return batch `index` on the device. take(k) returns batch k in host memory; its next call
        may reuse that memory if no tensor uses it."""
        now = self._ahead
        self._ahead = None
        if now is None or now.number != index:
            now = self._copy(index, take(index))
        if now.done:
            now.done.synchronize()  # the next call of `take` may overwrite what is not pinned
        self._ahead = self._copy(index + 1, take(index + 1))
        if self._side:
            current = self._torch.cuda.current_stream(self._device)
            current.wait_event(now.done)
            for tensor in _tensors(now.batch):
                tensor.record_stream(current)  # keep its memory until this stream's work is done
        return now.batch

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
