"""A loader under difficult conditions: forks, threads, signals, files that vanish, garbage."""

import gc
import multiprocessing
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import threading

import pytest

import sgtokens


def first_values(data, count):
    return [int(x.sum()) for _, (x, _y) in zip(range(count), data)]


@pytest.fixture
def copy(folder, tmp_path):
    """A copy of the data set, which a test may damage."""
    return shutil.copytree(folder, tmp_path / "copy")


def child_of_fork(data, to):
    to.put((first_values(data, 5), int(data[3][0].sum())))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("reader", sgtokens._native.READERS)
def test_another_process_goes_on_at_the_same_position(load, method, reader):
    if method != "fork" and reader != "mmap":
        pytest.skip("starts Python anew, as the case with mmap does")
    data = load(reader=reader)
    first_values(data, 4)
    at = data.position
    context = multiprocessing.get_context(method)
    to = context.SimpleQueue()
    processes = [context.Process(target=child_of_fork, args=(data, to)) for _ in range(2)]
    for p in processes:
        p.start()
    want = ([int(load()[at + k][0].sum()) for k in range(5)], int(load()[3][0].sum()))
    assert [to.get() for _ in processes] == [want, want]
    for p in processes:
        p.join()
        assert p.exitcode == 0
    assert first_values(data, 5) == want[0]  # the parent's loader is not affected


def test_threads_share_a_loader(load):
    data, want = load(), [int(load()[k][0].sum()) for k in range(60)]
    got, errors = [], []

    def draw(seed):
        try:
            order = random.Random(seed).sample(range(60), 60)
            assert [int(data[k][0].sum()) for k in order] == [want[k] for k in order]
        except BaseException as why:
            errors.append(why)

    def iterate(batches):
        for x, _ in batches:
            got.append(int(x.sum()))

    threads = [threading.Thread(target=draw, args=(i,)) for i in range(4)]
    batches = iter(data)
    threads += [threading.Thread(target=iterate, args=(batches,)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert sorted(got) == sorted(int(data[k][0].sum()) for k in range(len(data)))


def test_arrays_outlive_the_loader(load):
    data = load()
    x, _ = next(iter(data))
    want = x.copy()
    data.close()
    del data
    gc.collect()
    assert (x == want).all()


def test_closing(load):
    with load() as data:
        batches = iter(data)
        next(batches)
    data.close()
    for use in (lambda: next(batches), lambda: data[0], data.state_dict, lambda: len(data)):
        with pytest.raises(sgtokens.UsageError, match="closed"):
            use()
    for closed in (data, pickle.loads(pickle.dumps(data))):
        child = os.fork()
        if child == 0:  # the set is not opened again
            try:
                closed.state_dict()
            except sgtokens.UsageError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_garbage_in_any_order(load):
    for seed in range(30):
        things = []
        for _ in range(3):
            data = load(reader=random.Random(seed).choice(sgtokens._native.READERS))
            batches = iter(data)
            next(batches)
            data[5]
            things += [data, batches, data._stream, data._native, *data._cursors, [data]]
            things[-1].append(things[-1])  # a cycle of references
        del data, batches
        random.Random(seed).shuffle(things)
        while things:
            things.pop()
        gc.collect()


def test_the_process_may_end_at_any_time(folder):
    code = f"""
import sgtokens
kept = sgtokens.Loader({folder!r}, batch=4, seq=32, arrays="numpy", reader="uring")
batches = iter(kept)
next(batches)
kept[1]
cycle = [kept, batches]
cycle.append(cycle)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_opening_and_closing_does_not_grow(load):
    def use(times):
        for _ in range(times):
            data = load(reader="mmap")
            data[0]
            if random.random() < 0.02:  # rarely, because starting threads takes the most time
                next(iter(data))

    use(500)
    gc.collect()
    before, files = resident(), len(os.listdir("/proc/self/fd"))
    use(int(os.environ.get("OPENINGS", "2000")))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - before < 16 << 20


@pytest.mark.parametrize("reader", sgtokens._native.READERS)
def test_a_set_that_vanishes(folder, load, reader, copy):
    data = load(copy, reader=reader)
    want = first_values(data, 3)
    shutil.rmtree(copy)
    assert len(first_values(data, 3)) == 3  # deleted files that are open can still be read
    state = data.state_dict()
    with pytest.raises(sgtokens.FileError, match="copy: No such file"):
        sgtokens.Loader(copy)
    shutil.copytree(folder, copy)
    again = load(copy, reader=reader)
    again.load_state_dict({**state, "rows": 0})
    assert first_values(again, 3) == want


def test_a_mapped_shard_that_is_cut_short(load, copy):
    data = load(copy, reader="mmap")
    for shard in copy.glob("train_*.bin"):
        os.truncate(shard, 4096)
    with pytest.raises(sgtokens.Error, match="train_0"):
        for _ in data:
            pass
    with pytest.raises(sgtokens.Error, match="train_0"):
        for k in range(len(data)):
            data[k]


INTERRUPTED = """
import random, signal, sys, threading
import sgtokens

def make(**more):
    return sgtokens.Loader(sys.argv[1], batch=4, seq=32, arrays="numpy", **more)

plain = make()
want = [int(plain[k][0].sum()) for k in range(1000)]
data = make(epochs=None)
batches = iter(data)
got, interrupts, armed = {}, 0, False
main, until = threading.main_thread().ident, threading.Event()

def disturb():
    while not until.wait(random.random() * 0.002):
        signal.pthread_kill(main, signal.SIGINT)

def interrupt(*_):
    if armed:
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
thread = threading.Thread(target=disturb)
thread.start()
while data.position < 1000:
    at = data.position
    try:
        armed = True
        x, _ = next(batches)
        armed = False
        got[at] = int(x.sum())
    except KeyboardInterrupt:
        armed = False
        interrupts += 1
until.set()
thread.join()
assert all(want[k] == v for k, v in got.items())
assert len(got) >= 1000 - interrupts
print(interrupts, "interrupts")
"""


def test_interrupts_lose_no_batch(folder):
    """After SIGINT at random moments, the batches received are correct and in order. The test
    runs in another process, because Python prints and ignores an interrupt of a finalizer."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, folder], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 0


def test_import_is_cheap():
    code = "import sys; import sgtokens; print('torch' in sys.modules, 'logging' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout == "False False\n"
