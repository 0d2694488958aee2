#!/usr/bin/env python3
"""torchvision's transforms.v2 in PyTorch's DataLoader, on the files of `cargo bench --bench masks`: a JSON object a line.

    python3 benches/peer_masks.py DIR [seconds, 5 by default] [rounds, 5 by default] [workers, 2 by default]

The bench has drawn the files. Two ways: `pil` (Pillow decodes, as most reference scripts do) and `tvio` (decode_jpeg, decode_png).
Crop, flip and batch are those of the bench: RandomResizedCrop(224) and a flip, 32 images of bytes with their masks."""

import json
import os
import sys
import time
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import io, tv_tensors
from torchvision.transforms import v2


class Files(Dataset):
    def __init__(self, paths, way):
        self.paths, self.way = paths, way
        self.change = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        path = self.paths[index % len(self.paths)]
        if self.way == "pil":
            image = Image.open(path).convert("RGB")
            mask = v2.functional.pil_to_tensor(Image.open(path.with_suffix(".png")))
        else:
            image = tv_tensors.Image(io.read_image(str(path), io.ImageReadMode.RGB))
            mask = io.read_image(str(path.with_suffix(".png")), io.ImageReadMode.UNCHANGED)
        return self.change(image, tv_tensors.Mask(mask))


def main():
    folder = sys.argv[1]
    seconds, rounds, workers = (int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((2, 5), (3, 5), (4, 2)))
    found = (Path(at) / name for at, _, names in os.walk(folder) for name in names if name.endswith(".jpg"))
    paths = sorted(path for path in found if path.stat().st_size < 1 << 20)
    for number in range(rounds):
        for way in ("pil", "tvio"):
            loader = DataLoader(Files(paths, way), 32, shuffle=True, num_workers=workers)
            batches = iter(loader)
            for _ in range(8):
                next(batches)
            begun, done = time.perf_counter(), 0
            while time.perf_counter() - begun < seconds:
                done += len(next(batches)[0])
            rate = round(done / (time.perf_counter() - begun))
            del batches
            print(json.dumps({"bench": "masks", "case": f"torchvision-{way}", "files": len(paths), "workers": workers,
                              "round": number, "items_per_s": rate}), flush=True)


main()
