#!/usr/bin/env python3
"""PyTorch's DataLoader on the files of `cargo bench --bench sounds`: a JSON object a line.

    python3 benches/peer_sounds.py DIR [seconds, 5 by default] [rounds, 5 by default] [workers, 2 by default]

The bench has made the files. libsndfile reads them, by soundfile: torchaudio.load needs torchcodec and FFmpeg since 2.9, and read FLAC
by libsndfile before."""

import json
import sys
import time
from pathlib import Path

import soundfile
import torch
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, paths, start, frames):
        self.paths, self.start, self.frames = paths, start, frames

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        path = self.paths[index % len(self.paths)]
        return torch.from_numpy(soundfile.read(path, self.frames, self.start, dtype="float32")[0])


def main():
    seconds, rounds, workers = (int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((2, 5), (3, 5), (4, 2)))
    paths = sorted(map(str, Path(sys.argv[1]).glob("*.flac")))
    for number in range(rounds):
        for case, start, frames in (("whole", 0, 160_000), ("second", 72_000, 16_000)):
            batches = iter(DataLoader(Files(paths, start, frames), 32, shuffle=True, num_workers=workers))
            for _ in range(8):
                next(batches)
            begun, done = time.perf_counter(), 0
            while time.perf_counter() - begun < seconds:
                done += len(next(batches))
            rate = round(done / (time.perf_counter() - begun))
            del batches
            print(json.dumps({"bench": "sounds", "case": f"soundfile-{case}", "workers": workers, "round": number,
                              "items_per_s": rate}), flush=True)


main()
