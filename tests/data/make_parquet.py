"""Writes tests/data/parquet: small files of every encoding, codec, page version and pattern of
nulls.

    python3 tests/data/make_parquet.py

It needs pyarrow (the files here were made with version 21 or later). texts.jsonl has the texts, one
row per line. Each file CODEC-vN.parquet has a column ENCODING_NULLS for each encoding and pattern
of nulls: `none` (no row is null, and the column is not nullable), `some` (every third row is null),
`all` (all rows but the first). The rows are in several row groups and pages.
"""

import base64
import decimal
import json
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

OUT = pathlib.Path(__file__).parent / "parquet"
ENCODINGS = {"plain": "PLAIN", "dict": None, "length": "DELTA_LENGTH_BYTE_ARRAY", "delta": "DELTA_BYTE_ARRAY"}
NULLS = {"none": lambda i: False, "some": lambda i: i % 3 == 1, "all": lambda i: i > 0}
PAGES = {"data_page_size": 300, "write_batch_size": 5, "row_group_size": 23}


def texts():
    random.seed(1)
    words = "the quick brown fox jumped over a lazy dog Über naïve 中文 😀 http://a.b/c\n".split(" ")
    all_ = ["", "Hello world", "Hello", "Hello worlds", "\x00\t\n", "é" * 40, "<|endoftext|>", "x" * 700]
    while len(all_) < 60:
        all_.append("page " + " ".join(random.choices(words, k=random.randrange(12))))
        if len(all_) % 5 == 0:
            all_.append(all_[-1] + " again")
    return all_


def columns(rows):
    """Return the columns, and the encoding of each column that does not use a dictionary."""
    fields, arrays, encodings = [], [], {}
    for encoding, name in ENCODINGS.items():
        for nulls, is_null in NULLS.items():
            column = f"{encoding}_{nulls}"
            fields.append(pa.field(column, pa.string(), nullable=nulls != "none"))
            arrays.append(pa.array([None if is_null(i) else t for i, t in enumerate(rows)]))
            if name:
                encodings[column] = name
    return pa.table(arrays, pa.schema(fields)), encodings


def write_long():
    """Pages of 40,000 rows, more than our reader decodes at once."""
    table, encodings = columns([f"row {i % 7}" for i in range(40000)])
    few = [c for c in table.column_names if not c.endswith("_all")]
    dictionary = [c for c in few if c not in encodings]
    encodings = {c: e for c, e in encodings.items() if c in few}
    pq.write_table(table.select(few), OUT / "long.parquet", compression="zstd", use_dictionary=dictionary,
                   column_encoding=encodings, max_rows_per_page=1 << 20, write_batch_size=1 << 20)


