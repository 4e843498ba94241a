#!/usr/bin/env python3
"""check_tokenizer.py CHECKPOINT TEXT SHARD: does transformers' AutoTokenizer read a checkpoint as sgt means it?

TEXT is what SHARD was made from, as one document. AutoTokenizer must give the shard's ids for it, and the text for the
ids, with every blank; know as many ids as the model; and name the model's end of text. Needs transformers, not torch."""
import json, os, struct, sys, unicodedata
import transformers
from transformers import AutoTokenizer

checkpoint, text, shard = sys.argv[1:]
text = open(text, encoding="utf-8", newline="").read()
raw = open(shard, "rb").read()
of, width = ("I", 4) if raw[:4] == struct.pack("<I", 20240801) else ("H", 2)
eot, *ids = struct.unpack(f"<{len(raw) // width - 1024 // width}{of}", raw[1024:])
config = json.load(open(os.path.join(checkpoint, "config.json")))
about = json.load(open(os.path.join(checkpoint, "tokenizer.json")))
tokenizer = AutoTokenizer.from_pretrained(checkpoint)
form = about["normalizer"] and about["normalizer"]["type"]
wrong = []


def same(what, got, want):
    if got != want:
        wrong.append(f"{what} {got!r}, not {want!r}"[:300])


same("ids", tokenizer.encode(text), ids)
same("text", tokenizer.decode(ids), unicodedata.normalize(form, text) if form else text)
for token in about["added_tokens"]:
    same("added token", tokenizer.encode(token["content"]), [token["id"]])
    same("its text", tokenizer.decode([token["id"]]), token["content"])
same("length", len(tokenizer), config["vocab_size"])
same("end of text", tokenizer.eos_token_id, eot)
same("begin of text", tokenizer.bos_token_id, eot)
same("the model's end of text", config["eos_token_id"], eot)
same("text of the end of text", tokenizer.decode([eot]), tokenizer.eos_token)
same("longest text", tokenizer.model_max_length, config["n_positions"])
if wrong:
    sys.exit(f"transformers {transformers.__version__}: " + "; ".join(wrong))
