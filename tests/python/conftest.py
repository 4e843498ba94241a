"""Fixtures: a small data set, which the package tokenizes, and loaders that read it."""

import pathlib

import numpy as np
import pytest

import sgtokens

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEQ = 32


def on_host(array):
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def same(batch, want):
    """Return whether two sequences of arrays or tensors, on any device, are equal."""
    return all(np.array_equal(on_host(a), on_host(b)) for a, b in zip(batch, want))


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
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def load(folder):
    def make(path=folder, **more):
        return sgtokens.Loader(path, **{"batch": 4, "seq": SEQ, "arrays": "numpy", **more})

    return make
