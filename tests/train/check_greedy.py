#!/usr/bin/env python3
"""check_greedy.py JSON: does transformers give the same tokens as `sgt-sample --temperature 0
--json` for the same model and prompts? A text is compared up to the first token that float32 cannot
decide: its two largest logits in float64 are within 1e-4 of each other. Needs torch and
transformers; exits 77 if they are missing."""
import json, sys
try:
    import torch
    from transformers import AutoModelForCausalLM
except ImportError as why:
    print(f"SKIP: {why}")
    sys.exit(77)

said = json.load(open(sys.argv[1]))
assert said["temperature"] == 0 and said["texts"]
model = AutoModelForCausalLM.from_pretrained(said["model"], dtype=torch.float64).eval()
compared = 0
for text in said["texts"]:
    prompt, ids = torch.tensor([text["prompt_ids"]]), text["ids"]
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, pad_token_id=0,
                         max_new_tokens=len(ids), output_logits=True, return_dict_in_generate=True)
    want = out.sequences[0, prompt.shape[1]:].tolist()
    best = torch.stack(out.logits).squeeze(1).topk(2).values
    close = ((best[:, 0] - best[:, 1]) < 1e-4).tolist()
    clear = close.index(True) if True in close else len(ids)
    assert ids[:clear] == want[:clear], f"{text['prompt']!r}: {ids}, not {want}"
    compared += clear
print(compared)
assert compared >= 10 * len(said["texts"]), f"only {compared} tokens could be compared"
