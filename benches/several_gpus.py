#!/usr/bin/env python3
"""All that several GPUs of a host have to show, in one call. It needs no Rust: the programs were built before.

    cargo build --release --package burn-pinned-tools --features cuda,turbo,train --bin image_bench
    cargo bench --features cuda,turbo,parquet --bench devices --bench shards --bench data_parallel --no-run
    cargo test --release --features cuda,turbo --test gpu --no-run    # prints the path of the tests
    python3 benches/several_gpus.py --out gpus.jsonl --tests target/release/deps/gpu-HASH target/release

What can be compared is run on 1, 2, 4 .. GPUs, up to all of the host, in turn. --parts chooses among
    tests    the GPU tests of several devices
    ram      the bench `devices`: samples from memory, the raw links, and what the workers fill without a copy
    tars     the bench `shards`: photographs in tars, decoded by the GPUs
    epochs   data_parallel: ten epochs, five times
    steps    data_parallel: a step with the loader and with a batch that stays on the device
    speed    data_parallel with 1 and 25 million parameters, steps of some 20 ms
    ddp      Burn's strategy ddp on all GPUs, plain and with each way around it (--ways): --starts each, with cold caches
    ddp-speed  ddp with a flush, a start on each number of GPUs
    multi    Burn's strategy multi, plain and with each way around it: as ddp

Each run is a line of JSON in --out, written as soon as it ends. A run that takes longer than its limit is ended, and its line says
so; of the first of each kind, --stacks FOLDER keeps the stacks of all threads (cuda-gdb). With --seconds, nothing begins that may
not end in time: what was left out has a line too. To go on in another call, name the parts and ways that are left.
"""

import argparse
import glob
import json
import os
import re
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from record import about

# name: (environment, flags, cubecl.toml). upstream/burn-ddp-circle.md says what each is for.
PLAIN, FLUSH = ["--flush-every", "0"], ["--flush-every", "2"]
WAYS = {
    "plain": ({}, PLAIN, ""),
    "flush": ({}, FLUSH, ""),
    "flush-host-decoder": ({}, [*FLUSH, "--decoder", "host"], ""),
}
# Collective operations are no part of `multi`. `no-nccl` finds no library: copies go through the host.
MULTI = ["plain", "flush", "no-nccl", "warm-caches"]


