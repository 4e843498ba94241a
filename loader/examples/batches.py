"""batches.py: libsgt-loader from Python, with ctypes alone. The library writes into memory that numpy or torch
owns, so a batch is never copied.

    python3 batches.py out 3

The system's linker must find libsgt-loader.so.0. If it is elsewhere, set LD_LIBRARY_PATH=PREFIX/lib.
"""
import ctypes
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int32, c_uint32, c_uint64, c_void_p

import numpy

try:
    import torch
except ImportError:
    torch = None

READERS = {"preload": 0, "mmap": 1, "uring": 2}
SAMPLINGS = {"shuffle": 0, "random": 1, "block": 2, "sequential": 3, "documents": 4,
             "packed": 5}


class Error(ctypes.Structure):  # sgt_error
    _fields_ = [("code", c_int), ("text", c_char * 1024)]


class Notice(ctypes.Structure):  # sgt_notice
    _fields_ = [("say", c_void_p), ("ctx", c_void_p)]


class Set(ctypes.Structure):  # sgt_loader_set
    _fields_ = [("path", c_char_p), ("weight", c_double)]


class Options(ctypes.Structure):  # sgt_loader_options: every field, in the header's order
    _fields_ = [
        ("reader", c_int), ("sampling", c_int), ("seed", c_uint64), ("batch", c_uint32), ("seq", c_uint32),
        ("rank", c_uint32), ("ranks", c_uint32), ("vocab", c_uint32), ("split", c_char_p), ("padded_by", c_int),
        ("pad", c_uint32), ("scalar", c_int), ("raw", c_int), ("notice", Notice),
        ("sets", POINTER(Set)), ("set_count", c_uint32), ("documents", c_int),
    ]  # fmt: skip


library = ctypes.CDLL("libsgt-loader.so.0")
library.sgt_loader_open.argtypes = [POINTER(c_void_p), c_char_p, POINTER(Options), POINTER(Error)]
library.sgt_cursor_open.argtypes = [POINTER(c_void_p), c_void_p, POINTER(Error)]
library.sgt_loader_batch_i32.argtypes = [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, POINTER(Error)]
library.sgt_cursor_close.argtypes = library.sgt_loader_close.argtypes = [c_void_p]
library.sgt_cursor_close.restype = library.sgt_loader_close.restype = None


class Loader:
    """Batches k = 0, 1, 2, ... of int32 inputs and targets, each (batch, seq). Only one thread at a time may
    use it. ctypes releases Python's GIL while the library works."""

    def __init__(self, path, batch=8, seq=512, reader="preload", sampling="shuffle", seed=1, split="train"):
        self.loader, self.cursor, self.error = c_void_p(), c_void_p(), Error()
        self.batch, self.seq = batch, seq
        options = Options(READERS[reader], SAMPLINGS[sampling], seed, batch, seq, split=split.encode())
        self.check(library.sgt_loader_open(byref(self.loader), path.encode(), byref(options), byref(self.error)))
        self.check(library.sgt_cursor_open(byref(self.cursor), self.loader, byref(self.error)))

    def check(self, rc):
        if rc < 0:
            raise RuntimeError(self.error.text.decode())

    def read(self, k, inputs, targets):
        """Write batch k to two addresses of the caller, each with room for batch * seq int32."""
        self.check(library.sgt_loader_batch_i32(self.loader, self.cursor, k, inputs, targets, byref(self.error)))

    def numpy(self, k):
        """Return batch k as two new arrays."""
        inputs, targets = (numpy.empty((self.batch, self.seq), numpy.int32) for _ in range(2))
        self.read(k, inputs.ctypes.data, targets.ctypes.data)
        return inputs, targets

    def tensors(self):
        """Return two tensors that read() can fill again and again. If there is a GPU, their memory is pinned, so that
        inputs.to("cuda", non_blocking=True) copies in the background."""
        pinned = torch.cuda.is_available()
        return [torch.empty((self.batch, self.seq), dtype=torch.int32, pin_memory=pinned) for _ in range(2)]

    def close(self):
        library.sgt_cursor_close(self.cursor)  # before its loader; None is allowed
        library.sgt_loader_close(self.loader)
        self.cursor = self.loader = None


def main(path, count):
    loader = Loader(path, batch=4, seq=32)
    for k in range(count):
        inputs, targets = loader.numpy(k)
        assert (inputs[:, 1:] == targets[:, :-1]).all()  # targets are the inputs shifted by one
        print("batch", k, "numpy", *inputs[0, :4])

        if torch:
            x, y = loader.tensors()
            loader.read(k, x.data_ptr(), y.data_ptr())  # writes into the tensors' memory, without a copy
            shared = torch.from_numpy(inputs)  # a tensor that shares the array's memory
            assert shared.data_ptr() == inputs.ctypes.data
            assert torch.equal(x, shared) and torch.equal(y, torch.from_numpy(targets))
            embedding = torch.nn.Embedding(50257, 8)
            print("batch", k, "torch", *x[0, :4].tolist(), "->", *embedding(x).shape)
    loader.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
