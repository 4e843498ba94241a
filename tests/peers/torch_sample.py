#!/usr/bin/env python3
"""Text generation with a GPT-2 by PyTorch programs on a CPU, to compare with sgt-sample. Each line
of standard input is answered by a line of JSON:

    torch_sample.py LxCxH POSITIONS VOCAB
    ready                                  {"peer": "torch 2.9.1"}
    nanogpt fp32 PROMPT TOKENS BATCH       {"peer": "nanoGPT, torch 2.9.1", "seconds": 1.5}
    transformers bf16 PROMPT TOKENS BATCH  {"peer": "transformers 4.57", "seconds": 0.8}

nanogpt: generate of nanoGPT's model.py (github.com/karpathy/nanoGPT). It has no cache: each token
takes a whole forward pass over the window, with the head on the last row only. transformers:
GPT2LMHeadModel.generate with its cache. Both sample at temperature 0.8 from the 200 likeliest
tokens. Weights are random. The first answer of each kind comes after a warm-up. If a request fails,
the answer is {"error": why}."""
import json
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


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


class NanoGPT(nn.Module):
    def __init__(self, L, C, H, T, V):
        super().__init__()
        self.T = T
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.h = nn.ModuleList(Block(C, H) for _ in range(L))
        self.ln, self.head = nn.LayerNorm(C), nn.Linear(C, V, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln(x)[:, [-1], :])

    @torch.no_grad()
    def generate(self, ids, tokens, temperature=0.8, top_k=200):
        for _ in range(tokens):
            logits = self(ids[:, -self.T:])[:, -1, :] / temperature
            v, _ = torch.topk(logits, min(top_k, logits.shape[-1]))
            logits[logits < v[:, [-1]]] = -float("inf")
            ids = torch.cat((ids, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return ids


def make_nanogpt(shape, T, V, kind):
    with torch.device("meta"):
        model = NanoGPT(*shape, T, V).to(TYPES[kind]).eval()
    model = model.to_empty(device="cpu")
    model.head.weight = model.wte.weight
    with torch.no_grad():
        for p in model.parameters(): p.uniform_(-.03, .03)
    return f"nanoGPT, torch {torch.__version__.split('+')[0]}", model.generate


def make_transformers(shape, T, V, kind):
    import transformers
    L, C, H = shape
    config = transformers.GPT2Config(vocab_size=V, n_positions=T, n_embd=C, n_layer=L, n_head=H, bos_token_id=None,
                                     eos_token_id=None)
    with torch.device("meta"):  # transformers' own initialization takes longer than the measurement
        model = transformers.GPT2LMHeadModel(config).to(TYPES[kind]).eval()
    model = model.to_empty(device="cpu")
    model.tie_weights()
    with torch.no_grad():
        for p in model.parameters(): p.uniform_(-.03, .03)

    def generate(ids, tokens):
        with torch.no_grad():
            return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens,
                                  min_new_tokens=tokens, do_sample=True, temperature=0.8, top_k=200, pad_token_id=0)
    return f"transformers {transformers.__version__}", generate


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    shape, T, V = tuple(map(int, sys.argv[1].split("x"))), int(sys.argv[2]), int(sys.argv[3])
    makers = {"nanogpt": make_nanogpt, "transformers": make_transformers}
    made = {}
    for line in sys.stdin:
        words = line.split()
        if words == ["ready"]:
            print(json.dumps({"peer": f"torch {torch.__version__}"}), flush=True)
            continue
        who, kind, (prompt, tokens, batch) = words[0], words[1], map(int, words[2:])
        try:
            ids = torch.randint(V, (batch, prompt))
            if (who, kind) not in made:
                made[who, kind] = makers[who](shape, T, V, kind)
                made[who, kind][1](ids, 4)
            name, generate = made[who, kind]
            began = time.perf_counter()
            out = generate(ids, tokens)
            seconds = time.perf_counter() - began
            assert out.shape == (batch, prompt + tokens), out.shape
            print(json.dumps({"peer": name, "seconds": seconds}), flush=True)
        except Exception as why:  # an error of one program does not end the others
            print(json.dumps({"error": f"{type(why).__name__}: {why}".splitlines()[0][:200]}), flush=True)


main()
