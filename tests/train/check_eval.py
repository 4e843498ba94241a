#!/usr/bin/env python3
"""check_eval.py MODEL FILE JSON: does sgt-eval --json agree with transformers, question by question?

Compares the log-likelihood of every answer, within 1e-4 per token (sgt computes in fp32, this in
float64), and every decision: the ending with the largest sum of its tokens' log-likelihoods, as it
is, divided by its characters (lm-evaluation-harness's acc_norm), and by its tokens; or whether
greedy decoding gives the last word. Needs torch and transformers."""
import json, math, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model_path, path, got_path = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float64)
tokenizer = AutoTokenizer.from_pretrained(model_path)
got = json.load(open(got_path))["results"][0]


def encode(text):
    return tokenizer.encode(text, add_special_tokens=False)


def answer(context, text):
    """Return the log-likelihoods of the answer's tokens, and whether each is the likeliest."""
    head = encode(context) or [tokenizer.convert_tokens_to_ids("<|endoftext|>")]
    tail = encode(" " + text)
    ids = (head + tail)[-(model.config.n_positions + 1):]
    with torch.no_grad():
        logp = model(torch.tensor([ids[:-1]])).logits[0].log_softmax(-1)
    asked = range(len(ids) - 1 - len(tail), len(ids) - 1)
    return [logp[t, ids[t + 1]].item() for t in asked], all(logp[t].argmax() == ids[t + 1] for t in asked)


def same(ours, theirs, n, where):
    assert abs(ours - theirs) <= 1e-4 * n, f"{where}: {ours}, but transformers has {theirs}"


right = by_length = by_token = loss = items = 0
for line, text in enumerate(open(path), 1):
    if not text.strip():
        continue
    item, ours = json.loads(text), got["answers"][items]
    items += 1
    assert ours["line"] == line
    if "endings" in item:
        logp = [answer(item["ctx"], e)[0] for e in item["endings"]]
        for k, x in enumerate(logp):
            same(ours["losses"][k], -sum(x), len(x), f"line {line}, ending {k}")
        rules = [1] * len(logp), [len(e) for e in item["endings"]], [len(x) for x in logp]
        scores = [[sum(x) / n for x, n in zip(logp, lengths)] for lengths in rules]
        pick, pick_norm, pick_token = picks = [x.index(max(x)) for x in scores]
        got_picks = [ours[name] for name in ("pick", "pick_norm", "pick_token")]
        assert got_picks == picks, f"line {line}: {ours}, not {picks}"
        right += pick == int(item["label"])
        by_length += pick_norm == int(item["label"])
        by_token += pick_token == int(item["label"])
    else:
        context, word = item["text"].rstrip().rsplit(" ", 1)
        logp, greedy = answer(context, word)
        same(ours["losses"][0], -sum(logp), len(logp), f"line {line}")
        assert ours["right"] == greedy and ours["tokens"] == len(logp), f"line {line}: {ours}, not {greedy}"
        right += greedy
        loss -= sum(logp)
assert got["items"] == items == len(got["answers"])
assert abs(got["acc"] - right / items) < 1e-6
if "acc_norm" in got:
    assert abs(got["acc_norm"] - by_length / items) < 1e-6
    assert abs(got["acc_token"] - by_token / items) < 1e-6
else:
    assert abs(got["perplexity"] / math.exp(loss / items) - 1) < 1e-3
print(items, right, by_length)
