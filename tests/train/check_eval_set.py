#!/usr/bin/env python3
"""check_eval_set.py MODEL SHARD JSON: are sgt-eval's loss and bits per byte of a shard those of GPT-2 in float64?

The model is computed here in numpy. Tokens and bytes must be equal, loss, perplexity and bits per byte within 1e-4 of
themselves (sgt computes in fp32)."""
import json, math, struct, sys
import numpy as np

folder, shard, got = sys.argv[1:]
got = json.load(open(got))["results"][0]
config = json.load(open(folder + "/config.json"))


def tensors(path):
    data = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, t in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            yield name, np.frombuffer(data[start + begin:start + end], "<f4").astype(float).reshape(t["shape"])


w = dict(tensors(folder + "/model.safetensors"))
w = {name.removeprefix("transformer."): t for name, t in w.items()}


def norm(x, name):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]


def linear(x, name):
    return x @ w[name + ".weight"] + w[name + ".bias"]


def gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def losses(ids):
    """Return the losses of predicting each of ids[1:], in nats."""
    T, heads = len(ids) - 1, config["n_head"]
    x = w["wte.weight"][ids[:-1]] + w["wpe.weight"][:T]
    for i in range(config["n_layer"]):
        qkv = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").reshape(T, 3, heads, -1)
        q, k, v = qkv.transpose(1, 2, 0, 3)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]) + np.triu(np.full((T, T), -np.inf), 1)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        y = (p / p.sum(-1, keepdims=True)) @ v
        x = x + linear(y.transpose(1, 0, 2).reshape(T, -1), f"h.{i}.attn.c_proj")
        x = x + linear(gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")), f"h.{i}.mlp.c_proj")
    logits = norm(x, "ln_f") @ w["wte.weight"].T
    top = logits.max(-1)
    return top + np.log(np.exp(logits - top[:, None]).sum(-1)) - logits[np.arange(T), ids[1:]]


vocab = json.load(open(folder + "/tokenizer.json"))["model"]["vocab"]
sizes = {n: len(token) for token, n in vocab.items() if token != "<|endoftext|>"}  # a character stands for a byte
ids, T = np.fromfile(shard, "<u2", offset=1024).astype(int), got["seq"]
loss = text_loss = tokens = size = 0
for at in range(0, len(ids) - T, T):
    for target, x in zip(ids[at + 1:at + T + 1], losses(ids[at:at + T + 1])):
        loss += x
        tokens += 1
        if target in sizes:
            text_loss += x
            size += sizes[target]
assert (got["tokens"], got["bytes"]) == (tokens, size), (tokens, size)
for name, wanted in ("loss", loss / tokens), ("perplexity", math.exp(loss / tokens)), \
                    ("bits_per_byte", text_loss / math.log(2) / size):
    assert abs(got[name] / wanted - 1) < 1e-4, (name, got[name], wanted)
