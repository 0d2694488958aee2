"""Sounds: files as libsndfile writes them, and `.wav` files as other programs do, with what libsndfile reads."""
import io
import os
import struct

import numpy as np
import soundfile

PCM = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"]
FORMATS = {"WAV": PCM, "WAVEX": PCM, "RF64": PCM, "AIFF": ["PCM_S8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"],
           "FLAC": ["PCM_S8", "PCM_16", "PCM_24"], "OGG": ["VORBIS"], "MP3": ["MPEG_LAYER_III"]}
# The rates and channels of those that have not any, and how far off a sample may be where decoders round in other ways.
FEW = {"FLAC": ([8000, 16000, 44100, 96000], [1, 2, 6], 0), "OGG": ([8000, 22050, 44100, 48000], [1, 2], 1e-5),
       "MP3": ([8000, 16000, 22050, 44100, 48000], [1, 2], 1e-5)}
RATES = [8000, 11025, 16000, 22050, 44100, 48000, 96000, 1, 192000]
# The rest of the name of an encoding whose code is at its start: Microsoft's, and that of ambisonic sound.
SUBTYPES = [bytes.fromhex("000000001000800000aa00389b71"), bytes.fromhex("00002107d3118644c8c1ca000000")]
NEVER = 0xFFFFFFFF


def chunk(name, body):
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def format_chunk(code, bits, width, channels, rate, byte_rate, more=b""):
    return struct.pack("<HHIIHH", code, channels, rate, byte_rate, width * channels, bits) + more


def other_chunk(rng):
    """A chunk that is passed over, and whether libsndfile looks for names in it."""
    kind = rng.randrange(5)
    if kind == 0:
        return chunk(b"LIST", b"INFO" + chunk(b"ISFT", b"a program"[:rng.randrange(1, 10)])), False
    if kind == 1:
        return chunk(b"JUNK", rng.randbytes(rng.randrange(60))), False
    if kind == 2:
        return chunk(b"fact", struct.pack("<I", rng.randrange(100)) + bytes(rng.choice([0, 4, 8]))), False
    if kind == 3:
        return chunk(b"bext", rng.randbytes(602 + rng.randrange(30))), False
    return chunk(b"LIST", b"INFO" + chunk(b"data", b"zz") + chunk(b"fmt ", b"yy") + b"data"), True


def samples_of(rng, count, is_float, bits, width):
    if is_float:
        return np.array([rng.choice([rng.uniform(-1, 1), rng.uniform(-9, 9), 0.0, 1e-30]) for _ in range(count)], "<f4").tobytes()
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    values = [rng.choice([low, high, 0, -1, min(1, high), rng.randint(low, high)]) << (8 * width - bits) for _ in range(count)]
    if width == 1:
        return bytes(value + 128 for value in values)
    return b"".join((value & (1 << 8 * width) - 1).to_bytes(width, "little") for value in values)


def read(file):
    values, rate = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)
    return values.astype("<f4").tobytes(), values.shape[1], rate


def written(rng):
    """A file that libsndfile has written."""
    form = rng.choice(sorted(FORMATS))
    rates, channels, off = FEW.get(form, (RATES, [1, 1, 2, 3, 6], 0))
    frames = rng.randrange(1, 60_000) if form in FEW else rng.choice([0, 1, rng.randrange(500)])
    kind, file, channels = rng.choice(FORMATS[form]), io.BytesIO(), rng.choice(channels)
    values = np.random.default_rng(rng.randrange(1 << 32)).uniform(-0.5, 0.5, (frames, channels))
    soundfile.write(file, values, rng.choice(rates), format=form, subtype=kind)
    return file.getvalue(), None, f"libsndfile, {form} of {kind}", off


def by_hand(rng):
    """A file as other programs write it, and the same samples in the plainest form."""
    is_float, is_extensible, form = rng.random() < 0.2, rng.random() < 0.4, rng.choice([b"RIFF"] * 4 + [b"RF64"])
    width = 4 if is_float else rng.choice([1, 2, 3, 4])
    bits = 8 * width if is_float else rng.randint(max(1, 8 * width - 12 if width > 1 else 1), 8 * width)
    channels, rate, code = rng.choice([1, 1, 2, 4]), rng.choice(RATES), 3 if is_float else 1
    body = samples_of(rng, channels * rng.choice([0, 1, rng.randrange(200)]), is_float, bits, width)
    byte_rate = rng.choice([rate * width * channels, 0, 7])
    if is_extensible:
        more = struct.pack("<HHIH", 22, bits, rng.choice([0, 3, 4]), code) + rng.choice(SUBTYPES)
        cut = rng.choice([0, 2])
        more = struct.pack("<H", 22 + cut) + more[2:] + bytes(cut)
        told = format_chunk(0xFFFE, 8 * width, width, channels, rate, byte_rate, more)
    else:
        more = rng.choice([0, 2, 4, 24])
        told = format_chunk(code, bits, width, channels, rate, byte_rate, struct.pack("<H", more - 2) + bytes(more - 2) if more else b"")
    others = [other_chunk(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
    place = rng.randint(0, len(others))
    before = [part for part, _ in others]
    data = chunk(b"data", body + bytes(rng.randrange(width * channels) if rng.random() < 0.2 else 0))
    if form == b"RF64":
        before, place = [chunk(b"ds64", struct.pack("<QQQI", 0, len(body), 0, 0)), *before], place + 1
        data = b"data" + struct.pack("<I", NEVER) + body
    behind = chunk(b"LIST", b"INFO") if rng.random() < 0.3 and (form == b"RIFF" or len(body) % 2 == 0) else b""
    parts = [*before[:place], chunk(b"fmt ", told), *before[place:], data, behind]
    rest = b"WAVE" + b"".join(parts)
    file = form + struct.pack("<I", NEVER if form == b"RF64" else len(rest)) + rest
    plain = b"WAVE" + chunk(b"fmt ", format_chunk(code, 8 * width, width, channels, rate, rate * width * channels)) + chunk(b"data", body)
    plain = b"RIFF" + struct.pack("<I", len(plain)) + plain
    # libsndfile looks into the chunk with names, is lost behind odd chunks of RF64, and takes integers for as short as their bits where
    # the header is plain.
    is_known = (not any(confuses for _, confuses in others) and (form == b"RIFF" or not others)
                and (is_extensible or bits > 8 * width - 8))
    if is_known and read(file) != read(plain):
        raise SystemExit("libsndfile reads a file in another way than its plainest form")
    return file, plain, f"{bits} bits in {width} bytes, {form.decode()}, {'extensible' if is_extensible else 'plain'}, {len(told)} bytes of `fmt `", 0


def sound(rng, place):
    file, plain, how, off = (written if rng.random() < 0.3 else by_hand)(rng)
    right, channels, rate = read(plain or file)
    paths = [os.path.join(place, name) for name in ("sound", "right.f32")]
    for path, content in zip(paths, (file, right)):
        with open(path, "wb") as out:
            out.write(content)
    return {"reader": "sound", "paths": paths[:1], "right": paths[1], "channels": channels, "rate": rate, "limit": [0, off], "how": how}