class Runs:
    def __init__(self, args):
        self.args = args
        self.ends = time.monotonic() + args.seconds
        self.out = open(args.out, "a")
        self.writes = threading.Lock()
        self.libraries = nccl()
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        self.gpus = len(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[:-1])
        self.about = {**about(args.commit), "gpus": self.gpus}
        self.counts = args.devices or [count for count in (1, 2, 4, 8, 16) if count <= self.gpus]
        self.stacked = set()

    def line(self, **fields):
        text = json.dumps({"date": time.strftime("%Y-%m-%d"), **self.about, **fields})
        with self.writes:
            print(text, flush=True)
            self.out.write(text + "\n")
            self.out.flush()

    def run(self, command, limit, folder=None, env=None, toml="", **fields):
        """Runs a program in a folder of its own, with caches there; returns its lines of JSON, or None if it failed."""
        if time.monotonic() + limit > self.ends:
            self.line(**fields, left_out=True)
            return None
        with tempfile.TemporaryDirectory() as fresh:
            folder = folder or fresh
            # CubeCL keeps its caches beside the outermost manifest.
            open(os.path.join(folder, "Cargo.toml"), "a").close()
            with open(os.path.join(folder, "cubecl.toml"), "w") as file:
                file.write(toml)
            homes = {key: folder for key in ["HOME", "XDG_CACHE_HOME", "CUDA_CACHE_PATH", "TMPDIR"]}
            paths = {"LD_LIBRARY_PATH": ":".join(filter(None, [self.libraries, os.environ.get("LD_LIBRARY_PATH")]))}
            whole = {**os.environ, **homes, **paths, **(env or {})}
            began = time.monotonic()
            with open(os.path.join(folder, "output"), "w+") as output:
                # A session of its own: whatever it starts ends with it.
                child = subprocess.Popen(
                    command, cwd=folder, env=whole, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
                )
                try:
                    code = child.wait(limit)
                except subprocess.TimeoutExpired:
                    code = None
                    self.stack(child.pid, fields)
                finally:
                    try:
                        os.killpg(child.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                    child.wait()
                output.seek(0)
                text = output.read()
        seen = [json.loads(line) for line in text.split("\n") if line.startswith('{"')]
        seconds = round(time.monotonic() - began, 1)
        fields["tuned"] = len(re.findall("Tuning", text))
        if outcomes := re.findall(r"^test (\S+) \.\.\. (\w+)$", text, re.MULTILINE):
            fields["tests"] = dict(outcomes)
        if losses := re.findall(r"epoch.*", text):
            fields["losses"] = losses
        if code != 0:
            fields["last_words"] = text[-600:]
        self.line(**fields, seconds=seconds, code=code, timed_out=code is None, epochs=seen)
        return seen if code == 0 else None

    def stack(self, pid, fields):
        kind = "-".join(str(fields[key]) for key in ["part", "way"] if key in fields)
        with self.writes:
            if not self.args.stacks or kind in self.stacked:
                return
            self.stacked.add(kind)
        os.makedirs(self.args.stacks, exist_ok=True)
        with open(os.path.join(self.args.stacks, kind + ".txt"), "w") as file:
            command = ["cuda-gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 40"]
            try:
                subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=60)
            except (OSError, subprocess.TimeoutExpired) as error:
                file.write(f"no stacks: {error}\n")


def nccl():
    """A folder with `libnccl.so`, the name that is looked for: Python's packages have only `libnccl.so.2`."""
    places = [*site.getsitepackages(), *sys.path]
    found = [path for place in places for path in glob.glob(os.path.join(place, "nvidia/nccl/lib/libnccl.so.2"))]
    if not found:
        return None
    folder = tempfile.mkdtemp()
    for name in ["libnccl.so", "libnccl.so.2"]:
        os.symlink(found[0], os.path.join(folder, name))
    return folder


def newest(folder, name):
    """The newest program of a bench: Cargo adds a hash to its name. It may be named without one, too."""
    places = [os.path.join(folder, name), *glob.glob(os.path.join(folder, "deps", name + "-*"))]
    found = [path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)]
    return max(found, key=os.path.getmtime, default=places[0])


def data_parallel(runs, limit, *options, **fields):
    command = [runs.args.data_parallel, *map(str, options)]
    return runs.run(command, limit, part=fields.pop("part"), options=list(options), **fields)


def tests(runs):
    if not runs.args.tests:
        return runs.line(part="tests", left_out=True)
    names = ["several_devices", "data_parallel::", "reuse::"]
    command = [os.path.abspath(runs.args.tests), "--ignored", "--test-threads", "1", "--show-output", *names]
    runs.run(command, 240, part="tests")


def in_turn(runs, number):
    """The numbers of GPUs, forwards in one round and backwards in the next."""
    return runs.counts if number % 2 else runs.counts[::-1]


def ram(runs):
    devices = ",".join(map(str, runs.counts))
    command = [newest(runs.args.programs, "devices"), "--devices", devices, "--rounds", runs.args.rounds, "--workers", 0, "--seconds", 4]
    command += ["--cases", "topology,links,ram,loaders", "--limit", 150, "--json"]
    runs.run([*map(str, command)], 220, part="ram")


