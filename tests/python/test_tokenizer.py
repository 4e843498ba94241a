"""Encoding and decoding text, and tokenizing corpora."""

import _thread
import inspect
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import sgtokens


def test_known_ids():
    assert sgtokens.encode("hello world").tolist() == [31373, 995]
    assert sgtokens.encode("hello world").dtype == np.uint16
    assert sgtokens.decode([31373, 995]) == "hello world"
    assert sgtokens.encode("").tolist() == [] and sgtokens.decode([]) == ""


def test_ids_of_large_vocabularies(tmp_path):
    """Merges of all pairs of bytes, in merges.txt's alphabet, give more than 65,536 ids."""
    known = [b for b in range(256) if 33 <= b <= 126 or (b > 160 and b != 173)]
    others = [b for b in range(256) if b not in known]
    letters = [chr(b if b in known else 256 + others.index(b)) for b in range(256)]
    pairs = "".join(f"{a} {b}\n" for a in letters for b in letters)
    path = tmp_path / "merges.txt"
    path.write_text("#version: 0.2\n" + pairs, encoding="utf-8")
    enc = sgtokens.Tokenizer(path)
    assert enc.n_vocab == 256 + 65536 + 1 and enc.eot_token == 65792
    ids = enc.encode("pairs of bytes")
    assert ids.dtype == np.uint32 and 255 < ids.max() < enc.n_vocab
    assert enc.decode(ids) == "pairs of bytes"
    assert [i.dtype for i in enc.encode_batch(["a", "b" * 100000])] == [np.uint32] * 2
    marked = enc.encode("a<|endoftext|>", allowed_special="all")
    assert marked.dtype == np.uint32 and marked.tolist()[-1] == 65792
    with pytest.raises(ValueError, match="ids must be from 0 to 65792"):
        enc.decode([-1])
    with pytest.raises(sgtokens.FormatError, match="id 65793 is not in the vocabulary"):
        enc.decode([65793])


class Text(str):
    """A subclass of str, which CPython stores differently, with methods that mislead."""

    def __len__(self):
        return 1 << 20

    def isascii(self):
        return True

    def encode(self, *_given):
        return b"other"


class Bytes(bytes):
    def __len__(self):
        return 1 << 20


STRINGS = [
    "",
    "plain words " * 9,
    "naïve été " * 9,
    "“quoted” 日本語 " * 9,
    "🙂 and \ud83d\ude00 " * 9,
    "a\udc00\ud83d" * 9,
]


def test_strings_of_every_width():
    t = sgtokens.Tokenizer()
    for kinds in ([str], [str, sys.intern], [str, Text, sys.intern]):
        texts = [kind(s) for s in STRINGS for kind in kinds]
        wide = [str.encode(s, "utf-16", "surrogatepass") for s in texts]
        want = [w.decode("utf-16", "replace") for w in wide]
        for given in (texts, [w.encode() for w in want], [Bytes(w.encode()) for w in want]):
            assert t.decode_batch(t.encode_batch(given)) == want
        assert [t.decode(t.encode(text)) for text in texts] == want
    for wrong in (None, 7, bytearray(b"x")):
        with pytest.raises(TypeError, match="a str or bytes, not"):
            t.encode_batch(["good", wrong])
        with pytest.raises(TypeError, match="a str or bytes, not"):
            t.encode(wrong)
    for one in ("text", b"text"):
        with pytest.raises(TypeError, match="list of texts"):
            t.encode_batch(one)


