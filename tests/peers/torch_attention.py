#!/usr/bin/env python3
"""PyTorch's causal attention, forward and backward, by each of its implementations. Prints one JSON
document.

    torch_attention.py [--batch-size 64] [--seq-len 1024,512] [--heads 12] [--head-size 64]"""
import argparse
import json
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

PATHS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
         "efficient": SDPBackend.EFFICIENT_ATTENTION}


def options():
    a = argparse.ArgumentParser()
    a.add_argument("--batch-size", type=int, default=64)
    a.add_argument("--seq-len", default="1024,512")
    a.add_argument("--heads", type=int, default=12)
    a.add_argument("--head-size", type=int, default=64)
    return a.parse_args()


def median_us(f, rounds=20):
    times = []
    for i in range(rounds + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        f()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[3:])


def measure(o, T, dtype):
    shape = (o.batch_size, o.heads, T, o.head_size)
    q, k, v = (torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    dout = torch.randn(shape, device="cuda", dtype=dtype)
    forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out = forward()
    return median_us(forward), median_us(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True))


def main():
    o, results = options(), []
    for T in map(int, o.seq_len.split(",")):
        for path, backend in PATHS.items():
            try:
                with sdpa_kernel(backend):
                    there, back = measure(o, T, torch.bfloat16)
            except RuntimeError:
                continue  # this build or GPU lacks the implementation
            results.append({"path": path, "B": o.batch_size, "T": T, "H": o.heads, "D": o.head_size,
                            "precision": "bf16", "forward_us": round(there, 1), "backward_us": round(back, 1)})
    print(json.dumps({"peer": f"torch {torch.__version__}", "device": torch.cuda.get_device_name(),
                      "results": results}))


if __name__ == "__main__":
    main()
