#!/usr/bin/env python3
"""From tar shards to accuracy: the tool image_bench beside the same recipe in PyTorch, in turn, on the same device.

    cargo build --release --package burn-pinned-tools --features cuda,turbo,train --bin image_bench
    python3 benches/accuracy.py target/release/image_bench --make 20000 --out accuracy.jsonl

The recipe: three blocks of convolution, normalisation and pooling, Adam at 3e-3 falling by a cosine, random crops of 60 to 100 %
at --side pixels, half of them mirrored. --make N first cuts N JPEGs of 500 x 375 out of the photographs that scikit-image and
scikit-learn bring; the class is the photograph. A tenth of them, in shards of their own, is for validation.

PyTorch has its DataLoader with as many workers, page-locked memory, `decode_jpeg` and torchvision's transforms v2 on the workers:
`torch` finds samples by their place in the tars, `webdataset` (if it is installed) reads the tars in order. --peers names others.
What comes after `--` is for image_bench.

Each run is a line of JSON: seconds of each epoch, the share of each that the loop waited for data (of Burn's own loader: of all
epochs), and the accuracy in validation. With --causes ours has a timeline, and of its last epochs the shares of the first wait, of
`finish`, which makes a batch's last tensors and may itself wait for the device, and of all other waits. It ends with 1 if ours waited
more than 2 % of an epoch after the first: in the first, kernels are tuned.
"""

import argparse
import io
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from contextlib import contextmanager
from multiprocessing import Pool
from pathlib import Path

from record import about

MOST_WAIT = 0.02
PHOTOGRAPHS = "astronaut chelsea coffee motorcycle_left motorcycle_right rocket retina hubble_deep_field".split()


def photographs():
    """The photographs of both packages, decoded once in each process."""
    if not hasattr(photographs, "all"):
        import skimage
        import sklearn.datasets
        from PIL import Image

        folders = [Path(skimage.__file__).parent / "data", Path(sklearn.datasets.__file__).parent / "images"]
        names = [f"{name}.{end}" for name in PHOTOGRAPHS for end in ("png", "jpg")] + ["china.jpg", "flower.jpg"]
        files = [folder / name for name in names for folder in folders if (folder / name).exists()]
        photographs.all = [Image.open(file).convert("RGB") for file in files]
    return photographs.all


def cut(number):
    """A JPEG and its class. The number alone says which."""
    from PIL import Image

    drawn, label = random.Random(number), number % len(photographs())
    photograph = photographs()[label]
    width = int(min(photograph.width, photograph.height * 4 / 3) * drawn.uniform(0.6, 1.0))
    height = width * 3 // 4
    left, top = drawn.randint(0, photograph.width - width), drawn.randint(0, photograph.height - height)
    part = photograph.crop((left, top, left + width, top + height)).resize((500, 375), Image.BICUBIC)
    file = io.BytesIO()
    part.save(file, "JPEG", quality=90, subsampling="4:2:0")
    return file.getvalue(), label


def write_tar(path, samples, first):
    """Writes pictures and labels as members `jpg` and `cls`, numbered from `first`; returns the lines of DALI's index."""
    lines = []
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number, (image, label) in enumerate(samples, first):
            line = []
            for end, data in (("jpg", image), ("cls", str(label).encode())):
                member = tarfile.TarInfo(f"{number:07d}.{end}")
                member.size = len(data)
                line.append(f"{end} {tar.offset + 512} {member.size} {member.name}")
                tar.addfile(member, io.BytesIO(data))
            lines.append(" ".join(line))
    return lines


