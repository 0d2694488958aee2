"""Pictures by Pillow and cjpeg. What Pillow decodes, turned as EXIF says, is what is right."""
import io
import os
import random
import struct
import subprocess
import zlib

import numpy as np
from PIL import Image, ImageDraw, ImageOps, PngImagePlugin


def pixels(rng, width, height, channels):
    """Waves, an edge and a little noise: chroma changes fast enough to show how it is upsampled."""
    make = np.random.default_rng(rng.randrange(1 << 32))
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for _ in range(channels):
        wave = np.sin(x * make.uniform(0.02, 0.5) + y * make.uniform(0.02, 0.5) + make.uniform(0, 6))
        plane = 128 + make.uniform(20, 120) * wave + make.normal(0, rng.choice([0, 0, 8]), x.shape)
        if rng.random() < 0.3:
            plane = np.where(x * make.uniform(-1, 1) + y > make.uniform(0, height), plane, make.uniform(0, 255))
        planes.append(plane)
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def size(rng):
    return rng.choice([rng.randrange(1, 34), rng.randrange(1, 120)]), rng.choice([rng.randrange(1, 34), rng.randrange(1, 120)])


def image(rng, mode):
    width, height = size(rng)
    data = pixels(rng, width, height, {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode])
    return Image.fromarray(data[..., 0] if mode == "L" else data, mode)


def exif(rng, prefix=b"Exif\0\0"):
    """An EXIF block with an orientation, in one of both byte orders. None sometimes."""
    if rng.random() < 0.5:
        return None
    order, mark = rng.choice([("<", b"II*\0"), (">", b"MM\0*")])
    turn = rng.choice([*range(1, 9), *range(1, 9), 0, 9])
    short = struct.pack(order + "HHIHH", 0x0112, 3, 1, turn, 0)
    entries = [rng.choice([short, short, struct.pack(order + "HHII", 0x0112, 4, 1, turn)])]
    if rng.random() < 0.3:
        entries.insert(0, struct.pack(order + "HHII", 0x0100, 4, 1, 7))
    block = mark + struct.pack(order + "IH", 8, len(entries)) + b"".join(entries) + struct.pack(order + "I", 0)
    return prefix + block


def xmp(rng):
    """A block of XMP with an orientation. It counts where EXIF has none. None mostly."""
    if rng.random() < 0.8:
        return None
    turn = rng.randrange(1, 9)
    form = rng.choice(['<rdf:Description tiff:Orientation="%d"/>', "<rdf:Description><tiff:Orientation>%d</tiff:Orientation></rdf:Description>"]) % turn
    space = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"'
    return f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {space}>{form}</rdf:RDF></x:xmpmeta>'.encode()


def there(**options):
    return {name: value for name, value in options.items() if value}


def told(place, name, how, limit, right=None):
    """A picture of the manifest. `limit`: the largest difference and the mean one, per value."""
    path = os.path.join(place, name)
    if right is None:
        with Image.open(path) as file:
            file.load()
            right = np.asarray(ImageOps.exif_transpose(file).convert("RGB"))
    raw = os.path.join(place, "right.rgb")
    right.astype(np.uint8).tofile(raw)
    return {"reader": "picture", "paths": [path], "how": how, "right": raw, "width": right.shape[1], "height": right.shape[0], "limit": limit}


WHOLE = [3, 1.0]  # 2 levels of luma and of chroma
SUBSAMPLED = [24, 2.5]  # 12 levels of chroma
RESIZED = {"bicubic": [2, 1.0], "bilinear": [1, 1.0]}  # weights of 16 bits, not of 22; bilinear goes down first


def jpeg(rng, place):
    mode = rng.choice(["RGB", "RGB", "RGB", "L", "CMYK"])
    how = {"quality": rng.choice([5, 30, 75, 95, 100]), "progressive": rng.random() < 0.3, "optimize": rng.random() < 0.3}
    if mode == "RGB":
        how["subsampling"] = rng.choice(["4:4:4", "4:2:2", "4:2:0"])
        how["keep_rgb"] = how["subsampling"] == "4:4:4" and rng.random() < 0.2
    if rng.random() < 0.3:
        how[rng.choice(["restart_marker_blocks", "restart_marker_rows"])] = rng.randrange(1, 5)
    block, about = exif(rng), xmp(rng)
    picture = image(rng, mode)
    picture.save(os.path.join(place, "0.jpg"), **how, **there(exif=block, xmp=about))
    subsampled = how.get("subsampling", "4:4:4") != "4:4:4"
    return told(place, "0.jpg", f"Pillow {mode} {picture.size} {how}, exif {block}, xmp {about}", SUBSAMPLED if subsampled else WHOLE)


