#!/usr/bin/env python3
"""GPT-2's training step by PyTorch with its fastest settings, on a GPU or a CPU, to compare with
sgt's. Prints one JSON line.

    torch_step.py LxCxH B T [--precision bf16|fp16|tf32|fp32] [--mode default|max-autotune|eager]
                            [--device cuda|cpu] [--accum N] [--steps N] [--vocab 50304]
                            [--sdpa auto|flash|cudnn]

On a CPU start it with GLIBC_TUNABLES=glibc.malloc.mmap_threshold=34359738368:
glibc.malloc.trim_threshold=34359738368:glibc.malloc.hugetlb=1 THP_MEM_ALLOC_ENABLE=1 (up to 1.9
times faster)."""
import argparse
import contextlib
import json
import os
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def options():
    a = argparse.ArgumentParser()
    a.add_argument("shape")
    a.add_argument("B", type=int)
    a.add_argument("T", type=int)
    a.add_argument("--precision", default="bf16", choices=["fp32", "tf32", "bf16", "fp16"])
    a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a.add_argument("--mode", default="default")
    a.add_argument("--accum", type=int, default=1)
    a.add_argument("--steps", type=int, default=30)
    a.add_argument("--vocab", type=int, default=50304)
    a.add_argument("--sdpa", default="auto", choices=["auto", "flash", "cudnn"])  # implementation of attention
    return a.parse_args()


class Block(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        self.H = H
        self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.fc, self.out = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.H, C // self.H).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, L, C, H, T, V):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.h = nn.ModuleList(Block(C, H) for _ in range(L))
        self.ln, self.head = nn.LayerNorm(C), nn.Linear(C, V, bias=False)
        self.head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, x, y):
        z = self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device))
        for block in self.h:
            z = block(z)
        logits = self.head(self.ln(z))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))


def force_attention(which):
    """Disable all other implementations of attention: PyTorch then fails if this one cannot run."""
    for name in ("flash", "cudnn", "mem_efficient", "math"):
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(name == which)


def make_step(o):
    """Return a function that runs step number i: forward, backward, clipping, AdamW."""
    torch.manual_seed(0)
    if o.sdpa != "auto":
        force_attention(o.sdpa)
    torch.set_float32_matmul_precision("highest" if o.precision == "fp32" else "high")
    if o.device == "cpu":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    L, C, H = map(int, o.shape.split("x"))
    model = GPT2(L, C, H, o.T, o.vocab).to(o.device)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    f = model if o.mode == "eager" else torch.compile(model, mode=None if o.mode == "default" else o.mode)
    half = TYPES.get(o.precision)
    cast = torch.autocast(o.device, half) if half else contextlib.nullcontext()
    scaler = torch.amp.GradScaler(o.device, enabled=o.precision == "fp16")
    ids = lambda: torch.randint(0, min(50257, o.vocab), (o.B, o.T), device=o.device)
    data = [(ids(), ids()) for _ in range(8)]

    def step(i):
        for k in range(o.accum):
            with cast:
                loss = f(*data[(i * o.accum + k) % 8]) / o.accum
            scaler.scale(loss).backward()
        scaler.unscale_(adamw)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(adamw)
        scaler.update()
        adamw.zero_grad(set_to_none=True)

    return step


def measure(o, step, sync):
    """Return the seconds of the first five steps, and the milliseconds of a step after them."""
    begin = time.perf_counter()
    for i in range(5):
        step(i)
    sync()
    warm, times = time.perf_counter() - begin, []
    for i in range(o.steps):
        begin = time.perf_counter()
        step(i)
        sync()
        times.append(time.perf_counter() - begin)
    ms = statistics.median(times) * 1e3
    if o.device == "cuda":  # like a training loop, do not synchronize after each step
        begin = time.perf_counter()
        for i in range(o.steps):
            step(i)
        sync()
        ms = min(ms, (time.perf_counter() - begin) / o.steps * 1e3)
    return warm, ms


def main():
    o = options()
    gpu = o.device == "cuda"
    warm, ms = measure(o, make_step(o), torch.cuda.synchronize if gpu else lambda: None)
    peak = torch.cuda.max_memory_allocated() if gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "peer": f"torch {torch.__version__} {o.mode}", "shape": o.shape, "B": o.B, "T": o.T, "accum": o.accum,
        "precision": o.precision, "sdpa": o.sdpa, "device": torch.cuda.get_device_name() if gpu else "cpu",
        "ms_per_step": round(ms, 3), "tokens_per_s": round(o.B * o.T * o.accum / ms * 1e3),
        "first_steps_s": round(warm, 2), "peak_bytes": peak}))


if __name__ == "__main__":
    main()
