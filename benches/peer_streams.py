#!/usr/bin/env python3
"""Tars through pipes by webdataset, in PyTorch's DataLoader: a JSON line for the second epoch.

    python3 benches/peer_streams.py FOLDER [bytes or decoded] [workers]

Every `.tar` or `.tar.gz` of FOLDER has samples of `jpg` and `cls`. Each is read through a pipe of its own, `pipe:cat ..`, one at a time by
each worker. Shards are shuffled, and samples by a buffer of 1,000. Workers live through both epochs. Needs torch, torchvision, webdataset.

  bytes     the files of 64 samples end to end in one u8 tensor, their offsets, and the labels
  decoded   64 images, resized to 64 x 64 by torchvision: u8 [64, 3, 64, 64], and the labels

`cargo bench --bench streams -- tars FOLDER ..` does the same by burn-pinned. `mean` is that of all bytes of the first epoch: where both
say the same, they have done the same work."""

import json
import shlex
import sys
import time
from pathlib import Path

import torch
import webdataset
from torch.utils.data import DataLoader
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms.v2.functional import resize

BATCH, SIDE, BUFFER = 64, 64, 1000


def end_to_end(rows):
    files, labels = zip(*rows)
    offsets = torch.tensor([0, *map(len, files)]).cumsum(0)
    return torch.frombuffer(bytearray().join(files), dtype=torch.uint8), torch.tensor(labels), offsets


def image(file):
    pixels = decode_jpeg(torch.frombuffer(bytearray(file), dtype=torch.uint8), ImageReadMode.RGB)
    return resize(pixels, [SIDE, SIDE], antialias=True)


def decoded(rows):
    return torch.stack([image(file) for file, _ in rows]), torch.tensor([label for _, label in rows])


def main():
    arg = lambda at, usual: type(usual)(sys.argv[at]) if len(sys.argv) > at else usual
    folder, work, workers = Path(arg(1, ".")), arg(2, "bytes"), arg(3, 2)
    urls = [f"pipe:cat {shlex.quote(str(path))}" for path in sorted(folder.iterdir()) if ".tar" in path.suffixes]
    rows = webdataset.WebDataset(urls, shardshuffle=len(urls), empty_check=False).shuffle(BUFFER)
    rows = rows.map(lambda row: (row["jpg"], int(row["cls"])))
    rows = rows.batched(BATCH, collation_fn={"bytes": end_to_end, "decoded": decoded}[work])
    loader = DataLoader(rows, batch_size=None, num_workers=workers, persistent_workers=workers > 0)

    total = numbers = 0
    for values, *_ in loader:
        total, numbers = total + int(values.sum(dtype=torch.int64)), numbers + values.numel()
    begun, samples = time.perf_counter(), 0
    for _, labels, *_ in loader:
        samples += len(labels)
    per_s = samples / (time.perf_counter() - begun)
    line = {"case": "tars", "loader": "webdataset", "work": work, "workers": workers, "samples": samples}
    print(json.dumps(line | {"mean": round(total / numbers, 3), "per_s": round(per_s)}), flush=True)


main()
