#!/usr/bin/env python3
"""Writes all files of tests/data/vocab that are made from text.txt. Needs tokenizers, tiktoken and
numpy from PyPI.

trained/        a vocabulary of 700 tokens that Hugging Face's BPE trainer makes from text.txt with
                GPT-2's rule: merges.txt and vocab.json, as its model.save writes them
o200k/          the same with o200k's pattern: tokenizer.json
qwen.json       a tokenizer.json like Qwen's: the text is normalized to NFC, merges are strings, no
                merges lead to the last token (ignore_merges is false), and special tokens are only
                among the added tokens, of which <tool_call> is not called special
ranks.tiktoken  the tokens of trained/ without the end of text, with ranks from 0
*.ids           text.txt as little-endian 16-bit ids. hf.ids, hf-o200k.ids and hf-qwen.ids: from
                tokenizers with these vocabularies, the last from the text in NFD; the others: from
                tiktoken's Encoding of ranks.tiktoken with the patterns of PATTERNS

Made with tokenizers 0.23.3 and tiktoken 0.14.0. Not part of the build."""
import base64
import json
import os
import unicodedata

import numpy as np
import tiktoken
from tiktoken_ext import openai_public
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocab")
EOT = "<|endoftext|>"
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|"
        r"\s+")
PATTERNS = {"r50k": openai_public.r50k_pat_str, "cl100k": CL100K, "o200k": O200K}


def by_regex(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(pre_tokenizer, text, size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=size, special_tokens=[EOT], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    return t


def put_qwen(text):
    about = json.loads(train(by_regex(QWEN), text, 700).to_str())
    model, eot = about["model"], about["added_tokens"][0]
    tokens = sorted(model["vocab"], key=model["vocab"].get)[1:] + ["Ġfiles"]
    model["vocab"] = {t: i for i, t in enumerate(tokens)}
    model["merges"] = list(map(" ".join, model["merges"])) + ["Ġfile s"]
    about["normalizer"] = {"type": "NFC"}
    about["added_tokens"] = [{**eot, "id": 700}, {**eot, "id": 702, "content": "<tool_call>", "special": False}]
    of = {}
    for ignored in True, False:
        model["ignore_merges"] = ignored
        qwen = Tokenizer.from_str(json.dumps(about))
        qwen.encode_special_tokens = True
        of[ignored] = qwen.encode(unicodedata.normalize("NFD", text), add_special_tokens=False).ids
    assert 699 in of[True] and 699 not in of[False]
    put("hf-qwen.ids", of[False])
    with open(os.path.join(HERE, "qwen.json"), "w", encoding="utf-8") as f:
        json.dump(about, f, ensure_ascii=False, separators=(",", ":"))


def put(name, ids):
    np.array(ids, dtype="<u2").tofile(os.path.join(HERE, name))


def main():
    with open(os.path.join(HERE, "text.txt"), newline="", encoding="utf-8") as f:
        text = f.read()
    for name in ("trained", "o200k"):
        os.makedirs(os.path.join(HERE, name), exist_ok=True)

    gpt2 = train(pre_tokenizers.ByteLevel(add_prefix_space=False), text, 700)
    gpt2.model.save(os.path.join(HERE, "trained"))
    # Treat the end-of-text string in the text as plain text, as encode_ordinary and sgt-tokenize
    # do.
    gpt2.encode_special_tokens = True
    put("hf.ids", gpt2.encode(text, add_special_tokens=False).ids)

    o200k = train(by_regex(O200K), text, 700)
    o200k.save(os.path.join(HERE, "o200k", "tokenizer.json"))
    o200k.encode_special_tokens = True
    put("hf-o200k.ids", o200k.encode(text, add_special_tokens=False).ids)

    put_qwen(text)

    back = {c: b for b, c in bytes_to_unicode().items()}
    tokens = sorted(((i, t) for t, i in gpt2.get_vocab().items() if t != EOT))
    ranks = {bytes(back[c] for c in t): rank for rank, (_, t) in enumerate(tokens)}
    with open(os.path.join(HERE, "ranks.tiktoken"), "wb") as f:
        for token, rank in ranks.items():
            f.write(base64.b64encode(token) + b" %d\n" % rank)
    for name, pattern in PATTERNS.items():
        e = tiktoken.Encoding("small", pat_str=pattern, mergeable_ranks=ranks, special_tokens={EOT: len(ranks)})
        put(f"tiktoken-{name}.ids", e.encode_ordinary(text))
        with open(os.path.join(HERE, f"{name}.pattern"), "w", newline="") as f:
            f.write(pattern)


def bytes_to_unicode():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(other)}}


if __name__ == "__main__":
    main()
