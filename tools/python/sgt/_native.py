"""The C libraries: their structs and functions, and handles that close themselves."""

import ctypes
import os
import re
import threading
import weakref
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple, Union

from ._errors import CLASSES, Error, UsageError

Path = Union[str, "os.PathLike[str]"]

SAY = CFUNCTYPE(None, c_void_p, c_char_p)
ALLOC = CFUNCTYPE(c_void_p, c_void_p, c_size_t)
PROGRESS = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64, c_uint64)


class ErrorText(Structure):  # sgt_error
    _fields_ = [("code", c_int), ("text", c_char * 1024)]


class Notice(Structure):  # sgt_notice
    _fields_ = [("say", SAY), ("ctx", c_void_p)]


class LoaderSet(Structure):  # sgt_loader_set
    _fields_ = [("path", c_char_p), ("weight", c_double)]


class LoaderOptions(Structure):  # sgt_loader_options
    _fields_ = [
        ("reader", c_int), ("sampling", c_int), ("seed", c_uint64), ("batch", c_uint32),
        ("seq", c_uint32), ("rank", c_uint32), ("ranks", c_uint32), ("vocab", c_uint32),
        ("split", c_char_p), ("padded_by", c_int), ("pad", c_uint32), ("scalar", c_int),
        ("raw", c_int), ("notice", Notice), ("sets", POINTER(LoaderSet)), ("set_count", c_uint32),
        ("documents", c_int),
    ]  # fmt: skip


class LoaderInfo(Structure):  # sgt_loader_info
    _fields_ = [
        ("tokens", c_uint64), ("shards", c_uint64), ("skipped", c_uint64),
        ("windows_per_epoch", c_uint64), ("batch", c_uint32), ("seq", c_uint32),
        ("vocab", c_uint32), ("local_batch", c_uint32), ("padded", c_int), ("hash", c_uint64),
        ("sets", c_uint32), ("reader", c_int), ("reader_detail", c_char_p),
        ("documents", c_uint64),
    ]  # fmt: skip


class LoaderPacking(Structure):  # sgt_loader_packing
    _fields_ = [
        ("rows", c_uint64), ("documents", c_uint64), ("tokens", c_uint64), ("cropped", c_uint64),
        ("fewest", c_uint32), ("most", c_uint32),
    ]  # fmt: skip


class LoaderState(Structure):  # sgt_loader_state
    _fields_ = [
        ("rows", c_uint64), ("hash", c_uint64), ("tokens", c_uint64), ("seed", c_uint64),
        ("sampling", c_int), ("seq", c_uint32), ("pad", c_uint32),
    ]  # fmt: skip


class RowDocuments(Structure):  # sgt_row_documents
    _fields_ = [("first", POINTER(c_uint32)), ("starts", POINTER(c_uint32))]


class StreamOptions(Structure):  # sgt_stream_options
    _fields_ = [
        ("first", c_uint64), ("count", c_uint64), ("output", c_int), ("slots", c_uint32),
        ("threads", c_uint32), ("alloc", ALLOC), ("free", c_void_p), ("ctx", c_void_p),
        ("making", c_void_p), ("making_ctx", c_void_p),
    ]  # fmt: skip


class StreamBatch(Structure):  # sgt_stream_batch
    _fields_ = [
        ("index", c_uint64), ("rows", c_void_p), ("lengths", POINTER(c_uint32)),
        ("inputs", c_void_p), ("targets", c_void_p), ("slot", c_uint32),
        ("documents", POINTER(RowDocuments)), ("inputs_i64", c_void_p),
        ("targets_i64", c_void_p), ("rows_i32", c_void_p),
    ]  # fmt: skip


class TokenizeOptions(Structure):  # sgt_tokenize_options
    _fields_ = [
        ("inputs", POINTER(c_char_p)), ("input_count", c_size_t), ("out", c_char_p),
        ("vocab", c_char_p), ("rule", c_char_p), ("normalize", c_int), ("val_fraction", c_double),
        ("shard_tokens", c_uint64), ("threads", c_int), ("piece_bytes", c_size_t),
        ("format", c_int), ("field", c_char_p), ("filters", POINTER(c_char_p)),
        ("filter_count", c_size_t), ("skip_bad", c_int), ("special_eot", c_int),
        ("invalid_utf8", c_int), ("shuffle", c_int), ("shuffle_seed", c_uint64),
        ("dedup", c_int), ("ranks", c_void_p), ("force", c_int), ("notice", Notice),
        ("stop", POINTER(c_int)), ("progress", PROGRESS), ("progress_ctx", c_void_p),
        ("binary", c_int), ("hidden", c_int), ("keep_fields", c_char_p), ("layout", c_int),
    ]  # fmt: skip


