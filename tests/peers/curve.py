#!/usr/bin/env python3
"""Trains a GPT-2 on a CPU with sgt-train and with PyTorch, from the same weights and on the same
batches in the same order, in fp32 and in bf16. Writes DIR/curve.svg, a picture of the losses, and
prints a table of the losses on the validation windows.

    curve.py DIR [--bin build/bin] [--model 6x384x6] [--steps 2000] [--batch-size 2] [--seq-len 64]
                 [--lr 6e-4] [--threads N] [--runs NAME,...]

It needs torch. The text is the Jargon File and six manuals about Debian, from packages of Debian
that are downloaded and not installed. The script takes more than an hour on two cores, and up to
3 GB in DIR. Losses do not depend on the machine's load. Runs that DIR already holds are not
repeated. --runs names the runs to make, of sgt-fp32, torch-fp32, noise1-fp32, noise2-fp32 and the
same in bf16. Several scripts can then run at the same time, each with --threads 1. A precision that
lacks a run is left out of the picture and the table.

sgt and PyTorch add numbers in different orders. Runs that round differently have different losses
after some hundred steps. Two more runs of sgt-train measure how different: `noise1` and `noise2`
start from weights that were changed by about a millionth. The noise is the largest distance between
the final validation losses of the three runs of sgt. The exit code is 1 if the final loss of sgt is
further from PyTorch's than the noise."""
import argparse
import contextlib
import glob
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys

TEXTS = {  # Debian package: path of its text, below usr/share
    "jargon-text": "doc/jargon-text/jargon.txt.gz",
    "debian-faq": "doc/debian/FAQ/debian-faq.en.txt.gz",
    "debian-policy": "doc/debian-policy/policy.txt.gz",
    "debian-reference-en": "debian-reference/debian-reference.en.txt.gz",
    "debmake-doc": "doc/debmake-doc/debmake-doc.en.txt.gz",
    "developers-reference": "developers-reference/developers-reference.txt.gz",
    "maint-guide": "doc/maint-guide/maint-guide.en.txt.gz",
}
NOISE = ["noise1", "noise2"]
WHO = ["sgt", "torch", *NOISE]
RUNS = [f"{who}-{precision}" for precision in ("fp32", "bf16") for who in WHO]
EVALUATIONS = 4
MEAN = 40  # steps: each point of the picture is the mean loss of so many
DOCUMENT = 16 << 10  # bytes, about: size of a document; texts are cut at line ends


def options():
    a = argparse.ArgumentParser()
    a.add_argument("dir")
    a.add_argument("--bin", default="build/bin")
    a.add_argument("--model", default="6x384x6")
    a.add_argument("--steps", type=int, default=2000)
    a.add_argument("--batch-size", type=int, default=2)
    a.add_argument("--seq-len", type=int, default=64)
    a.add_argument("--lr", type=float, default=6e-4)
    a.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a.add_argument("--runs", default=",".join(RUNS))
    o = a.parse_args()
    o.bin = os.path.abspath(o.bin)
    return o


def sgt(o, program, *args):
    """Run a program in DIR and return what it prints."""
    command = [os.path.join(o.bin, "sgt-" + program), "--quiet", *map(str, args)]
    return subprocess.run(command, cwd=o.dir, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- text, batches, weights ----

def unpack(package, folder):
    """Download a package and return its text, which TEXTS names."""
    os.makedirs(folder)
    subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["dpkg-deb", "-x", *glob.glob(f"{folder}/*.deb"), folder], check=True)
    with gzip.open(f"{folder}/usr/share/{TEXTS[package]}") as f:
        text = f.read()
    shutil.rmtree(folder)
    return text


def write_texts(folder):
    """Write the texts to `folder`, in files of about DOCUMENT bytes."""
    os.makedirs(folder)
    for package in TEXTS:
        lines, part, size = [], 0, 0
        for line in unpack(package, os.path.join(folder, "package")).splitlines(keepends=True) + [None]:
            if line is None or size + len(line) > DOCUMENT:
                with open(f"{folder}/{package}-{part:03}.txt", "wb") as f:
                    f.write(b"".join(lines))
                lines, part, size = [], part + 1, 0
            if line is not None:
                lines.append(line)
                size += len(line)


def change(o, folder, seed):
    """Copy start/ to `folder`, with each weight changed by about a millionth of it."""
    from torch_curve import jitter, parameters
    shutil.copytree(f"{o.dir}/start", f"{o.dir}/{folder}")
    path = f"{o.dir}/{folder}/model.safetensors"
    p = parameters(path, "cpu")
    jitter(p, seed)
    with open(path, "r+b") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        for name, t in header.items():
            if name != "__metadata__":
                f.seek(8 + size + t["data_offsets"][0])
                f.write(p[name.removeprefix("transformer.")].detach().numpy().tobytes())


