#!/usr/bin/env python3
"""check_layout.py SET OUT LAYOUT: does OUT hold the documents of SET in the form that LAYOUT's own programs read?

SET is a folder of sgt's shards; LAYOUT is megatron, nanogpt or npy. The readers here follow those programs: Megatron-LM's
IndexedDataset (megatron/core/datasets/indexed_dataset.py), nanoGPT's np.memmap(path, dtype=np.uint16 or uint32) and OLMo-core's
np.memmap without a header. Prints what was compared; exits 1 with a line if something differs."""
import array, glob, json, os, struct, sys

folder, out, layout = sys.argv[1:]


def numbers(code, data):
    values = array.array(code)
    values.frombytes(data)
    return values


def documents(split):
    """The documents of our own shards, each without the end-of-text id before it, that id, and the code of ids."""
    ids, starts, eot = array.array("H"), [], 50256
    for path in sorted(glob.glob(f"{folder}/{split}_*.bin")):
        data = open(path, "rb").read()
        code = {20240520: "H", 20240801: "I"}[struct.unpack("<i", data[:4])[0]]
        ids = ids or array.array(code)
        count, eot = struct.unpack("<i", data[8:12])[0], struct.unpack("<i", data[20:24])[0]
        starts += [len(ids) + at for at in numbers("Q", open(path[:-3] + "idx", "rb").read())]
        ids += numbers(code, data[1024:])
        assert len(data) == 1024 + ids.itemsize * count
    ends = starts[1:] + [len(ids)]
    assert all(ids[at] == eot for at in starts)
    return [ids[at + 1 : end] for at, end in zip(starts, ends)], eot, ids.typecode


def megatron(prefix, ids):
    """What IndexedDataset reads: a list of sequences, and the documents as ranges of sequences."""
    index = open(prefix + ".idx", "rb").read()
    assert index[:9] == b"MMIDIDX\x00\x00", "magic number"
    version, code, sequences, bounds = struct.unpack("<QBQQ", index[9:34])
    assert version == 1 and code == {"H": 8, "I": 4}[ids], (version, code)  # numpy.uint16, or int32
    lengths = numbers("i", index[34 : 34 + 4 * sequences])
    at = 34 + 4 * sequences
    pointers = numbers("q", index[at : at + 8 * sequences])
    at += 8 * sequences
    assert len(index) == at + 8 * bounds, "size"
    assert list(numbers("q", index[at:])) == list(range(sequences + 1)), "a document is not one sequence"
    data = open(prefix + ".bin", "rb").read()
    width = array.array(ids).itemsize
    assert pointers[-1] + width * lengths[-1] == len(data), "size of .bin"
    return [numbers(ids, data[p : p + width * n]) for p, n in zip(pointers, lengths)]


for split in "train", "val":
    texts, eot, code = documents(split)
    wanted = [text + array.array(code, [eot]) for text in texts]
    name = {"megatron": split + "_text_document.bin", "nanogpt": split + ".bin", "npy": split + ".npy"}[layout]
    path = os.path.join(out, name)
    if not texts:
        assert not os.path.exists(path), path
        continue
    if layout == "megatron":
        assert megatron(path[:-4], code) == wanted, path
    else:
        stream = array.array(code)
        for document in wanted:
            stream += document
        assert numbers(code, open(path, "rb").read()) == stream, path
    listed = [s for s in json.load(open(out + "/manifest.json"))["shards"] if s["split"] == split]
    assert [s["file"] for s in listed] == [name], listed
    assert listed[0]["documents"] == len(texts) and listed[0]["tokens"] == sum(map(len, wanted)), listed
    print(f"{split}: {len(texts)} documents, {sum(map(len, wanted))} tokens")
