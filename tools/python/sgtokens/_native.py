"""The C libraries: their errors, structs and functions, and handles that close themselves."""

import ctypes
import difflib
import functools
import inspect
import os
import weakref
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Callable, Dict, List, Sequence, Tuple, Type, TypeVar, Union, cast

Path = Union[str, "os.PathLike[str]"]
S = TypeVar("S", bound=Structure)
F = TypeVar("F", bound=Callable[..., Any])


class Error(Exception):
    """Any failure that the C libraries report, with their message of one line. The message names
    options of the programs: --skip-bad stands for skip_bad=True here."""


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out, or a set does not fit in memory."""


class FileError(Error, OSError):
    """A system call failed: a missing file, a full disk."""


class FormatError(Error, ValueError):
    """A file does not have the expected format, or changed while it was in use."""


class UsageError(Error, ValueError):
    """An argument, or a combination of arguments, is invalid."""


class UnsupportedError(Error, RuntimeError):
    """This machine or this build does not support the operation."""


class StoppedError(Error):
    """The call was stopped. Finished work is kept."""


# By the codes of loader/base/error.h.
CLASSES: Dict[int, Type[Error]] = {
    -1: OutOfMemoryError,
    -2: FileError,
    -3: FormatError,
    -4: UsageError,
    -5: UnsupportedError,
    -6: StoppedError,
}

SAY = CFUNCTYPE(None, c_void_p, c_char_p)
PROGRESS = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64, c_uint64)


class ErrorText(Structure):  # sgt_error
    _fields_ = [("code", c_int), ("text", c_char * 1024)]


class Notice(Structure):  # sgt_notice
    _fields_ = [("say", SAY), ("ctx", c_void_p)]


class LoaderSet(Structure):  # sgt_loader_set
    _fields_ = [("path", c_char_p), ("weight", c_double)]


class LoaderOptions(Structure):  # sgt_loader_options
    _fields_ = [
        ("size", c_size_t), ("data", c_char_p), ("sets", POINTER(LoaderSet)),
        ("set_count", c_uint32), ("split", c_char_p), ("raw", c_int), ("vocab", c_uint32),
        ("sampling", c_int), ("seed", c_uint64), ("batch", c_uint32), ("seq", c_uint32),
        ("rank", c_uint32), ("ranks", c_uint32), ("documents", c_int), ("padded_by", c_int),
        ("pad", c_uint32), ("reader", c_int), ("may_map", c_int), ("copies", c_uint32),
        ("available", c_uint64), ("notice", Notice),
    ]  # fmt: skip


class LoaderInfo(Structure):  # sgt_loader_info
    _fields_ = [
        ("size", c_size_t), ("tokens", c_uint64), ("shards", c_uint64), ("skipped", c_uint64),
        ("windows_per_epoch", c_uint64), ("batch", c_uint32), ("seq", c_uint32),
        ("vocab", c_uint32), ("local_batch", c_uint32), ("padded", c_int), ("set_count", c_uint32),
        ("sets", c_void_p), ("hash", c_uint64), ("fingerprint", c_uint64), ("eot", c_int64),
        ("documents", c_uint64), ("packed_tokens", c_uint64), ("cropped", c_uint64),
        ("reader_detail", c_char_p),
    ]  # fmt: skip


class LoaderState(Structure):  # sgt_loader_state
    _fields_ = [
        ("size", c_size_t), ("rows", c_uint64), ("hash", c_uint64), ("tokens", c_uint64),
        ("seed", c_uint64), ("sampling", c_int), ("seq", c_uint32), ("pad", c_uint32),
        ("reserved", c_uint32),
    ]  # fmt: skip


class StreamOptions(Structure):  # sgt_stream_options
    _fields_ = [
        ("size", c_size_t), ("first", c_uint64), ("count", c_uint64), ("output", c_int),
        ("slots", c_uint32), ("threads", c_uint32), ("buffers", POINTER(c_void_p)),
    ]  # fmt: skip


class LoaderBatch(Structure):  # sgt_loader_batch
    _fields_ = [
        ("size", c_size_t), ("index", c_uint64), ("output", c_int), ("inputs", c_void_p),
        ("targets", c_void_p), ("lengths", c_void_p), ("row_starts", c_void_p),
        ("starts", c_void_p), ("slot", c_uint32), ("begins", POINTER(c_int32)),
        ("positions", POINTER(c_int32)), ("ids", POINTER(c_int32)),
    ]  # fmt: skip


class TokenizeOptions(Structure):  # sgt_tokenize_options
    _fields_ = [
        ("size", c_size_t), ("inputs", POINTER(c_char_p)), ("input_count", c_size_t),
        ("filters", POINTER(c_char_p)), ("filter_count", c_size_t), ("field", c_char_p),
        ("keep_fields", c_char_p), ("format", c_int), ("binary", c_int), ("hidden", c_int),
        ("skip_bad", c_int), ("vocab", c_char_p), ("pattern", c_char_p), ("normalize", c_int),
        ("invalid_utf8", c_int), ("special_eot", c_int), ("dedup", c_int), ("out", c_char_p),
        ("shard_tokens", c_uint64), ("val_fraction", c_double), ("shuffle_seed", c_uint64),
        ("shuffle", c_int), ("layout", c_int), ("force", c_int), ("threads", c_int),
        ("rank", c_uint32), ("ranks", c_uint32), ("joined", c_void_p), ("notice", Notice),
        ("stop", POINTER(c_int)), ("progress", PROGRESS), ("progress_ctx", c_void_p),
    ]  # fmt: skip


class TokenizeResult(Structure):  # sgt_tokenize_result
    _fields_ = [
        ("size", c_size_t), ("tokens", c_uint64), ("train_tokens", c_uint64),
        ("val_tokens", c_uint64), ("shards", c_uint64), ("files", c_uint64),
        ("documents", c_uint64), ("bytes", c_uint64), ("skipped", c_uint64),
        ("bad_lines", c_uint64), ("duplicates", c_uint64), ("invalid_utf8", c_uint64),
        ("lone_surrogates", c_uint64), ("eot_literals", c_uint64), ("pieces", c_uint64),
        ("distinct", c_uint64), ("bytes_read", c_uint64), ("seconds", c_double),
        ("waiting", c_uint32), ("already_done", c_int),
    ]  # fmt: skip


def _open(name: str) -> ctypes.CDLL:
    """Open the wheel's library, or if there is none, the one that the dynamic linker finds."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", name)
    return ctypes.CDLL(own if os.path.exists(own) else name)


