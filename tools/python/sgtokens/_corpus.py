"""Converts folders of text to shards on disk, like the program sgt-tokenize."""

import os
import sys
import threading
from ctypes import byref, c_int, pointer
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Union

from . import _native as c
from ._native import Path, StoppedError, UsageError
from ._native import tokenize_library as library

FORMATS = ("auto", "text", "jsonl")
NORMALIZE = ("as-vocab", "none", "nfc", "nfkc")
LAYOUTS = ("sgt", "megatron", "nanogpt", "npy")
INVALID = ("keep", "replace", "fail")
BINARY = ("skip", "keep")


class Tokenized(NamedTuple):
    """The result of `tokenize`: counts of what was read and written."""

    tokens: int
    documents: int
    bytes: int
    files: int
    shards: int
    train_tokens: int
    val_tokens: int
    skipped: int
    seconds: float
    already_done: bool
    eot_literals: int
    bad_lines: int


def _fraction(split: Any) -> float:
    if split is None or split == "none":
        return 0.0
    is_percent = isinstance(split, str) and split.endswith("%")
    try:
        if isinstance(split, bool):
            raise TypeError
        return float(split[:-1]) / 100 if is_percent else float(split)
    except (TypeError, ValueError):
        raise UsageError(f"split {split!r}: expected a share, such as '1%' or 0.01") from None


def _show(done: int, total: int, tokens: int) -> None:
    share = f"{100 * done // total} % of {total / 2**20:.0f} MiB, " if total else ""
    sys.stderr.write(f"\r\x1b[K{share}{tokens} tokens")
    sys.stderr.flush()


@c.suggests
def tokenize(
    inputs: Union[Path, Sequence[Path]],
    out: Path,
    *,
    split: Union[str, float, None] = None,
    vocab: Optional[Path] = None,
    pattern: Optional[str] = None,
    normalize: str = "as-vocab",
    format: str = "auto",
    field: Optional[str] = None,
    keep_fields: Union[str, Sequence[str], None] = None,
    shards: str = "sgt",
    shard_tokens: int = 0,
    threads: int = 0,
    shuffle: Optional[int] = None,
    dedup: bool = False,
    skip_bad: bool = False,
    special_eot: bool = False,
    invalid_utf8: str = "keep",
    binary: str = "skip",
    hidden: bool = False,
    filters: Sequence[str] = (),
    force: bool = False,
    progress: Union[bool, Callable[[int, int, int], None]] = False,
) -> Tokenized:
    """Tokenize files and folders into the folder `out`, the same bytes as `sgt-tokenize` writes.

    If a call was interrupted (also by Ctrl-C) or killed, the same call continues its work.

    `split` is the fraction of the documents to set aside for validation, "1%" or .01. `shuffle` is
    the seed with which the documents are shuffled; None or False keeps their order. `keep_fields`
    are JSONL fields of each document to copy to sources.jsonl. `binary` says what to do with files
    that are not text: skip (the default) or keep. `filters` are commands that convert files with an
    extension to text: ["pdf=pdftotext {} -"]. With `special_eot`, each literal <|endoftext|> begins
    a new document; otherwise it is text, and `eot_literals` of the result counts such literals.
    `shards` names the layout of the files: sgt, or another trainer's: megatron, nanogpt, npy.

    progress=True draws a progress bar on stderr. A function is called from another thread with the
    bytes done, the total bytes (0: unknown) and the tokens. If it raises an exception, tokenize
    stops and raises the same exception.
    """
    c.check_range("shuffle", shuffle or 0, 0, (1 << 64) - 1)
    several = [inputs] if isinstance(inputs, (str, bytes, os.PathLike)) else list(inputs)
    kept = keep_fields if isinstance(keep_fields, str) else ",".join(keep_fields or [])
    show = progress if callable(progress) else _show if progress else None
    stop = c_int(0)
    error, result = c.ErrorText(), c.fill(c.TokenizeResult)
    options = c.fill(
        c.TokenizeOptions,
        inputs=c.texts_of("inputs", [os.fsencode(path) for path in several]),
        input_count=len(several),
        out=os.fsencode(out),
        vocab=None if vocab is None else os.fsencode(vocab),
        pattern=pattern,
        normalize=c.index_of("normalize", normalize, NORMALIZE),
        val_fraction=_fraction(split),
        layout=c.index_of("shards", shards, LAYOUTS),
        shard_tokens=shard_tokens,
        threads=threads or c.default_threads(),
        format=c.index_of("format", format, FORMATS),
        field=field,
        keep_fields=kept or None,
        skip_bad=skip_bad,
        special_eot=special_eot,
        invalid_utf8=c.index_of("invalid_utf8", invalid_utf8, INVALID),
        binary=c.index_of("binary", binary, BINARY),
        hidden=hidden,
        filters=c.texts_of("filters", filters),
        filter_count=len(filters),
        shuffle=shuffle is not None and shuffle is not False,
        shuffle_seed=shuffle or 0,
        dedup=dedup,
        force=force,
        notice=c.NOTICE,
        stop=pointer(stop),
    )
    failures: List[BaseException] = []

    def report(_ctx: object, done: int, total: int, tokens: int) -> None:
        try:
            if show and not failures:
                show(done, total, tokens)
        except BaseException as failure:  # raised by the calling thread
            failures.append(failure)
            stop.value = 1

    if show:
        options.progress = c.PROGRESS(report)
    try:
        _run(options, result, error, stop)
    except StoppedError:
        if not failures:
            raise
    if failures:
        raise failures[0]
    if show is _show:
        sys.stderr.write("\r\x1b[K")
    done = Tokenized._make(getattr(result, name) for name in Tokenized._fields)
    return done._replace(already_done=bool(done.already_done))


def _run(
    options: c.TokenizeOptions, result: c.TokenizeResult, error: c.ErrorText, stop: "c_int"
) -> None:
    """Call the library in another thread, so that this one can stop the call after Ctrl-C."""
    code = 0
    is_done = threading.Event()

    def call() -> None:
        nonlocal code
        try:
            if not stop.value:
                code = library.sgt_tokenize(byref(options), byref(result), byref(error))
        finally:
            is_done.set()

    thread = threading.Thread(target=call, name="sgtokens.tokenize")
    try:
        thread.start()
        while not is_done.wait(0.1):  # Python handles signals between two waits
            pass
    except BaseException:
        stop.value = 1
        while not is_done.wait(1) and thread.ident is not None:  # None: start() was interrupted
            pass
        raise
    c.check(code, error)