def tars(runs):
    """Photographs in tars, decoded by the GPUs, with the shares of the time that their JPEG engines worked."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(runs.args.tars or os.path.join(made, "once"))
        if not folder.exists():
            from peer_shards import make

            make(folder, 30_000)
        # Each photograph four times, or an epoch on many GPUs is too short.
        files = sorted(folder.glob("train-*.tar"))
        for number, file in enumerate(files * 4):
            os.symlink(file.resolve(), os.path.join(made, f"{number:04d}.tar"))
        files = sorted(map(str, Path(made).glob("*.tar")))
        command = [newest(runs.args.programs, "shards"), "--decoder", "device", "--epochs", "4"]
        for number in range(runs.args.rounds):
            for devices in in_turn(runs, number):
                with engines() as busy:
                    options = ["--devices", str(devices)]
                    runs.run([*command, *options, *files], 90, part="tars", number=number, options=options, engines=busy)


@contextmanager
def engines():
    """A list that gets the busy shares, in percent, of the JPEG engines of those GPUs that decode, every half a second."""
    seen, query = [], ["nvidia-smi", "--query-gpu=utilization.jpeg", "--format=csv,noheader,nounits", "--loop-ms=500"]
    child = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def read():
        shares = (int(line) for line in child.stdout if line.strip().isdigit())
        seen.extend(share for share in shares if share > 0)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield seen
    finally:
        child.kill()
        reader.join()
        child.wait()


def epochs(runs):
    for number in range(5):
        data_parallel(runs, 60, "--epochs", 10, part="epochs", number=number)


def later(seen):
    """The median of the epochs after the first, which compiles."""
    times = sorted(epoch["step_ms"] for epoch in seen[1:])
    return times[len(times) // 2]


# The width of the model and the pictures of a batch of one GPU.
MODELS = [(700, 8192), (4600, 1024)]


def passes_for(runs, model, target, folder, part):
    """How often the middle layer is used in a step that takes one GPU about `target` milliseconds."""
    if runs.args.passes:
        return int(runs.args.passes.split(",")[MODELS.index(model)])
    passes = 8
    for _ in range(2):
        options = [*case(1, model, passes), "--resident"]
        seen = data_parallel(runs, 90, *options, part=part, calibrates=True, folder=folder)
        if not seen:
            return None
        passes = max(1, round(passes * target / later(seen)))
    return passes


def case(devices, model, passes):
    width, batch = model
    shape = ["--width", width, "--passes", passes, "--batch-size", batch]
    return ["--devices", devices, *shape, "--pictures", devices * batch * 40, "--epochs", 4]


def steps(runs):
    model = MODELS[0]
    with tempfile.TemporaryDirectory() as folder:
        passes = passes_for(runs, model, 20, folder, "steps")
        for number in range(runs.args.rounds if passes else 0):
            for feed in [[], ["--resident"]] if number % 2 else [["--resident"], []]:
                options = [*case(2, model, passes), *feed]
                data_parallel(runs, 90, *options, part="steps", number=number, folder=folder)


def speed(runs):
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            passes = passes_for(runs, model, 20, folder, "speed")
            for number in range(runs.args.rounds if passes else 0):
                for devices in in_turn(runs, number):
                    options = case(devices, model, passes)
                    data_parallel(runs, 90, *options, part="speed", number=number, folder=folder)


def burns(runs, strategy, ways):
    """Starts Burn's strategy again and again on all GPUs."""
    with drawn(runs, strategy) as images, tempfile.TemporaryDirectory() as warm:
        if not images:
            return
        command = [*images, "--epochs", str(runs.args.epochs), "--devices", str(runs.gpus), "--strategy", strategy]

        def start(number, way):
            env, flags, toml = WAYS.get(way, ({}, PLAIN, ""))
            if way == "no-nccl":
                env = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
            folder = warm if way == "warm-caches" else None
            whole = [*command, *flags, "--loader", runs.args.loader]
            runs.run(whole, runs.args.limit, folder, env, toml, part=strategy, way=way, number=number)

        with ThreadPoolExecutor(runs.args.at_once) as pool:
            starts = [pool.submit(start, number, way) for number in range(runs.args.starts) for way in ways]
            for done in starts:
                done.result()


