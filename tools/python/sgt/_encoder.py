"""Encoders of the library, texts that several threads divide among them, and the blocks of memory
that hold the ids of many texts."""

import mmap
import threading
import weakref
from collections import deque
from contextlib import suppress
from ctypes import byref, c_size_t
from typing import Deque, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ._native import ErrorText, Handle, check, open_handle
from ._native import tokenize_library as library
from ._strings import MOST, Text, locate, locate_all

Ids = NDArray[np.uint16]
_ROOM = 1 << 12  # ids that a single text may have to be short: they are copied out of the encoder
BLOCK = 1 << 23  # ids of a block
_KEPT = 4  # most blocks that wait to be used again
_GROUP = 1 << 18  # characters or bytes of a group of texts; a thread takes a group at a time


class Encoder:
    """An encoder, which caches the words it has met. Only one thread at a time may use it."""

    def __init__(self, vocab: Handle) -> None:
        functions = library.sgt_encoder_new, library.sgt_encoder_free
        self.handle, self.error = open_handle(*functions, vocab.pointer, kept=[vocab]), ErrorText()
        self.room = np.empty(_ROOM, np.uint16)  # for the ids of a short text
        self.address = self.room.ctypes.data

    def encode(self, texts: object, count: int, ids: int, ends: object) -> None:
        """Call sgt_encode_texts."""
        given = self.handle.pointer, texts, count, ids, ends, byref(self.error)
        check(library.sgt_encode_texts(*given), self.error)


class Encoders:
    """The encoders of a vocabulary that no thread is using."""

    def __init__(self, vocab: Handle) -> None:
        self._vocab = vocab
        self._free: Deque[Encoder] = deque()

    def take(self) -> Encoder:
        try:
            return self._free.pop()
        except IndexError:
            return Encoder(self._vocab)

    def give(self, encoder: Encoder) -> None:
        self._free.append(encoder)

    def encode(self, text: Text) -> Ids:
        """Return the ids of a text."""
        kept: List[bytes] = []
        found = locate(text, kept)
        most, end = found[1] * MOST[found[2]], c_size_t()
        encoder = self.take()
        is_short = most <= _ROOM
        ids = encoder.room if is_short else np.empty(most, np.uint16)
        address = encoder.address if is_short else ids.ctypes.data
        encoder.encode((c_size_t * 3)(*found), 1, address, byref(end))
        if is_short:
            ids = ids[: end.value].copy()
        else:
            ids.resize(end.value, refcheck=False)  # in place: nothing else refers to it
        self.give(encoder)
        return ids

    def encode_all(self, texts: List[Text], threads: int) -> List[Ids]:
        """Return the ids of each text. The calling thread is one of the threads."""
        batch = _Batch(self, texts, threads)
        helpers = [threading.Thread(target=batch.help) for _ in range(threads - 1)]
        try:
            for helper in helpers:
                helper.start()
            batch.work()
        finally:
            batch.groups.clear()  # if a thread has failed
            for helper in helpers:
                if helper.ident:
                    helper.join()
        if batch.failures:
            raise batch.failures[0]
        return batch.out


class _Batch:
    """Texts to encode. Threads take groups of them until none is left."""

    def __init__(self, encoders: Encoders, texts: List[Text], threads: int) -> None:
        self.encoders, self.texts = encoders, texts
        self.kept: List[bytes] = []
        self.fields = locate_all(texts, self.kept)
        self.ends = np.empty(len(texts), np.int64)  # of each text's ids, from its group's first
        size = np.cumsum(self.fields[:, 1])
        room = np.cumsum(np.take(MOST, self.fields[:, 2]) * self.fields[:, 1])
        total, self.most = (int(size[-1]), int(room[-1])) if texts else (0, 0)
        step = min(_GROUP, total // (8 * threads) + 1)
        cuts = np.unique(np.searchsorted(size, np.arange(step, total, step)) + 1)
        cuts = np.unique([0, *cuts, len(texts)])
        needs = np.diff(room[cuts[1:] - 1], prepend=0)
        self.groups = deque(zip(cuts.tolist(), cuts[1:].tolist(), needs.tolist()))
        self.failures: List[BaseException] = []
        self.out: List[Ids] = [np.empty(0, np.uint16)] * len(texts)

    def help(self) -> None:
        try:
            self.work()
        except BaseException as failure:  # raised by the calling thread
            self.failures.append(failure)
            self.groups.clear()

    def work(self) -> None:
        encoder = self.encoders.take()
        ids, used, address = np.empty(0, np.uint16), 0, 0
        done: List[Tuple[int, int, int]] = []  # groups in `ids`: their texts, and their first id
        fields, ends = self.fields.ctypes.data, self.ends.ctypes.data
        while True:
            try:
                begin, end, need = self.groups.popleft()
            except IndexError:
                break
            if used + need > len(ids):
                self.divide(ids, used, done)
                ids, used, done = self.room_for(need), 0, []
                address = ids.ctypes.data
            encoder.encode(fields + 24 * begin, end - begin, address + 2 * used, ends + 8 * begin)
            done.append((begin, end, used))
            used += int(self.ends[end - 1])
        self.divide(ids, used, done)
        self.encoders.give(encoder)

    def room_for(self, need: int) -> Ids:
        """Return an array of at least `need` ids."""
        if need <= BLOCK < self.most:
            return take_block()
        return np.empty(max(need, min(BLOCK, self.most)), np.uint16)

    def divide(self, ids: Ids, used: int, done: List[Tuple[int, int, int]]) -> None:
        """Set the ids of each text of the groups. `ids` gives back what it does not need."""
        if ids.base is None:
            ids.resize(used, refcheck=False)  # in place: nothing else refers to it
        elif used < len(ids) // 8:
            ids = ids[:used].copy()  # instead of a block that is nearly empty
        for begin, end, first in done:
            cuts = [first, *(self.ends[begin:end] + first).tolist()]
            self.out[begin:end] = [ids[a:b] for a, b in zip(cuts, cuts[1:])]


# ---- blocks: arrays that the ids of several texts share ----

# Their memory is used again: to clear the pages of new memory takes the kernel longer than to write
# ids to them.
_waiting: List[memoryview] = []


def take_block() -> NDArray[np.uint16]:
    """Return an array of BLOCK ids. When no slice of it is left, its memory may be used again."""
    try:
        memory = _waiting.pop()
    except IndexError:
        memory = _map_block()
    block = np.frombuffer(memory, np.uint16)  # slices refer to it, and not to what `memory` shows
    weakref.finalize(block, _give_back, memory).atexit = False
    return block


def _map_block() -> memoryview:
    """Return new memory for a block. The kernel gets it back when it is garbage: malloc would keep
    it, because texts that live longer lie behind it."""
    mapped = mmap.mmap(-1, 2 * BLOCK, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(mapped)


def _give_back(memory: memoryview) -> None:
    if len(_waiting) < _KEPT:
        _waiting.append(memory)
