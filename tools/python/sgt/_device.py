"""Batches on a device. A batch is copied there while the one before it is in use."""

from typing import Any, Callable, NamedTuple, Optional, Tuple

Batch = Tuple[Any, ...]


class _Copy(NamedTuple):
    number: int
    batch: Batch
    done: Any  # an event of CUDA, or None


class Mover:
    """Copies batch k + 1 to the device, on a stream of its own, while batch k is in use."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = torch.device(device)
        self._side = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._ahead: Optional[_Copy] = None

    def batch(self, index: int, take: Callable[[int], Batch]) -> Batch:
        """Return batch `index` on the device. `take` returns any batch, in memory that its next
        call overwrites."""
        now = self._ahead
        self._ahead = None
        if now is None or now.number != index:
            now = self._copy(index, take(index))
        if now.done:
            now.done.synchronize()  # the next call of `take` overwrites what is copied
        self._ahead = self._copy(index + 1, take(index + 1))
        if self._side:
            current = self._torch.cuda.current_stream(self._device)
            current.wait_event(now.done)
            for tensor in _tensors(now.batch):
                tensor.record_stream(current)  # keep its memory until this stream's work is done
        return now.batch

    def forget(self) -> None:
        self._ahead = None

    def _copy(self, index: int, batch: Batch) -> _Copy:
        if not self._side:
            return _Copy(index, self._move(batch), None)
        with self._torch.cuda.stream(self._side):
            moved = self._move(batch)
            done = self._torch.cuda.Event()
            done.record(self._side)
        return _Copy(index, moved, done)

    def _move(self, batch: Batch) -> Batch:
        x, y = (t.to(self._device, non_blocking=True, copy=True) for t in batch[:2])
        rest = [type(d)(*(t.to(self._device, non_blocking=True) for t in d)) for d in batch[2:]]
        return (x, y, *rest)


def _tensors(batch: Batch) -> Batch:
    return (*batch[:2], *(t for d in batch[2:] for t in d))
