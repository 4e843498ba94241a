"""The library's encoders, and encoding of many texts with several threads."""

from collections import deque
from ctypes import byref
from typing import Callable, Deque, Iterable, List, Type, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from ._native import ErrorText, Handle, check, check_range, open_handle
from ._native import tokenize_library as library

Text = Union[str, bytes]
Ids = NDArray[Union[np.uint16, np.uint32]]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_GROUP = 1 << 18  # characters or bytes of a group of texts; a thread takes a group at a time
_ROOM = 4 * _GROUP  # ids that an encoder has room for; texts that may have more get their own


def as_bytes(text: Text) -> bytes:
    """Return the text as UTF-8. Call methods of str itself: a subclass may override them."""
    if isinstance(text, bytes):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"expected a str or bytes, not {type(text).__name__}")
    try:
        return str.encode(text)
    except UnicodeEncodeError:  # lone surrogates become U+FFFD, as in tiktoken
        wide = str.encode(text, "utf-16", "surrogatepass")
        return wide.decode("utf-16", "replace").encode()


def _all_as_bytes(texts: List[Text]) -> List[bytes]:
    try:
        return [*map(str.encode, texts)]  # type: ignore[arg-type]  # takes half the time
    except (TypeError, UnicodeEncodeError):
        return [*map(as_bytes, texts)]


def type_of_ids(vocab: Handle) -> Type[Union[np.uint16, np.uint32]]:
    return np.uint32 if library.sgt_vocab_width(vocab.pointer) == 4 else np.uint16


class Encoder:
    """An encoder, which caches the pre-tokens that it has seen, for one thread at a time."""

    def __init__(self, vocab: Handle) -> None:
        functions = library.sgt_encoder_new, library.sgt_encoder_free
        self.handle, self.error = open_handle(*functions, vocab.pointer, kept=[vocab]), ErrorText()
        self.room = np.empty(_ROOM, type_of_ids(vocab))  # the pages that are used take memory

    def encode(self, texts: List[Text]) -> List[Ids]:
        """Return the ids of each text, as views of one array."""
        each = _all_as_bytes(texts)
        joined = np.frombuffer(b"".join(each), np.uint8)
        fields = np.empty((len(each), 2), np.int64)  # an sgt_text in a row: address, length
        fields[:, 1] = np.fromiter(map(len, each), np.int64, len(each))
        fields[:, 0] = joined.ctypes.data + np.cumsum(fields[:, 1]) - fields[:, 1]
        is_short = len(joined) <= len(self.room)
        ids: Ids = self.room if is_short else np.empty(len(joined), self.room.dtype)
        ends = np.empty(len(each), np.int64)
        given = self.handle.pointer, fields.ctypes.data, len(each), ids.ctypes.data, ids.nbytes
        check(library.sgt_encode_texts(*given, ends.ctypes.data, byref(self.error)), self.error)
        cuts = [0, *ends.tolist()]
        if is_short:
            ids = ids[: cuts[-1]].copy()
        else:
            ids.resize(cuts[-1], refcheck=False)  # in place: nothing else refers to it
        return [ids[a:b] for a, b in zip(cuts, cuts[1:])]


class Encoders:
    """The encoders of a vocabulary that no thread is using."""

    def __init__(self, vocab: Handle) -> None:
        self._vocab = vocab
        self._free: Deque[Encoder] = deque()

    def encode(self, texts: List[Text]) -> List[Ids]:
        """Return the ids of each text."""
        try:
            encoder = self._free.pop()
        except IndexError:
            encoder = Encoder(self._vocab)
        ids = encoder.encode(texts)
        self._free.append(encoder)
        return ids

    def encode_all(self, texts: List[Text], threads: int) -> List[Ids]:
        """Return the ids of each text. Threads take groups of texts until none is left."""
        size = np.cumsum([len(t) if isinstance(t, (str, bytes)) else 0 for t in texts])
        total = int(size[-1]) if texts else 0
        step = min(_GROUP, total // (8 * threads) + 1)
        cuts = np.unique(np.searchsorted(size, np.arange(step, total, step)) + 1)
        cuts = np.unique([0, *cuts, len(texts)]).tolist()
        groups = (texts[a:b] for a, b in zip(cuts, cuts[1:]))
        return [ids for group in each(self.encode, groups, threads) for ids in group]


def each(call: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> List[_Result]:
    """Return the call's result for each item."""
    check_range("num_threads", threads, 1, 1024)
    if threads == 1:
        return [call(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, items))
