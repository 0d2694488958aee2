"""JSON lines by `json` and by pandas. What Python's `json` reads again is what is right."""
import json
import math
import os

import numpy as np
import pandas as pd

from exact import column, double, integer, text


def eighths(rng):
    """A float of few digits."""
    return rng.randrange(-10**9, 10**9) / 8


def value(rng, number=double, deep=2):
    choice = rng.randrange(8 if deep else 6)
    match choice:
        case 0:
            return None if rng.random() < 0.5 else rng.random() < 0.5
        case 1:
            return integer(rng, -(1 << 63), (1 << 64) - 1)
        case 2 | 3:
            return number(rng)
        case 4 | 5:
            return text(rng)
        case 6:
            return [value(rng, number, deep - 1) for _ in range(rng.randrange(5))]
        case _:
            return {text(rng): value(rng, number, deep - 1) for _ in range(rng.randrange(4))}


def written(rng, place, rows, how):
    """Writes lines as programs do, and tells what is in them."""
    texts = []
    for row in rows:
        if rng.random() < 0.1:
            texts.append(rng.choice(["", " ", "\t"]))  # a blank line is no row
        texts.append(json.dumps(row, **how))
    end = rng.choice(["\n", "\r\n"])
    whole = rng.choice(["", "", "\ufeff"]) + end.join(texts) + rng.choice(["", end, end * 2])
    path = os.path.join(place, "0.jsonl")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(whole)
    names = sorted({name for row in rows for name in row})
    columns = [column(name, [row.get(name) for row in rows]) for name in names]
    return {"reader": "jsonl", "paths": [path], "how": f"{how}, lines end with {end!r}", "columns": columns}


def rows_of(rng, make):
    names = [rng.choice(["id", "text", "a.b", "ü", "", "x y", "NaN"]) + str(n) for n in range(rng.randrange(1, 6))]
    rows = [{name: make(rng) for name in names if rng.random() < 0.9} for _ in range(rng.choice([1, 5, 100]))]
    return [{names[0]: make(rng), **rows[0]}, *rows[1:]]


def json_set(rng, place):
    how = {"ensure_ascii": rng.random() < 0.5, "separators": rng.choice([None, (",", ":"), (" , ", " : ")])}
    number = rng.choice([double, eighths])
    rows = rows_of(rng, lambda rng: value(rng, number))
    return written(rng, place, rows, how)


def nan_set(rng, place):
    """Python writes NaN, Infinity and -Infinity as words."""
    special = lambda rng: rng.choice([math.nan, math.inf, -math.inf, double(rng), [math.nan, 1.5]])
    return written(rng, place, rows_of(rng, special), {})


def pandas_set(rng, place):
    rows = rng.choice([1, 10, 200])
    kind = rng.choice([double, eighths])

    def number(rng):
        value = kind(rng)
        return value if abs(value) < 1e308 else 1.0  # pandas may round larger ones up to what is no f64
    frame = pd.DataFrame({
        "i": [integer(rng, -(1 << 63), (1 << 63) - 1) for _ in range(rows)],
        "f": [number(rng) for _ in range(rows)],
        "g": np.array([rng.uniform(-5, 5) for _ in range(rows)], np.float32),
        "s": [rng.choice([None, text(rng)]) for _ in range(rows)],
        "t": pd.to_datetime([rng.randrange(1 << 40) for _ in range(rows)], unit="ms"),
        "b": [rng.random() < 0.5 for _ in range(rows)],
        "o": [{"k": [1, number(rng)]} for _ in range(rows)],
    })
    frame = frame[rng.sample(list(frame.columns), rng.randrange(1, 7))]
    how = {"double_precision": rng.choice([10, 15]), "force_ascii": rng.random() < 0.5, "date_format": rng.choice(["epoch", "iso"])}
    path = os.path.join(place, "0.jsonl")
    frame.to_json(path, orient="records", lines=True, **how)
    with open(path, encoding="utf-8") as file:
        told = [json.loads(line) for line in file]
    columns = [column(name, [row[name] for row in told]) for name in frame.columns]
    return {"reader": "jsonl", "paths": [path], "how": f"pandas {how}", "columns": columns}
