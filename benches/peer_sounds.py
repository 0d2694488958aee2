#!/usr/bin/env python3
"""PyTorch's DataLoader on the files of `cargo bench --bench sounds`: a JSON object a line.

    python3 benches/peer_sounds.py DIR [seconds, 5 by default] [rounds, 5 by default] [workers, 2 by default] [torchaudio | soundfile]

The bench has made the files. `torchaudio.load` reads them by torchcodec and FFmpeg since 2.9; `soundfile` by libsndfile, as torchaudio did
before."""

import json
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


def by_torchaudio(path, frames, start):
    import torchaudio

    return torchaudio.load(path, start, frames)[0][0]


def by_soundfile(path, frames, start):
    import soundfile

    return torch.from_numpy(soundfile.read(path, frames, start, dtype="float32")[0])


class Files(Dataset):
    def __init__(self, paths, read, start, frames):
        self.paths, self.read, self.start, self.frames = paths, read, start, frames

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        return self.read(self.paths[index % len(self.paths)], self.frames, self.start)


def main():
    seconds, rounds, workers = (int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((2, 5), (3, 5), (4, 2)))
    reader = sys.argv[5] if len(sys.argv) > 5 else "torchaudio"
    read = {"torchaudio": by_torchaudio, "soundfile": by_soundfile}[reader]
    paths = sorted(map(str, Path(sys.argv[1]).glob("*.flac")))
    for number in range(rounds):
        for case, start, frames in (("whole", 0, 160_000), ("second", 72_000, 16_000)):
            batches = iter(DataLoader(Files(paths, read, start, frames), 32, shuffle=True, num_workers=workers))
            for _ in range(8):
                next(batches)
            begun, done = time.perf_counter(), 0
            while time.perf_counter() - begun < seconds:
                done += len(next(batches))
            rate = round(done / (time.perf_counter() - begun))
            del batches
            print(json.dumps({"bench": "sounds", "case": f"{reader}-{case}", "workers": workers, "round": number,
                              "items_per_s": rate}), flush=True)


main()