def ddp_speed(runs):
    """What an epoch takes: on one GPU without a strategy."""
    with drawn(runs, "ddp-speed") as images, tempfile.TemporaryDirectory() as warm:
        for devices in runs.counts if images else []:
            command = [*images, "--epochs", "5", "--devices", str(devices), *FLUSH]
            runs.run(command, runs.args.limit, warm, part="ddp-speed", devices=devices)


@contextmanager
def drawn(runs, part):
    """The start of a command: the program and pictures that it has drawn on one GPU, once for all starts."""
    program = runs.args.image_bench
    with tempfile.TemporaryDirectory() as folder:
        images = [os.path.abspath(runs.args.pictures)] if runs.args.pictures else []
        if not images:
            command = [program, "--per-class", str(runs.args.per_class), "--epochs", "1"]
            runs.run(command, 150, folder=folder, part=part, way="one GPU draws")
            images = glob.glob(os.path.join(folder, "burn-pinned-shapes-*"))
        yield [program, "--data", images[0]] if images else []


def main():
    parts = ["tests", "ram", "tars", "epochs", "steps", "speed", "ddp", "ddp-speed", "multi"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", help="the folder of the programs: target/release")
    parser.add_argument("--tests", help="the program of the GPU tests")
    parser.add_argument("--out", default="gpus.jsonl")
    parser.add_argument("--parts", default=",".join(parts))
    parser.add_argument("--rounds", type=int, default=3, help="of ram, tars, steps and speed")
    parser.add_argument("--devices", type=lambda text: [int(count) for count in text.split(",")], help="numbers of GPUs, as in 1,4")
    parser.add_argument("--commit", help="of the programs; by default that of this folder")
    parser.add_argument("--tars", help="a folder of tars for tars; by default 30,000 photographs are made")
    parser.add_argument("--passes", help="of the models of 1 and 25 million parameters, as in 28,8; by default measured")
    parser.add_argument("--ways", help="of ddp and multi; by default all of each")
    parser.add_argument("--starts", type=int, default=20, help="of each way")
    parser.add_argument("--at-once", type=int, default=1, help="starts of ddp or multi that run beside each other")
    parser.add_argument("--epochs", type=int, default=1, help="of ddp and multi")
    parser.add_argument("--limit", type=float, default=120, help="seconds of one start of ddp or multi")
    parser.add_argument("--pictures", help="a folder of pictures for ddp and multi; by default one GPU draws them")
    parser.add_argument("--per-class", type=int, default=300, help="pictures of each of the eight classes to draw")
    parser.add_argument("--loader", default="pinned", choices=["pinned", "burn"], help="of ddp and multi")
    parser.add_argument("--seconds", type=float, default=1e9, help="of the whole call")
    parser.add_argument("--stacks", help="a folder for the stacks of runs that hang")
    args = parser.parse_args()
    args.data_parallel = os.path.abspath(newest(args.programs, "data_parallel"))
    args.image_bench = os.path.abspath(os.path.join(args.programs, "image_bench"))
    runs = Runs(args)
    ways = args.ways.split(",") if args.ways else None
    do = {
        "tests": tests,
        "ram": ram,
        "tars": tars,
        "epochs": epochs,
        "steps": steps,
        "speed": speed,
        "ddp": lambda runs: burns(runs, "ddp", ways or list(WAYS)),
        "ddp-speed": ddp_speed,
        "multi": lambda runs: burns(runs, "multi", ways or MULTI),
    }
    if args.at_once > 1 and "warm-caches" in (ways or (MULTI if "multi" in args.parts.split(",") else [])):
        parser.error("starts with warm caches share a folder: name the other `--ways`, or leave out `--at-once`")
    unknown = [part for part in args.parts.split(",") if part not in do]
    unknown += [way for way in ways or [] if way not in [*WAYS, *MULTI]]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Parts: {', '.join(do)}. Ways: {', '.join(dict.fromkeys([*WAYS, *MULTI]))}")
    for part in args.parts.split(","):
        do[part](runs)


if __name__ == "__main__":
    main()