_OUT, _BATCH, _ERROR = POINTER(c_void_p), POINTER(LoaderBatch), POINTER(ErrorText)
_MEMORY = c_void_p, c_size_t
# name: result, arguments
_LOADER = {
    "sgt_reader_name": (c_char_p, [c_int]),
    "sgt_sampling_name": (c_char_p, [c_int]),
    "sgt_loader_open": (c_int, [_OUT, POINTER(LoaderOptions), _ERROR]),
    "sgt_loader_close": (None, [c_void_p]),
    "sgt_loader_get_info": (POINTER(LoaderInfo), [c_void_p]),
    "sgt_loader_get_state": (c_int, [c_void_p, c_uint64, POINTER(LoaderState), _ERROR]),
    "sgt_loader_resume": (c_int, [c_void_p, POINTER(LoaderState), POINTER(c_uint64), _ERROR]),
    "sgt_loader_guard_sigbus": (c_int, [_ERROR]),
    "sgt_cursor_open": (c_int, [_OUT, c_void_p, _ERROR]),
    "sgt_cursor_close": (None, [c_void_p]),
    "sgt_cursor_batch": (_BATCH, [c_void_p]),
    "sgt_loader_read": (c_int, [*2 * [c_void_p], *2 * [c_uint64], c_int, *_MEMORY, _ERROR]),
    "sgt_stream_bytes": (c_size_t, [c_void_p, c_int]),
    "sgt_stream_open": (c_int, [_OUT, c_void_p, POINTER(StreamOptions), _ERROR]),
    "sgt_stream_next": (c_int, [c_void_p, POINTER(_BATCH), _ERROR]),
    "sgt_stream_release": (None, [c_void_p, _BATCH, c_void_p]),
    "sgt_stream_close": (None, [c_void_p]),
}
_TOKENIZE = {
    "sgt_vocab_load": (c_int, [_OUT, c_char_p, c_char_p, _ERROR]),
    "sgt_vocab_free": (None, [c_void_p]),
    "sgt_vocab_size": (c_uint32, [c_void_p]),
    "sgt_vocab_width": (c_size_t, [c_void_p]),
    "sgt_vocab_eot": (c_uint32, [c_void_p]),
    "sgt_vocab_name": (c_char_p, [c_void_p]),
    "sgt_vocab_token": (c_void_p, [c_void_p, c_uint32, POINTER(c_size_t)]),
    "sgt_vocab_tokenizer_json": (c_int, [c_void_p, _OUT, POINTER(c_size_t), _ERROR]),
    "sgt_vocab_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "sgt_encoder_new": (c_int, [_OUT, c_void_p, _ERROR]),
    "sgt_encoder_free": (None, [c_void_p]),
    "sgt_encode_texts": (c_int, [c_void_p, *2 * [c_void_p, c_size_t], c_void_p, _ERROR]),
    "sgt_decode": (c_int, [c_void_p, c_void_p, c_size_t, _OUT, POINTER(c_size_t), _ERROR]),
    "sgt_tokenize": (c_int, [POINTER(TokenizeOptions), POINTER(TokenizeResult), _ERROR]),
    "sgt_tokenize_threads": (c_int, []),
}


