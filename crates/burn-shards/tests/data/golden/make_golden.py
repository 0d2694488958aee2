#!/usr/bin/env python3
"""Small files as the real writers make them, with what is in them: test fixtures.

    python3 -m venv venv
    venv/bin/pip install webdataset==1.0.2 pyarrow==26.0.1 mosaicml-streaming==0.13.0 polars==2.1.0 duckdb==2.0.0
    venv/bin/pip install --target hf "huggingface_hub>=1.31,<3"
    venv/bin/pip install --target hf --no-deps datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19 pandas python-dateutil pytz tzdata six
    venv/bin/pip install --target old --no-deps pyarrow==10.0.1 numpy==1.26.4
    venv/bin/python make_golden.py --out golden --hf-path hf --old-path old --wds2idx wds2idx.py
    venv/bin/python make_golden.py --out golden --formats tar,mds                      some of the formats

The same versions give the same bytes, but for times (gz), keys (encryption) and numbers of processes (two PAX tars).
Writers: pyarrow (10 too), polars, duckdb, Hugging Face `datasets` (from --hf-path, it cannot be installed beside
mosaicml-streaming), webdataset, GNU tar, NVIDIA's wds2idx.py (DALI, tools/), mosaicml-streaming, pandas.

Each OUT/FORMAT/manifest.json:
    made_by   versions
    rows      name -> list of rows; a row: column -> value. Bytes are hexadecimal text, and `hex` lists those columns
              (`image.bytes`: a field of a struct). Floats are exact as f64. Dates are days, timestamps are in the
              column's own unit since 1970, decimals are text. A column that a row of a tar does not have is not in it.
    files     the files that hold those rows, in this order, with facts on how they were written
    refused   files that no reader should accept, or that ours does not, and why
"""
import argparse, datetime, decimal, hashlib, io, json, os, random, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MTIME = 1_700_000_000
EPOCH = datetime.datetime(1970, 1, 1)
D = decimal.Decimal


def version(*names):
    from importlib.metadata import version
    return {n: version(n) for n in names}


def picture(i, side=8, fmt="JPEG", mode="L", **kw):
    from PIL import Image
    rng = random.Random(i)
    n = len(Image.new(mode, (1, 1)).tobytes())
    img = Image.frombytes(mode, (side, side + i % 3), bytes(rng.randrange(256) for _ in range(side * (side + i % 3) * n)))
    buf = io.BytesIO()
    img.save(buf, fmt, **({"quality": 20, "optimize": True} if fmt == "JPEG" else {}), **kw)
    return buf.getvalue()


def save(folder, made_by, rows, files, hexes, refused=(), **more):
    with open(f"{folder}/manifest.json", "w") as f:
        f.write('{"made_by": ' + json.dumps(made_by) + ',\n"hex": ' + json.dumps(hexes) + ',\n')
        for k, v in more.items():
            f.write(json.dumps(k) + ": " + json.dumps(v) + ",\n")
        f.write('"files": [\n' + ",\n".join(map(json.dumps, files)) + '],\n"refused": [\n'
                + ",\n".join(map(json.dumps, refused)) + '],\n"rows": {\n')
        f.write(",\n".join(json.dumps(name) + ": [\n" + ",\n".join(
            json.dumps(r, ensure_ascii=False, allow_nan=False, separators=(",", ":")) for r in table) + "]" for name, table in rows.items()))
        f.write("}}\n")


# ---- Parquet --------------------------------------------------------------------------------------------------------

