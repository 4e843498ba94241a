"""The exceptions of sgt. The text of each is the library's message of one line."""

from typing import Dict, Type


class Error(Exception):
    """Any failure that the C libraries report."""


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out, or a set does not fit into it."""


class FileError(Error, OSError):
    """A system call failed: a missing file, a full disk."""


class FormatError(Error, ValueError):
    """A file does not have the expected format, or changed while it was in use."""


class UsageError(Error, ValueError):
    """An argument, or a combination of arguments, is invalid."""


class UnsupportedError(Error, RuntimeError):
    """This machine or this build cannot do it."""


class StoppedError(Error):
    """The call was stopped; what was finished is kept."""


# By the codes of loader/base/error.h.
CLASSES: Dict[int, Type[Error]] = {
    -1: OutOfMemoryError,
    -2: FileError,
    -3: FormatError,
    -4: UsageError,
    -5: UnsupportedError,
    -6: StoppedError,
}
