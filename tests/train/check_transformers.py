#!/usr/bin/env python3
"""check_transformers.py RUN SHARD: does transformers load the newest checkpoint of RUN as it is, and does it agree?

Loads RUN/<latest> with AutoModelForCausalLM, computes the mean loss of one batch of SHARD (the rows that
`sgt-train --sampling sequential` takes first) and prints it. With --expect LOSS, the loss must be
LOSS within 1e-5. Needs torch and transformers; exits 77 if they are missing."""
import argparse, os, struct, sys
try:
    import torch
    from transformers import AutoModelForCausalLM
except ImportError as why:
    print(f"SKIP: {why}")
    sys.exit(77)

p = argparse.ArgumentParser()
p.add_argument("run")
p.add_argument("shard")
p.add_argument("--batch-size", type=int, default=8)
p.add_argument("--seq-len", type=int, default=512)
p.add_argument("--expect", type=float)
a = p.parse_args()

checkpoint = os.path.join(a.run, open(os.path.join(a.run, "latest")).read().strip())
model, report = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float64, output_loading_info=True)
wrong = {k: sorted(v) for k, v in report.items() if v}
assert not wrong, f"transformers had to improvise: {wrong}"

raw = open(a.shard, "rb").read()[1024:]
need = a.batch_size * a.seq_len + 1
tokens = torch.tensor(struct.unpack(f"<{need}H", raw[: 2 * need]))
x = tokens[:-1].view(a.batch_size, a.seq_len)
y = tokens[1:].view(a.batch_size, a.seq_len)
with torch.no_grad():
    logits = model(x).logits
loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), y.reshape(-1)).item()
print(f"{loss:.9f}")
if a.expect is not None:
    assert abs(loss - a.expect) <= 1e-5, f"transformers' loss is {loss:.9f}, not {a.expect:.9f}"