def plain_rows(n=26):
    """id, text, tokens, image {bytes, path}, score, flag: nulls, empty values, repeated values, one long list."""
    rng, words = random.Random(5), ["", "a", "the cat", "Straße", "猫が座る", "🐈", "x" * 70]
    rows = []
    for i in range(n):
        image = {"bytes": picture(i) if i % 5 == 0 else rng.randbytes(i), "path": f"{i:03d}.jpg"}
        if i % 11 == 4:
            image = None
        elif i % 11 == 7:
            image["bytes"] = None
        elif i % 11 == 8:
            image["path"] = None
        tokens = None if i % 9 == 3 else [] if i % 9 == 5 else [rng.randrange(-100, 60000) for _ in range(i % 7 + 30 * (i == 10))]
        if i % 13 == 6 and tokens:
            tokens[len(tokens) // 2] = None
        rows.append({"id": i * i * 1_000_003 - 7 * i, "text": None if i % 8 == 6 else words[rng.randrange(len(words))],
                     "tokens": tokens, "image": image, "score": None if i % 6 == 1 else (i - 9) * 0.3125,
                     "flag": None if i % 10 == 9 else i % 3 == 0})
    return rows


def plain_schema(pa, required=False):
    null = not required
    return pa.schema([
        pa.field("id", pa.int64(), null), pa.field("text", pa.string(), null),
        pa.field("tokens", pa.list_(pa.field("element", pa.int32(), null)), null),
        pa.field("image", pa.struct([pa.field("bytes", pa.binary(), null), pa.field("path", pa.string(), null)]), null),
        pa.field("score", pa.float32(), null), pa.field("flag", pa.bool_(), null)])


def filled(row):
    """The same row without a null, for columns that cannot have one."""
    image = row["image"] or {}
    return {"id": row["id"], "text": row["text"] or "none", "tokens": [t or 0 for t in row["tokens"] or []],
            "image": {"bytes": image.get("bytes") or b"\0", "path": image.get("path") or "-"},
            "score": row["score"] or 0.5, "flag": bool(row["flag"])}


def types_columns(pa):
    """name -> (type, values from a row's number): every type a reader has to know."""
    big = lambda i, lo, hi: [lo, hi, 0, 1, hi - i, lo + i][i % 6]
    c = {"flag": (pa.bool_(), lambda i: i % 3 == 1)}
    for b in (8, 16, 32, 64):
        c[f"i{b}"] = (getattr(pa, f"int{b}")(), lambda i, b=b: big(i, -(1 << b - 1), (1 << b - 1) - 1))
        c[f"u{b}"] = (getattr(pa, f"uint{b}")(), lambda i, b=b: big(i, 0, (1 << b) - 1))
    c["f16"] = (pa.float16(), lambda i: [0.5, -65504.0, 5.960464477539063e-08, -0.0, i / 8][i % 5])
    c["f32"] = (pa.float32(), lambda i: [0.10000000149011612, -3.4028234663852886e38, 1.401298464324817e-45, -0.0, i / 8][i % 5])
    c["f64"] = (pa.float64(), lambda i: [0.1, -1.7976931348623157e308, 5e-324, -0.0, i / 3][i % 5])
    c["dec9"] = (pa.decimal128(9, 2), lambda i: [D("1234567.89"), D("-1234567.89"), D("0.01"), D(i) + D("0.50")][i % 4])
    c["dec18"] = (pa.decimal128(18, 4), lambda i: [D("99999999999999.9999"), D("-0.0001"), D(i * 7) + D("0.2500")][i % 3])
    c["dec38"] = (pa.decimal128(38, 6), lambda i: [D("-12345678901234567890123456789012.345678"), D("0.000001")][i % 2])
    c["date"] = (pa.date32(), lambda i: EPOCH.date() + datetime.timedelta(days=[0, -719162, 20000, i][i % 4]))
    c["time_us"] = (pa.timestamp("us"), lambda i: EPOCH + datetime.timedelta(microseconds=[0, -1, 1_700_000_000_123_456, i][i % 4]))
    c["time_utc_ms"] = (pa.timestamp("ms", tz="UTC"), lambda i: EPOCH.replace(tzinfo=datetime.timezone.utc)
                        + datetime.timedelta(milliseconds=[0, -1, 1_700_000_000_123, i][i % 4]))
    c["text"] = (pa.string(), lambda i: ["", "plain", "Straße", "猫", "line\nbreak\0nul"][i % 5] + str(i) * (i % 2))
    c["large_text"] = (pa.large_string(), lambda i: f"row {i}")
    c["binary"] = (pa.binary(), lambda i: bytes(range(i)))
    c["fixed6"] = (pa.binary(6), lambda i: hashlib.md5(bytes([i])).digest()[:6])
    c["kind"] = (pa.dictionary(pa.int32(), pa.string()), lambda i: ["cat", "dog", "ant"][i * i % 3])
    c["longs"] = (pa.list_(pa.int64()), lambda i: [k * (1 << 40) for k in range(i % 4)])
    c["reals"] = (pa.list_(pa.float32()), lambda i: [k / 4 for k in range(i % 5)])
    c["words"] = (pa.list_(pa.string()), lambda i: [None if k == 2 else "w" * k for k in range(i % 4)])
    c["three"] = (pa.list_(pa.float32(), 3), lambda i: [i, i + 0.5, -i])
    c["image"] = (pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
                  lambda i: {"bytes": None if i % 7 == 3 else bytes([i] * (i % 5)), "path": None if i % 4 else f"{i}.png"})
    c["point"] = (pa.struct([("x", pa.float32()), ("n", pa.int64()), ("name", pa.string())]),
                  lambda i: {"x": i / 2, "n": None if i % 3 == 0 else -i, "name": f"p{i}"})
    return c


def to_json(v):
    if isinstance(v, bytes):
        return v.hex()
    if isinstance(v, D):
        return format(v, "f")
    if isinstance(v, dict):
        return {k: to_json(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [to_json(x) for x in v]
    if isinstance(v, datetime.datetime):
        raise TypeError("the unit decides")
    if isinstance(v, datetime.date):
        return (v - EPOCH.date()).days
    return v


def table_json(pa, table):
    """Rows as a manifest has them, read off a table: timestamps in their own unit."""
    columns = {}
    for name in table.column_names:
        col = table[name]
        if pa.types.is_timestamp(col.type):
            col = col.cast(pa.int64())
        columns[name] = [to_json(v) for v in col.to_pylist()]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def make_parquet(out, a):
    import duckdb, polars as pl, pyarrow as pa, pyarrow.parquet as pq, pyarrow.parquet.encryption as pe
    rows, files, refused = {}, [], []
    hexes = {"plain": ["image.bytes"], "required": ["image.bytes"], "types": ["binary", "fixed6", "image.bytes"],
             "duckdb": ["data"], "polars": ["data"], "hub": ["image.bytes"]}

    def facts(name):
        m = pq.ParquetFile(f"{out}/{name}").metadata if name != "encrypted.parquet" else None
        return {} if not m else {"rows_in_groups": [m.row_group(g).num_rows for g in range(m.num_row_groups)],
                                 "codec": m.row_group(0).column(0).compression if m.num_row_groups else None,
                                 "offset_index": m.num_row_groups > 0 and m.row_group(0).column(0).has_offset_index}

    def write(name, table, key, remark="", **kw):
        """One file by pyarrow: short pages, and the row groups told."""
        kw = {"row_group_size": 16, "data_page_size": 96, "write_batch_size": 5, "write_statistics": False, **kw}
        pq.write_table(table, f"{out}/{name}", **kw)
        if key not in rows:
            rows[key] = table_json(pa, table)
        back = pq.ParquetFile(f"{out}/{name}").read()
        assert table_json(pa, back) == rows[key], name
        files.append({"file": name, "rows": key, "writer": "pyarrow", "page_version": kw.get("data_page_version", "1.0"),
                      "dictionary": bool(kw.get("use_dictionary", True)), **facts(name), "remark": remark})

    plain = pa.Table.from_pylist(plain_rows(), plain_schema(pa))
    no_dict = {"use_dictionary": False}
    bare = {"store_schema": False}
    one = {"use_dictionary": False, "data_page_size": 1 << 20, "write_batch_size": 1024}
    index, v2 = {"write_page_index": True}, {"data_page_version": "2.0"}
    write("none.parquet", plain, "plain", compression="none", **bare)
    write("none_direct.parquet", plain, "plain", "no codec, PLAIN, offset index", compression="none", **no_dict, **index)
    write("none_direct_v2.parquet", plain, "plain", "no codec, PLAIN, offset index", compression="none", **no_dict, **index, **v2, **bare)
    write("none_plain.parquet", plain, "plain", "one page a chunk", compression="none", **one, **bare)
    for codec in ("snappy", "gzip", "zstd", "lz4", "brotli"):
        write(f"{codec}.parquet", plain, "plain", compression=codec, **bare)
        if codec != "brotli":
            write(f"{codec}_v2.parquet", plain, "plain", compression=codec, **v2, **(no_dict if codec != "snappy" else {}), **bare, **(index if codec in ("zstd", "gzip") else {}))
    write("snappy_index.parquet", plain, "plain", compression="snappy", **index)
    write("snappy_checksums.parquet", plain, "plain", "a CRC a page", compression="snappy", write_page_checksum=True, **bare)
    write("fallback.parquet", plain, "plain", "dictionary pages first, then PLAIN pages in one chunk", compression="snappy",
          dictionary_pagesize_limit=120, **bare)
    delta = {"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "tokens.list.element": "DELTA_BINARY_PACKED",
             "image.bytes": "DELTA_LENGTH_BYTE_ARRAY", "image.path": "DELTA_BYTE_ARRAY", "score": "BYTE_STREAM_SPLIT",
             "flag": "RLE"}
    write("delta.parquet", plain, "plain", "DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, "
          "BYTE_STREAM_SPLIT, RLE", compression="none", column_encoding=delta, **no_dict, **bare)
    write("delta_zstd_v2.parquet", plain, "plain", "as delta", compression="zstd", column_encoding=delta, **no_dict, **v2, **index, **bare)
    write("no_arrow_schema.parquet", plain, "plain", "without the key ARROW:schema; lists as `list.item`", compression="snappy",
          store_schema=False, use_compliant_nested_type=False)
    write("required.parquet", pa.Table.from_pylist([filled(r) for r in plain_rows(9)], plain_schema(pa, True)), "required",
          "no column may have nulls: no definition levels", compression="none", **no_dict, **index)
    write("no_rows.parquet", plain.slice(0, 0), "no_rows", "a schema, no row", compression="snappy")
    files[-1]["columns"] = plain.column_names

    columns = types_columns(pa)
    types = pa.table({n: pa.array([None if (i * 7 + k) % 9 == 2 else f(i) for i in range(27)], pa.string() if n == "kind" else t)
                      for k, (n, (t, f)) in enumerate(columns.items())})
    types = types.set_column(types.column_names.index("kind"), "kind", types["kind"].dictionary_encode())
    big = {"data_page_size": 1 << 20, "write_batch_size": 1024, "row_group_size": 11}
    write("types.parquet", types, "types", "every type, nulls in all", compression="snappy", **big)
    write("types_v2.parquet", types, "types", "every type, decimals as integers, no key ARROW:schema", compression="zstd", store_decimal_as_integer=True,
          **{**big, "row_group_size": 64}, **v2, **no_dict, **index, **bare)
    files[-1]["types"] = {f.name: str(f.type) for f in types.schema}

    # Other writers.
    frame = pl.DataFrame({"id": list(range(20)), "text": [None if i % 6 == 5 else f"row {i % 4}" for i in range(20)],
                          "tokens": [list(range(i % 5)) if i % 7 else None for i in range(20)],
                          "data": [bytes(range(i)) for i in range(20)], "label": ["cat", "dog"] * 10,
                          "point": [{"x": i / 2, "y": None if i % 3 else i} for i in range(20)]},
                         schema={"id": pl.UInt32, "text": pl.String, "tokens": pl.List(pl.Int64), "data": pl.Binary,
                                 "label": pl.Categorical, "point": pl.Struct({"x": pl.Float64, "y": pl.Int16})})
    frame.write_parquet(f"{out}/polars.parquet", compression="zstd", row_group_size=12, data_page_size=64)
    rows["polars"] = [to_json(r) for r in frame.to_dicts()]
    files.append({"file": "polars.parquet", "rows": "polars", "writer": "polars", **facts("polars.parquet"), "remark": "defaults: zstd"})
    assert table_json(pa, pq.ParquetFile(f"{out}/polars.parquet").read()) == rows["polars"]
    duckdb.sql(f"""copy (select i::integer as id, case when i % 5 = 3 then null else 'word ' || (i % 6) end as text,
        case when i % 4 = 1 then null else range(i % 6) end as tokens, ('\\x0' || (i % 8))::blob as data, i / 4.0 as score
        from range(30) t(i)) to '{out}/duckdb.parquet' (format parquet, codec 'snappy')""")
    rows["duckdb"] = table_json(pa, pq.ParquetFile(f"{out}/duckdb.parquet").read())
    files.append({"file": "duckdb.parquet", "rows": "duckdb", "writer": "duckdb", **facts("duckdb.parquet"), "remark": "defaults, snappy"})

    # An old pyarrow: pages of a list column may start inside a list.
    env = {**os.environ, "PYTHONPATH": a.old_path}
    code = """if True:
        import sys, pyarrow as pa, pyarrow.parquet as pq
        t = pa.table({"id": pa.array(range(12), pa.int64()), "tokens": pa.array([None if i == 4 else [k * i for k in range(i * 3 % 11)] for i in range(12)], pa.list_(pa.int32())),
                      "text": [None if i == 7 else "text %d" % i for i in range(12)]})
        pq.write_table(t, sys.argv[1], compression="snappy", data_page_size=16, use_dictionary=False, write_batch_size=4, row_group_size=8, write_statistics=False)
        print(pa.__version__)"""
    old = subprocess.run([sys.executable, "-c", code, f"{out}/split_lists.parquet"], env=env, check=True, capture_output=True, text=True).stdout.strip()
    rows["split_lists"] = table_json(pa, pq.ParquetFile(f"{out}/split_lists.parquet").read())
    assert rows["split_lists"] == [{"id": i, "tokens": None if i == 4 else [k * i for k in range(i * 3 % 11)], "text": None if i == 7 else f"text {i}"} for i in range(12)]
    files.append({"file": "split_lists.parquet", "rows": "split_lists", "writer": f"pyarrow {old}", **facts("split_lists.parquet"),
                  "remark": "data pages (v1) that start inside a list; today's pyarrow ends pages with a row"})

    # Nested deeper than lists of numbers and structs of them, with their rows. A reader may support them.
    def nested(name, column, type_, values, what):
        t = pa.table({"id": pa.array(range(len(values)), pa.int64()), column: pa.array(values, type_)})
        pq.write_table(t, f"{out}/{name}", compression="none", write_statistics=False)
        refused.append({"file": name, "column": column, "what": what, "rows": table_json(pa, t), "fine_column": "id"})
    nested("list_of_lists.parquet", "grid", pa.list_(pa.list_(pa.int64())), [[[1, 2], []], None, [None, [3, None]]], "a list of lists")
    nested("list_of_structs.parquet", "boxes", pa.list_(pa.struct([("x", pa.int32()), ("name", pa.string())])),
           [[{"x": 1, "name": "a"}, {"x": None, "name": "b"}], [], None], "a list of structs")
    nested("map.parquet", "scores", pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None], "a map")
    nested("struct_in_struct.parquet", "outer", pa.struct([("inner", pa.struct([("x", pa.int64()), ("b", pa.binary())])), ("y", pa.int64())]),
           [{"inner": {"x": 1, "b": b"\1\2"}, "y": 2}, {"inner": None, "y": None}, None], "a struct in a struct (a reader may support it)")
    nested("list_in_struct.parquet", "item", pa.struct([("ids", pa.list_(pa.int64())), ("y", pa.int64())]),
           [{"ids": [1, None], "y": 2}, {"ids": None, "y": None}, None], "a list in a struct (a reader may support it)")
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64()), "time": pa.array([0, MTIME * 10**9 + 5], pa.timestamp("ns"))}),
                   f"{out}/int96.parquet", use_deprecated_int96_timestamps=True, compression="none", write_statistics=False)
    refused.append({"file": "int96.parquet", "column": "time", "what": "INT96 timestamps (a reader may support them)",
                    "rows": [{"id": 1, "time": 0}, {"id": 2, "time": MTIME * 10**9 + 5}], "fine_column": "id"})
    for name, open_footer in (("encrypted.parquet", False), ("encrypted_columns.parquet", True)):
        pq.write_table(plain.slice(0, 6).select(["id", "text"]), f"{out}/{name}", compression="none", write_statistics=False,
                       encryption_properties=pe.create_encryption_properties(b"0123456789abcdef", plaintext_footer=open_footer))
        refused.append({"file": name, "column": None, "what": "encryption" + (", with a readable footer that starts and ends in PAR1"
                                                                                if open_footer else ": magic PARE"), "rows": []})
    # datasets needs another huggingface_hub than mosaicml-streaming, hence another process.
    env = {**os.environ, "PYTHONPATH": a.hf_path, "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    made = json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), "--hub", out], env=env, check=True,
                                     capture_output=True, text=True).stdout.splitlines()[-1])
    for name in ("hub-00000-of-00002.parquet", "hub-00001-of-00002.parquet"):
        files.append({"file": name, "rows": f"hub{name[8]}", "writer": "datasets", **facts(name), "remark": "as on the hub",
                      "classes": made["classes"], "text_classes": made["text_classes"]})
        rows[f"hub{name[8]}"] = table_json(pa, pq.ParquetFile(f"{out}/{name}").read())
        hexes[f"hub{name[8]}"] = ["image.bytes"]
    del hexes["hub"]
    assert rows["hub0"] + rows["hub1"] == made["rows"]
    save(out, {**version("pyarrow", "polars", "duckdb"), "datasets": made["version"]}, rows, files, hexes, refused)