def write_web():
    """Documents with columns beside them, and the same as JSONL."""
    random.seed(2)
    words = (OUT / "texts.jsonl").read_text().split()
    rows = [{"url": f"http://a.b/{i}?q=\"é\"", "text": " ".join(random.choices(words, k=random.randrange(60))),
             "date": f"2025-01-{i % 28 + 1:02}" if i % 4 else None, "score": i / 8, "count": i * 10**9, "small": -i}
            for i in range(100)]
    (OUT / "web.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    names = [*rows[0]]
    types = [pa.string(), pa.string(), pa.string(), pa.float64(), pa.int64(), pa.int32()]
    table = pa.table([pa.array([row[name] for row in rows], t) for name, t in zip(names, types)], names)
    pq.write_table(table, OUT / "web.parquet", compression="zstd", **{**PAGES, "row_group_size": 25})


def write_order():
    """A dictionary whose strings are used in another order, often, never, or are not UTF-8, alone or
    joined. The first row group has one page, the second has three."""
    strings = pa.array([b"one", b"caf\xc3", b"\xa9b", "two é".encode(), b"unused \xff", b"three"], pa.binary())
    indices = [1 if i == 40 else 2 if i == 41 else (5, 3, 0, 3)[i % 4] for i in range(60)]
    schema = pa.schema([pa.field("text", pa.dictionary(pa.int32(), pa.binary()))])
    with pq.ParquetWriter(OUT / "order.parquet", schema, compression="zstd", max_rows_per_page=20) as writer:
        for part in indices[:12], indices[12:]:
            writer.write_table(pa.table([pa.DictionaryArray.from_arrays(pa.array(part, pa.int32()), strings)], schema))


def write_names():
    """Columns with a dot in their names, as in flattened tables; numbers without a sign, and three
    whose bytes tests damage."""
    numbers = [1, 2**32 - 1, 2**31]
    table = pa.table({"a.b": ["one", "two", "three"], "c": [{"d.e": "x"}, {"d.e": "y"}, {"d.e": "z"}],
                      "small": pa.array([1, 255, 128], pa.uint8()), "middle": pa.array(numbers, pa.uint32()),
                      "large": pa.array([2**32 * n for n in numbers], pa.uint64()), "delta": pa.array([1, 2, 3])})
    pq.write_table(table, OUT / "names.parquet", compression="none", use_dictionary=["small", "middle"],
                   column_encoding={"delta": "DELTA_BINARY_PACKED"})


def write_decimals():
    """Decimals as integers of 32 and 64 bits, and as bytes."""
    small = [decimal.Decimal(x) for x in ("12.34", "-0.05", "0.00", "-9999999.99")]
    large = [decimal.Decimal(x) for x in ("0.000000000000000001", "-0.999999999999999999", "0.5", "0")]
    table = pa.table({"text": ["one", "two", "three", "four"], "small": pa.array(small, pa.decimal128(9, 2)),
                      "large": pa.array(large, pa.decimal128(18, 18)), "whole": pa.array([7, -8, 9, 0], pa.decimal128(9, 0)),
                      "wide": pa.array(large, pa.decimal128(38, 18))})
    pq.write_table(table, OUT / "decimals.parquet", compression="none", store_decimal_as_integer=True)


def write_numbers():
    """Numbers in the encodings that only numbers have, and the same as JSONL."""
    random.seed(3)
    types = {"delta32": pa.int32(), "delta64": pa.int64(), "same": pa.int64(), "split32": pa.int32(), "split64": pa.int64(),
             "float": pa.float32(), "double": pa.float64()}
    rows = []
    for i in range(40):
        row = {"text": f"row {i}"}
        for name, t in types.items():
            bits = t.bit_width - 1
            edge = i % 4 < 2 and i < 20
            number = -2**bits + (i % 4) * (2**(bits + 1) - 1) if edge else random.randrange(-2**(i % bits), 2**(i % bits))
            row[name] = i + .5 if pa.types.is_floating(t) else 7 if name == "same" else number
            if i % 5 == 3 and name != "delta64":
                row[name] = None
        rows.append(row)
    (OUT / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = [*rows[0]]
    table = pa.table([pa.array([row[name] for row in rows], types.get(name, pa.string())) for name in names], names)
    encodings = {n: "DELTA_BINARY_PACKED" if n in ("delta32", "delta64", "same") else "BYTE_STREAM_SPLIT" for n in types}
    pq.write_table(table, OUT / "numbers.parquet", compression="none", use_dictionary=False, column_encoding=encodings,
                   data_page_version="2.0", write_statistics=False, store_schema=False, **PAGES)


class Keys(pe.KmsClient):
    """Keys that are not secret."""

    def __init__(self, config):
        pe.KmsClient.__init__(self)

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


def write_encrypted(table):
    """Two files, with the metadata encrypted and with only a column."""
    factory = pe.CryptoFactory(Keys)
    for name, plaintext in ("encrypted", False), ("encrypted-column", True):
        config = pe.EncryptionConfiguration(footer_key="footer", column_keys={"key": ["text"]}, plaintext_footer=plaintext)
        properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
        with pq.ParquetWriter(OUT / f"{name}.parquet", table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)


def main():
    OUT.mkdir(exist_ok=True)
    rows = texts()
    (OUT / "texts.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in rows))
    table, encodings = columns(rows)
    dictionary = [c for c in table.column_names if c not in encodings]
    for codec in "none", "snappy", "gzip", "zstd", "lz4":
        for version in "1", "2":
            pq.write_table(table, OUT / f"{codec}-v{version}.parquet", compression=codec, use_dictionary=dictionary,
                           column_encoding=encodings, data_page_version=version + ".0", **PAGES)
    # If a dictionary grows too large, the writer changes to PLAIN in the middle of a column.
    pq.write_table(pa.table({"text": rows}), OUT / "fallback.parquet", compression="zstd", dictionary_pagesize_limit=400,
                   write_page_checksum=True, **{**PAGES, "row_group_size": 1000})
    # A struct may be null in a row, and so may the text in it.
    page = [None if i % 7 == 3 else {"url": str(i), "in": {"text": None if i % 3 == 1 else t}} for i, t in enumerate(rows)]
    pq.write_table(pa.table({"id": list(range(len(rows))), "page": page, "list": [[t] for t in rows]}), OUT / "nested.parquet",
                   compression="snappy", **PAGES)
    few = pa.table({"text": rows[:4]})
    pq.write_table(few, OUT / "brotli.parquet", compression="brotli")
    write_encrypted(few)
    write_long()
    write_web()
    write_order()
    write_names()
    write_decimals()
    write_numbers()
    pq.write_table(few.slice(0, 0), OUT / "empty.parquet")
    pq.write_table(pa.table({"text": pa.array([b"good", b"bad \xff"])}), OUT / "bytes.parquet", compression="none")


if __name__ == "__main__":
    main()
