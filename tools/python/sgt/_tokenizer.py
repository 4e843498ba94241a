"""Text to ids and back, with the method names of tiktoken."""

import ctypes
import os
import threading
from ctypes import byref, c_size_t, c_void_p
from typing import AbstractSet, Any, Collection, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._native import ErrorText, Handle, Path, check
from ._native import tokenize_library as library

Ids = NDArray[np.uint16]
_FAILED = c_size_t(-1).value
_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [c_void_p], None
_ascii = getattr(ctypes.pythonapi, "PyUnicode_AsUTF8", None)  # points into an ASCII string, no copy
if _ascii:
    _ascii.argtypes, _ascii.restype = [ctypes.py_object], c_void_p


def _bytes(text: Union[str, bytes]) -> bytes:
    """Return the text as UTF-8."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates become U+FFFD, as in tiktoken
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _most_bytes(text: Union[str, bytes]) -> int:
    """Return a length that the text as UTF-8 does not exceed, without converting it."""
    return len(text) if isinstance(text, bytes) or text.isascii() else 4 * len(text)


class _Encoder:
    """An encoder of the library with room for its ids. Only one thread at a time may use it."""

    def __init__(self, vocab: Handle) -> None:
        pointer, error = c_void_p(), ErrorText()
        check(library.sgt_encoder_new(byref(pointer), vocab.pointer, byref(error)), error)
        self.handle = Handle(pointer, library.sgt_encoder_free, vocab)
        self.room = np.empty(0, np.uint16)
        self.address = 0

    def encode(self, texts: Sequence[Union[str, bytes]]) -> List[Ids]:
        """Return the ids of each text, as views of one array."""
        size = sum(map(_most_bytes, texts))
        if size > len(self.room):
            self.room = np.empty(max(size, 2 * len(self.room), 4096), np.uint16)
            self.address = self.room.ctypes.data
        encode, pointer, at, ends = library.sgt_encode, self.handle.pointer, 0, [0]
        for text in texts:
            if _ascii and isinstance(text, str) and text.isascii():
                count = encode(pointer, _ascii(text), len(text), self.address + 2 * at)
            else:
                data = _bytes(text)
                count = encode(pointer, data, len(data), self.address + 2 * at)
            if count == _FAILED:
                error = library.sgt_encoder_failure(pointer).contents
                check(error.code, error)
            at += count
            ends.append(at)
        ids: Ids = self.room[:at].copy()
        return [ids[a:b] for a, b in zip(ends, ends[1:])]


class Tokenizer:
    """A byte-level BPE vocabulary. Any number of threads may use one. `path` is "gpt2" (built in),
    a tokenizer.json, a merges.txt, a NAME.tiktoken, or a folder with one of them."""

    def __init__(self, path: Path = "gpt2", *, pattern: Optional[str] = None) -> None:
        self._path, self._pattern = os.fspath(path), pattern
        self._open()

    def _open(self) -> None:
        pointer, error = c_void_p(), ErrorText()
        rule = self._pattern.encode() if self._pattern is not None else None
        path = os.fsencode(self._path)
        check(library.sgt_vocab_load(byref(pointer), path, rule, byref(error)), error)
        self._vocab = Handle(pointer, library.sgt_vocab_free)
        self._encoders: List[_Encoder] = []  # encoders that no thread is using
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, path: Path, *, pattern: Optional[str] = None) -> "Tokenizer":
        """Load a vocabulary; `pattern` is a PCRE2 pattern for the split, else the file's own."""
        return cls(path, pattern=pattern)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _load, (self._path, self._pattern)

    @property
    def name(self) -> str:
        return os.fsdecode(library.sgt_vocab_name(self._vocab.pointer))

    @property
    def n_vocab(self) -> int:
        return int(library.sgt_vocab_size(self._vocab.pointer))

    @property
    def max_token_value(self) -> int:
        return self.n_vocab - 1

    @property
    def eot_token(self) -> int:
        return int(library.sgt_vocab_eot(self._vocab.pointer))

    def encode_ordinary(self, text: Union[str, bytes]) -> Ids:
        """Return the ids of the text, uint16. A literal <|endoftext|> in it is plain text."""
        return self._encode_all([text])[0]

    def _encode_all(self, texts: Sequence[Union[str, bytes]]) -> List[Ids]:
        with self._lock:
            encoder = self._encoders.pop() if self._encoders else None
        encoder = encoder or _Encoder(self._vocab)
        ids = encoder.encode(texts)
        with self._lock:
            self._encoders.append(encoder)
        return ids

    def encode(
        self,
        text: Union[str, bytes],
        *,
        allowed_special: Union[str, AbstractSet[str]] = frozenset(),
        disallowed_special: Union[str, Collection[str]] = (),
    ) -> Ids:
        """Return the ids of the text. An allowed end of text ("all", or a set that has it) becomes
        its id. A disallowed one raises ValueError; tiktoken disallows it by default."""
        end = self.decode_single_token_bytes(self.eot_token).decode("utf-8", "replace")
        data = _bytes(text)
        if allowed_special == "all" or end in allowed_special:
            parts = [self.encode_ordinary(part) for part in data.split(end.encode())]
            mark = np.array([self.eot_token], np.uint16)
            return np.concatenate([p for part in parts for p in (mark, part)][1:])
        is_disallowed = disallowed_special == "all" or end in disallowed_special
        if is_disallowed and end.encode() in data:
            raise ValueError(f"the text holds {end!r}, which is disallowed as special token")
        return self.encode_ordinary(data)

    def encode_batch(
        self,
        texts: Iterable[Union[str, bytes]],
        *,
        num_threads: Optional[int] = None,
        **special: Any,
    ) -> List[Ids]:
        """Return encode() of each text, with num_threads threads; default: one per core."""
        texts = list(texts)
        threads = min(num_threads or len(os.sched_getaffinity(0)), len(texts))

        def work(part: List[Union[str, bytes]]) -> List[Ids]:
            if special:
                return [self.encode(text, **special) for text in part]
            return self._encode_all(part)

        step = max(-(-len(texts) // (4 * max(threads, 1))), 1)
        step = min(step, 1024)  # most texts whose ids share one array
        parts = [texts[i : i + step] for i in range(0, len(texts), step)]
        if threads < 2:
            return [ids for part in parts for ids in work(part)]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return [ids for part in pool.map(work, parts) for ids in part]

    def encode_ordinary_batch(
        self, texts: Iterable[Union[str, bytes]], *, num_threads: Optional[int] = None
    ) -> List[Ids]:
        return self.encode_batch(texts, num_threads=num_threads)

    def decode_bytes(self, ids: ArrayLike) -> bytes:
        """Return the bytes of the ids: a list, an array or a tensor."""
        wide = np.asarray(ids)
        if wide.size and (wide.min() < 0 or wide.max() > 0xFFFF):
            raise ValueError(f"ids are from 0 to {self.n_vocab - 1}")
        array = np.ascontiguousarray(wide, np.uint16).reshape(-1)
        text, size, error = c_void_p(), c_size_t(), ErrorText()
        given = self._vocab.pointer, array.ctypes.data, len(array)
        check(library.sgt_decode(*given, byref(text), byref(size), byref(error)), error)
        try:
            return ctypes.string_at(text, size.value)
        finally:
            _free(text)

    def decode(self, ids: ArrayLike, errors: str = "replace") -> str:
        """Return the text of the ids; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors)

    def decode_batch(self, batch: Sequence[ArrayLike], *, errors: str = "replace") -> List[str]:
        return [self.decode(ids, errors) for ids in batch]

    def decode_single_token_bytes(self, token: int) -> bytes:
        size = c_size_t()
        at = None
        if 0 <= token < 1 << 16:
            at = library.sgt_vocab_token(self._vocab.pointer, token, byref(size))
        if at is None:
            raise KeyError(token)
        return ctypes.string_at(at, size.value)

    def save(self, folder: Path) -> None:
        """Write merges.txt, vocab.json and tokenizer.json into `folder`."""
        error = ErrorText()
        check(library.sgt_vocab_save(self._vocab.pointer, os.fsencode(folder), byref(error)), error)


def _load(path: str, pattern: Optional[str]) -> Tokenizer:
    return Tokenizer(path, pattern=pattern)


_gpt2: Optional[Tokenizer] = None


def _default() -> Tokenizer:
    global _gpt2
    if _gpt2 is None:
        _gpt2 = Tokenizer()
    return _gpt2


def encode(text: Union[str, bytes]) -> Ids:
    """Return the GPT-2 ids of the text, uint16: those of tiktoken's encode_ordinary."""
    return _default().encode_ordinary(text)


def decode(ids: ArrayLike) -> str:
    """Return the text of GPT-2 ids."""
    return _default().decode(ids)