def make_hub(out):
    """In a process of its own: an image feature, class names (also of a list), two files."""
    import datasets
    from datasets import ClassLabel, Dataset, Features, Image, List, Value
    names = ["cat", "dog", "señor ant"]
    table = [{"image": {"bytes": picture(100 + i), "path": f"{i}.jpg"} if i != 5 else None, "label": i % 3 if i != 4 else None,
              "tags": [k % 2 for k in range(i % 3)], "caption": f"picture {i}", "weights": [i / 2] * 2} for i in range(10)]
    d = Dataset.from_dict({k: [r[k] for r in table] for k in table[0]}, features=Features(
        {"image": Image(), "label": ClassLabel(names=names), "tags": List(ClassLabel(names=["indoor", "outdoor"])),
         "caption": Value("string"), "weights": List(Value("float32"), length=2)}))
    for k in range(2):
        d.shard(2, k, contiguous=True).to_parquet(f"{out}/hub-{k:05d}-of-00002.parquet")
    print(json.dumps({"version": datasets.__version__, "rows": [to_json(r) for r in table], "classes": names,
                      "text_classes": {"tags": ["indoor", "outdoor"]}}))


# ---- tar ------------------------------------------------------------------------------------------------------------

def read_tar(path):
    """What webdataset makes of a tar."""
    import warnings, webdataset as wds
    warnings.filterwarnings("ignore")
    out = []
    for s in wds.WebDataset(path, shardshuffle=False, empty_check=False):
        out.append({k: v if k == "__key__" else v.hex() for k, v in s.items() if k not in ("__url__", "__local_path__")})
    return out


