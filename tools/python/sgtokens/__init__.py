"""sgtokens: tokens for pre-training, from text to batches, at the speed of memory or the disk.

    import sgtokens
    sgtokens.tokenize("corpus/", "out/")
    data = sgtokens.Loader("out/", batch=32, seq=1024)
    for x, y in data: ...                # one epoch of (32, 1024) int64 arrays or torch tensors
    data.load_state_dict(state)          # state = data.state_dict(), saved earlier
    data[123456789]                      # any batch, by its number
    sgtokens.decode(sgtokens.encode("some text"))

The package is a thin ctypes wrapper of the C libraries libsgt-loader and libsgt-tokenize. The wheel
contains these libraries and the programs (sgt-tokenize, sgt-train, ...). numpy is the only
requirement. If torch is installed, it is imported when the first batch is drawn.
"""

from ._corpus import Tokenized, tokenize
from ._loader import Documents, Loader
from ._native import (
    Error,
    FileError,
    FormatError,
    OutOfMemoryError,
    StoppedError,
    UnsupportedError,
    UsageError,
)
from ._tokenizer import Tokenizer, decode, encode

__version__ = "0.2.0"
__all__ = [
    "Documents",
    "Error",
    "FileError",
    "FormatError",
    "Loader",
    "OutOfMemoryError",
    "StoppedError",
    "Tokenized",
    "Tokenizer",
    "UnsupportedError",
    "UsageError",
    "decode",
    "encode",
    "tokenize",
]
