#!/usr/bin/env python3
"""Writes muon.bin beside this file: what 50 updates by Muon make of some matrices, in float32, by the formula of torch.optim.Muon with
adjust_lr_fn="match_rms_adamw" (kernels/muon.h has it). Needs numpy. Little endian: for each matrix int32 rows, columns; float32 parameters at the end.
tests/train/test_muon.c draws the same parameters and gradients: exact numbers from a hash (sgt_moments_random in kernels/moments.h).

`make_muon.py torch` writes nothing. It prints how far torch.optim.Muon, whose Newton-Schulz runs in bfloat16, is from these numbers; then the same with
its source changed to run in float32. Needs PyTorch 2.9."""
import os, sys
import numpy as np

SHAPES, STEPS, DECAY = [(24, 72), (24, 24), (24, 96), (96, 24)], 50, .125
HERE = os.path.dirname(os.path.abspath(__file__))

def draw(key, n):
    x = np.arange(n, dtype=np.uint32) ^ np.uint32(key)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x7feb352d)
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x846ca68b)
    return (x ^ x >> np.uint32(16)).astype(np.int64)

def parameters(rows, columns):
    return ((draw(0, rows * columns) >> 8) * 2.**-28 - 2.**-5).astype(np.float32).reshape(rows, columns)

def gradient(rows, columns, step):
    """the same matrix of rank one in every step, and noise of the hash's lowest byte"""
    both = np.outer((draw(1001, rows) & 15) - 8, (draw(1002, columns) & 15) - 8)
    return ((16 * both + (draw(1 + step, rows * columns) & 255).reshape(rows, columns) - 128) * 2.**-20).astype(np.float32)

def rate(step): return (64 - step) * 2.**-12

def update(p, m, g, lr):
    f = np.float32
    m = f(.95) * m + f(.05) * g
    x = f(.05) * g + f(.95) * m
    x = x / max(np.linalg.norm(x), f(1e-7))
    tall = p.shape[0] > p.shape[1]
    for _ in range(5):
        a = x.T @ x if tall else x @ x.T
        b = f(-4.7750) * a + f(2.0315) * (a @ a)
        x = f(3.4445) * x + (x @ b if tall else b @ x)
    assert x.dtype == np.float32
    return p * f(1 - lr * DECAY) - f(lr * .2 * max(p.shape) ** .5) * x, m

def trained(rows, columns):
    p, m = parameters(rows, columns), np.zeros((rows, columns), np.float32)
    for s in range(STEPS): p, m = update(p, m, gradient(rows, columns, s), rate(s))
    return p

def in_float32():
    """change torch.optim.Muon's Newton-Schulz to float32"""
    import inspect, torch
    from torch.optim import _muon
    source, names = inspect.getsource(_muon._zeropower_via_newtonschulz), dict(vars(_muon))
    assert source.count("torch.bfloat16") == 1
    exec(source.replace("torch.bfloat16", "torch.float32"), names)
    _muon._zeropower_via_newtonschulz = names["_zeropower_via_newtonschulz"]

def by_torch(rows, columns):
    import torch
    p = torch.nn.Parameter(torch.from_numpy(parameters(rows, columns)))
    o = torch.optim.Muon([p], lr=rate(0), weight_decay=DECAY, adjust_lr_fn="match_rms_adamw")
    for s in range(STEPS):
        p.grad, o.param_groups[0]["lr"] = torch.from_numpy(gradient(rows, columns, s)), rate(s)
        o.step()
    return p.detach().numpy()

def compare(how):
    for rows, columns in SHAPES:
        p = trained(rows, columns)
        moved = np.linalg.norm(p - parameters(rows, columns))
        print(f"{rows} x {columns}, {how}: {np.linalg.norm(p - by_torch(rows, columns)) / moved:.2g} of what {STEPS} updates moved")

if sys.argv[1:] == ["torch"]:
    compare("bfloat16")
    in_float32()
    compare("float32")
else:
    with open(f"{HERE}/muon.bin", "wb") as f:
        for rows, columns in SHAPES:
            f.write(np.array([rows, columns], "<i4").tobytes() + trained(rows, columns).astype("<f4").tobytes())
