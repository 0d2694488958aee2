#!/usr/bin/env python3
"""The figures of the README, in one run on one host: this crate, Burn's loader, PyTorch, webdataset, datasets, LitData and DALI in turn.

    cargo bench --features cuda,turbo,parquet,tokenizers --bench loaders --bench shards --bench packing --no-run
    python3 benches/today.py PROGRAMS --out today.jsonl                       # a folder with loaders, shards and packing
    python3 benches/report.py today.jsonl --short

--parts chooses among
    ram, small, rows   samples from memory: 3 x 224 x 224 bytes, 28 x 28 bytes, 20 floats
    jpeg               JPEGs from memory, decoded on the workers and on the device
    shards             photographs in tars and Parquet, with random crops; made in --data
    dali               the same from tars beside DALI, with 15 and with 4 threads
    text               documents packed into rows of tokens, on the CPU

Peers whose packages are not there are left out, and say so. Each line of JSON has the part and the round. With --seconds, nothing
begins later than that."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKERS = max(1, (os.cpu_count() or 2) - 1)


class Runs:
    def __init__(self, args):
        self.args, self.round, self.part = args, 0, None
        self.ends = time.monotonic() + args.seconds

    def line(self, **found):
        line = {"date": time.strftime("%Y-%m-%d"), "part": self.part, "round": self.round, **found}
        print(json.dumps(line), flush=True)
        with open(self.args.out, "a") as out:
            out.write(json.dumps(line) + "\n")

    def run(self, *command, limit=150):
        """Runs a program, and keeps the lines of JSON that it prints."""
        if time.monotonic() > self.ends:
            return self.line(left_out=" ".join(map(str, command)))
        try:
            done = subprocess.run([*map(str, command)], capture_output=True, timeout=limit, check=False)
            said, failed = done.stdout, done.stderr.decode().strip()[-600:] if done.returncode != 0 else None
        except subprocess.TimeoutExpired as late:
            said, failed = late.stdout or b"", f"took longer than {limit} s"
        for line in said.decode().splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                self.line(**{key: value for key, value in json.loads(line).items() if key not in ("date", "round")})
        if failed is not None:
            self.line(command=" ".join(map(str, command)), failed=failed)

    def loaders(self, case, workers, *options):
        """This crate's loader and Burn's."""
        shared = ["--rounds", 1, "--json", "--no-fill", "--workers", workers, *options]
        self.run(self.args.programs / "loaders", "--case", case, *shared)

    def torch(self, case, workers, *options):
        self.run(sys.executable, HERE / "peer_pytorch.py", "--cases", case, "--workers", workers, *options)

    def shards(self, end, *options):
        files = sorted(self.args.shards.glob(f"train-*.{end}"))
        self.run(self.args.programs / "shards", *options, *files)

    def peer(self, name, workers, *options):
        self.run(sys.executable, HERE / "peer_shards.py", self.args.shards, name, "--workers", workers, *options)


def ram(runs):
    runs.loaders("ram-u8-224", f"8,{WORKERS}")
    runs.torch("ram-alone", f"8,{WORKERS}")


def small(runs):
    runs.loaders("small-u8-28", f"4,8,{WORKERS}", "--steps", 400)
    runs.torch("small", f"8,{WORKERS}", "--steps", 400)


def rows(runs):
    runs.loaders("rows-f32-20", "2,4", "--steps", 2000)
    runs.torch("rows", "2,4", "--steps", 2000)


def jpeg(runs):
    data = ["--data", runs.args.data / "jpegs"]
    runs.loaders("jpeg", WORKERS, "--loader", "pinned,burn", "--decoder", "host", "--steps", 60, *data)
    runs.loaders("jpeg", f"4,{WORKERS}", "--loader", "pinned", "--decoder", "device", "--steps", 120, *data)
    runs.torch("jpeg", WORKERS, "--jpeg-steps", 40, *data)


def shards(runs):
    for end, decoder in [("tar", "auto"), ("parquet", "auto"), ("tar", "host")]:
        runs.shards(end, "--workers", WORKERS, "--decoder", decoder)
    for peer in ["webdataset", "datasets", "litdata"]:
        runs.peer(peer, WORKERS, "--epochs", 2)


def dali(runs):
    for workers in [WORKERS, 4]:
        runs.shards("tar", "--workers", workers, "--epochs", 5)
        for load in ["1.0", "0.65"]:
            runs.peer(f"dali-{load}", workers, "--epochs", 5)


def text(runs):
    runs.run(runs.args.programs / "packing", 5_000_000, 1, 2)
    runs.run(sys.executable, HERE / "peer_packing.py", 20_000, 1, "grain,wrapped", limit=300)


PARTS = {part.__name__: part for part in [ram, small, rows, jpeg, shards, dali, text]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, help="the folder of the benches")
    parser.add_argument("--data", type=Path, default=Path("today-data"), help="a folder; what is not in it is made")
    parser.add_argument("--count", type=int, default=30_000, help="photographs to make")
    parser.add_argument("--out", default="today.jsonl")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="of the whole call")
    args = parser.parse_args()
    args.programs, args.shards = args.programs.resolve(), args.data / "shards"
    parts = args.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}. Parts: {', '.join(PARTS)}")
    if {"shards", "dali"} & {*parts} and not args.shards.exists():
        subprocess.run([sys.executable, HERE / "peer_shards.py", "make", args.shards, str(args.count)], check=True)
    runs = Runs(args)
    for runs.part in parts:
        for runs.round in range(args.rounds):
            PARTS[runs.part](runs)


if __name__ == "__main__":
    main()