def test_tiktokens_methods():
    t = sgtokens.Tokenizer()
    assert repr(t) == "sgtokens.Tokenizer('gpt2')"
    assert (t.n_vocab, t.max_token_value, t.eot_token, t.name) == (50257, 50256, 50256, "gpt2")
    assert t.encode("a<|endoftext|>b", allowed_special=END).tolist() == [64, 50256, 65]
    assert t.decode_single_token_bytes(995) == b" world"
    for wrong in (-1, 50257, 10**9):
        with pytest.raises(KeyError):
            t.decode_single_token_bytes(wrong)
    for wrong in ([70000], [-1]):
        with pytest.raises(ValueError):
            t.decode(wrong)
    for wrong in ([1.5], [float("nan")], [True], "text", None, {1}, [1, None], iter([1])):
        with pytest.raises(TypeError, match="ids must be integers"):
            t.decode(wrong)
    with pytest.raises(sgtokens.FormatError, match="50257"):
        t.decode([50257])
    with pytest.raises(sgtokens.UsageError, match="contains a NUL"):
        sgtokens.Tokenizer(pattern="a+|b\0")
    with pytest.raises(sgtokens.UsageError, match="contains a NUL"):
        t.save("folder\0")
    with pytest.raises(TypeError, match="pattern: expected a str, not int"):
        sgtokens.Tokenizer(pattern=5)
    with pytest.raises(ValueError, match="'<|end|>', which is disallowed"):
        t.encode("a<|end|>", disallowed_special="<|end|>")
    for wrong, error in ((-1, sgtokens.UsageError), (1025, sgtokens.UsageError), ("2", TypeError)):
        with pytest.raises(error, match="num_threads: "):
            t.encode_batch(["a"], num_threads=wrong)


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_batches_are_the_single_calls(threads):
    texts = [f"text number {i} " * (i % 7) for i in range(100)]
    t = sgtokens.Tokenizer()
    got = t.encode_batch(texts, num_threads=threads)
    assert all((a == sgtokens.encode(b)).all() for a, b in zip(got, texts))
    assert t.decode_batch(got) == texts
    assert t.encode_batch([]) == []
    assert [len(ids) for ids in t.encode_batch(["", b""], num_threads=threads)] == [0, 0]
    ends = t.encode_batch(["a<|endoftext|>"] * 5, num_threads=threads, allowed_special="all")
    assert [e.tolist() for e in ends] == [[64, 50256]] * 5
    with pytest.raises(ValueError, match="disallowed"):
        t.encode_batch(["<|endoftext|>"], num_threads=threads, disallowed_special="all")


