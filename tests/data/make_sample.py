#!/usr/bin/env python3
"""Writes the fixtures of sgt-sample's tests to fixtures/sample in this folder. Needs torch,
transformers, safetensors.

odd/, erf/: two small GPT-2s with large random weights, so that outputs vary: a tied model of odd
sizes, and one with erf's GELU and an untied head.

greedy.tsv: ids that transformers' generate(do_sample=False) adds to prompts in float64. Each line
has the model, the prompt's ids, the new ids, and the least margin by which the largest logit
exceeded the second. Only prompts with a margin above .01 are kept; the error of float32 is a
thousandth of that.

says/: a model that continues every prompt with the same text. Its blocks are zeros, the embedding
of position p is the code of the text's byte p + 1, and the head's weights are the codes. Ids are
bytes; 256 ends a text. The text has characters of two, three and four bytes, escape sequences and
bytes that are not UTF-8, and it ends within a character."""
import json, os
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures", "sample")
TEXT = "Grüße, 世界 🙂\n\tx".encode() + b"\x1b[31mred\x1b[0m\x07\x7f\xff \xc3( \xc2\x85.\r\xe4\xb8"


def save(name, model, config):
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    tied = config.tie_word_embeddings
    tensors = {k: v.float().contiguous() for k, v in model.state_dict().items() if not (tied and k == "lm_head.weight")}
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    keep = ("model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "activation_function",
            "layer_norm_epsilon", "tie_word_embeddings")
    said = {"model_type": "gpt2", **{k: getattr(config, k) for k in keep[1:]}}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(said, f, indent=1)
        f.write("\n")


def config(V, T, C, L, H, **more):
    return GPT2Config(vocab_size=V, n_positions=T, n_embd=C, n_layer=L, n_head=H, bos_token_id=None, eos_token_id=None,
                      resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **more)


def greedy(name, c, seed, lines):
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(c).eval()
    with torch.no_grad():
        for k, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * (.3 if p.dim() == 2 else .1))
            if "ln_" in k and "weight" in k: p.add_(1.)
    if c.tie_word_embeddings: model.tie_weights()
    save(name, model, c)
    model = model.double()
    taken = 0
    while taken < 6:
        prompt = torch.randint(c.vocab_size, (1, 1 + 3 * taken))
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, pad_token_id=0,
                             max_new_tokens=c.n_positions - prompt.shape[1], output_logits=True,
                             return_dict_in_generate=True)
        best = torch.stack(out.logits).squeeze(1).topk(2).values
        margin = (best[:, 0] - best[:, 1]).min().item()
        new = out.sequences[0, prompt.shape[1]:].tolist()
        if margin < .01 or len(set(new)) < 8: continue
        taken += 1
        lines.append("\t".join([name, ",".join(map(str, prompt[0].tolist())), ",".join(map(str, new)), f"{margin:.4f}"]))


def byte_names():
    """Return the characters by which GPT-2's vocabulary files write bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def says():
    C, T = 32, 64
    assert len(TEXT) <= T
    torch.manual_seed(1)
    codes = torch.ones(257, C)
    for v in range(257): codes[v, torch.randperm(C)[:C // 2]] = -1
    far = codes @ codes.T - 2 * C * torch.eye(257)
    assert far.max() < C, "two codes are the same"
    c = config(257, T, C, 1, 2, tie_word_embeddings=False)
    model = GPT2LMHeadModel(c)
    with torch.no_grad():
        for k, p in model.named_parameters(): p.fill_(float("ln_" in k and "weight" in k))
        model.lm_head.weight.copy_(codes)
        for p in range(T): model.transformer.wpe.weight[p] = codes[TEXT[p + 1] if p + 1 < len(TEXT) else 256]
    save("says", model, c)
    vocab = {name: b for b, name in byte_names().items()}
    vocab["<|endoftext|>"] = 256
    with open(os.path.join(HERE, "says", "vocab.json"), "w", encoding="utf-8") as f:
        json.dump(vocab, f, ensure_ascii=False)
    with open(os.path.join(HERE, "says", "text"), "wb") as f: f.write(TEXT)


if __name__ == "__main__":
    lines = []
    greedy("odd", config(211, 37, 45, 2, 3), 1, lines)
    greedy("erf", config(97, 70, 32, 3, 2, activation_function="gelu", tie_word_embeddings=False), 2, lines)
    with open(os.path.join(HERE, "greedy.tsv"), "w") as f: f.write("\n".join(lines) + "\n")
    says()
