"""Blocks: arrays that the ids of several texts share. Their memory is used again: to clear the
pages of new memory takes the kernel longer than to write ids to them."""

import mmap
import weakref
from contextlib import suppress
from typing import List

import numpy as np
from numpy.typing import NDArray

SIZE = 1 << 23  # ids
_KEPT = 4  # most blocks that wait to be used again
_waiting: List[memoryview] = []


def take() -> NDArray[np.uint16]:
    """Return an array of SIZE ids. When no slice of it is left, its memory may be used again."""
    try:
        memory = _waiting.pop()
    except IndexError:
        memory = _map()
    block = np.frombuffer(memory, np.uint16)  # slices refer to it, and not to what `memory` shows
    weakref.finalize(block, _give, memory).atexit = False
    return block


def _map() -> memoryview:
    """Return new memory for SIZE ids. The kernel gets it back when it is garbage: malloc would keep
    it, because texts that live longer lie behind it."""
    mapped = mmap.mmap(-1, 2 * SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(mapped)


def _give(memory: memoryview) -> None:
    if len(_waiting) < _KEPT:
        _waiting.append(memory)
