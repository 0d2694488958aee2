"""Values in an exact form for the manifest.

null, true, false; `i` and decimal digits; `f` and the bits of an f32 in hexadecimal digits; `d` and those of an f64; `t` and
text; `b` and bytes in hexadecimal digits; lists and objects as they are.
"""
import struct

import numpy as np


def exact(value):
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        return f"i{int(value)}"
    if isinstance(value, (np.float16, np.float32)):
        return "f" + struct.pack(">f", np.float32(value)).hex()
    if isinstance(value, float):
        return "d" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return "t" + value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "b" + bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return [exact(v) for v in value]
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    raise TypeError(type(value))


def column(name, values, how="any"):
    """A column of a data set. `how` says what it is read as: any, array (with its shape), text, bytes."""
    return {"name": name, "as": how, "values": [exact(v) for v in values]}


WORDS = ["", "a", "the cat", "Straße", "猫が座る", "🐈‍⬛", "x" * 70, "line\nbreak", 'quote"\\', "\x01\x7f", "tab\t", "é", "null", "0"]


def text(rng, most=3):
    if rng.random() < 0.1:
        return "".join(chr(rng.choice([rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x110000)])) for _ in range(rng.randrange(8)))
    return "".join(rng.choice(WORDS) for _ in range(rng.randrange(most)))


def double(rng):
    """Any finite f64, often one at an edge."""
    if rng.random() < 0.3:
        return rng.choice([0.0, -0.0, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 1e22, 9007199254740993.0, 1e-7, 123456789.125])
    if rng.random() < 0.3:
        return rng.uniform(-1000, 1000)
    while True:
        value = struct.unpack("<d", rng.randbytes(8))[0]
        if value - value == 0:
            return value


def single(rng):
    """Any f32, also infinite ones and those that are no numbers."""
    if rng.random() < 0.4:
        return np.float32(rng.uniform(-1000, 1000))
    return np.frombuffer(rng.randbytes(4), np.float32)[0]


def integer(rng, low, high):
    return rng.choice([low, high, 0, rng.randint(low, high), rng.randint(max(low, -100), min(high, 100))])
