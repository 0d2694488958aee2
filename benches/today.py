#!/usr/bin/env python3
"""The figures of the README, in one run on one host: this crate, Burn's loader, PyTorch, webdataset, datasets, LitData and DALI in turn.

    cargo bench --features cuda,turbo,parquet --bench loaders --bench shards --no-run
    python3 benches/today.py PROGRAMS --host a --out today-a.jsonl            # a folder with loaders and shards
    python3 benches/report.py today-*.jsonl --readme                          # the table of the README, of all hosts

--parts chooses among
    ram, small, rows   samples from memory: 3 x 224 x 224 bytes, 28 x 28 bytes, 20 floats; each loader with many numbers of workers
    jpeg               JPEGs from memory: on the CPU by ours, by Burn's loader with our decoder and by PyTorch; on the GPU by ours
    shards             photographs in tars and Parquet, with random crops, decoded on the CPU, Parquet on the GPU too; made in --data
    dali               the tars decoded on the GPU: ours beside DALI, with its loads of the hardware decoder
    few                the same with 4 threads; only if asked for
    text               documents packed into rows of tokens, on the CPU; only if asked for, with the bench packing in PROGRAMS

A round runs all parts. Peers whose packages are not there fail, and their lines say so. Each line of JSON has the part, the round,
the host's label, its GPU and CPU, the commit and the versions. All programs get the 32 hardware queues of `prepare()`, unless
CUDA_DEVICE_MAX_CONNECTIONS is set. With --seconds, nothing runs longer than that. With 16 threads a round takes some seven minutes."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from record import about

HERE = Path(__file__).resolve().parent
THREADS = os.cpu_count() or 2
WORKERS = max(1, THREADS - 1)
SWEEP = [workers for workers in [0, 1, 2, 4, 8] if workers < WORKERS] + [WORKERS]
MANY = [8, WORKERS] if WORKERS > 8 else [WORKERS]
LOADS = [0.65, 0.8, 0.9, 1.0]


class Runs:
    def __init__(self, args):
        self.args, self.round, self.part, self.about = args, 0, None, about(args.commit, args.host)
        self.ends = time.monotonic() + args.seconds

    def line(self, **found):
        line = {"date": time.strftime("%Y-%m-%d"), "part": self.part, "round": self.round, **found, **self.about}
        print(json.dumps(line), flush=True)
        with open(self.args.out, "a") as out:
            out.write(json.dumps(line) + "\n")

    def run(self, *command, limit=150):
        """Runs a program, and keeps the lines of JSON that it prints, and how long it took."""
        begun, command = time.monotonic(), [*map(str, command)]
        # Without folders, and without the names of many shards.
        short = " ".join(Path(piece).name for piece in command if not Path(piece).name.startswith("train-"))
        limit = min(limit, self.ends - begun)
        if limit <= 0:
            return self.line(left_out=short)
        try:
            done = subprocess.run(command, capture_output=True, timeout=limit, check=False)
            said, failed = done.stdout, done.stderr.decode().strip()[-600:] if done.returncode != 0 else None
        except subprocess.TimeoutExpired as late:
            said, failed = late.stdout or b"", f"took longer than {limit:.0f} s"
        for line in said.decode().splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                self.line(**{key: value for key, value in json.loads(line).items() if key not in ("date", "round")})
        self.line(command=short, seconds=round(time.monotonic() - begun, 1), failed=failed)

    def loader(self, name, case, workers, steps, *options):
        """This crate's loader, `pinned`, or `burn`."""
        shared = ["--rounds", 1, "--json", "--no-fill", "--workers", ",".join(map(str, workers)), "--steps", steps, *options]
        self.run(self.args.programs / "loaders", "--case", case, "--loader", name, *shared)

    def torch(self, case, workers, *options):
        self.run(sys.executable, HERE / "peer_pytorch.py", "--cases", case, "--workers", ",".join(map(str, workers)), *options)

    def memory(self, case, torchs, ours, burns, steps):
        """Samples from memory. Where 0 workers are Burn's and PyTorch's loop itself, ours would choose a number."""
        self.loader("pinned", case, SWEEP[1:], ours)
        self.loader("burn", case, SWEEP, burns)
        self.torch(torchs, SWEEP, "--steps", steps, "--fetch", "items,batch")

    def shards(self, end, workers, decoder, epochs):
        files = sorted(self.args.shards.glob(f"train-*.{end}"))
        self.run(self.args.programs / "shards", "--workers", workers, "--decoder", decoder, "--epochs", epochs, *files)

    def peer(self, name, workers, epochs):
        self.run(sys.executable, HERE / "peer_shards.py", self.args.shards, name, "--workers", workers, "--epochs", epochs)


def ram(runs):
    runs.memory("ram-u8-224", "ram-alone", 400, 100, 100)


def small(runs):
    runs.memory("small-u8-28", "small", 4000, 600, 400)


def rows(runs):
    runs.memory("rows-f32-20", "rows", 8000, 8000, 1000)


def jpeg(runs):
    data = ["--data", runs.args.data / "jpegs"]
    for name in ["pinned", "burn"]:
        runs.loader(name, "jpeg", MANY, 60, "--decoder", "host", *data)
    runs.loader("pinned", "jpeg", MANY, 120, "--decoder", "device", *data)
    runs.torch("jpeg-pil,jpeg-tvio", MANY, "--jpeg-steps", 60, *data)


def shards(runs):
    runs.shards("tar", WORKERS, "host", 3)
    runs.peer("webdataset", WORKERS, 2)
    runs.shards("parquet", WORKERS, "host", 3)
    runs.peer("datasets", WORKERS, 2)
    runs.shards("parquet", WORKERS, "device", 4)
    runs.peer("litdata", WORKERS, 2)


def dali(runs, workers=WORKERS):
    runs.shards("tar", workers, "device", 4)
    for load in LOADS:
        runs.peer(f"dali-{load}", workers, 3)


def few(runs):
    dali(runs, 4)


def text(runs):
    runs.run(runs.args.programs / "packing", 5_000_000, 1, 2)
    runs.run(sys.executable, HERE / "peer_packing.py", 20_000, 1, "grain,wrapped", limit=300)


PARTS = {part.__name__: part for part in [ram, small, rows, jpeg, shards, dali, few, text]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, help="the folder of the benches")
    parser.add_argument("--data", type=Path, default=Path("today-data"), help="a folder; what is not in it is made")
    parser.add_argument("--count", type=int, default=30_000, help="photographs to make")
    parser.add_argument("--out", default="today.jsonl")
    parser.add_argument("--parts", default=",".join(part for part in PARTS if part not in ("few", "text")))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="of the whole call")
    parser.add_argument("--host", help="a short label of this host, such as a")
    parser.add_argument("--commit", help="what was built; by default that of the clone around this script")
    args = parser.parse_args()
    args.programs, args.shards = args.programs.resolve(), args.data / "shards"
    parts = args.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}. Parts: {', '.join(PARTS)}")
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    runs = Runs(args)
    if {"shards", "dali", "few"} & {*parts} and not args.shards.exists():
        runs.part = "make"
        runs.run(sys.executable, HERE / "peer_shards.py", "make", args.shards, args.count)
    for runs.round in range(args.rounds):
        for runs.part in parts:
            PARTS[runs.part](runs)


if __name__ == "__main__":
    main()
