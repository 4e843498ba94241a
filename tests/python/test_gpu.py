"""Batches on a GPU. These tests are skipped unless torch and a GPU are there."""

from itertools import islice

import pytest
from conftest import same

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

DEVICE = "cuda"


def pairs(there, here, n):
    """Yield the first n batches of both loaders in pairs. Both must have n batches."""
    there, here = iter(there), iter(here)
    for _ in range(n):
        yield next(there), next(here)  # if a loader ends too early, this raises RuntimeError


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_batches_are_the_hosts(load, dtype):
    there, here = load(arrays="torch", dtype=dtype).to(DEVICE), load(dtype=dtype)
    for (x, y), host in pairs(there, here, 300):
        assert x.device.type == DEVICE and x.dtype == getattr(torch, dtype)
        assert same((x, y), host)


def test_the_ring_is_pinned(load):
    x, y = next(iter(load(arrays="torch")))
    assert x.is_pinned() and y.is_pinned()


@pytest.mark.parametrize("device", [DEVICE, None])
def test_batches_wait_for_the_work_before_them(load, device):
    """On any stream, the GPU may read a batch long after the host has requested later ones, and
    copy it long after the host has released it."""
    there, here = load(arrays="torch").to(device), load()
    busy = torch.randn(4096, 4096, device=DEVICE)
    kept = []
    stream = torch.cuda.current_stream() if device else torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for x, y in islice(there, 60):
        with torch.cuda.stream(stream):
            for _ in range(4):
                busy = busy @ busy * 1e-4
            kept.append([t.to(DEVICE, non_blocking=True) * 1 for t in (x, y)])
        del x, y
    torch.cuda.synchronize()
    assert all(same(batch, host) for batch, host in pairs(kept, here, 60))


def test_a_resumed_loader(load):
    there, here = load(arrays="torch").to(DEVICE), load()
    assert len(list(islice(there, 5))) == 5
    again = load(arrays="torch").to(DEVICE)
    again.load_state_dict(there.state_dict())
    assert [same(batch, here[5 + i]) for i, batch in enumerate(islice(again, 2))] == [True, True]


def test_documents(load):
    there, here = load(arrays="torch", documents=True).to(DEVICE), load(documents=True)
    for (x, y, d), (a, b, e) in pairs(there, here, 20):
        assert same((x, y, *d), (a, b, *e))