class TokenizeResult(Structure):  # sgt_tokenize_result
    _fields_ = [
        ("tokens", c_uint64), ("documents", c_uint64), ("bytes", c_uint64), ("files", c_uint64),
        ("invalid_utf8", c_uint64), ("shards", c_uint64), ("bad_lines", c_uint64),
        ("duplicates", c_uint64), ("lone_surrogates", c_uint64), ("train_tokens", c_uint64),
        ("val_tokens", c_uint64), ("bytes_read", c_uint64), ("waiting", c_uint32),
        ("already_done", c_int), ("seconds", c_double), ("skipped", c_uint64),
        ("eot_literals", c_uint64),
    ]  # fmt: skip


def _open(name: str) -> ctypes.CDLL:
    """Open the library in the wheel; without a wheel, the one that the system's linker finds."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", name)
    return ctypes.CDLL(own if os.path.exists(own) else name)


_BATCHES = [c_void_p, c_void_p, c_uint64, c_uint64, c_void_p]
_ERROR = POINTER(ErrorText)
# name: result, arguments
_LOADER = {
    "sgt_reader_name": (c_char_p, [c_int]),
    "sgt_sampling_name": (c_char_p, [c_int]),
    "sgt_loader_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(LoaderOptions), _ERROR]),
    "sgt_loader_open_data": (c_int, [POINTER(c_void_p), c_char_p, POINTER(LoaderOptions), _ERROR]),
    "sgt_loader_close": (None, [c_void_p]),
    "sgt_loader_get_info": (None, [c_void_p, POINTER(LoaderInfo)]),
    "sgt_loader_get_packing": (c_int, [c_void_p, POINTER(LoaderPacking), _ERROR]),
    "sgt_loader_get_state": (None, [c_void_p, c_uint64, POINTER(LoaderState)]),
    "sgt_loader_resume": (c_int, [c_void_p, POINTER(LoaderState), POINTER(c_uint64), _ERROR]),
    "sgt_loader_guard_sigbus": (c_int, [_ERROR]),
    "sgt_cursor_open": (c_int, [POINTER(c_void_p), c_void_p, _ERROR]),
    "sgt_cursor_close": (None, [c_void_p]),
    "sgt_cursor_lengths": (POINTER(c_uint32), [c_void_p]),
    "sgt_cursor_documents": (POINTER(RowDocuments), [c_void_p]),
    "sgt_loader_batches": (c_int, [*_BATCHES, _ERROR]),
    "sgt_loader_batches_i32": (c_int, [*_BATCHES, c_void_p, _ERROR]),
    "sgt_loader_batches_i64": (c_int, [*_BATCHES, c_void_p, _ERROR]),
    "sgt_row_documents_expand": (
        None,
        [POINTER(RowDocuments), POINTER(c_uint32), c_uint32, c_uint32] + 3 * [c_void_p],
    ),
    "sgt_stream_open": (c_int, [POINTER(c_void_p), c_void_p, POINTER(StreamOptions), _ERROR]),
    "sgt_stream_next": (c_int, [c_void_p, POINTER(StreamBatch), _ERROR]),
    "sgt_stream_release": (None, [c_void_p, POINTER(StreamBatch)]),
    "sgt_stream_close": (None, [c_void_p]),
}
_TOKENIZE = {
    "sgt_vocab_gpt2": (c_int, [POINTER(c_void_p), _ERROR]),
    "sgt_vocab_load": (c_int, [POINTER(c_void_p), c_char_p, c_char_p, _ERROR]),
    "sgt_vocab_free": (None, [c_void_p]),
    "sgt_vocab_size": (c_uint32, [c_void_p]),
    "sgt_vocab_eot": (c_uint32, [c_void_p]),
    "sgt_vocab_name": (c_char_p, [c_void_p]),
    "sgt_vocab_token": (c_void_p, [c_void_p, c_uint32, POINTER(c_size_t)]),
    "sgt_vocab_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "sgt_encoder_new": (c_int, [POINTER(c_void_p), c_void_p, _ERROR]),
    "sgt_encoder_free": (None, [c_void_p]),
    "sgt_encode_texts": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, _ERROR]),
    "sgt_decode": (
        c_int,
        [c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t), _ERROR],
    ),
    "sgt_tokenize": (c_int, [POINTER(TokenizeOptions), POINTER(TokenizeResult), _ERROR]),
}


def _bind(library: ctypes.CDLL, functions: Any) -> ctypes.CDLL:
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


loader_library = _bind(_open("libsgt-loader.so.0"), _LOADER)
tokenize_library = _bind(_open("libsgt-tokenize.so.0"), _TOKENIZE)


def _names(function: Any) -> Tuple[str, ...]:
    """Return the names of an enumeration's members, in order."""
    names: List[str] = []
    while (name := function(len(names)).decode()) != "unknown":
        names.append(name)
    return tuple(names)


