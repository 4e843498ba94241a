"""The arrays that the library fills, of numpy or torch: new ones, or those of a ring."""

import math
import os
import sys
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from ._errors import OutOfMemoryError, UsageError
from ._native import RowDocuments, loader_library

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

    def documents(self, found: Any, lengths: Any) -> Documents:
        """Return copies of what the library found about the documents of a batch."""
        rows, seq = self.rows, self.seq
        positions, ids = (np.empty((rows, seq), np.int32) for _ in range(2))
        loader_library.sgt_row_documents_expand(
            found, lengths, rows, seq, None, positions.ctypes.data, ids.ctypes.data
        )
        cuts = _cuts(found.contents, lengths, rows, seq)
        arrays = (positions, ids, cuts)
        if self.torch:
            arrays = tuple(self.torch.from_numpy(a) for a in arrays)
        return Documents(*arrays)


def _cuts(found: RowDocuments, lengths: "Any", rows: int, seq: int) -> Any:
    first = np.ctypeslib.as_array(found.first, (rows + 1,)).astype(np.int64)
    count = int(first[-1])
    starts = np.ctypeslib.as_array(found.starts, (count,)) if count else np.empty(0, np.int64)
    row = np.repeat(np.arange(rows), np.diff(first))
    inside = starts < seq
    edges = [np.arange(rows + 1) * seq, row[inside] * seq + starts[inside]]
    if lengths:
        real = np.minimum(np.ctypeslib.as_array(lengths, (rows,)).astype(np.int64), seq)
        edges.append(np.arange(rows) * seq + real)
    return np.unique(np.concatenate(edges)).astype(np.int32)


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


def is_worker() -> bool:
    """Return whether this process is a worker of PyTorch's DataLoader."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return worker is not None and worker.get_worker_info() is not None


def may_pin(torch: Any) -> bool:
    """Return whether to pin the ring's memory: there is a GPU, and this process is not a worker,
    which must not start CUDA."""
    return bool(torch) and torch.cuda.is_available() and not is_worker()


def find_ranks(rank: Optional[int], ranks: Optional[int]) -> Tuple[int, int]:
    """Return rank and number of ranks: those given, else torch.distributed's, else those of
    torchrun's variables, else 0 and 1."""
    if rank is None and ranks is None:
        torch = sys.modules.get("torch")
        distributed = getattr(torch, "distributed", None)
        if distributed and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        return 0, 1
    if rank is None or ranks is None:
        raise UsageError("rank and ranks are given together, or neither")
    return rank, ranks
