"""Encodes text to ids and decodes ids. The methods have tiktoken's names; encode_with_unstable,
which serves to complete a text while it is typed, is missing."""

import ctypes
import json
import os
import re
from ctypes import byref, c_size_t, c_void_p
from functools import cache, cached_property, partial
from typing import (
    AbstractSet,
    Any,
    Collection,
    Dict,
    Iterable,
    List,
    Optional,
    Set,
    Tuple,
    Union,
)

import numpy as np
from numpy.typing import ArrayLike

from ._encoder import Encoders, Ids, Text, as_bytes, each, type_of_ids
from ._native import Path, call, check_range, default_threads, open_handle, path_of, text_of
from ._native import tokenize_library as library

_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [c_void_p], None


def _made_by(function: Any, *given: Any) -> bytes:
    """Return a text that a function of the library allocates, and free it."""
    text, size = c_void_p(), c_size_t()
    call(function, *given, byref(text), byref(size))
    try:
        return ctypes.string_at(text, size.value)
    finally:
        _free(text)


class Tokenizer:
    """A byte-level BPE vocabulary. Any number of threads may use the same object. `path` is "gpt2"
    (built in), a tokenizer.json, a merges.txt, a NAME.tiktoken, or a folder with one of them.

    Ids are numpy arrays, not lists as tiktoken's: `ids + [enc.eot_token]` adds numbers. Use
    ids.tolist() for a list, and numpy.append(ids, numpy.uint16(enc.eot_token)) for one more id
    (uint32 if n_vocab is above 65,536)."""

    def __init__(self, path: Path = "gpt2", *, pattern: Optional[str] = None) -> None:
        self._path, self._pattern = os.fspath(path), pattern
        rule = None if pattern is None else text_of("pattern", pattern)
        functions = library.sgt_vocab_load, library.sgt_vocab_free
        self._vocab = open_handle(*functions, path_of(self._path), rule)
        self._encoders = Encoders(self._vocab)
        self._ids = type_of_ids(self._vocab)

    @classmethod
    def from_file(cls, path: Path, *, pattern: Optional[str] = None) -> "Tokenizer":
        """Load a vocabulary. `pattern` (PCRE2) splits the text; default: the file's own."""
        return cls(path, pattern=pattern)

    def __repr__(self) -> str:
        return f"sgtokens.Tokenizer({self._path!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return partial(Tokenizer, pattern=self._pattern), (self._path,)

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

    @cached_property
    def _special(self) -> Dict[str, int]:
        """Ids of the special tokens with a known name, by name, as tiktoken has them."""
        about = json.loads(_made_by(library.sgt_vocab_tokenizer_json, self._vocab.pointer))
        found = {str(token["content"]): int(token["id"]) for token in about["added_tokens"]}
        return {name: token for name, token in found.items() if name != f"<|unused_{token}|>"}

    @property
    def special_tokens_set(self) -> Set[str]:
        return {*self._special}

    def is_special_token(self, token: int) -> bool:
        return token in self._special.values()

    @cached_property
    def _by_bytes(self) -> Dict[bytes, int]:
        return {self.decode_single_token_bytes(i): i for i in range(self.n_vocab)}

    def token_byte_values(self) -> List[bytes]:
        """Return the bytes of all tokens except the special ones, sorted."""
        special = {*self._special.values()}
        return sorted(
            b for b, i in self._by_bytes.items() if i not in special and b != b"<|unused_%d|>" % i
        )

    def encode_single_token(self, text_or_bytes: Text) -> int:
        """Return the id of the token with this text, special or not, or raise KeyError."""
        return self._by_bytes[as_bytes(text_or_bytes)]

    def encode_ordinary(self, text: Text) -> Ids:
        """Return the text's ids, uint16 or (n_vocab above 65,536) uint32, without special ones."""
        return self._encoders.encode([text])[0]

    def encode(
        self,
        text: Text,
        *,
        allowed_special: Union[str, AbstractSet[str]] = frozenset(),
        disallowed_special: Union[str, Collection[str]] = (),
    ) -> Ids:
        """Return the ids of the text. Allowed special tokens in the text ("all", or a set of them)
        are encoded as their ids. A disallowed string in the text raises ValueError; "all" disallows
        every special token that is not allowed, which is tiktoken's default."""
        if not allowed_special and not disallowed_special:
            return self.encode_ordinary(text)
        data, names = as_bytes(text), self.special_tokens_set
        if isinstance(allowed_special, str) and allowed_special != "all":
            allowed_special = {allowed_special}
        allowed = names if allowed_special == "all" else names.intersection(allowed_special)
        if disallowed_special == "all":
            disallowed_special = names - allowed
        elif isinstance(disallowed_special, str):
            disallowed_special = (disallowed_special,)
        for word in disallowed_special:
            if as_bytes(word) in data:
                raise ValueError(f"the text contains {word!r}, a disallowed special token")
        if not allowed:
            return self.encode_ordinary(data)
        longest = sorted(map(str.encode, allowed), key=len, reverse=True)
        parts = re.split(b"(" + b"|".join(map(re.escape, longest)) + b")", data)
        ids = [self.encode_ordinary(part) for part in parts]
        ids[1::2] = [np.array([self._special[part.decode()]], self._ids) for part in parts[1::2]]
        return np.concatenate(ids)

    encode_to_numpy = encode

    def encode_batch(
        self,
        text: Iterable[Text],
        *,
        num_threads: Optional[int] = None,
        allowed_special: Union[str, AbstractSet[str]] = frozenset(),
        disallowed_special: Union[str, Collection[str]] = (),
    ) -> List[Ids]:
        """Return encode() of each text, computed by num_threads threads. By default, there is one
        thread per core, or as many as a CPU quota or OMP_NUM_THREADS allows. The ids of several
        texts share an array of about 200 KB: if you keep few of many texts, copy their ids."""
        if isinstance(text, (str, bytes)):
            raise TypeError("encode_batch expects a list of texts (encode one text with encode)")
        check_range("num_threads", num_threads or 0, 0, 1024)
        texts = list(text)
        threads = max(min(num_threads or default_threads(), len(texts)), 1)
        special: Dict[str, Any] = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
        }
        if not any(special.values()):
            return self._encoders.encode_all(texts, threads)
        return each(partial(self.encode, **special), texts, threads)

    def encode_ordinary_batch(
        self, text: Iterable[Text], *, num_threads: Optional[int] = None
    ) -> List[Ids]:
        return self.encode_batch(text, num_threads=num_threads)

    def decode_bytes(self, tokens: ArrayLike) -> bytes:
        """Return the bytes of the ids, which are a list, an array or a tensor."""
        wide = np.asarray(tokens)
        is_large = wide.dtype.kind == "O" and all(isinstance(i, int) for i in wide.flat)
        if wide.size and wide.dtype.kind not in "iu" and not is_large:
            name = wide.dtype if wide.dtype.kind != "O" else type(wide.flat[0]).__name__
            raise TypeError(f"ids must be integers, not {name}")
        if wide.size and (wide.min() < 0 or wide.max() > np.iinfo(self._ids).max):
            raise ValueError(f"ids must be from 0 to {self.n_vocab - 1}")
        array = np.ascontiguousarray(wide, self._ids).reshape(-1)
        return _made_by(library.sgt_decode, self._vocab.pointer, array.ctypes.data, len(array))

    def decode(self, tokens: ArrayLike, errors: str = "replace") -> str:
        """Return the text of the ids; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_batch(
        self, batch: Iterable[ArrayLike], *, errors: str = "replace", num_threads: int = 1
    ) -> List[str]:
        return each(partial(self.decode, errors=errors), batch, num_threads)

    def decode_bytes_batch(
        self, batch: Iterable[ArrayLike], *, num_threads: int = 1
    ) -> List[bytes]:
        return each(self.decode_bytes, batch, num_threads)

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> List[bytes]:
        """Return the bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Iterable[int]) -> Tuple[str, List[int]]:
        """Return the text of the ids, and for each id the index of the first character in the text
        that contains bytes of it. Bytes that are not UTF-8 raise UnicodeDecodeError."""
        length, offsets, pieces = 0, [], self.decode_tokens_bytes(tokens)
        for piece in pieces:
            begins = sum(byte & 0xC0 != 0x80 for byte in piece)  # characters that begin in it
            offsets.append(max(0, length - (piece[0] & 0xC0 == 0x80)))
            length += begins
        return b"".join(pieces).decode(), offsets

    def decode_single_token_bytes(self, token: int) -> bytes:
        size = c_size_t()
        at = None
        if 0 <= token < self.n_vocab:
            at = library.sgt_vocab_token(self._vocab.pointer, token, byref(size))
        if at is None:
            raise KeyError(token)
        return ctypes.string_at(at, size.value)

    def save(self, folder: Path) -> None:
        """Write merges.txt, vocab.json and tokenizer.json into `folder`."""
        call(library.sgt_vocab_save, self._vocab.pointer, path_of(folder))


@cache
def _default() -> Tokenizer:
    return Tokenizer()


def encode(text: Text) -> Ids:
    """Return the GPT-2 ids of the text as uint16, like tiktoken's encode_ordinary."""
    return _default().encode_ordinary(text)


def decode(ids: ArrayLike) -> str:
    """Return the text of GPT-2 ids."""
    return _default().decode(ids)