SCANS = [  # orders of components, and how a progressive file is cut
    ["0 1 2;"], ["0; 1; 2;"], ["0; 2; 1;"], ["0 1; 2;"], ["0; 1 2;"], ["1; 0; 2;"], ["2; 1; 0;"], ["1 2; 0;"], ["0 2; 1;"],
    ["0 1 2: 0-0, 0, 0;", "0: 1-63, 0, 0;", "2: 1-63, 0, 0;", "1: 1-63, 0, 0;"],
    ["0: 0-0, 0, 1;", "1: 0-0, 0, 1;", "2: 0-0, 0, 1;", "0: 1-5, 0, 2;", "1: 1-63, 0, 1;", "2: 1-63, 0, 1;", "0: 6-63, 0, 2;",
     "0: 1-63, 2, 1;", "0 1 2: 0-0, 1, 0;", "0: 1-63, 1, 0;", "1: 1-63, 1, 0;", "2: 1-63, 1, 0;"],
]
SAMPLES = ["1x1", "2x1", "1x2", "2x2", "4x1", "2x1,1x2,1x1", "2x2,2x1,2x1", "2x2,1x2,1x2", "1x1,2x2,2x2", "4x2", "2x1,2x1,2x1", "1x2,1x2,1x2"]


def cjpeg(rng, place):
    grey = rng.random() < 0.1
    picture = image(rng, "L" if grey else "RGB")
    source = os.path.join(place, "source.ppm")
    picture.save(source)
    sample = rng.choice(SAMPLES[:5] * 2 + SAMPLES)
    quality = rng.choice([10, 50, 75, 90, 100])
    how = ["-quality", str(quality), "-sample", sample]
    how += ["-optimize"] if rng.random() < 0.3 else []
    how += ["-restart", rng.choice(["1", "3", "1B", "7B"])] if rng.random() < 0.3 else []
    how += ["-dct", rng.choice(["int", "fast"])]
    kind = rng.random()
    if grey:
        how += ["-grayscale"] + (["-progressive"] if kind < 0.3 else [])
    elif kind < 0.2:
        how += ["-progressive"]
    elif kind < 0.7:
        script = os.path.join(place, "scans.txt")
        lines = rng.choice(SCANS)
        with open(script, "w") as file:
            file.write("\n".join(lines))
        how += ["-scans", script]
    elif kind < 0.75:
        how += ["-rgb"]
    path = os.path.join(place, "0.jpg")
    subprocess.run(["cjpeg", *how, "-outfile", path, source], check=True, stderr=subprocess.DEVNULL)
    text = " ".join(how) + (f" ({' '.join(lines)})" if "-scans" in how else "")
    whole = grey or sample in ("1x1", "2x1,2x1,2x1", "1x2,1x2,1x2")
    return told(place, "0.jpg", f"cjpeg {picture.size} {text}", WHOLE if whole else SUBSAMPLED)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rng, place):
    mode = rng.choice(["1", "L", "LA", "P", "P+t", "RGB", "RGBA", "I;16", "RGB+t"])
    block, how, right, limit = exif(rng, b""), {"compress_level": rng.randrange(10)}, None, [0, 0.0]
    if mode == "1":
        picture = image(rng, "L").convert("1")
    elif mode in ("P", "P+t"):
        picture = image(rng, "RGB").quantize(rng.choice([2, 4, 16, 200]))
        how["bits"] = 8 if rng.random() < 0.5 else None
        if mode == "P+t":
            how["transparency"] = rng.choice([0, bytes(range(0, 250, 5))[: len(picture.getpalette()) // 3]])
    elif mode == "I;16":
        wide = np.random.default_rng(rng.randrange(1 << 32)).integers(0, 1 << 16, size(rng)[::-1], np.uint16)
        picture, limit = Image.fromarray(wide), [0, 0.0]
        grey = ((wide.astype(np.uint32) + 128) // 257).astype(np.uint8)
        right = np.stack([grey] * 3, -1)
        block = None
    else:
        picture = image(rng, mode.split("+")[0])
        if mode == "RGB+t":
            how["transparency"] = (1, 2, 3)
    how = {name: value for name, value in how.items() if value is not None}
    late = block is not None and rng.random() < 0.3
    about, texts, path = xmp(rng) if right is None else None, PngImagePlugin.PngInfo(), os.path.join(place, "0.png")
    if about:
        texts.add_itxt("XML:com.adobe.xmp", about.decode(), zip=rng.random() < 0.5)
    raw = block and not late and rng.random() < 0.3
    if raw:  # as ImageMagick had it before there was `eXIf`
        hexadecimal = (b"Exif\0\0" + block).hex()
        texts.add_text("Raw profile type exif", f"\nexif\n{len(block) + 6:8}\n{hexadecimal}\n", zip=rng.random() < 0.7)
    picture.save(path, **how, pnginfo=texts, **there(exif=block if not late and not raw else None))
    if late:  # behind the pixels, as the format allows
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(data[:-12] + chunk(b"eXIf", block) + data[-12:])
    return told(place, "0.png", f"Pillow {mode} {picture.size} {how}, exif {block}{' behind IDAT' if late else ' raw' if raw else ''}, xmp {about}", limit, right)


def webp(rng, place):
    mode = rng.choice(["RGB", "RGBA", "L"])
    how = {"lossless": rng.random() < 0.4, "quality": rng.choice([1, 50, 80, 100]), "method": rng.randrange(7), "alpha_quality": rng.choice([10, 100]), "exact": rng.random() < 0.5}
    block = exif(rng, rng.choice([b"", b"Exif\0\0"]))
    picture = image(rng, mode)
    about = xmp(rng)
    extra = there(exif=block, xmp=about)
    if rng.random() < 0.15:
        extra.update(save_all=True, append_images=[picture.rotate(180)], duration=50)
    path = os.path.join(place, "0.webp")
    picture.save(path, **how, **extra)
    return told(place, "0.webp", f"Pillow {mode} {picture.size} {how}, {extra and sorted(extra)}, exif {block}, xmp {about}", [0, 0.0] if how["lossless"] else [3, 1.0])


def gif(rng, place):
    """A GIF. The first frame may be smaller than its screen: what is left has the background's colour."""
    picture = image(rng, "RGB").quantize(rng.choice([2, 5, 100]))
    how = {"interlace": rng.random() < 0.5, "optimize": rng.random() < 0.5}
    if rng.random() < 0.2:
        how["save_all"], how["append_images"] = True, [picture.transpose(Image.Transpose.ROTATE_180)]
    to = io.BytesIO()
    picture.save(to, "GIF", **how)
    data = bytearray(to.getvalue())
    path, right = os.path.join(place, "0.gif"), None
    if rng.random() < 0.4:
        with Image.open(io.BytesIO(bytes(data))) as file:
            inner = np.asarray(file.convert("RGB"))
        colours = 2 << (data[10] & 7)
        table = np.frombuffer(bytes(data[13 : 13 + 3 * colours]), np.uint8).reshape(-1, 3)
        width, height = inner.shape[1] + rng.randrange(1, 9), inner.shape[0] + rng.randrange(1, 9)
        left, top, background = rng.randrange(width - inner.shape[1] + 1), rng.randrange(height - inner.shape[0] + 1), rng.randrange(colours)
        at = 13 + 3 * colours
        while data[at] != 0x2C:  # extensions
            at += 2
            while data[at]:
                at += data[at] + 1
            at += 1
        data[6:10], data[11], data[at + 1 : at + 5] = struct.pack("<HH", width, height), background, struct.pack("<HH", left, top)
        right = np.empty((height, width, 3), np.uint8)
        right[:] = table[background]
        right[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
        how["screen"] = (width, height, left, top, background)
    with open(path, "wb") as file:
        file.write(data)
    return told(place, "0.gif", f"Pillow {picture.size} {how}", [0, 0.0], right)


def drawn(rng, width, height):
    """Lines and letters in full colours on white: a cubic filter goes beyond the range of bytes at their edges."""
    picture = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(picture)
    for _ in range(rng.randrange(1, 6)):
        place = [rng.randrange(-5, width + 5), rng.randrange(-5, height + 5)]
        colour = tuple(rng.choice([0, 255]) for _ in range(3))
        if rng.random() < 0.5:
            draw.text(place, "Wq8%", fill=colour)
        else:
            draw.line(place + [rng.randrange(width + 1), rng.randrange(height + 1)], fill=colour, width=rng.randrange(1, 4))
    return picture


def resize(rng, place):
    """A picture that Pillow resizes: up or down, also lines of pixels, and from or to fewer than 33."""
    side = lambda: rng.choice([1, rng.randrange(1, 9), rng.randrange(1, 34), rng.randrange(1, 200)])
    width, height = side(), side()
    by = rng.choice(["bicubic", "bicubic", "bilinear"])
    if rng.random() < 0.5:
        picture = drawn(rng, width, height)
    else:
        picture = Image.fromarray(pixels(rng, width, height, 3))
    # One side stays in some of them.
    to = rng.choice([(side(), side()), (side(), side()), (side(), side()), (width, side()), (side(), height)])
    path = os.path.join(place, "0.png")
    picture.save(path)
    how = Image.Resampling[by.upper()]
    right = np.asarray(picture.resize(to, how))
    return {**told(place, "0.png", f"{by} of {picture.size} to {to}", RESIZED[by], right), "resized": by}
