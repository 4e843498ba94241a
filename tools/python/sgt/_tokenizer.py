"""Text to ids and back, with the method names of tiktoken."""

import ctypes
import os
from ctypes import byref, c_size_t, c_void_p
from typing import (
    AbstractSet,
    Any,
    Collection,
    Dict,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
from numpy.typing import ArrayLike

from ._encoder import Encoders, Ids
from ._native import ErrorText, Handle, Path, c_string, c_text, check, check_range
from ._native import tokenize_library as library
from ._strings import Text, as_bytes

_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [c_void_p], None


class Tokenizer:
    """A byte-level BPE vocabulary. Any number of threads may use one. `path` is "gpt2" (built in),
    a tokenizer.json, a merges.txt, a NAME.tiktoken, or a folder with one of them."""

    def __init__(self, path: Path = "gpt2", *, pattern: Optional[str] = None) -> None:
        self._path, self._pattern = os.fspath(path), pattern
        self._open()

    def _open(self) -> None:
        pointer, error = c_void_p(), ErrorText()
        rule = c_text("pattern", self._pattern) if self._pattern is not None else None
        path = c_string(os.fsencode(self._path))
        check(library.sgt_vocab_load(byref(pointer), path, rule, byref(error)), error)
        self._vocab = Handle(pointer, library.sgt_vocab_free)
        self._encoders = Encoders(self._vocab)

    @classmethod
    def from_file(cls, path: Path, *, pattern: Optional[str] = None) -> "Tokenizer":
        """Load a vocabulary; `pattern` is a PCRE2 pattern for the split, else the file's own."""
        return cls(path, pattern=pattern)

    def __repr__(self) -> str:
        return f"sgt.Tokenizer({self._path!r})"

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

    def encode_ordinary(self, text: Text) -> Ids:
        """Return the ids of the text, uint16. A literal <|endoftext|> in it is plain text."""
        return self._encoders.encode(text)

    def encode(
        self,
        text: Text,
        *,
        allowed_special: Union[str, AbstractSet[str]] = frozenset(),
        disallowed_special: Union[str, Collection[str]] = (),
    ) -> Ids:
        """Return the ids of the text. An allowed end of text ("all", or a set that has it) becomes
        its id. A disallowed string in the text raises ValueError; "all" is the end of text, unless
        it is allowed. tiktoken disallows "all" by default."""
        if not allowed_special and not disallowed_special:
            return self.encode_ordinary(text)
        end = self.decode_single_token_bytes(self.eot_token)
        name = end.decode("utf-8", "replace")
        data = as_bytes(text)
        is_allowed = allowed_special == "all" or name in allowed_special
        if disallowed_special == "all":
            disallowed_special = () if is_allowed else (name,)
        elif isinstance(disallowed_special, str):
            disallowed_special = (disallowed_special,)
        for word in disallowed_special:
            if as_bytes(word) in data:
                raise ValueError(f"the text holds {word!r}, which is disallowed as special token")
        if not is_allowed:
            return self.encode_ordinary(data)
        parts = [self.encode_ordinary(part) for part in data.split(end)]
        mark = np.array([self.eot_token], np.uint16)
        return np.concatenate([p for part in parts for p in (mark, part)][1:])

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        num_threads: Optional[int] = None,
        allowed_special: Union[str, AbstractSet[str]] = frozenset(),
        disallowed_special: Union[str, Collection[str]] = (),
    ) -> List[Ids]:
        """Return encode() of each text, with num_threads threads; default: one per core. Texts
        share arrays of up to 16 MiB: copy the ids of the few that you keep of many."""
        if isinstance(texts, (str, bytes)):
            raise TypeError("encode_batch takes a list of texts; encode takes one text")
        check_range("num_threads", num_threads or 0, 0, 1024)
        texts = list(texts)
        threads = max(min(num_threads or len(os.sched_getaffinity(0)), len(texts)), 1)
        special: Dict[str, Any] = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
        }
        if not any(special.values()):
            return self._encoders.encode_all(texts, threads)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda text: self.encode(text, **special), texts))

    def encode_ordinary_batch(
        self, texts: Iterable[Text], *, num_threads: Optional[int] = None
    ) -> List[Ids]:
        return self.encode_batch(texts, num_threads=num_threads)

    def decode_bytes(self, ids: ArrayLike) -> bytes:
        """Return the bytes of the ids: a list, an array or a tensor."""
        wide = np.asarray(ids)
        is_large = wide.dtype.kind == "O" and all(isinstance(i, int) for i in wide.flat)
        if wide.size and wide.dtype.kind not in "iu" and not is_large:
            name = wide.dtype if wide.dtype.kind != "O" else type(wide.flat[0]).__name__
            raise TypeError(f"ids are integers, not {name}")
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
        path = c_string(os.fsencode(folder))
        check(library.sgt_vocab_save(self._vocab.pointer, path, byref(error)), error)


def _load(path: str, pattern: Optional[str]) -> Tokenizer:
    return Tokenizer(path, pattern=pattern)


_gpt2: Optional[Tokenizer] = None


def _default() -> Tokenizer:
    global _gpt2
    if _gpt2 is None:
        _gpt2 = Tokenizer()
    return _gpt2


def encode(text: Text) -> Ids:
    """Return the GPT-2 ids of the text, uint16: those of tiktoken's encode_ordinary."""
    return _default().encode_ordinary(text)


def decode(ids: ArrayLike) -> str:
    """Return the text of GPT-2 ids."""
    return _default().decode(ids)
