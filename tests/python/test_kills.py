"""Training that is killed at random and resumed with another number of processes gets the same
global batches as an undisturbed run. KILLS=N (default 3) sets the number of kills.

Each rank trains the same model on its rows, as data-parallel training does: a transformer of the
size of nanoGPT's example for a CPU. Gradients are summed over the ranks by torch's gloo; without
torch, ranks only wait for each other. Rank 0 saves the loader's state every few steps. A rank
writes down the rows of each step before it waits for the others."""

import json
import multiprocessing
import os
import random
import signal
import time

import numpy as np

import sgt

BATCH, SEQ, STEPS, SAVE_EVERY = 8, 64, 400, 7
VOCAB = 512  # of the model, which takes ids modulo it
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
    """A transformer of 4 layers of 128 channels. Without torch, a step only waits."""

    def __init__(self, rank, ranks, meeting, run):
        self.ranks, self.meeting = ranks, meeting
        if torch:
            torch.set_num_threads(1)
            torch.manual_seed(1)
            layer = torch.nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
            self.net = torch.nn.ModuleDict({
                "tokens": torch.nn.Embedding(VOCAB, 128),
                "positions": torch.nn.Embedding(SEQ, 128),
                "layers": torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                "logits": torch.nn.Linear(128, VOCAB),
            })  # fmt: skip
            self.mask = torch.nn.Transformer.generate_square_subsequent_mask(SEQ)
            self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
            torch.distributed.init_process_group(
                "gloo", f"file://{run}/meet-{os.getppid()}-{time_of(run)}", None, ranks, rank
            )

    def step(self, x, y):
        if not torch:
            self.meeting.wait()
            return
        net = self.net
        h = net["tokens"](x % VOCAB) + net["positions"].weight
        logits = net["logits"](net["layers"](h, self.mask, is_causal=True))
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten() % VOCAB).backward()
        gradients = torch.cat([p.grad.flatten() for p in net.parameters()])
        torch.distributed.all_reduce(gradients)
        parts = gradients.split([p.numel() for p in net.parameters()])
        for p, part in zip(net.parameters(), parts):
            p.grad = part.view_as(p) / self.ranks
        self.optimizer.step()
        self.optimizer.zero_grad()


def time_of(run):
    return len(os.listdir(os.path.join(run, "lives")))


def train(rank, ranks, folder, run, meeting):
    """Train until step STEPS, or until killed."""
    data = sgt.Loader(folder, batch=BATCH, seq=SEQ, epochs=None, rank=rank, ranks=ranks)
    saved, life = os.path.join(run, "state.json"), time_of(run)
    if os.path.exists(saved):
        with open(saved) as file:
            data.load_state_dict(json.load(file))
    model = Model(rank, ranks, meeting, run)
    for x, y in data:
        k = data.position - 1
        rows = np.stack([np.asarray(x), np.asarray(y)]).astype(np.uint16)
        write(os.path.join(run, f"{life}-{rank}-{k}"), rows.tobytes())
        model.step(x, y)
        if rank == 0 and (data.position % SAVE_EVERY == 0 or data.position == STEPS):
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
    begun, is_killed = len(os.listdir(run)), False
    while any(p.is_alive() for p in processes):
        steps = (len(os.listdir(run)) - begun) / ranks
        if kill_after is not None and steps > kill_after:
            is_killed = True
            victims = random.sample(processes, len(processes))
            for p in victims:
                p.kill()
                time.sleep(random.random() * 0.01)
        time.sleep(0.002)
    for p in processes:
        p.join()
    codes = {p.exitcode for p in processes}
    assert is_killed or codes == {0}
    assert codes <= {0, 1, -signal.SIGABRT, -signal.SIGKILL}  # 1 and ABRT: another rank was lost
    return codes == {0}


def saved_step(run):
    """Return the step at which a life begins that starts now."""
    path = os.path.join(run, "state.json")
    if not os.path.exists(path):
        return 0
    with open(path) as file:
        return json.load(file)["rows"] // BATCH


def check(run, ranks, begin, want):
    """Compare every row that a rank of the newest life trained on with the undisturbed run's. The
    steps follow each other from `begin`. All ranks took those up to the state that is saved now,
    where the next life begins: so the lives together are the undisturbed run."""
    end, life = saved_step(run), time_of(run)
    for rank in range(ranks):
        steps = 0
        while os.path.exists(name := os.path.join(run, f"{life}-{rank}-{begin + steps}")):
            rows = np.fromfile(name, np.uint16).reshape(2, -1, SEQ)
            x, y = want[begin + steps]
            assert (rows == np.stack([x[rank::ranks], y[rank::ranks]])).all(), name
            steps += 1
        names = [n for n in os.listdir(run) if n.startswith(f"{life}-{rank}-")]
        assert steps == sum(not n.endswith(".part") for n in names), names
        assert begin + steps >= end, (begin, steps, end)


def test_killed_training_sees_the_undisturbed_batches(folder, tmp_path):
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
    print("SEED", seed)
    random.seed(seed)
    run = str(tmp_path)
    os.mkdir(os.path.join(run, "lives"))
    with sgt.Loader(folder, batch=BATCH, seq=SEQ, epochs=None, arrays="numpy", copy=True) as data:
        want = [batch for _, batch in zip(range(STEPS), data)]
    for n in range(KILLS + 1):
        ranks, begin = (2, 1, 4)[n % 3], saved_step(run)
        kill_after = random.randrange(STEPS // (KILLS + 1) + 8) if n < KILLS else None
        finished = live(folder, run, ranks, kill_after)
        check(run, ranks, begin, want)
        assert begin % SAVE_EVERY == 0, "the state is saved at these steps"
        assert finished == (n == KILLS), f"{n} kills (SEED={seed})"
    assert saved_step(run) == STEPS
