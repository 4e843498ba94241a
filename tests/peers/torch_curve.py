#!/usr/bin/env python3
"""Runs the 200 steps of tests/data/fixtures/curve with PyTorch in one precision. The distance of
its losses from those in float64 shows which error sgt may have in that precision. Prints step, loss
and gradient norm, in the format of the fixture's tables.

    torch_curve.py CURVE [--precision fp32|tf32|bf16|fp16] [--residual fp32|half]
                         [--device cuda|cpu] [--loss-scale 1024] [--steps 200] [--jitter SEED]

--residual half keeps the residual stream in the 16-bit type too, as sgt does; autocast alone keeps
it in float32. --jitter multiplies each initial parameter by 1 plus 1e-6 times a normal random
number: that hardly changes the losses in float64, but all rounding errors of a 16-bit run."""
import argparse
import contextlib
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
B, T, STEPS = 12, 64, 200


def options():
    a = argparse.ArgumentParser()
    a.add_argument("curve")
    a.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
    a.add_argument("--residual", default="fp32", choices=["fp32", "half"])
    a.add_argument("--steps", type=int, default=STEPS)
    a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a.add_argument("--loss-scale", type=float, default=1024)
    a.add_argument("--jitter", type=int)
    return a.parse_args()


def parameters(path, device):
    """Return the tensors of a safetensors file of float32."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = bytearray(f.read())
    p = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            x = torch.frombuffer(data, dtype=torch.float32, offset=begin, count=(end - begin) // 4)
            p[name.removeprefix("transformer.")] = x.view(t["shape"]).clone().to(device).requires_grad_()
    return p


def tokens(path, device):
    with open(path, "rb") as f:
        ids = torch.frombuffer(bytearray(f.read()[1024:]), dtype=torch.int16)
    return ids.to(device).long()  # ids are below 256, so int16 is large enough


def loss_of(p, x, y, L, H, residual):
    linear = lambda z, k: F.linear(z, p[k + ".weight"].T, p[k + ".bias"])  # weights: (in, out)
    norm = lambda z, k: F.layer_norm(z, z.shape[-1:], p[k + ".weight"], p[k + ".bias"], 1e-5)
    B, T = x.shape
    heads = lambda z: z.view(B, T, H, -1).transpose(1, 2)
    h = (p["wte.weight"][x] + p["wpe.weight"][:T]).to(residual)  # autocast keeps the type of the residual stream
    C = h.shape[-1]
    for i in range(L):
        b = f"h.{i}."
        q, k, v = map(heads, linear(norm(h, b + "ln_1"), b + "attn.c_attn").split(C, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + linear(a.transpose(1, 2).reshape(B, T, C), b + "attn.c_proj")
        h = h + linear(F.gelu(linear(norm(h, b + "ln_2"), b + "mlp.c_fc"), approximate="tanh"), b + "mlp.c_proj")
    return F.cross_entropy(F.linear(norm(h, "ln_f"), p["wte.weight"]).view(B * T, -1), y.reshape(-1))


def rate(step, peak=1e-3, warmup=20, steps=STEPS):
    """Return the learning rate of a step: a linear warm-up, then a cosine down to a tenth."""
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def adamw_of(p, **more):
    """Return AdamW with sgt-train's defaults: weight decay only for tensors of two dimensions."""
    groups = [{"params": [v for v in p.values() if v.dim() > 1], "weight_decay": 0.1},
              {"params": [v for v in p.values() if v.dim() == 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, **more)


def jitter(p, seed):
    """Multiply each parameter by 1 plus about a millionth."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for v in p.values():
            v.mul_(1 + 1e-6 * torch.randn(v.shape, generator=random).to(v.device))


def main():
    o = options()
    torch.set_float32_matmul_precision("high" if o.precision == "tf32" else "highest")
    with open(os.path.join(o.curve, "config.json")) as f:
        config = json.load(f)
    p = parameters(os.path.join(o.curve, "model.safetensors"), o.device)
    if o.jitter is not None:
        jitter(p, o.jitter)
    ids = tokens(os.path.join(o.curve, "tokens.bin"), o.device)
    adamw = adamw_of(p)
    half = TYPES.get(o.precision)
    cast = torch.autocast(o.device, half) if half else contextlib.nullcontext()
    scaler = torch.amp.GradScaler(o.device, init_scale=o.loss_scale, enabled=o.precision == "fp16")
    print("step\tloss\tgrad_norm")
    residual = half if half and o.residual == "half" else torch.float32
    for step in range(o.steps):
        for group in adamw.param_groups:
            group["lr"] = rate(step)
        at = step * B * T
        x, y = ids[at:at + B * T].view(B, T), ids[at + 1:at + 1 + B * T].view(B, T)
        adamw.zero_grad()
        with cast:
            loss = loss_of(p, x, y, config["n_layer"], config["n_head"], residual)
        scaler.scale(loss).backward()
        scaler.unscale_(adamw)
        norm = torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        scaler.step(adamw)
        scaler.update()
        print(f"{step}\t{loss.item():.9f}\t{norm.item():.9f}")


if __name__ == "__main__":
    main()
