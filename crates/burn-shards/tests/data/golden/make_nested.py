#!/usr/bin/env python3
"""Writes Parquet files of nested columns, and what is in them. Run it in the folder of this file.

Written with pyarrow 26.0.1. Each line of `nested/rows.jsonl` is a row: maps are objects, and decimals are texts.
"""
import decimal
import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 60
decimal.getcontext().prec = 60
WORDS = ["", "a", "user", "Straße", "猫", "x" * 40]


def maybe(rng, make):
    return None if rng.random() < 0.2 else make()


def some(rng, make, most=4):
    """A list that may be null or empty, of elements that may be null."""
    return maybe(rng, lambda: [maybe(rng, make) for _ in range(rng.randrange(most))])


def row(rng):
    word, number = lambda: rng.choice(WORDS), lambda: rng.randrange(-99, 99)
    price = lambda scale, most: decimal.Decimal(rng.randrange(-most, most)).scaleb(-scale)
    pairs = lambda key, make: maybe(rng, lambda: {key(n): maybe(rng, make) for n in rng.sample(range(-9, 9), rng.randrange(4))})
    inner = lambda: {"x": maybe(rng, number), "tags": some(rng, word)}
    return {
        "chat": some(rng, lambda: {"role": maybe(rng, word), "content": maybe(rng, word), "tokens": some(rng, number)}),
        "grid": some(rng, lambda: some(rng, lambda: number() / 8)),
        "deep": some(rng, lambda: some(rng, lambda: some(rng, inner, 3), 3), 3),
        "scores": pairs(lambda n: f"key {n}", lambda: number() / 4),
        "by_id": pairs(lambda n: n, lambda: some(rng, word)),
        "shapes": [[number() for _ in range(rng.randrange(3))] for _ in range(rng.randrange(4))],
        "price": maybe(rng, lambda: price(2, 10**9 - 1)),
        "wide": maybe(rng, lambda: price(6, 10**37)),
        "prices": some(rng, lambda: price(3, 10**5)),
        "meta": maybe(rng, lambda: {"boxes": some(rng, lambda: [number() / 2 for _ in range(4)]), "label": maybe(rng, word)}),
    }


def schema():
    required = lambda kind: pa.field("element", kind, False)
    return pa.schema([
        ("chat", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("tokens", pa.list_(pa.int32()))]))),
        ("grid", pa.list_(pa.large_list(pa.float32()))),
        ("deep", pa.list_(pa.list_(pa.list_(pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))]))))),
        ("scores", pa.map_(pa.string(), pa.float64())),
        ("by_id", pa.map_(pa.int64(), pa.list_(pa.string()))),
        pa.field("shapes", pa.list_(required(pa.list_(required(pa.int16())))), False),
        ("price", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 6)),
        ("prices", pa.list_(pa.decimal128(5, 3))),
        ("meta", pa.struct([("boxes", pa.list_(pa.list_(pa.float32(), 4))), ("label", pa.string())])),
    ])


def told(value):
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, list):
        return [told(v) for v in value]
    if isinstance(value, dict):
        return {str(k): told(v) for k, v in value.items()}
    return value


def main():
    os.makedirs("nested", exist_ok=True)
    rng = random.Random(50)
    rows = [row(rng) for _ in range(ROWS)]
    as_pairs = lambda name, value: list(value.items()) if name in ("scores", "by_id") and value is not None else value
    columns = [pa.array([as_pairs(field.name, r[field.name]) for r in rows], field.type) for field in schema()]
    table = pa.Table.from_arrays(columns, schema=schema())
    small = {"row_group_size": 23, "data_page_size": 40, "write_batch_size": 3, "write_page_index": True}
    for name, how in {
        "whole": {"compression": "snappy"},
        "pages": {"compression": "none", "use_dictionary": False, **small},
        "pages_v2": {"compression": "zstd", "data_page_version": "2.0", "store_decimal_as_integer": True, **small},
        "old_names": {"compression": "gzip", "use_compliant_nested_type": False, "store_schema": False},
    }.items():
        pq.write_table(table, f"nested/{name}.parquet", **how)
        assert pq.read_table(f"nested/{name}.parquet").to_pylist() == table.to_pylist(), name
    with open("nested/rows.jsonl", "w") as f:
        f.writelines(json.dumps(told(r), ensure_ascii=False, separators=(",", ":")) + "\n" for r in rows)


if __name__ == "__main__":
    main()
