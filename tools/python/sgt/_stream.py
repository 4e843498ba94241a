"""Batches that the library's threads make ahead of time, in a ring of buffers."""

import _thread
from ctypes import byref, c_void_p
from typing import Any, List, Optional, Tuple

from ._arrays import OUTPUTS, Kind, may_pin
from ._native import ALLOC, ErrorText, Handle, StreamBatch, StreamOptions, check
from ._native import loader_library as library


class Stream:
    """Batches first, first + 1, ... of a loader. A batch lies in the ring, and its buffer is reused
    when the next batch is taken. The ring's memory belongs to Python, so that arrays stay
    valid after the stream is closed."""

    def __init__(self, native: Handle, kind: Kind, first: int, slots: int, threads: int) -> None:
        self.kind = kind
        self.next = first  # index of the batch that take() returns next
        self.is_clean = True  # False while a call runs, and after one that was interrupted
        self._buffers: List[Any] = []
        self._views: List[Optional[Tuple[Any, Any]]] = [None] * slots
        self._holds = False
        self._batch, self._error = StreamBatch(), ErrorText()
        self._refs = byref(self._batch), byref(self._error)
        self._addresses: List[int] = []
        pinned = may_pin(kind.torch)

        def alloc(_ctx: Any, size: int) -> Optional[int]:
            try:
                buffer, at = kind.buffer(size, pinned)
            except Exception:  # the library reports that memory ran out
                return None
            self._buffers.append(buffer)
            self._addresses.append(at)
            return at

        options = StreamOptions(
            first=first, output=OUTPUTS[kind.dtype][0], slots=slots, threads=threads
        )
        options.alloc = ALLOC(alloc)
        failed: List[Exception] = []
        done = _thread.allocate_lock()

        def open_stream() -> None:
            pointer = c_void_p()
            refs = byref(pointer), native.pointer, byref(options), byref(self._error)
            try:
                check(library.sgt_stream_open(*refs), self._error)
                self.handle = Handle(pointer, library.sgt_stream_close, native, self._buffers)
            except Exception as error:
                failed.append(error)
            finally:
                done.release()

        # Python raises KeyboardInterrupt in the main thread only. Within `alloc`, ctypes would drop
        # it and hand the library an undefined address. (An interrupt may break Thread.start.)
        done.acquire()
        _thread.start_new_thread(open_stream, ())
        done.acquire()
        if failed:
            raise failed[0]

    def take(self) -> Tuple[Any, Any]:
        """Return x and y of the next batch."""
        pointer, (batch, error) = self.handle.pointer, self._refs
        self.is_clean = False
        if self._holds:
            library.sgt_stream_release(pointer, batch)
            self._holds = False
        rc = library.sgt_stream_next(pointer, batch, error)
        if rc < 0:
            check(rc, self._error)
        self._holds = True
        self.next += 1
        self.is_clean = True
        slot = self._batch.slot
        views = self._views[slot]
        if views and self.kind.torch and views[0].data_ptr() != self._addresses[slot]:
            views = None  # they were shared with another process, and moved
        return views or self._view(slot)

    def documents(self) -> Any:
        """Return the documents of the batch that take() returned last."""
        return self.kind.documents(self._batch.documents, self._batch.lengths)

    def _view(self, slot: int) -> Tuple[Any, Any]:
        targets = self._batch.targets_i64 or self._batch.targets
        at = targets - self._addresses[slot] if targets else 0
        pair = self._views[slot] = self.kind.views(self._buffers[slot], at)
        return pair
