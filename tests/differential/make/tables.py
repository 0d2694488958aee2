"""Parquet by pyarrow and by pandas. What was written is what is right: pyarrow 26 itself reads a row too few where a chunk
begins with a page of no values, which it writes for small pages."""
import datetime
import decimal
import json
import os
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from exact import column, double, integer, single, text

DAY = datetime.date(1970, 1, 1)
CODECS = ["NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"]


def ints(bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda rng: integer(rng, low, high)


def float64(rng):
    return rng.choice([float("nan"), float("inf"), float("-inf")]) if rng.random() < 0.05 else double(rng)


def leaves():
    """Types with what makes a value."""
    types = [(pa.bool_(), lambda rng: rng.random() < 0.5), (pa.float32(), single), (pa.float64(), float64)]
    types += [(getattr(pa, f"int{b}")(), ints(b, True)) for b in (8, 16, 32, 64)]
    types += [(getattr(pa, f"uint{b}")(), ints(b, False)) for b in (8, 16, 32, 64)]
    types += [(pa.float16(), lambda rng: np.frombuffer(rng.randbytes(2), np.float16)[0])]
    types += [(kind, text) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    types += [(kind, lambda rng: rng.randbytes(rng.choice([0, 1, 5, 300]))) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
    types += [(pa.binary(width), lambda rng, width=width: rng.randbytes(width)) for width in (1, 5, 16)]
    types += [(pa.timestamp(unit, tz), lambda rng: 1000 * ints(50, True)(rng)) for unit in ("ms", "us", "ns") for tz in (None, "UTC", "Europe/Berlin")]
    types += [(pa.timestamp("s"), ints(40, True)), (pa.date32(), ints(20, True)), (pa.date64(), lambda rng: DAY + datetime.timedelta(rng.randrange(-9999, 9999)))]
    types += [(pa.time32("s"), lambda rng: rng.randrange(86400)), (pa.time32("ms"), lambda rng: rng.randrange(86400000))]
    types += [(pa.time64(unit), lambda rng: rng.randrange(86400000000)) for unit in ("us", "ns")]
    types += [(pa.duration(unit), ints(64, True)) for unit in ("s", "ms", "us", "ns")]
    types += [(pa.decimal128(p, 0), lambda rng, p=p: decimal.Decimal(rng.randint(-(10**p) + 1, 10**p - 1))) for p in (3, 9, 18)]
    types += [(pa.decimal128(p, s), lambda rng, p=p, s=s: decimal.Decimal(rng.randint(-(10**p) + 1, 10**p - 1)).scaleb(-s)) for p, s in ((9, 2), (18, 18), (28, 6))]
    types += [(pa.null(), lambda rng: None), (pa.dictionary(pa.int8(), pa.string()), lambda rng: rng.choice(["cat", "dog", "猫", ""]))]
    types += [(pa.dictionary(pa.int32(), pa.int64()), lambda rng: rng.choice([-5, 7, 1 << 60]))]
    types += [(pa.json_(), lambda rng: rng.choice(['{"a": [1, 2.5]}', "3", '"t"', "null", "[]"])), (pa.uuid(), lambda rng: rng.randbytes(16))]
    return types


def is_plain(kind):
    return not (pa.types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_null(kind))


def nested(rng, depth=3):
    """A type of lists, structs and maps, one in another, and what makes a value."""
    share, shape = rng.choice([0, 0.1, 0.5]), rng.random() if depth else 0
    if shape < 0.3:
        return rng.choice([leaf for leaf in leaves() if is_plain(leaf[0])])
    if shape < 0.6:
        kind, make = nested(rng, depth - 1)
        element, most = nullable(rng, make, share), rng.choice([2, 4])
        return rng.choice([pa.list_, pa.large_list])(kind), lambda r: [element(r) for _ in range(r.randrange(most))]
    if shape < 0.85:
        fields = [(f"f{i}", *nested(rng, depth - 1)) for i in range(rng.randrange(1, 4))]
        return pa.struct([field[:2] for field in fields]), lambda r: {name: None if r.random() < share else make(r) for name, _, make in fields}
    kind, make = nested(rng, depth - 1)
    value, is_text = nullable(rng, make, share), rng.random() < 0.5
    keys = lambda r: r.sample(["", "a", "Straße", "猫"] if is_text else [-5, 0, 7, 1 << 60], r.randrange(4))
    return pa.map_(pa.string() if is_text else pa.int64(), kind), lambda r: [(key, value(r)) for key in keys(r)]


def nullable(rng, make, share):
    return lambda r: None if r.random() < share else make(r)


def any_type(rng, deep=True):
    """A type, what makes a value of it, and whether it is supported."""
    kind, make = rng.choice(leaves())
    shape = rng.random() if deep else 1
    share = rng.choice([0, 0.1, 0.5, 1])
    if shape < 0.2 and is_plain(kind):
        element, most = nullable(rng, make, share), rng.choice([2, 5, 40])
        if rng.random() < 0.3:
            size = rng.randrange(1, 5)
            return pa.list_(kind, size), lambda r: [element(r) for _ in range(size)], True
        of = rng.choice([pa.list_, pa.large_list])
        return of(kind), lambda r: [element(r) for _ in range(r.randrange(most))], True
    if shape < 0.35:
        fields = [(f"f{i}", *any_type(rng, rng.random() < 0.3)) for i in range(rng.randrange(1, 4))]
        make = lambda r: {name: None if r.random() < share else make(r) for name, _, make, _ in fields}
        return pa.struct([(name, kind) for name, kind, _, _ in fields]), make, all(fine for *_, fine in fields)
    if shape < 0.5:
        return *nested(rng), True
    return kind, make, True


def told(array, micros=False):
    """The values of an array of pyarrow's, as Parquet stores them: times and days are integers. `micros`: versions that have
    no nanoseconds."""
    kind, t = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        values = told(array.storage)
        return [None if v is None else json.loads(v) for v in values] if kind.extension_name == "arrow.json" else values
    if t.is_dictionary(kind):
        return told(array.dictionary_decode())
    if t.is_struct(kind):
        fields = {kind.field(i).name: told(array.field(i), micros) for i in range(kind.num_fields)}
        return [{name: values[i] for name, values in fields.items()} if there else None for i, there in enumerate(array.is_valid().to_pylist())]
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return [told(v.values, micros) if v.is_valid else None for v in array]
    if t.is_map(kind):
        pairs = lambda v: zip(told(v.values.field(0), micros), told(v.values.field(1), micros))
        return [{str(key): value for key, value in pairs(v)} if v.is_valid else None for v in array]
    if t.is_date(kind):
        return array.cast(pa.date32()).cast(pa.int32()).to_pylist()
    if t.is_time32(kind):
        return array.cast(pa.time32("ms")).cast(pa.int32()).to_pylist()
    if t.is_timestamp(kind):
        unit = {"s": "ms", "ns": "us" if micros else "ns"}.get(kind.unit, kind.unit)
        return array.cast(pa.timestamp(unit, kind.tz), safe=False).cast(pa.int64()).to_pylist()
    if t.is_time64(kind) or t.is_duration(kind):
        return array.cast(pa.int64()).to_pylist()
    if t.is_decimal(kind):
        return [None if v is None else float(v) if kind.scale else int(v) for v in array.to_pylist()]
    if t.is_float16(kind) or t.is_float32(kind):
        # `to_pylist` would make f64 of them.
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        return [v if there else None for v, there in zip(values, array.is_valid().to_pylist())]
    return array.to_pylist()


def columns_of(tables, unsupported=(), micros=False):
    """The columns of all files together. Where a file lacks one, its values are null."""
    names = dict.fromkeys(name for table in tables for name in table.column_names if name not in unsupported)
    of = lambda table, name: [v for chunk in table.column(name).chunks for v in told(chunk, micros)] if name in table.column_names else [None] * len(table)
    return [column(name, [v for table in tables for v in of(table, name)]) for name in names]


def array(values, kind):
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    if pa.types.is_struct(kind):
        there = pa.array([v is None for v in values], pa.bool_())
        fields = [array([None if v is None else v[kind.field(i).name] for v in values], kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=[kind.field(i) for i in range(kind.num_fields)], mask=there)
    return pa.array(values, kind)


def options(rng, table):
    """Options of a writer that may differ from file to file."""
    how = {
        "row_group_size": rng.choice([1, 7, 50, 1000]), "data_page_size": rng.choice([1, 64, 1000, 1 << 20]),
        "write_batch_size": rng.choice([1, 5, 1024]), "compression": rng.choice(CODECS), "data_page_version": rng.choice(["1.0", "2.0"]),
        "write_page_index": rng.random() < 0.5, "write_page_checksum": rng.random() < 0.5, "store_schema": rng.random() < 0.8,
        "use_dictionary": rng.choice([True, False, False]), "dictionary_pagesize_limit": rng.choice([10, 1 << 20]), "write_statistics": rng.random() < 0.5,
    }
    if not how["use_dictionary"] and rng.random() < 0.5:
        chosen = {}
        for field in table.schema:
            t, kind = pa.types, field.type
            encodings = ["PLAIN"]
            encodings += ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"] if t.is_int32(kind) or t.is_int64(kind) else []
            encodings += ["BYTE_STREAM_SPLIT"] if t.is_float32(kind) or t.is_float64(kind) or t.is_fixed_size_binary(kind) or t.is_float16(kind) else []
            encodings += ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"] if t.is_string(kind) or t.is_binary(kind) else []
            encodings += ["RLE"] if t.is_boolean(kind) else []
            if not t.is_nested(kind):
                chosen[field.name] = rng.choice(encodings)
        how["column_encoding"] = chosen
    return how


def pyarrow_set(rng, place):
    rows, tables, paths, notes = rng.choice([1, 3, 30, 200, 400]), [], [], []
    whole = {"version": rng.choice(["1.0", "2.4", "2.6"]), "store_decimal_as_integer": rng.random() < 0.5, "use_compliant_nested_type": rng.random() < 0.8}
    fields, makers, unsupported = [], [], []
    for n in range(rng.randrange(1, 7)):
        kind, make, fine = any_type(rng)
        name = rng.choice([f"c{n}", f"c{n}.dotted", f"Spalte ß {n}"])
        missing = rng.choice([0, 0, 0.1, 0.9, 1])
        fields.append(pa.field(name, kind, missing > 0 or pa.types.is_null(kind)))
        makers.append(nullable(rng, make, missing))
        if not fine:
            unsupported.append(name)
    subsets = rng.random() < 0.3
    for file in range(rng.choice([1, 1, 1, 3])):
        chosen = list(zip(fields, makers))
        if subsets and not unsupported:  # other files have other columns, in another order
            chosen = rng.sample(chosen, rng.randrange(1, len(chosen) + 1))
        here = rows if rng.random() < 0.8 else 0
        arrays = [array([make(rng) for _ in range(here)], field.type) for field, make in chosen]
        table = pa.Table.from_arrays(arrays, schema=pa.schema([field for field, _ in chosen]))
        how = {**whole, **options(rng, table)}
        path = os.path.join(place, f"{file}.parquet")
        try:
            pq.write_table(table, path, **how)
        except pa.ArrowNotImplementedError:  # e.g. views in small pages
            return pyarrow_set(rng, place)
        tables.append(table)
        paths.append(path)
        notes.append(how)
    memory = rng.choice([1, 10_000, 512 << 20])
    types = ", ".join(f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in fields)
    return {"reader": "parquet", "paths": paths, "how": f"{types}; {notes}", "columns": columns_of(tables, unsupported, whole["version"] != "2.6"), "refused": unsupported, "memory": memory}


def pandas_set(rng, place):
    rows = rng.choice([1, 10, 300])
    columns = {
        "i": pd.Series([rng.randrange(-9, 9) for _ in range(rows)], dtype=rng.choice(["int8", "int64", "Int32", "UInt64" if rng.random() < 0 else "Int64"])),
        "f": pd.Series([double(rng) for _ in range(rows)], dtype=rng.choice(["float64", "Float64"])),
        "s": pd.Series([rng.choice([None, text(rng)]) for _ in range(rows)], dtype=rng.choice(["object", "string"])),
        "c": pd.Categorical([rng.choice(["a", "b", None]) for _ in range(rows)]),
        "t": pd.to_datetime([rng.choice([None, rng.randrange(1 << 40)]) for _ in range(rows)], unit="ms", utc=rng.random() < 0.5),
        "d": pd.to_timedelta([rng.randrange(1 << 30) for _ in range(rows)], unit="us"),
        "b": pd.Series([rng.choice([True, False, None]) for _ in range(rows)], dtype="boolean"),
        "l": pd.Series([[rng.randrange(9) for _ in range(rng.randrange(4))] for _ in range(rows)]),
        "n": pd.Series([np.array([rng.random() for _ in range(3)], np.float32) for _ in range(rows)]),
        "bytes": pd.Series([rng.randbytes(rng.randrange(20)) for _ in range(rows)]),
    }
    frame = pd.DataFrame({name: columns[name] for name in rng.sample(sorted(columns), rng.randrange(1, len(columns)))})
    if rng.random() < 0.3:
        frame.index = [f"row {i}" for i in range(rows)]
    how = {"compression": rng.choice([None, "snappy", "gzip", "brotli", "zstd"]), "index": rng.choice([None, True, False])}
    path = os.path.join(place, "0.parquet")
    frame.to_parquet(path, engine="pyarrow", **how)
    table = pa.Table.from_pandas(frame, preserve_index=how["index"])
    return {"reader": "parquet", "paths": [path], "how": f"pandas {dict(frame.dtypes)} {how}", "columns": columns_of([table])}
