"""Training that is killed at random and resumed with another number of processes gets the same
global batches as an undisturbed run. KILLS=N (default 3) sets the number of kills.

Each rank trains the same small model on its rows, as data-parallel training does. Gradients are
summed over the ranks by torch's gloo; without torch, ranks only wait for each other. Rank 0 saves
the loader's state every few steps. A rank writes down the rows of each step before it waits for
the others."""

import json
import multiprocessing
import os
import random
import signal
import time

import numpy as np
import pytest

import sgt

BATCH, SEQ, STEPS, SAVE_EVERY = 8, 64, 400, 7
KILLS = int(os.environ.get("KILLS", "3"))
CONTEXT = multiprocessing.get_context("spawn")

try:
    import torch
except ImportError:
    torch = None


def write(path, data):
    """Write a file that has its name only once it is complete, even if the process is killed."""
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as file:
        file.write(data)
    os.replace(part, path)


class Model:
    """A bigram model: logits are the rows of a table. Without torch, a step only counts ids."""

    def __init__(self, vocab, rank, ranks, meeting, run):
        self.ranks, self.meeting = ranks, meeting
        if torch:
            torch.set_num_threads(1)
            torch.manual_seed(1)
            self.net = torch.nn.Sequential(
                torch.nn.Embedding(vocab, 16), torch.nn.GELU(), torch.nn.Linear(16, vocab)
            )
            self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
            torch.distributed.init_process_group(
                "gloo", f"file://{run}/meet-{os.getppid()}-{time_of(run)}", None, ranks, rank
            )

    def step(self, x, y):
        if not torch:
            np.bincount(np.asarray(y).reshape(-1) % 97)
            self.meeting.wait()
            return
        logits = self.net(torch.as_tensor(x) % self.net[0].num_embeddings)
        targets = torch.as_tensor(y).reshape(-1) % self.net[0].num_embeddings
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets).backward()
        for p in self.net.parameters():
            torch.distributed.all_reduce(p.grad)
            p.grad /= self.ranks
        self.optimizer.step()
        self.optimizer.zero_grad()


def time_of(run):
    return len(os.listdir(os.path.join(run, "lives")))


def train(rank, ranks, folder, run, meeting):
    """Train until step STEPS, or until killed."""
    data = sgt.Loader(folder, batch=BATCH, seq=SEQ, epochs=None, rank=rank, ranks=ranks)
    saved = os.path.join(run, "state.json")
    if os.path.exists(saved):
        with open(saved) as file:
            data.load_state_dict(json.load(file))
    model = Model(512, rank, ranks, meeting, run)
    for x, y in data:
        k = data.position - 1
        rows = np.stack([np.asarray(x), np.asarray(y)]).astype(np.uint16)
        write(os.path.join(run, f"{k}-{rank}-{ranks}"), rows.tobytes())
        model.step(x, y)
        if rank == 0 and data.position % SAVE_EVERY == 0:
            write(saved, json.dumps(data.state_dict()).encode())
        if data.position == STEPS:
            return


def live(folder, run, ranks, kill_after):
    """Run the ranks, and kill them after `kill_after` steps. Return whether they finished."""
    open(os.path.join(run, "lives", str(time.monotonic_ns())), "w").close()
    meeting = CONTEXT.Barrier(ranks)
    given = (ranks, folder, run, meeting)
    processes = [CONTEXT.Process(target=train, args=(r, *given)) for r in range(ranks)]
    for p in processes:
        p.start()
    begun = len(os.listdir(run))
    while any(p.is_alive() for p in processes):
        steps = (len(os.listdir(run)) - begun) / ranks
        if kill_after is not None and steps > kill_after:
            victims = random.sample(processes, len(processes))
            for p in victims:
                p.kill()
                time.sleep(random.random() * 0.01)
        time.sleep(0.002)
    for p in processes:
        p.join()
    codes = {p.exitcode for p in processes}
    assert codes <= {0, 1, -signal.SIGABRT, -signal.SIGKILL}  # 1 and ABRT: another rank was lost
    return codes == {0}


def check(run, want):
    """Compare every row that any rank trained on with the undisturbed run's."""
    for name in os.listdir(run):
        if name[0].isdigit() and not name.endswith(".part"):
            k, rank, ranks = map(int, name.split("-"))
            rows = np.fromfile(os.path.join(run, name), np.uint16).reshape(2, -1, SEQ)
            assert (rows[0] == want[k][0][rank::ranks]).all(), name
            assert (rows[1] == want[k][1][rank::ranks]).all(), name


def test_killed_training_sees_the_undisturbed_batches(folder, tmp_path):
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
    print("SEED", seed)
    random.seed(seed)
    run = str(tmp_path)
    os.mkdir(os.path.join(run, "lives"))
    with sgt.Loader(folder, batch=BATCH, seq=SEQ, epochs=None, arrays="numpy", copy=True) as data:
        want = [batch for _, batch in zip(range(STEPS), data)]
    finished = False
    for n in range(KILLS):
        finished = live(folder, run, (2, 1, 4)[n % 3], random.randrange(STEPS // (KILLS + 1) + 8))
        check(run, want)
        if finished:
            pytest.fail(f"only {n} kills: the run was done (SEED={seed})")
    assert live(folder, run, 2, None)
    check(run, want)
    # Of every step, the rows of all ranks of at least one life were recorded.
    for k in range(STEPS):
        lives = {}
        for name in os.listdir(run):
            if name.startswith(f"{k}-") and not name.endswith(".part"):
                lives.setdefault(int(name.split("-")[2]), set()).add(name)
        assert any(len(names) == ranks for ranks, names in lives.items()), k
