"""Encoders of the library, and texts that several threads divide among them."""

import threading
from collections import deque
from ctypes import byref, c_size_t
from typing import Any, Deque, List

import numpy as np
from numpy.typing import NDArray

from ._native import ErrorText, Handle, check, open_handle
from ._native import tokenize_library as library
from ._strings import MOST, Text, locate, locate_all

Ids = NDArray[np.uint16]
_GROUP = 1 << 18  # characters or bytes of a group of texts; a thread takes a group at a time
_ROOM = 4 * _GROUP  # ids that an encoder has room for; texts that may have more get their own


class Encoder:
    """An encoder, which caches the words it has met. Only one thread at a time may use it."""

    def __init__(self, vocab: Handle) -> None:
        functions = library.sgt_encoder_new, library.sgt_encoder_free
        self.handle, self.error = open_handle(*functions, vocab.pointer, kept=[vocab]), ErrorText()
        self.room = np.empty(_ROOM, np.uint16)  # the pages that are used take memory

    def encode(self, texts: object, count: int, most: int, ends: Any) -> Ids:
        """Return the ids of texts, which may have `most`; `ends` gets where each text's end."""
        is_short = most <= len(self.room)
        ids: Ids = self.room if is_short else np.empty(most, np.uint16)
        given = self.handle.pointer, texts, count, ids.ctypes.data, ends.ctypes.data
        check(library.sgt_encode_texts(*given, byref(self.error)), self.error)
        used = int(ends[-1])
        if is_short:
            ids = ids[:used].copy()
        else:
            ids.resize(used, refcheck=False)  # in place: nothing else refers to it
        return ids


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
        found, end = locate(text, kept), np.empty(1, np.int64)
        encoder = self.take()
        ids = encoder.encode((c_size_t * 3)(*found), 1, found[1] * MOST[found[2]], end)
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
        size = np.cumsum(self.fields[:, 1])
        room = np.cumsum(np.take(MOST, self.fields[:, 2]) * self.fields[:, 1])
        total = int(size[-1]) if texts else 0
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
        fields = self.fields.ctypes.data
        while True:
            try:
                begin, end, most = self.groups.popleft()
            except IndexError:
                break
            ends = np.empty(end - begin, np.int64)
            ids = encoder.encode(fields + 24 * begin, end - begin, most, ends)
            cuts = [0, *ends.tolist()]
            self.out[begin:end] = [ids[a:b] for a, b in zip(cuts, cuts[1:])]
        self.encoders.give(encoder)