def prepare(o):
    """Make text/, out/ (tokens), start/ (weights of step 0), and start-noise1/, ... (changed)."""
    if os.path.exists(f"{o.dir}/prepared"):
        return
    for name in ("text", "out", "begin", "start", *(f"start-{name}" for name in NOISE)):
        shutil.rmtree(f"{o.dir}/{name}", ignore_errors=True)
    write_texts(f"{o.dir}/text")
    sgt(o, "tokenize", "--split", "2%", "text", "out")
    # A step with learning rate 0 saves the initial weights unchanged.
    sgt(o, "train", "--device", "cpu", "--data", "out", "--run", "begin", "--model", o.model, "--seq-len", o.seq_len,
        "--batch-size", 1, "--steps", 1, "--lr", 0, "--warmup", 0, "--eval-every", 0)
    shutil.move(f"{o.dir}/begin/step-00000001", f"{o.dir}/start")
    shutil.rmtree(f"{o.dir}/begin")
    for seed, name in enumerate(NOISE, 1):
        change(o, f"start-{name}", seed)
    open(f"{o.dir}/prepared", "w").close()


def batches(o, count, rows, *more):
    """Yield `count` batches as the trainer sees them: inputs and targets, (rows, T)."""
    import torch
    out = sgt(o, "inspect", "--json", "--batch", f"0:{count}", "--batch-size", rows, "--seq-len", o.seq_len, *more, "out")
    for line in out.splitlines():
        batch = json.loads(line)
        yield torch.tensor(batch["inputs"]), torch.tensor(batch["targets"])


# ---- training: return the losses of all steps, and {steps done: validation loss} ----

def evaluate(o, precision, checkpoint):
    """Return the mean loss of all (consecutive) validation windows and their number of targets."""
    result = json.loads(sgt(o, "eval", "--json", "--device", "cpu", "--threads", o.threads, "--precision", precision,
                            "--seq-len", o.seq_len, "--data", "out", checkpoint))["results"][0]
    return result["loss"], result["tokens"]