def _bind(library: ctypes.CDLL, functions: Any) -> ctypes.CDLL:
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


loader_library = _bind(_open("libsgt-loader.so.1"), _LOADER)
tokenize_library = _bind(_open("libsgt-tokenize.so.1"), _TOKENIZE)


def _names(function: Any) -> Tuple[str, ...]:
    """Return the names of an enumeration's members in order, from a function of the library."""
    names: List[str] = []
    while (name := function(len(names)).decode()) != "unknown":
        names.append(name)
    return tuple(names)


READERS = _names(loader_library.sgt_reader_name)
SAMPLINGS = _names(loader_library.sgt_sampling_name)


def check(rc: int, error: ErrorText) -> int:
    """Return rc, or raise the matching exception if rc is negative."""
    if rc < 0:
        raise CLASSES.get(rc, Error)(error.text.decode("utf-8", "replace"))
    return rc


def call(function: Any, *given: Any) -> int:
    """Call a function of a library with these arguments and an error, and check the result."""
    error = ErrorText()
    return check(function(*given, byref(error)), error)


class Handle:
    """A pointer that the library returned. It is closed exactly once: when this object is
    garbage-collected, or when the process ends.

    The objects in `kept` live at least until then: a handle that this one needs, as a cursor needs
    its loader, and memory to which the library writes. If a KeyboardInterrupt comes before this
    object exists, or in its finalizer, the pointer is never closed, and `kept` stays alive. A
    forked process closes nothing, because the handles belong to its parent process.
    """

    def __init__(self, pointer: "c_void_p", close: Callable[["c_void_p"], None], key: object):
        self.pointer = pointer
        weakref.finalize(self, _close, os.getpid(), key, close, pointer)


_kept: Dict[object, Sequence[Any]] = {}  # by handle that is not closed


def _close(pid: int, key: object, close: Callable[["c_void_p"], None], pointer: "c_void_p") -> None:
    if pid == os.getpid():
        close(pointer)
    _kept.pop(key, None)


def open_handle(function: Any, close: Any, *given: Any, kept: Sequence[Any] = ()) -> Handle:
    """Return a handle for the pointer that a function of a library opens with these arguments."""
    pointer, key = c_void_p(), object()
    _kept[key] = kept
    try:
        call(function, byref(pointer), *given)
    except Exception:
        del _kept[key]
        raise
    return Handle(pointer, close, key)


