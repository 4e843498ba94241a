"""Where texts lie in memory, so that the library can read them without a copy.

CPython keeps a str as Latin-1, UCS-2 or UCS-4 behind a header. No function returns the address, so
it is derived from strings of each kind, and only used if their characters are found there. A str
whose state differs from theirs, and every str where this fails, is converted to UTF-8 instead."""

import ctypes
import sys
from ctypes import c_size_t, c_uint8, c_void_p, py_object
from typing import Any, Dict, List, Tuple, Union

Text = Union[str, bytes]
_state = c_uint8.from_address
_CODECS = {1: "latin-1", 2: "utf-16", 4: "utf-32"}


def _pointer_to(name: str) -> Any:
    """Return a function of CPython that returns a pointer into an object."""
    function = getattr(ctypes.pythonapi, name)
    function.argtypes, function.restype = [py_object], c_void_p
    return function


_ascii = _pointer_to("PyUnicode_AsUTF8")  # points into an ASCII str, without a copy
_bytes_at = _pointer_to("PyBytes_AsString")


def find_layout(strings: List[str]) -> Tuple[int, int, Dict[int, int]]:
    """Return the offsets of state and characters, and the bytes of a character for each state."""
    header = 0
    for text, width in zip(strings, _CODECS):
        header = text.__sizeof__() - width * (len(text) + 1)
        found = ctypes.string_at(id(text) + header, width * len(text))
        if text.encode(_CODECS[width], "replace")[-len(found) :] != found:
            return 0, 0, {}
    first = object.__basicsize__ + 16  # behind length and hash
    for state in (first, first + 1):
        widths = {_state(id(t) + state).value: width for t, width in zip(strings, _CODECS)}
        if len(widths) == 3:
            return state, header, widths
    return 0, 0, {}


def _samples() -> List[str]:
    """Return a new string of each width."""
    return [chr(last) * 2 + "text" for last in (0xE9, 0x201C, 0x1F600)]


_is_cpython = sys.implementation.name == "cpython"
_STATE, _HEADER, _WIDTHS = find_layout(_samples()) if _is_cpython else (0, 0, {})


def as_bytes(text: Text) -> bytes:
    """Return the text as UTF-8."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates become U+FFFD, as in tiktoken
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def locate(texts: List[Text]) -> Tuple[Any, int, List[bytes]]:
    """Return sgt_text structs, the most ids that the texts have, and what to keep while the structs
    are in use, apart from `texts`."""
    fields: List[int] = []
    kept: List[bytes] = []
    most = 0
    for text in texts:
        size = len(text)
        if isinstance(text, str):
            if text.isascii():
                fields += (_ascii(text), size, 0)
                most += size
                continue
            width = _WIDTHS.get(_state(id(text) + _STATE).value) if type(text) is str else None
            if width:
                fields += (id(text) + _HEADER, size, width)
                most += 4 * size
                continue
            text = as_bytes(text)
            size = len(text)
        kept.append(text)
        fields += (_bytes_at(text), size, 0)
        most += size
    return (c_size_t * len(fields))(*fields), most, kept