def train_sgt(o, precision, name, start):
    every = o.steps // EVALUATIONS
    sgt(o, "train", "--device", "cpu", "--threads", o.threads, "--data", "out", "--run", name, "--init", start,
        "--precision", precision, "--batch-size", o.batch_size, "--seq-len", o.seq_len, "--steps", o.steps, "--lr", o.lr,
        "--warmup", o.steps // 20, "--eval-every", 0, "--save-every", every, "--keep", 0, "--force")
    with open(f"{o.dir}/{name}/log.jsonl") as f:
        losses = [json.loads(line)["loss"] for line in f]
    checkpoints = {0: start} | {k: f"{name}/step-{k:08}" for k in range(every, o.steps + 1, every)}
    val = {k: evaluate(o, precision, path)[0] for k, path in checkpoints.items()}
    shutil.rmtree(f"{o.dir}/{name}")
    return losses, val


def train_torch(o, precision):
    import torch
    import torch_curve
    torch.set_num_threads(o.threads)
    L, _, H = map(int, o.model.split("x"))
    p = torch_curve.parameters(f"{o.dir}/start/model.safetensors", "cpu")
    adamw = torch_curve.adamw_of(p, fused=True)
    half = torch_curve.TYPES.get(precision)

    def loss_of(x, y):
        with torch.autocast("cpu", half) if half else contextlib.nullcontext():
            return torch_curve.loss_of(p, x, y, L, H, torch.float32)

    windows = evaluate(o, precision, "start")[1] // o.seq_len
    x, y = zip(*batches(o, windows, 1, "--sampling", "sequential", "--split", "val"))
    val_rows = list(zip(torch.cat(x).split(16), torch.cat(y).split(16)))

    def val_loss():
        with torch.no_grad():
            return sum(loss_of(x, y).item() * len(x) for x, y in val_rows) / windows

    losses, val = [], {0: val_loss()}
    for step, (x, y) in enumerate(batches(o, o.steps, o.batch_size)):
        for group in adamw.param_groups:
            group["lr"] = torch_curve.rate(step, o.lr, o.steps // 20, o.steps)
        adamw.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        adamw.step()
        losses.append(loss.item())
        if (step + 1) % (o.steps // EVALUATIONS) == 0:
            val[step + 1] = val_loss()
    return losses, val


def train(o, run):
    who, precision = run.split("-")
    path = f"{o.dir}/{run}.json"
    if os.path.exists(path):
        return
    print(f"{run}: {o.steps} steps", flush=True)
    if who == "torch":
        losses, val = train_torch(o, precision)
    else:
        losses, val = train_sgt(o, precision, run, "start" if who == "sgt" else f"start-{who}")
    with open(path + ".part", "w") as f:
        json.dump({"losses": losses, "val": val}, f)
    os.rename(path + ".part", path)


# ---- picture and table ----

def means(losses):
    return [sum(losses[k:k + MEAN]) / MEAN for k in range(0, len(losses) - MEAN + 1, MEAN)]


class Chart:
    """A chart of curves over steps, `height` high, with its upper left corner at (x, y)."""
    WIDTH = 420

    def __init__(self, x, y, height, title, steps, values):
        self.x, self.y, self.height, self.steps = x, y, height, steps
        self.low, self.high = min(values), max(values)
        text = lambda x, y, anchor, s: f'<text x="{x}" y="{y}" text-anchor="{anchor}">{s}</text>'
        self.parts = [f'<rect x="{x}" y="{y}" width="{self.WIDTH}" height="{height}" fill="none" stroke="#ccc"/>',
                      text(x, y - 8, "start", title), text(x, y + height + 16, "start", 0),
                      text(x + self.WIDTH, y + height + 16, "end", f"{steps} steps")]
        for value in (self.low, self.high):
            self.parts.append(text(x - 6, self.at(0, value)[1] + 4, "end", f"{value:.3g}"))

    def at(self, step, value):
        down = (self.high - value) / (self.high - self.low)
        return round(self.x + step / self.steps * self.WIDTH, 1), round(self.y + down * self.height, 1)

    def curve(self, values, color, dashes="none"):
        points = " ".join("%s,%s" % self.at((k + 0.5) * MEAN, v) for k, v in enumerate(values))
        self.parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-dasharray="{dashes}"/>')

    def dots(self, val, color, r):
        self.parts += ['<circle cx="%s" cy="%s" r="%s" fill="none" stroke="%s"/>' % (*self.at(int(k), v), r, color)
                       for k, v in val.items()]


BLUE, RED, GREY = "#0067b1", "#d1491b", "#999"


def column(x, precision, runs, steps):
    """Draw the losses in one precision, and below them their differences from the losses of sgt."""
    ours, theirs, *noise = (means(runs[f"{who}-{precision}"]["losses"]) for who in WHO)
    val = {who: runs[f"{who}-{precision}"]["val"] for who in ("sgt", "torch")}
    loss = Chart(x, 40, 260, f"loss, {precision}", steps, ours + theirs + [*val["sgt"].values(), *val["torch"].values()])
    loss.curve(ours, BLUE)
    loss.curve(theirs, RED, "3 3")
    loss.dots(val["sgt"], BLUE, 3)
    loss.dots(val["torch"], RED, 5)
    apart, *shaken = ([b - a for a, b in zip(ours, other)] for other in (theirs, *noise))
    below = Chart(x, 350, 120, "distance from sgt", steps, sum(shaken, apart))
    for values in shaken:
        below.curve(values, GREY)
    below.curve(apart, RED)
    return loss.parts + below.parts


def draw(path, precisions, runs, steps):
    parts = []
    for i, precision in enumerate(precisions):
        parts += column(60 + 500 * i, precision, runs, steps)
    for i, (color, what) in enumerate([(BLUE, "sgt"), (RED, "PyTorch"), (GREY, "sgt, weights changed by a millionth")]):
        parts.append(f'<text x="{60 + 90 * i}" y="520" fill="{color}">{what}</text>')
    parts.append(f'<text x="60" y="540">curves: mean loss of {MEAN} steps; circles: validation</text>')
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {20 + 500 * len(precisions)} 556" '
                'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#fff"/>\n'
                + "\n".join(parts) + "\n</svg>\n")


def show(precisions, runs):
    """Print the validation losses. Return whether the final ones differ by at most the noise."""
    right = True
    print("| validation loss after | " + " | ".join(runs["sgt-" + precisions[0]]["val"]) + " | noise |")
    print("| --- |" + " ---: |" * (EVALUATIONS + 2))
    for precision in precisions:
        val = {who: list(runs[f"{who}-{precision}"]["val"].values()) for who in WHO}
        last = [val[who][-1] for who in ("sgt", *NOISE)]
        noise = max(last) - min(last)
        for who in WHO:
            name = {"sgt": "sgt", "torch": "PyTorch"}.get(who, "sgt, weights changed")
            print(f"| {name}, {precision} | " + " | ".join(f"{v:.4f}" for v in val[who]) + f" | {noise:.4f} |")
        right &= abs(val["sgt"][-1] - val["torch"][-1]) <= noise
    return right


def main():
    o = options()
    prepare(o)
    for run in o.runs.split(","):
        train(o, run)
    runs = {}
    for run in RUNS:
        if os.path.exists(f"{o.dir}/{run}.json"):
            with open(f"{o.dir}/{run}.json") as f:
                runs[run] = json.load(f)
    precisions = [p for p in ("fp32", "bf16") if all(f"{who}-{p}" in runs for who in WHO)]
    if precisions:
        draw(f"{o.dir}/curve.svg", precisions, runs, o.steps)
        sys.exit(0 if show(precisions, runs) else 1)


if __name__ == "__main__":
    main()