READERS = _names(loader_library.sgt_reader_name)
SAMPLINGS = _names(loader_library.sgt_sampling_name)


def check(rc: int, error: ErrorText) -> int:
    """Return rc, or raise the exception for a negative one."""
    if rc < 0:
        raise CLASSES.get(rc, Error)(_as_keywords(error.text))
    return rc


# What the libraries' messages call options of the programs, and Python's keyword arguments.
_KEYWORDS = {
    "--force": "force=True", "--skip-bad": "skip_bad=True",
    "--dedup": "dedup=True", "--hidden": "hidden=True", "--binary": "binary",
    "--filter": "filters", "--loader": "reader", "--field": "field", "--format": "format",
    "--invalid-utf8": "invalid_utf8", "--keep-fields": "keep_fields", "--normalize": "normalize",
    "--pattern": "pattern", "--sampling": "sampling", "--shard-tokens": "shard_tokens",
    "--shards": "shards", "--shuffle": "shuffle", "--split": "split", "--vocab": "vocab",
}  # fmt: skip


def _as_keywords(message: bytes) -> str:
    """Return a message of the library, with keyword arguments instead of options of programs."""
    text = message.decode("utf-8", "replace")
    return re.sub(r"(?<![^ (])--[a-z0-9-]+", lambda found: _KEYWORDS.get(found[0], found[0]), text)


class Handle:
    """A pointer of the library. It is closed once: when it is garbage, or when the process ends.

    If a handle needs another one, as a cursor needs its loader, it is a child of that one. A
    parent is closed after its last child, in whatever order garbage is collected. A forked
    process closes nothing, because the handles belong to its parent process.

    `memory` is what the library writes to until it is closed. It is kept until then, even if a
    KeyboardInterrupt hits the finalizer, so that the handle is never closed.
    """

    def __init__(
        self,
        pointer: "c_void_p",
        close: Callable[["c_void_p"], None],
        parent: "Optional[Handle]" = None,
        memory: Any = None,
    ) -> None:
        self.pointer = pointer
        above: Optional[_Count] = parent.count if parent else None
        self.count: _Count = _Count(pointer, close, above, memory)
        self.close = weakref.finalize(self, self.count.drop)

    @property
    def is_inherited(self) -> bool:
        """Return whether the handle was made before a fork: this process must not use it."""
        return self.count.pid != os.getpid()


_unclosed: "Set[_Count]" = set()


class _Count:
    """Counts the users of a pointer: its Handle, and the children of that."""

    def __init__(
        self,
        pointer: "c_void_p",
        close: Callable[["c_void_p"], None],
        parent: "Optional[_Count]",
        memory: Any,
    ) -> None:
        self.pointer, self.close, self.parent, self.memory = pointer, close, parent, memory
        self.pid = os.getpid()
        self.users = 1
        self.lock = threading.Lock()
        if parent:
            with parent.lock:
                parent.users += 1
        _unclosed.add(self)

    def drop(self) -> None:
        if self.pid != os.getpid():
            _unclosed.discard(self)
            return
        with self.lock:
            self.users -= 1
            left = self.users
        if left == 0:
            self.close(self.pointer)
            _unclosed.discard(self)
            if self.parent:
                self.parent.drop()


def say_notice(_ctx: Any, line: bytes) -> None:
    """Pass a notice of the library to Python's logging, which by default prints it to stderr."""
    import logging

    logging.getLogger("sgt").warning("%s", _as_keywords(line))


NOTICE = Notice(SAY(say_notice), None)


def check_range(name: str, number: int, least: int, most: int) -> None:
    """Refuse a number that ctypes would cut, and anything that is no integer."""
    if not hasattr(number, "__index__"):
        raise TypeError(f"{name}: expected an integer, not {type(number).__name__}")
    if not least <= number <= most:
        raise UsageError(f"{name}: {number} is out of range, {least} to {most}")


def check_name(name: str, value: Any, names: Sequence[str]) -> None:
    if value not in names:
        raise UsageError(f"{name} {value!r}: expected one of {', '.join(names)}")


def c_text(name: str, text: str) -> bytes:
    """Return the text of an argument as a C string."""
    if not isinstance(text, str):
        raise TypeError(f"{name}: expected a str, not {type(text).__name__}")
    return c_string(text.encode())


def c_string(text: bytes) -> bytes:
    """Return the text, which C reads up to a NUL."""
    if 0 in text:
        raise UsageError(f"{text.decode(errors='replace')!r} holds a NUL")
    return text


def strings(texts: "List[bytes]") -> Tuple[Any, int]:
    """Return a C array of strings, and its length."""
    return (c_char_p * len(texts))(*map(c_string, texts)), len(texts)