def test_the_default_number_of_threads(monkeypatch):
    threads = sgtokens._native.default_threads
    for name in ("OMP_NUM_THREADS", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    most = threads()
    assert 1 <= most <= len(os.sched_getaffinity(0))
    for omp, want in ("1", 1), ("1,2", 1), ("1000", most), ("0", most), ("", most), ("x", most):
        monkeypatch.setenv("OMP_NUM_THREADS", omp)
        assert threads() == want
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert threads() == most


def test_batches_in_many_groups(monkeypatch):
    from sgtokens import _encoder

    monkeypatch.setattr(_encoder, "_GROUP", 50)
    t = sgtokens.Tokenizer()
    texts = [f"{i} naïve “x” "[: i % 14] * (i % 9) for i in range(300)] + ["long " * 500, ""]
    kept = t.encode_batch(texts, num_threads=3)
    groups = {id(ids.base): ids.base for ids in kept}.values()
    assert len(groups) > 3
    assert sum(map(len, groups)) == sum(map(len, kept))  # no buffer space is left unused
    for _ in range(3):
        assert t.decode_batch(t.encode_batch(texts, num_threads=3)) == texts
    assert t.decode_batch(kept) == texts


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_that_fails(threads):
    t = sgtokens.Tokenizer(pattern="(a+)+$|b")  # backtracks exponentially
    with pytest.raises(sgtokens.Error, match="pattern"):
        t.encode_batch(["b"] * 50 + ["a" * 40000 + "c"] + ["b"] * 50, num_threads=threads)
    assert t.decode_batch(t.encode_batch(["b"] * 9, num_threads=threads)) == ["b"] * 9


def test_an_interrupted_batch(monkeypatch):
    from sgtokens import _encoder

    t, real = sgtokens.Tokenizer(), _encoder.Encoder.encode
    interrupted, threads = threading.Event(), threading.active_count()

    def encode(*given):
        if not interrupted.is_set():
            interrupted.set()
            _thread.interrupt_main()
        return real(*given)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(_encoder.Encoder, "encode", encode)
        t.encode_batch(["text"] * 10_000, num_threads=2)
    while threading.active_count() > threads:  # a thread that was just starting ends by itself
        time.sleep(0.01)
    assert t.encode_batch(["hello world"] * 2)[1].tolist() == [31373, 995]


def test_files(folder, tmp_path):
    t = sgtokens.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    assert t.encode("hello world").tolist() == [31373, 995]
    t.save(tmp_path / "saved")
    again = pickle.loads(pickle.dumps(sgtokens.Tokenizer.from_file(tmp_path / "saved")))
    assert again.encode("hello").tolist() == [31373]
    with pytest.raises(sgtokens.FileError, match="nowhere"):
        sgtokens.Tokenizer.from_file("nowhere")
    with pytest.raises(sgtokens.UsageError):
        sgtokens.Tokenizer(pattern="(")


def test_tokenize(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"body": "one two"}\n{"body": "three"}\n')
    seen = []
    done = sgtokens.tokenize(
        tmp_path / "in.jsonl", tmp_path / "out", field="body", progress=lambda *n: seen.append(n)
    )
    assert (done.documents, done.tokens, done.already_done) == (2, 5, False)
    same = bytes(tmp_path / "in.jsonl"), tmp_path / "out"
    assert sgtokens.tokenize(*same, field="body", shuffle=False).already_done
    (tmp_path / "stories.txt").write_text("one<|endoftext|>two<|endoftext|>three")
    assert sgtokens.tokenize(tmp_path / "stories.txt", tmp_path / "stories").eot_literals == 2
    for name, wrong in (("shuffle", -1), ("shard_tokens", 2**64), ("threads", 2**32 + 1)):
        with pytest.raises(sgtokens.UsageError, match=f"{name}: {wrong} is out of range, 0 to"):
            sgtokens.tokenize("x", "y", **{name: wrong})
    with pytest.raises(sgtokens.FormatError, match="line 1: the field is missing"):
        (tmp_path / "bad.jsonl").write_text("{}\n")
        sgtokens.tokenize([tmp_path / "bad.jsonl"], tmp_path / "bad", field="body")
    both = tmp_path / "in.jsonl", tmp_path / "bad.jsonl"
    done = sgtokens.tokenize(both, tmp_path / "good", field="body", skip_bad=True)
    assert done.bad_lines == 1
    for wrong, error, says in (
        ({"format": "xml"}, sgtokens.UsageError, "format 'xml': expected one of auto"),
        ({"threads": "2"}, TypeError, "threads: expected an integer, not str"),
        ({"field": "te\0xt"}, sgtokens.UsageError, "contains a NUL"),
        ({"field": 5}, TypeError, "field: expected a str, not int"),
        ({"keep_fields": "url\0"}, sgtokens.UsageError, "contains a NUL"),
        ({"split": "x%"}, sgtokens.UsageError, "split 'x%': expected a share, such as '1%' or 0.01"),
        ({"split": [1]}, sgtokens.UsageError, "split .1.: expected a share"),
        ({"split": True}, sgtokens.UsageError, "split True: expected a share"),
    ):
        with pytest.raises(error, match=says):
            sgtokens.tokenize("x", "y", **wrong)


def test_the_options_are_the_programs(tmp_path):
    """Each option gives the bytes of sgt-tokenize with it, and changes the bytes."""
    corpus = tmp_path / "in"
    corpus.mkdir()
    for name, text in (
        ("a.txt", "One\tﬁne <|endoftext|> day"), (".hid.txt", "hidden"), ("b.txt", "ﬁ 2000000001"),
        ("c.txt", "\0\xff"), ("d.up", "shout"), ("e.txt", "same"), ("f.txt", "same"),
        ("g.jsonl", '{"text": "t", "body": "b"}\n{"x": 1}\n{"text": "u", "body": "v"}\n'),
    ):  # fmt: skip
        (corpus / name).write_bytes(text.encode("latin-1" if name == "c.txt" else "utf-8"))
    vocab = tmp_path / "small"
    base = ["--train-vocab", "300", "--skip-bad", corpus, vocab]
    subprocess.run(["sgt-tokenize", "--quiet", *base], check=True)

    def files(out):
        names = sorted(p.name for p in out.iterdir() if p.suffix == ".bin")
        assert names
        bodies = b"".join((out / n).read_bytes()[1024:] for n in names)
        return names, bodies, (out / "sources.jsonl").read_bytes()

    plain = None
    for given, words in (
        ({}, []), ({"split": "50%"}, ["--split", "50%"]), ({"vocab": vocab}, ["--vocab", vocab]),
        ({"pattern": "cl100k"}, ["--pattern", "cl100k"]), ({"dedup": True}, ["--dedup"]),
        ({"normalize": "nfkc"}, ["--normalize", "nfkc"]), ({"hidden": True}, ["--hidden"]),
        ({"format": "text"}, ["--format", "text"]), ({"field": "body"}, ["--field", "body"]),
        ({"keep_fields": ["body", "x"]}, ["--keep-fields", "body,x"]),
        ({"keep_fields": "body,x"}, ["--keep-fields", "body,x"]),
        ({"shards": "nanogpt"}, ["--shards", "nanogpt"]),
        ({"shards": "megatron"}, ["--shards", "megatron"]),
        ({"shard_tokens": 9}, ["--shard-tokens", "9"]), ({"shuffle": 3}, ["--shuffle", "3"]),
        ({"special_eot": True}, ["--special", "eot"]), ({"binary": "keep"}, ["--binary", "keep"]),
        ({"filters": ["up=head -c 3 {}"]}, ["--filter", "up=head -c 3 {}"]),
        ({"binary": "keep", "invalid_utf8": "replace"},
         ["--binary", "keep", "--invalid-utf8", "replace"]),
    ):  # fmt: skip
        mine, its = tmp_path / "mine", tmp_path / "its"
        sgtokens.tokenize(corpus, mine, **{"skip_bad": True, "force": True, **given})
        command = ["sgt-tokenize", "--quiet", "--force", "--skip-bad", *words, corpus, its]
        subprocess.run(command, check=True)
        assert files(mine) == files(its), given
        plain = plain or files(mine)
        assert (files(mine) != plain) == bool(given), given
        shutil.rmtree(mine)
        shutil.rmtree(its)
    for wrong, says in (({"binary": "drop"}, "binary 'drop'"), ({"filters": ["a=b\0"]}, "a NUL")):
        with pytest.raises(sgtokens.UsageError, match=says):
            sgtokens.tokenize(corpus, tmp_path / "x", **wrong)


def test_interrupted_tokenizing_is_finished_by_the_same_call(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(64):
        (tmp_path / "in" / f"{i}.txt").write_text(f"some words {i} " * 20_000)
    main = threading.main_thread().ident

    def stop(*_):
        if not stopped:
            stopped.append(1)
            signal.pthread_kill(main, signal.SIGINT)

    stopped = []
    with pytest.raises(KeyboardInterrupt):
        sgtokens.tokenize(tmp_path / "in", tmp_path / "out", threads=1, progress=stop)
        raise KeyboardInterrupt  # the call was done before the signal arrived
    done = sgtokens.tokenize(tmp_path / "in", tmp_path / "out", threads=1)
    whole = sgtokens.tokenize(tmp_path / "in", tmp_path / "whole")
    assert done.tokens == whole.tokens
    name = "train_000000.bin"
    assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_exception_of_progress_stops_the_call(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(8):
        (tmp_path / "in" / f"{i}.txt").write_text(f"some words {i} " * 1000)
    calls = []

    def fail(*given):
        calls.append(given)
        raise LookupError("of the user")

    with pytest.raises(LookupError, match="^of the user$"):
        sgtokens.tokenize(tmp_path / "in", tmp_path / "out", progress=fail)
    assert len(calls) == 1
    assert sgtokens.tokenize(tmp_path / "in", tmp_path / "out").documents == 8


ODD = [
    "", " ", "  ", "\n\n", "\n\n0", " \t\n x", "\0", "naïve", "日本語", "🙂" * 50, "\ud800",
    "\udc00x",
    "\ud83d\ude00", "a\ud83d", "\ufeffx", "\ufffd", "<|endoftext|", "<|endoftext|>",
    "a<|endoftext|>b<|endoftext|>", "<|endoftext|><|endoftext|>", "~<|endoftext|> <|endoftext|>",
    "<|im_start|>", "don't", "DON'T", "'s'll've", "1234567890", "١٢٣", "e\u0301", "\u200b",
    "\u3000x", "a" * 1000, " " * 1000, "\r\n\r\n", "x\u00a0y", "\u2028", "\U000e0001", "\U0010ffff",
    "ﷺ", "İ", "\u0378", "def f(x):\n    return x\n", "$$$", "...", "—“”", "\x85 x",
]  # fmt: skip
END = "<|endoftext|>"
SPECIAL = [
    {"disallowed_special": ()}, {"allowed_special": "all"}, {"disallowed_special": {END}},
    {"allowed_special": {END}, "disallowed_special": ()}, {"allowed_special": {END}},
    {"allowed_special": {END}, "disallowed_special": {END}}, {"disallowed_special": "all"},
    {"disallowed_special": ["foo", "<|im_start|>"]},
    {"allowed_special": "all", "disallowed_special": "all"},
]  # fmt: skip


@pytest.fixture(scope="module")
def peer():
    """tiktoken's encoding of GPT-2, with ranks from sgtokens instead of a download."""
    tiktoken = pytest.importorskip("tiktoken")
    t = sgtokens.Tokenizer()
    split = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
    ranks = {t.decode_single_token_bytes(i): i for i in range(50256)}
    given = {"pat_str": split, "mergeable_ranks": ranks, "special_tokens": {END: 50256}}
    return tiktoken.Encoding("gpt2", **given)


def result(call, *given, **more):
    """Return the result of a call with lists instead of arrays, or the class of its exception."""
    try:
        found = call(*given, **more)
    except (KeyError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        return KeyError if isinstance(error, KeyError) else ValueError
    if isinstance(found, list):
        return [f.tolist() if isinstance(f, np.ndarray) else f for f in found]
    return found.tolist() if isinstance(found, np.ndarray) else found


def test_the_names_are_tiktokens(peer):
    """sgtokens has all of tiktoken's public names but the one for completing texts."""
    names = {name for name in dir(peer) if not name.startswith("_")}
    t = sgtokens.Tokenizer()
    assert names - set(dir(t)) <= {"encode_with_unstable"}
    for name in names & set(dir(t)):
        mine, its = getattr(t, name), getattr(peer, name)
        if not callable(its):
            assert mine == its, name
            continue
        assert {*inspect.signature(mine).parameters} == {*inspect.signature(its).parameters}, name


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_as_tiktoken(peer, text):
    t = sgtokens.Tokenizer()
    for name in ("encode", "encode_batch"):
        given = [text, "x"] if name == "encode_batch" else text
        for special in SPECIAL:
            call, its = getattr(t, name), getattr(peer, name)
            assert result(call, given, **special) == result(its, given, **special), special
    ids = peer.encode_ordinary(text)
    assert t.encode_ordinary(text).tolist() == t.encode_to_numpy(text).tolist() == ids
    assert result(t.encode_ordinary_batch, [text]) == [ids]
    for cut in (ids, ids[:-1], ids[1:]):  # bytes that are not UTF-8, too
        for errors in ("replace", "strict", "ignore"):
            assert result(t.decode, cut, errors) == result(peer.decode, cut, errors)
        for name in ("decode_bytes", "decode_with_offsets", "decode_tokens_bytes"):
            assert result(getattr(t, name), cut) == result(getattr(peer, name), cut), name
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert result(t.encode_single_token, text) == result(peer.encode_single_token, text)


def test_several_special_tokens_as_tiktoken(peer, tmp_path):
    sgtokens.Tokenizer().save(tmp_path)
    file = tmp_path / "tokenizer.json"
    about = json.loads(file.read_text(encoding="utf-8"))
    (end,) = about["added_tokens"]
    ids = {END: 50256, "<|im_start|>": 50257, "<|im_end|>": 50260}  # two ids have no name
    about["added_tokens"] = [{**end, "id": i, "content": name} for name, i in ids.items()]
    file.write_text(json.dumps(about), encoding="utf-8")
    t, ranks = sgtokens.Tokenizer(file), peer._mergeable_ranks
    given = {"pat_str": peer._pat_str, "mergeable_ranks": ranks, "special_tokens": ids}
    its = __import__("tiktoken").Encoding("more", **given)
    assert t.special_tokens_set == its.special_tokens_set and t.n_vocab == its.n_vocab
    assert t.token_byte_values() == its.token_byte_values()
    for text in [*ODD, "a<|im_start|><|endoftext|>b<|im_end|>", "<|im_end|><|im_start|>"]:
        for more in [*SPECIAL, {"allowed_special": {"<|im_start|>"}}]:
            more = {"disallowed_special": (), **more}  # the default of sgtokens
            assert result(t.encode, text, **more) == result(its.encode, text, **more), more
    for token in range(50255, 50261):
        assert t.is_special_token(token) == its.is_special_token(token)


def test_batches_and_tokens_as_tiktoken(peer):
    t = sgtokens.Tokenizer()
    batch = [peer.encode_ordinary(text) for text in ODD]
    for threads in (1, 3):
        more = {"num_threads": threads}
        assert t.decode_batch(batch, **more) == peer.decode_batch(batch, **more)
        assert t.decode_bytes_batch(batch, **more) == peer.decode_bytes_batch(batch, **more)
    with pytest.raises(sgtokens.UsageError, match="num_threads: 0 is out of range, 1 to 1024"):
        t.decode_batch(batch, num_threads=0)
    assert t.token_byte_values() == peer.token_byte_values()
    for token in (0, 50255, 50256):
        assert t.is_special_token(token) == peer.is_special_token(token)
        piece = t.decode_single_token_bytes(token)
        assert t.encode_single_token(piece) == peer.encode_single_token(piece) == token