def make_tar(out, a):
    import webdataset as wds
    rows, files, refused = {}, [], []
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    tmp = tempfile.mkdtemp()

    def put(name, data):
        os.makedirs(os.path.dirname(f"{tmp}/{name}") or tmp, exist_ok=True)
        with open(f"{tmp}/{name}", "wb") as f:
            f.write(data)
        return name

    def tar(name, members, *flags):
        """GNU tar with the members in the order given."""
        for root, dirs, names in os.walk(tmp):
            for n in dirs + names:
                os.utime(f"{root}/{n}", (MTIME, MTIME), follow_symlinks=False)
        listed = f"{out}/.list"
        with open(listed, "w") as f:
            f.write("\n".join(members) + "\n")
        subprocess.run(["tar", "--create", f"--file={out}/{name}", f"--directory={tmp}", "--no-recursion", "--owner=0", "--group=0",
                        "--numeric-owner", f"--mtime=@{MTIME}", *flags, "--verbatim-files-from", f"--files-from={listed}"],
                       check=True, env=env)
        os.remove(listed)

    def note(name, writer, remark="", want=None):
        rows[name] = read_tar(f"{out}/{name}")
        if want is not None:
            assert rows[name] == want, (name, rows[name], want)
        files.append({"file": name, "rows": name, "writer": writer, "remark": remark})

    def idx(name, wrong=None):
        """By NVIDIA's script. `wrong` tells why what it writes does not fit its tar: its name then ends in .bad-idx."""
        path = f"{out}/{name[:-4]}.{'bad-idx' if wrong else 'idx'}"
        subprocess.run([sys.executable, a.wds2idx, f"{out}/{name}", path], check=True, env=env)
        raw, found = open(f"{out}/{name}", "rb").read(), []
        lines = open(path).read().splitlines()
        for line in lines[1:]:
            p = line.split(" ")
            if len(p) % 4 == 0 and "." in p[3]:
                found.append({"__key__": p[3][:p[3].index(".", p[3].rfind("/") + 1)], **{
                    p[k].lower(): raw[int(p[k + 1]):int(p[k + 1]) + int(p[k + 2])].hex() for k in range(0, len(p), 4)}})
        assert lines[0] == f"v1.2 {len(lines) - 1}" and (found == rows[name]) == (wrong is None), name
        if wrong:
            refused.append({"file": name, "idx": os.path.basename(path), "what": wrong})
        else:
            files[-1]["idx"] = os.path.basename(path)

    # webdataset's own writers.
    sample = lambda i: {"__key__": f"{i:06d}", "jpg": picture(200 + i), "cls": i % 3, "json": {"i": i, "caption": f"Bild {i} ü"},
                        "seg.png": picture(i, 4, "PNG")}
    with wds.ShardWriter(f"{out}/train-%06d.tar", maxcount=2, verbose=0, mtime=MTIME) as w:
        for i in range(4):
            w.write(sample(i))
    for k in range(2):
        want = [{"__key__": f"{i:06d}", "cls": str(i % 3).encode().hex(), "jpg": sample(i)["jpg"].hex(),
                 "json": json.dumps(sample(i)["json"]).encode().hex(), "seg.png": sample(i)["seg.png"].hex()}
                for i in range(2 * k, 2 * k + 2)]
        note(f"train-{k:06d}.tar", "webdataset", "ShardWriter", want)
        idx(f"train-{k:06d}.tar")
    with wds.TarWriter(f"{out}/names.tar", mtime=MTIME) as w:  # Python's default is PAX
        w.write({"__key__": "straße/猫", "txt": "ein Text: ü", "cls": 7})
        w.write({"__key__": "d/" + "long" * 40, "txt": "a long name"})
        w.write({"__key__": "short", "txt": ""})
    note("names.tar", "webdataset", "TarWriter; PAX headers for names that are not ASCII or over 100 bytes; an empty file")

    # GNU tar: long names in each of its formats.
    deep, long = "deep/" * 18, "n" * 130
    names = []
    for i, key in enumerate(["000", f"{deep}{'m' * 60}001", f"dir/{long}", "003"]):
        names += [put(f"{key}.jpg", picture(300 + i)), put(f"{key}.cls", str(i).encode())][:2 if i < 2 else 1]
    blocks = "--blocking-factor=1"
    tar("gnu.tar", names, "--format=gnu", blocks)
    note("gnu.tar", "GNU tar", "@LongLink before names over 100 bytes; blocking factor 1")
    idx("gnu.tar")
    pax = ["--format=pax", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"]
    tar("pax.tar", names, *pax, blocks)
    note("pax.tar", "GNU tar", "PAX records for names over 100 bytes")
    idx("pax.tar", "the script takes an entry's place from the next entry's header, and GNU tar counts that one after its PAX header: data "
        "before a PAX header are told 1,024 bytes too late")
    tar("pax_times.tar", names[1:3], "--format=pax", blocks, "--mtime=@1700000000.25",
        "--pax-option=exthdr.name=%d/PaxHeaders/%f,globexthdr.name=GlobalHead,comment=a header for all,delete=atime,delete=ctime")
    note("pax_times.tar", "GNU tar", "a global PAX header, and PAX records (mtime) before each member")
    tar("ustar.tar", names[:3], "--format=ustar", blocks)
    note("ustar.tar", "GNU tar", "a name in two parts (prefix)")
    tar("v7.tar", names[:2] + names[5:], "--format=v7", blocks)
    note("v7.tar", "GNU tar", "no magic")

    # The rules for names.
    odd = [put("b/x.y/one.JPG", b"jpeg 1"), put("b/x.y/one.Cls", b"1"), put("b/x.y/one.seg.PNG", b"png 1"),  # upper case; dots in a folder and in an extension
           put("__skip__/a.jpg", b"skipped"), put("two.jpg", b"jpeg 2"), put("README", b"no dot: skipped, and no border between neighbours"),
           put("two.cls", b"2"), put("__two__.jpg", b"a dot after the underscores: kept"), put("three.cls", b"3"), put("four.cls", b"4"),
           put("three.jpg", b"not a neighbour of its label"), put(".hidden", b"skipped"), put("b/.DS_Store", b"hidden in a folder"),
           put("b/._five.jpg", b"hidden by macOS"), put("five.tar.gz", b"two dots"), put("five.", b"a dot at the end"),
           put("six b.txt", b"a space in the name"), put("seven.empty", b"")]
    os.symlink("two.jpg", f"{tmp}/link.jpg")
    os.link(f"{tmp}/two.jpg", f"{tmp}/hard.jpg")
    tar("rules.tar", ["b", "b/x.y"] + odd[:7] + ["link.jpg", "hard.jpg"] + odd[7:], "--format=gnu", blocks)
    note("rules.tar", "GNU tar", "folders, links, upper-case extensions, names with several dots, names that are skipped; webdataset makes a "
         "sample `b/` of the hidden files in a folder")
    idx("rules.tar", "it has what webdataset skips (`__skip__`, `README` as a sample `READM`), an empty extension, and a name with a space")
    tar("dot.tar", ["./two.jpg", "./two.cls", "./.hidden", "./b/x.y/one.JPG"], "--format=gnu", blocks)
    note("dot.tar", "GNU tar", "names that start with `./`")

    # What no reader should read wrongly.
    with open(f"{tmp}/hole.bin", "wb") as f:
        f.truncate((1 << 17) + 3)
    put("hole.cls", b"5")
    for name, fmt in (("sparse_gnu.tar", ["--format=gnu"]), ("sparse_pax.tar", [*pax, "--sparse-version=1.0"])):
        tar(name, ["two.jpg", "hole.bin", "hole.cls"], *fmt, "--sparse", blocks)
        real = read_tar(f"{out}/{name}")
        assert real[1]["bin"] == open(f"{tmp}/hole.bin", "rb").read().hex()
        refused.append({"file": name, "what": "a sparse file: `hole.bin` has 131,075 bytes, all 0 and none of them in the tar. To be refused, skipped or "
                        "read in full, never read as the stored blocks", "size": (1 << 17) + 3, "sha256": hashlib.sha256(bytes.fromhex(real[1]["bin"])).hexdigest()})
    put("two.JPG", b"again")
    tar("twice.tar", ["two.jpg", "two.cls", "two.JPG"], "--format=gnu", blocks)
    refused.append({"file": "twice.tar", "what": "the extension `jpg` twice in the sample `two`; webdataset: duplicate file name"})
    try:
        read_tar(f"{out}/twice.tar")
        raise SystemExit("webdataset read twice.tar")
    except ValueError as e:
        assert "duplicate file name" in str(e)
    shutil.rmtree(tmp)
    gnu = subprocess.run(["tar", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    save(out, {**version("webdataset"), "tar": gnu, "wds2idx.py": "v1.2, NVIDIA/DALI 0aa2ef5f"}, rows, files,
         {"*": "all but __key__"}, refused)


# ---- MDS ------------------------------------------------------------------------------------------------------------

def make_mds(out, a):
    import numpy as np
    from PIL import Image
    from streaming import MDSWriter, StreamingDataset
    from streaming.base.format.mds.encodings import get_mds_encodings
    from streaming.base.util import merge_index
    rows, files, refused = {}, [], []
    tmp = tempfile.mkdtemp()

    def opened(data, ext):
        path = f"{tmp}/{hashlib.md5(data).hexdigest()}.{ext}"
        with open(path, "wb") as f:
            f.write(data)
        return Image.open(path)  # the JPEG encoder copies a file's bytes

    def png(img):
        buf = io.BytesIO()
        img.save(buf, "PNG")
        return buf.getvalue()

    def pil_json(img):
        return {"width": img.width, "height": img.height, "mode": img.mode, "pixels": img.tobytes().hex()}

    def array(x):
        return {"dtype": x.dtype.name, "shape": list(x.shape), "data": x.flatten().tolist()}

    rng = np.random.default_rng(3)
    dtypes = ["uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32", "uint64", "int64", "float64"]
    big = lambda i, b, signed: [[0, 1, (1 << b) - 1, i], [-(1 << b - 1), (1 << b - 1) - 1, -i, 7]][signed][i % 4]
    columns = {"int": "int", "bytes": "bytes", "str": "str", "json": "json", "str_int": "str_int", "str_float": "str_float",
               "str_decimal": "str_decimal", "jpeg": "jpeg", "png": "png", "pil": "pil", "pil_rgb": "pil", "list_jpeg": "list[jpeg]", "list_png": "list[png]",
               "list_pil": "list[pil]", "jpeg_array": "jpeg_array", "jpegarray": "jpegarray", "array": "ndarray", "array_i16": "ndarray:int16",
               "array_f32_2x3": "ndarray:float32:2,3", "array_u8_4": "ndarray:uint8:4"}
    for b in (8, 16, 32, 64):
        columns[f"u{b}"], columns[f"i{b}"] = f"uint{b}", f"int{b}"
    for b in (16, 32, 64):
        columns[f"f{b}"] = f"float{b}"
    assert {e.split(":")[0] for e in columns.values()} | {"pkl"} == get_mds_encodings(), "an encoding is missing"

    def all_types(i):
        """(what is written, what is expected)"""
        jpegs = [picture(400 + i + k, 2) for k in range(1 + i % 2)]
        imgs = [opened(j, "jpg") for j in jpegs]
        gray = Image.open(io.BytesIO(picture(i, 3, "PNG")))
        rgb = Image.open(io.BytesIO(picture(i, 2, "PNG", "RGB")))
        shape = [(3,), (2, 2), (1, 2, 3), (260,)][i % 4] if i < 11 else (1,)
        values = rng.integers(0, 100, shape) if i % 4 != 3 else np.arange(shape[0]) % 9
        dyn = values.astype(dtypes[i % 11])
        i16 = (rng.integers(-30000, 30000, (i % 3 + 1, 2))).astype(np.int16)
        f32 = (rng.integers(-50, 50, (2, 3)) / 8).astype(np.float32)
        u8 = rng.integers(0, 256, 4).astype(np.uint8)
        obj = {"i": i, "list": [1, None, "ü"], "deep": {"x": i / 4}} if i % 3 else [i, "text", None]
        w = {"int": [i, -1, (1 << 63) - 1, -(1 << 63)][i % 4], "bytes": bytes(range(i)), "str": ["", "text", "Straße 猫 🐈"][i % 3],
             "json": obj, "str_int": (10 ** 25 + i) * (-1) ** i, "str_float": [i / 3, 1e300, -0.5][i % 3],
             "str_decimal": D(f"{i}.{'0123456789' * 3}"), "jpeg": imgs[0], "png": gray, "pil": gray, "pil_rgb": rgb, "list_jpeg": imgs if i % 5 else [],
             "list_png": [gray, rgb][:i % 3], "list_pil": [rgb, gray][:i % 3], "jpeg_array": jpegs, "jpegarray": jpegs[:1],
             "array": dyn, "array_i16": i16, "array_f32_2x3": f32, "array_u8_4": u8}
        x = {**w, "bytes": w["bytes"].hex(), "str_int": str(w["str_int"]), "str_float": str(w["str_float"]), "str_decimal": str(w["str_decimal"]),
             "jpeg": jpegs[0].hex(), "png": png(gray).hex(), "pil": pil_json(gray), "pil_rgb": pil_json(rgb),
             "list_jpeg": [j.hex() for j in jpegs] if i % 5 else [], "list_png": [png(p).hex() for p in w["list_png"]],
             "list_pil": [pil_json(p) for p in w["list_pil"]], "jpeg_array": [j.hex() for j in jpegs], "jpegarray": [jpegs[0].hex()],
             "array": array(dyn), "array_i16": array(i16), "array_f32_2x3": array(f32), "array_u8_4": array(u8)}
        for b in (8, 16, 32, 64):
            w[f"u{b}"], w[f"i{b}"] = big(i, b, 0), big(i, b, 1)
        x.update({k: w[k] for k in w if k not in x})
        for b in (16, 32, 64):
            w[f"f{b}"] = [i / 8, -0.5, 65504.0][i % 3]
            x[f"f{b}"] = w[f"f{b}"]
        return w, x

    def note(name, key, remark):
        index = json.load(open(f"{out}/{name}/index.json"))
        files.append({"folder": name, "rows": key, "writer": "mosaicml-streaming", "remark": remark, "shards": len(index["shards"]),
                      "samples_in_shards": [s["samples"] for s in index["shards"]], "compression": index["shards"][0]["compression"]})

    written = [all_types(i) for i in range(11)]
    rows["all"] = [dict(sorted(x.items())) for _, x in written]
    with MDSWriter(out=f"{out}/all", columns=columns, size_limit=None) as w:
        for row, _ in written:
            w.write(row)
    note("all", "all", "every encoding that is not pickled")

    small = [{"image": picture(500 + i), "label": i % 4, "text": f"picture {i}: " + "word " * (i % 5)} for i in range(12)]
    rows["small"] = [{**r, "image": r["image"].hex()} for r in small]
    cols = {"image": "bytes", "label": "int", "text": "str"}

    def write(name, part=small, **kw):
        with MDSWriter(out=f"{out}/{name}", columns=cols, **{"size_limit": 2200, **kw}) as w:
            for r in part:
                w.write(r)

    write("plain", hashes=["sha1", "xxh64"])
    note("plain", "small", "several shards, hashes")
    for name in ("zstd:7", "gz", "br", "snappy", "bz2"):
        folder = name.split(":")[0]
        write(folder, compression=name, hashes=["sha1"] if folder == "zstd" else None)
        note(folder, "small", "the shards are compressed whole; raw_data tells the size and name they have afterwards")
    for k in range(2):
        write(f"merged/{k}", small[6 * k:6 * k + 6], size_limit=None)
    merge_index(f"{out}/merged", keep_local=True)
    note("merged", "small", "merge_index: the shards lie in two folders below index.json, each with an index.json of its own")
    with MDSWriter(out=f"{out}/empty", columns=cols) as w:
        pass
    files.append({"folder": "empty", "rows": "none", "writer": "mosaicml-streaming", "remark": "no sample", "shards": 0})
    rows["none"] = []
    with MDSWriter(out=f"{out}/pickled", columns={"id": "int", "thing": "pkl"}, size_limit=None) as w:
        for i in range(3):
            w.write({"id": i, "thing": {"i": i}})
    refused.append({"folder": "pickled", "column": "thing", "what": "a pickled column", "fine_column": "id", "rows": [{"id": i} for i in range(3)]})

    # Read back by the reader of the same package.
    for f in files[:-1]:
        if f["rows"] == "small":
            copy = f"{tmp}/{f['folder']}"
            shutil.copytree(f"{out}/{f['folder']}", copy)
            got = [{"image": r["image"].hex(), "label": r["label"], "text": r["text"]} for r in StreamingDataset(local=copy, batch_size=1)]
            assert got == rows["small"], f["folder"]
    copy = f"{tmp}/all"
    shutil.copytree(f"{out}/all", copy)
    for got, want in zip(StreamingDataset(local=copy, batch_size=1), rows["all"], strict=True):
        for k in ("int", "str", "json", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"):
            assert got[k] == want[k], (k, got[k], want[k])
        for k in ("str_int", "str_float", "str_decimal"):
            assert str(got[k]) == want[k], k
        for k in ("array", "array_i16", "array_f32_2x3", "array_u8_4"):
            assert array(np.asarray(got[k])) == want[k], k
        assert got["bytes"].hex() == want["bytes"] and pil_json(got["pil"]) == want["pil"] and pil_json(got["pil_rgb"]) == want["pil_rgb"]
        assert [pil_json(p) for p in got["list_pil"]] == want["list_pil"] and len(got["list_jpeg"]) == len(want["list_jpeg"])
        assert png(got["png"]) == bytes.fromhex(want["png"]) and len(got["jpeg_array"]) == len(want["jpeg_array"])
    shutil.rmtree(tmp)
    save(out, version("mosaicml-streaming", "numpy", "pillow", "brotli", "zstd", "python-snappy"), rows, files,
         {"all": ["bytes", "jpeg", "png", "list_jpeg[]", "list_png[]", "jpeg_array[]", "jpegarray[]", "pil.pixels", "pil_rgb.pixels", "list_pil[].pixels"],
          "small": ["image"]}, refused, columns=columns)


# ---- JSON lines -----------------------------------------------------------------------------------------------------

def make_jsonl(out, a):
    import polars as pl
    rows, files, refused = {}, [], []
    table = [{"id": i, "text": ["plain", "Straße 猫 🐈", "line\nbreak, \"quotes\" and \\", "\u2028 \x1f", ""][i % 5], "tokens": list(range(i % 4)),
              "meta": {"score": i / 4, "tags": ["a", None], "deep": {"ok": i % 2 == 0}} if i % 3 else None} for i in range(9)]
    rows["table"] = table

    def write(name, text, remark, key="table", encoding="utf-8"):
        with open(f"{out}/{name}", "w", newline="", encoding=encoding) as f:
            f.write(text)
        files.append({"file": name, "rows": key, "writer": "Python json", "remark": remark})

    line = lambda r, **kw: json.dumps(r, **kw)
    write("lf.jsonl", "".join(line(r) + "\n" for r in table), "escaped to ASCII")
    write("crlf.jsonl", "".join(line(r, ensure_ascii=False) + "\r\n" for r in table), "CRLF, UTF-8")
    write("no_newline.jsonl", "\n".join(line(r, ensure_ascii=False) for r in table), "the last line has no newline")
    write("crlf_no_newline.jsonl", "\r\n".join(line(r, separators=(",", ":")) for r in table), "CRLF, the last line has no newline")
    write("blank_lines.jsonl", "\n\n" + "\n \t\n\r\n\n".join(line(r) for r in table) + "\n\n  ", "empty lines, and lines of spaces, everywhere")
    write("bom.jsonl", "".join(line(r) + "\n" for r in table), "a byte order mark first", encoding="utf-8-sig")
    write("spaces.jsonl", "".join("  " + line(r, sort_keys=True) + " \t\n" for r in table), "spaces around the object, keys sorted")
    write("empty.jsonl", "", "no byte", "none")
    write("only_blank.jsonl", "\n\r\n  \n", "no row", "none")
    rows["none"] = []
    rows["mixed"] = [{"id": 0}, {"id": 1, "extra": [1, [2, 3]]}, {"extra": {"x": 18446744073709551615}, "id": -9223372036854775808},
                     {"id": 1, "text": "x" * 1500}]
    write("mixed.jsonl", "".join(line(r) + "\n" for r in rows["mixed"]), "other keys in each row, large numbers, a long line", "mixed")
    frame = pl.DataFrame([{**r, "meta": r["meta"]} for r in table])
    frame.write_ndjson(f"{out}/polars.jsonl")
    files.append({"file": "polars.jsonl", "rows": "polars", "writer": "polars", "remark": "write_ndjson"})
    rows["polars"] = [json.loads(x) for x in open(f"{out}/polars.jsonl", encoding="utf-8").read().split("\n") if x]
    assert [r["text"] for r in rows["polars"]] == [r["text"] for r in table]
    env = {**os.environ, "PYTHONPATH": a.hf_path}
    code = "import json, sys, pandas; pandas.DataFrame(json.load(sys.stdin)).to_json(sys.argv[1], orient='records', lines=True); print(pandas.__version__)"
    pandas = subprocess.run([sys.executable, "-c", code, f"{out}/pandas.jsonl"], env=env, input=json.dumps(table), text=True, check=True, capture_output=True).stdout.strip()
    assert [json.loads(x) for x in open(f"{out}/pandas.jsonl", encoding="utf-8").read().split("\n") if x] == table
    files.append({"file": "pandas.jsonl", "rows": "table", "writer": "pandas", "remark": "to_json(lines=True), also what `datasets` writes; slashes escaped"})
    with open(f"{out}/broken.jsonl", "w") as f:
        f.write(line(table[0]) + "\n" + line(table[1])[:-5] + "\n" + line(table[2]) + "\n")
    refused.append({"file": "broken.jsonl", "row": 1, "what": "the second line is cut off; the other two are good"})
    save(out, {**version("polars"), "pandas": pandas, "python": sys.version.split()[0]}, rows, files, {}, refused)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out")
    p.add_argument("--formats", default="parquet,tar,mds,jsonl")
    p.add_argument("--hf-path", default=f"{HERE}/hf", help="folder with `datasets` and its own huggingface_hub")
    p.add_argument("--old-path", default=f"{HERE}/old", help="folder with pyarrow 10.0.1 and a numpy below 2")
    p.add_argument("--wds2idx", default=f"{HERE}/src/wds2idx.py", help="NVIDIA's script")
    p.add_argument("--hub", help=argparse.SUPPRESS)
    a = p.parse_args()
    os.umask(0o022)
    if a.hub:
        return make_hub(a.hub)
    a.hf_path, a.old_path, a.out = (os.path.abspath(x) for x in (a.hf_path, a.old_path, a.out))
    for name in a.formats.split(","):
        folder = f"{a.out}/{name}"
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        globals()["make_" + name](folder, a)
        sizes = [os.path.getsize(os.path.join(r, n)) for r, _, ns in os.walk(folder) for n in ns]
        print(f"{name}: {len(sizes)} files, {sum(sizes):,} bytes", flush=True)


if __name__ == "__main__":
    main()
