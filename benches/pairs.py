#!/usr/bin/env python3
"""Compares builds of the bench `loaders` whose difference is smaller than the noise of one run: short runs in turn, in random order.

    python3 benches/pairs.py --rounds 200 --steps 3000 --workers 2 NOW OTHER    # paths of two or more builds; the last is the measure

Each process has its memory in other places, which alone makes a difference of some percent: many short runs average over that, one
long run does not. Prints a JSON line for each build: the geometric mean of the ratios to the last one of the same round, and its standard error.
"""

import argparse
import datetime
import json
import math
import os
import random
import statistics
import subprocess


def run(build, args):
    options = ["--case", args.case, "--workers", str(args.workers), "--steps", str(args.steps)]
    options += ["--shuffle"] if args.shuffle else []
    command = [build, "--json", "--device", "cpu", "--loader", "pinned", "--rounds", "1", *options]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return json.loads(lines[-1])["items_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+")
    parser.add_argument("--case", default="small-u8-28")
    parser.add_argument("--shuffle", action="store_true", help="every sample once, in random order")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    if len(args.builds) < 2 or args.rounds < 2:
        parser.error("two builds and two rounds are the least; the same build twice shows the noise")
    rates = [[] for _ in args.builds]
    for _ in range(args.rounds):
        for place in random.sample(range(len(args.builds)), len(args.builds)):
            rates[place].append(run(args.builds[place], args))
    for build, ours in zip(args.builds[:-1], rates):
        # The mean of the ratios themselves would be above 1 for equal builds.
        logs = [math.log(one / other) for one, other in zip(ours, rates[-1])]
        line = {
            "date": datetime.date.today().isoformat(),
            "cpus": os.cpu_count(),
            "case": args.case,
            "workers": args.workers,
            "steps": args.steps,
            "rounds": args.rounds,
            "build": os.path.basename(build),
            "against": os.path.basename(args.builds[-1]),
            "items_per_s": round(statistics.mean(ours)),
            "ratio": round(math.exp(statistics.mean(logs)), 4),
            "standard_error": round(statistics.stdev(logs) / len(logs) ** 0.5, 4),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