@contextmanager
def whole(folder):
    """A folder to write to, which gets its name once all of it is there."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    part.rename(folder)


def make(folder, count):
    """Writes shards of a thousand: train-*.tar, and valid-*.tar with a tenth of the samples."""
    with Pool() as pool:
        samples = pool.map(cut, range(count), 64)
    with whole(folder) as folder:
        for split, part in (("valid", samples[: count // 10]), ("train", samples[count // 10 :])):
            for start in range(0, len(part), 1000):
                write_tar(folder / f"{split}-{start // 1000:05d}.tar", part[start : start + 1000], start)


def shards(folder, split):
    return sorted(str(file) for file in folder.glob(f"{split}-*.tar"))


def causes(trace):
    """Of each whole epoch of a trace: its first wait, the `finish` of later batches on the loop's thread, and what else these waited."""
    spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    loops = {span["tid"] for span in spans if span["cat"] == "step"}
    found = []
    for epoch in sorted({span["args"]["epoch"] for span in spans}):
        of = lambda kind: [span for span in spans if span["cat"] == kind and span["args"]["epoch"] == epoch]
        waits, finish = of("wait"), [span for span in of("finish") if span["tid"] in loops]
        first = sum(span["dur"] for span in waits if span["args"]["batch"] == 0)
        if first:  # else the timeline has forgotten the epoch's start
            total = sum(span["dur"] for span in waits + of("step"))
            finish = sum(span["dur"] for span in finish if span["args"]["batch"] > 0)
            rest = sum(span["dur"] for span in waits) - first - finish
            found.append({name: round(time / total, 4) for name, time in [("first", first), ("finish", finish), ("rest", rest)]})
    return found


def ours(args):
    """Runs image_bench; returns what its lines and its timeline say."""
    command = [args.image_bench, "--data", *shards(args.data, "train"), "--valid", *shards(args.data, "valid")]
    options = {"epochs": args.epochs, "batch-size": args.batch, "side": args.side, "workers": args.workers}
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    command += ["--augment", "none", "--decoder", args.decoder, *args.more]
    trace = Path(args.out).with_suffix(".trace.json")
    if args.causes:
        command += ["--timeline", str(trace)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    text = run.stdout
    count = int(re.search(r"(\d+) training", text)[1])
    rates = [int(rate) for rate in re.findall(r"epoch .* train .* (\d+) images/s", text)]
    waits = [round(float(wait) / 100, 5) for wait in re.findall(r"epoch .* train .*data wait ([\d.]+)", text)]
    if not waits:  # Burn's own loader has no metrics
        waits = [float(re.search(r"waited +([\d.]+) %", text)[1]) / 100] * args.epochs
    accuracy = float(re.search(r"validation accuracy +([\d.]+)", text)[1]) / 100
    decoder = re.search(r"decoder +(.*)", text)[1]
    found = {"seconds": [round(count / rate, 3) for rate in rates], "waits": waits, "accuracy": accuracy, "decoder": decoder}
    return found | ({"causes": causes(trace)} if args.causes else {})


class Members:
    """The samples of tars, found by their place."""

    def __init__(self, paths, change):
        self.change, self.samples, self.files = change, [], {}
        for path in paths:
            with tarfile.open(path) as tar:
                found = [(member.offset_data, member.size) for member in tar]
            self.samples += [(path, *image, *label) for image, label in zip(found[::2], found[1::2])]

    def __len__(self):
        return len(self.samples)

    def labels(self):
        return [int(self.read(sample[0], *sample[3:])) for sample in self.samples]

    def read(self, path, place, size):
        if path not in self.files:
            self.files[path] = os.open(path, os.O_RDONLY)
        return os.pread(self.files[path], size, place)

    def __getitem__(self, number):
        path, place, size, label_place, label_size = self.samples[number]
        return self.change(self.read(path, place, size)), int(self.read(path, label_place, label_size))


class Change:
    """Bytes of a file to an image of a batch, by torchvision."""

    def __init__(self, side, train):
        self.side, self.train, self.change = side, train, None

    def __call__(self, data):
        import torch
        import torchvision.io
        from torchvision.transforms import v2

        if self.change is None:
            torch.set_num_threads(1)
            crop = [v2.RandomResizedCrop(self.side, scale=(0.6, 1.0), antialias=True), v2.RandomHorizontalFlip()]
            self.change = v2.Compose(crop if self.train else [v2.CenterCrop(375), v2.Resize(self.side, antialias=True)])
        data = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        return self.change(torchvision.io.decode_jpeg(data, mode=torchvision.io.ImageReadMode.RGB))


def torch_loader(args, peer, members, train):
    from torch.utils.data import DataLoader

    options = {"batch_size": args.batch, "num_workers": args.workers, "pin_memory": args.device == "cuda"}
    if args.workers > 0:
        options |= {"persistent_workers": True, "prefetch_factor": 4}
    if peer == "webdataset" and train:
        import webdataset

        paths = shards(args.data, "train")
        options["num_workers"] = min(args.workers, len(paths))  # each needs a shard
        rows = webdataset.WebDataset(paths, shardshuffle=len(paths)).shuffle(1000).to_tuple("jpg", "cls")
        return DataLoader(rows.map(lambda row: (members.change(row[0]), int(row[1]))), **options)
    return DataLoader(members, shuffle=train, **options)


def model(classes, device):
    from torch import nn

    layers = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, classes)).to(device)