def say_notice(_ctx: Any, line: bytes) -> None:
    """Pass a notice of the library to Python's logging, which by default prints it to stderr."""
    import logging

    logging.getLogger("sgtokens").warning("%s", line.decode("utf-8", "replace"))


NOTICE = Notice(SAY(say_notice), None)


def default_threads() -> int:
    """Return a thread per core, but no more than a CPU quota and OMP_NUM_THREADS allow."""
    cores: int = tokenize_library.sgt_tokenize_threads()
    most = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if not most.isdigit() or (most == "1" and "TORCHELASTIC_RUN_ID" in os.environ):
        return cores  # torchrun sets 1 by itself
    return min(cores, int(most) or cores)


# ---- arguments ----

_MOST: Dict[Any, int] = {c_int: (1 << 31) - 1, c_uint32: (1 << 32) - 1, c_uint64: (1 << 64) - 1}


def fill(struct: Type[S], **given: Any) -> S:
    """Return a struct of the library with these fields. The library checks the values. This
    function only refuses a value, naming its field, if the C type cannot represent it exactly."""
    kinds: Dict[str, Any] = {field[0]: field[1] for field in struct._fields_}
    for name, value in given.items():
        if kinds[name] in _MOST:
            check_range(name, value, 0, _MOST[kinds[name]])
        elif kinds[name] is c_char_p and value is not None:
            given[name] = text_of(name, value)
    if "size" in kinds:
        given["size"] = ctypes.sizeof(struct)
    return struct(**given)


# What other packages and programs call an argument, as in tools/cli/options.c.
OTHER_NAMES = {
    "path": "data data_dir dataset folder",
    "batch": "bs",
    "seq": "block_size context_length max_length sequence sequence_length max_position_embeddings "
    "ctx n_ctx seqlen",
    "sampling": "shuffle",
    "ranks": "world_size",
    "reader": "loader",
    "threads": "workers num_workers num_proc jobs processes cpus",
    "inputs": "input files",
    "out": "output output_dir",
    "vocab": "tokenizer encoding model merges",
    "field": "column text_key json_keys key",
    "split": "val_fraction test_size val valid",
    "shard_tokens": "shard_size tokens_per_shard",
    "force": "overwrite overwrite_output_dir",
}


def suggests(function: F) -> F:
    """Decorator: if a keyword argument is unknown, suggest a similar one in the error."""
    names = list(inspect.signature(function).parameters)
    meant = {w: name for name in names for w in (name, *OTHER_NAMES.get(name, "").split())}

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for word in given.keys() - names:
            inside = [name for name in names if name in word.split("_")]
            near = inside or difflib.get_close_matches(word, meant, 1, 0.7)
            hint = f"; did you mean {meant[near[-1]]}?" if near else ""
            raise TypeError(f"{word}: no such argument{hint}")
        return function(*args, **given)

    return cast(F, call)


def check_range(name: str, number: int, least: int, most: int) -> None:
    """Raise UsageError if a number is out of range, or is not an integer."""
    if not hasattr(number, "__index__"):
        raise TypeError(f"{name}: expected an integer, not {type(number).__name__}")
    if not least <= number <= most:
        raise UsageError(f"{name}: {number} is out of range, {least} to {most}")


def index_of(name: str, value: Any, names: Sequence[str]) -> int:
    """Return the index of an enumeration's member."""
    if value not in names:
        raise UsageError(f"{name} {value!r}: expected one of {', '.join(names)}")
    return names.index(value)


def text_of(name: str, text: Union[str, bytes]) -> bytes:
    """Return an argument as a C string. Refuse a NUL, at which C would end the string."""
    data = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    if not isinstance(data, bytes):
        raise TypeError(f"{name}: expected a str, not {type(text).__name__}")
    if 0 in data:
        raise UsageError(f"{name}: {text!r} contains a NUL")
    return data


def path_of(path: Path) -> bytes:
    return text_of("path", os.fsencode(path))


def texts_of(name: str, texts: "Sequence[Union[str, bytes]]") -> Any:
    """Return a C array of strings."""
    return (c_char_p * len(texts))(*(text_of(name, text) for text in texts))
