"""Where texts lie in memory, so that the library can read them without a copy.

CPython keeps a str as ASCII, Latin-1, UCS-2 or UCS-4 behind a header. No function returns the
address, so it is derived from strings of each kind, and only used if their characters are found
there. So are the lengths of many strings: asking each one takes several times as long. A str whose
state differs from theirs, and every str where this fails, is converted to UTF-8 instead."""

import ctypes
import sys
from ctypes import c_uint8, c_void_p, py_object
from typing import Any, Dict, List, Tuple, Union, cast

import numpy as np
from numpy.typing import NDArray

Text = Union[str, bytes]
Fields = Tuple[int, int, int]  # an sgt_text: address, length and width
_state = c_uint8.from_address
_CODECS = {0: "ascii", 1: "latin-1", 2: "utf-16", 4: "utf-32"}  # by width
MOST = (1, 2, 3, 0, 4)  # ids that a unit of each width may become


def _pointer_to(name: str) -> Any:
    """Return a function of CPython that returns a pointer into an object."""
    function = getattr(ctypes.pythonapi, name)
    function.argtypes, function.restype = [py_object], c_void_p
    return function


_ascii = _pointer_to("PyUnicode_AsUTF8")  # points into an ASCII str, without a copy
_bytes_at = _pointer_to("PyBytes_AsString")


class _Memory:
    """All memory from address 8 on, as words of 8 bytes: an array to look up a few of them."""

    __array_interface__ = {"data": (8, True), "shape": ((1 << 45) - 2,), "typestr": "=i8"}


_words = np.asarray(_Memory())
_HEAD = object.__basicsize__  # of an object; its type is the last word, and a length follows


def _word(addresses: NDArray[np.int64], offset: int) -> NDArray[np.int64]:
    """Return the words that hold the bytes `offset` behind these addresses."""
    return cast(NDArray[np.int64], _words[(addresses + (offset - 8)) >> 3])


def _addresses(objects: List[Any]) -> NDArray[np.int64]:
    """Return the addresses of a list's objects, which are not touched."""
    first = int(_word(np.array([id(objects)]), _HEAD + 8)[0])
    return _words[first // 8 - 1 :][: len(objects)]


def find_layout(strings: List[str]) -> Tuple[int, Dict[int, Tuple[int, int]]]:
    """Return the offset of a str's state, and for each state the offset and width of the units."""
    kinds = []
    for text, width in zip(strings, _CODECS):
        size = width or 1
        header = text.__sizeof__() - size * (len(text) + 1)
        found = ctypes.string_at(id(text) + header, size * len(text))
        if text.encode(_CODECS[width], "replace")[-len(found) :] != found:
            return 0, {}
        kinds.append((header, width))
    at = _addresses(strings)
    if at.tolist() != [*map(id, strings)] or set(_word(at, _HEAD - 8).tolist()) != {id(str)}:
        return 0, {}
    if _word(at, _HEAD).tolist() != [*map(len, strings)]:
        return 0, {}
    first = _HEAD + 16  # behind length and hash
    for state in range(first, first + 4):
        layout = dict(zip((_state(id(t) + state).value for t in strings), kinds))
        if len(layout) == len(_CODECS):
            return state, layout
    return 0, {}


def _samples() -> List[str]:
    """Return a new string of each width, of different lengths."""
    return [chr(last) * (2 + i) + "text" for i, last in enumerate((0x41, 0xE9, 0x201C, 0x1F600))]


_is_cpython = sys.implementation.name == "cpython"
_STATE, _LAYOUT = find_layout(_samples()) if _is_cpython else (0, {})
_headers, _widths = np.full(256, -1), np.zeros(256, np.int64)  # by state
for _key, (_header, _width) in _LAYOUT.items():
    _headers[_key], _widths[_key] = _header, _width


def as_bytes(text: Text) -> bytes:
    """Return the text as UTF-8. The methods are those of str: a subclass may have others."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"a text is a str or bytes, not {type(text).__name__}")
    try:
        return str.encode(text)
    except UnicodeEncodeError:  # lone surrogates become U+FFFD, as in tiktoken
        wide = str.encode(text, "utf-16", "surrogatepass")
        return wide.decode("utf-16", "replace").encode()


def locate(text: Text, kept: List[bytes]) -> Fields:
    """Return where a text is. What has to live as long as the address, beside the text, is appended
    to `kept`."""
    if isinstance(text, str):
        if str.isascii(text):
            return _ascii(text), str.__len__(text), 0
        if type(text) is str and _LAYOUT:
            header, width = _LAYOUT.get(_state(id(text) + _STATE).value, (0, 0))
            if width:
                return id(text) + header, len(text), width
    text = as_bytes(text)
    kept.append(text)
    return _bytes_at(text), bytes.__len__(text), 0


def locate_all(texts: List[Text], kept: List[bytes]) -> NDArray[np.int64]:
    """Return locate() of each text as a row of an array. A list of strings alone costs far less."""
    fields = np.empty((len(texts), 3), np.int64)
    at = _addresses(texts) if texts and _LAYOUT else fields[:0, 0]
    if len(at) == 0 or (_word(at, _HEAD - 8) != id(str)).any():
        for i, text in enumerate(texts):
            fields[i] = locate(text, kept)
        return fields
    states = _word(at, _STATE) >> 8 * (_STATE % 8) & 0xFF
    headers = _headers[states]
    fields[:, 0] = at + headers
    fields[:, 1] = _word(at, _HEAD)
    fields[:, 2] = _widths[states]
    for i in np.flatnonzero(headers < 0).tolist():
        fields[i] = locate(texts[i], kept)
    return fields
