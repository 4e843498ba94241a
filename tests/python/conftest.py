"""Fixtures: a small set of tokens, which the package makes, and loaders that read it."""

import pathlib

import pytest

import sgtokens

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEQ = 32


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("set")
    text = (ROOT / "tokenize/vocab/gpt2.bpe").read_text()[:200_000]
    (base / "corpus").mkdir()
    for i in range(40):
        (base / "corpus" / f"{i:02}.txt").write_text(text[i * 5000 : (i + 1) * 5000])
    sgtokens.tokenize(base / "corpus", base / "out", split="10%", shard_tokens=30_000)
    return str(base / "out")


@pytest.fixture
def load(folder):
    def make(path=folder, **more):
        return sgtokens.Loader(path, **{"batch": 4, "seq": SEQ, "arrays": "numpy", **more})

    return make