def peer(args, name):
    """The recipe in PyTorch."""
    import torch
    from torch.nn.functional import cross_entropy

    of = lambda split: Members(shards(args.data, split), Change(args.side, split == "train"))
    training, validation = of("train"), of("valid")
    train, valid = torch_loader(args, name, training, True), torch_loader(args, name, validation, False)
    net = model(1 + max(validation.labels()), args.device)
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    steps = args.epochs * -(-len(training) // args.batch)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    wait_for = torch.cuda.synchronize if args.device == "cuda" else lambda: None

    def batches(loader):
        for images, labels in loader:
            images = images.to(args.device, non_blocking=True).float() / 127.5 - 1.0
            yield images, labels.to(args.device, non_blocking=True)

    seconds, waits = [], []
    for _ in range(args.epochs):
        started, waited = time.perf_counter(), 0.0
        net.train()
        taken = batches(train)
        while True:
            asked = time.perf_counter()
            batch = next(taken, None)
            waited += time.perf_counter() - asked
            if batch is None:
                break
            loss = cross_entropy(net(batch[0]), batch[1])
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
            rate.step()
        wait_for()
        seconds.append(round(time.perf_counter() - started, 3))
        waits.append(round(waited / seconds[-1], 4))
    net.eval()
    with torch.no_grad():
        right = sum((net(images).argmax(1) == labels).sum().item() for images, labels in batches(valid))
    return {"seconds": seconds, "waits": waits, "accuracy": right / len(validation)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image_bench", help="the program")
    parser.add_argument("--data", type=Path, default=Path("accuracy-shards"), help="a folder with train-*.tar and valid-*.tar")
    parser.add_argument("--make", type=int, metavar="N", help="makes N samples, if the folder is not there")
    parser.add_argument("--out", default="accuracy.jsonl")
    parser.add_argument("--peers", default="torch,webdataset", help="among torch and webdataset; nothing: ours alone")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--decoder", default="auto", choices=["auto", "host", "device"], help="ours")
    parser.add_argument("--causes", action="store_true", help="of ours: why it waited")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--host", help="a label of the host, for the record")
    parser.add_argument("--commit", help="of the program; default: of this folder")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:end])
    args.more = sys.argv[end + 1 :]
    peers = [peer for peer in args.peers.split(",") if peer]
    if unknown := [peer for peer in peers if peer not in ("torch", "webdataset")]:
        parser.error(f"unknown: {', '.join(unknown)}. Peers: torch, webdataset")
    if args.make and not args.data.exists():
        make(args.data, args.make)
    said = about(args.commit, args.host)
    kept = {}
    for _ in range(args.rounds):
        for loader in ["burn-pinned", *peers]:
            try:
                found = ours(args) if loader == "burn-pinned" else peer(args, loader)
            except ImportError as error:
                found = {"not_run": str(error)}
            options = {"workers": args.workers, "batch": args.batch, "side": args.side}
            line = {"date": time.strftime("%Y-%m-%d"), "loader": loader, **options, **found, **said}
            print(json.dumps(line), flush=True)
            with open(args.out, "a") as out:
                out.write(json.dumps(line) + "\n")
            if "seconds" in found:
                kept.setdefault(loader, []).append(found)
    print(f"\n{'loader':<14}{'s an epoch':>12}{'waited':>10}{'accuracy':>10}   after the first epoch, medians")
    for loader, runs in kept.items():
        later = lambda what: statistics.median(value for run in runs for value in run[what][1:] or run[what])
        accuracy = statistics.median(run["accuracy"] for run in runs)
        print(f"{loader:<14}{later('seconds'):>12.2f}{later('waits'):>10.1%}{accuracy:>10.1%}")
    worst = max(wait for run in kept["burn-pinned"] for wait in run["waits"][1:] or run["waits"])
    if worst > MOST_WAIT:
        sys.exit(f"ours waited {worst:.1%} of an epoch, and {MOST_WAIT:.0%} is the most")


if __name__ == "__main__":
    main()
