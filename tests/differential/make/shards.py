"""MDS by mosaicml-streaming. Its package imports torch, which writing does not need."""
import decimal
import importlib.util
import io
import os
import sys
import types

import numpy as np
from PIL import Image

from exact import column, double, integer, single, text


class Stub(types.ModuleType):
    """A module with any name in it, none of which is used."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def mds_writer():
    """Imports the writer without the packages around it."""
    place = importlib.util.find_spec("streaming").submodule_search_locations[0]
    for name, path in (("streaming", place), ("streaming.base", os.path.join(place, "base"))):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [path]
    for name in ("torch", "torch.distributed", "torch.utils", "torch.utils.data"):
        sys.modules.setdefault(name, Stub(name))
    from streaming.base.format.mds.writer import MDSWriter
    return MDSWriter


MDSWriter = mds_writer()
NUMBERS = ["uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32", "uint64", "int64", "float64"]


def number(rng, dtype):
    """A numpy number of any bits."""
    return np.frombuffer(rng.randbytes(8), np.dtype(dtype))[0]


def array(rng, dtype, shape):
    return np.array([number(rng, dtype) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)


def plain(value):
    """A number of numpy's as `exact` takes it."""
    return float(value) if isinstance(value, np.float64) else value


def picture(rng, mode):
    side = rng.randrange(1, 9)
    size = len(Image.new(mode, (1, 1)).tobytes()) * side * 3 if mode != "1" else (side + 7) // 8 * 3
    return Image.frombytes(mode, (side, 3), rng.randbytes(size))


def as_file(image, kind):
    to = io.BytesIO()
    image.save(to, kind)
    return to.getvalue()


def pil(image):
    return {"width": image.width, "height": image.height, "mode": image.mode, "data": image.tobytes()}


def encodings(rng):
    """An encoding, what makes a value, what is read of it, and what it is read as."""
    same = lambda value: value
    dtype = rng.choice(NUMBERS)
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 4)))
    free = lambda: tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))) if rng.random() < 0.9 else (300,)
    shaped = lambda value: {"shape": list(value.shape), "data": [plain(v) for v in value.reshape(-1)]}
    jpeg = lambda: as_file(picture(rng, rng.choice(["RGB", "L"])), "JPEG")
    png = lambda: as_file(picture(rng, rng.choice(["RGB", "L", "RGBA"])), "PNG")
    modes = ["L", "RGB", "RGBA", "1", "I", "F"]
    floats = rng.choice([double, lambda rng: rng.randrange(-999, 999) / 8])
    dims = ",".join(map(str, shape))
    return rng.choice([
        ("int", lambda: integer(rng, -(1 << 63), (1 << 63) - 1), same, "any"),
        (dtype, lambda: number(rng, dtype), plain, "any"),
        ("bytes", lambda: rng.randbytes(rng.choice([0, 1, 3000])), same, "any"),
        ("str", lambda: text(rng), same, "any"),
        ("str_int", lambda: integer(rng, -(1 << 63), (1 << 64) - 1), same, "any"),
        ("str_float", lambda: double(rng), float, "any"),
        ("str_decimal", lambda: decimal.Decimal(rng.randrange(10**30)).scaleb(-9), str, "text"),
        ("json", lambda: {"a": [floats(rng), text(rng), None], "b": integer(rng, -5, 1 << 63)}, same, "any"),
        ("ndarray", lambda: array(rng, rng.choice(NUMBERS), free()), shaped, "array"),
        (f"ndarray:{dtype}", lambda: array(rng, dtype, free()), shaped, "array"),
        (f"ndarray:{dtype}:{dims}", lambda: array(rng, dtype, shape), shaped, "array"),
        ("jpeg", jpeg, same, "any"),
        ("png", png, same, "any"),
        ("pil", lambda: picture(rng, rng.choice(modes)), pil, "any"),
        ("list[pil]", lambda: [picture(rng, rng.choice(modes)) for _ in range(rng.randrange(3))], lambda v: [pil(i) for i in v], "any"),
        ("list[png]", lambda: [Image.open(io.BytesIO(png())) for _ in range(rng.randrange(3))], lambda v: [as_file(i, "PNG") for i in v], "any"),
        ("jpeg_array", lambda: [jpeg() for _ in range(rng.randrange(1, 4))], same, "any"),
    ])


def mds_set(rng, place):
    chosen = {f"c{n}": encodings(rng) for n in range(rng.randrange(1, 7))}
    rows = [{name: make() for name, (_, make, _, _) in chosen.items()} for _ in range(rng.choice([1, 4, 60]))]
    levels = {"br": 11, "bz2": 9, "gz": 9, "zstd": 22}
    codec = rng.choice([None, None, "br", "bz2", "gz", "snappy", "zstd"])
    if codec in levels and rng.random() < 0.5:
        codec += f":{rng.randint(1, levels[codec])}"
    how = {"compression": codec, "hashes": rng.choice([None, ["sha1"], ["sha1", "xxh64"]]), "size_limit": rng.choice([20_000, 1 << 20, None])}
    out = os.path.join(place, "mds")
    with MDSWriter(columns={name: encoding for name, (encoding, *_) in chosen.items()}, out=out, **how) as writer:
        for row in rows:
            writer.write(row)
    columns = [column(name, [tell(row[name]) for row in rows], as_) for name, (_, _, tell, as_) in chosen.items()]
    types_ = {name: encoding for name, (encoding, *_) in chosen.items()}
    return {"reader": "mds", "paths": [out], "how": f"{types_}; {how}", "columns": columns}
