#!/usr/bin/env python3
"""From shards of photographs to normalised batches on the GPU, with random crops, by others: one JSON object an epoch.

    python3 benches/peer_shards.py make FOLDER COUNT
    python3 benches/peer_shards.py FOLDER PEER [--workers 15] [--epochs 3] [--matmuls 0]

`make` writes the photographs of accuracy.py (500 x 375 pixels) as tar shards of a thousand with DALI's indices beside them; as the
hub's Parquet, if `datasets` is there; and as chunks of LitData, if `litdata` is there.

  webdataset, datasets, litdata   in PyTorch's DataLoader: workers decode and crop by torchvision, page-locked memory
  dali-LOAD, such as dali-0.65    NVIDIA's DALI reads the tars; LOAD is the share of the hardware decoder, `hw_decoder_load`

Fields: loader, case, decoder, workers, matmuls (of 4096 x 4096 in bf16, each step), batch, epoch, images, items_per_s, first_batch_ms,
wait (share of the epoch that the loop waited after its first batch). `cargo bench --bench shards` is the same for burn-pinned."""

import argparse
import importlib
import json
import os
import sys
import time
from multiprocessing import Pool
from pathlib import Path

from accuracy import cut, whole, write_tar

BATCH, SIDE = 256, 224


def write_tars(folder, samples):
    for start in range(0, len(samples), 1000):
        path = folder / f"train-{start // 1000:05d}.tar"
        lines = write_tar(path, samples[start : start + 1000], start)
        path.with_suffix(".idx").write_text("\n".join([f"v1.2 {len(lines)}", *lines, ""]))


def write_parquet(folder, samples):
    from datasets import Dataset, Features, Image, Value

    features = Features({"image": Image(), "label": Value("int64")})
    for number, start in enumerate(range(0, len(samples), 5000)):
        part = samples[start : start + 5000]
        images = [{"bytes": image, "path": f"{start + row}.jpg"} for row, (image, _) in enumerate(part)]
        rows = Dataset.from_dict({"image": images, "label": [label for _, label in part]}, features=features)
        rows.to_parquet(str(folder / f"train-{number:05d}.parquet"))


def write_lit(folder, samples):
    from litdata.streaming import Cache

    cache = Cache(str(folder / "lit"), chunk_bytes=64 << 20)
    for number, (image, label) in enumerate(samples):
        cache[number] = {"image": image, "label": label}
    cache.done()
    cache.merge()


def make(folder, count):
    with Pool() as pool:
        samples = pool.map(cut, range(count), 64)
    with whole(folder) as folder:
        for write in (write_tars, write_parquet, write_lit):
            try:
                write(folder, samples)
            except ImportError as error:
                print(f"left out: {error}", file=sys.stderr)


class Decode:
    """Bytes of files to a batch, on a worker."""

    change = None

    def __call__(self, rows):
        import torch
        import torchvision.io as files
        from torchvision.transforms import v2

        if self.change is None:
            torch.set_num_threads(1)
            self.change = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()])
        raw = [torch.frombuffer(bytearray(image), dtype=torch.uint8) for image, _ in rows]
        images = [self.change(files.decode_jpeg(data, mode=files.ImageReadMode.RGB)) for data in raw]
        return torch.stack(images), torch.tensor([int(label) for _, label in rows])


class Hub:
    """Rows of Parquet, by `datasets`."""

    def __init__(self, folder):
        import datasets

        files = sorted(map(str, folder.glob("*.parquet")))
        rows = datasets.Dataset.from_parquet(files, cache_dir=str(folder / "cache"))
        self.rows = rows.cast_column("image", datasets.Image(decode=False))

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, numbers):
        found = self.rows[numbers]
        return [(image["bytes"], label) for image, label in zip(found["image"], found["label"])]


def in_torch(folder, peer, workers):
    """PyTorch's loader of a peer's data set. Each pass over it is an epoch."""
    from torch.utils.data import DataLoader

    options = {"batch_size": BATCH, "num_workers": workers, "pin_memory": True, "drop_last": True}
    options |= {"persistent_workers": True, "prefetch_factor": 4}
    if peer == "datasets":
        return DataLoader(Hub(folder), shuffle=True, collate_fn=Decode(), **options)
    if peer == "litdata":
        import litdata

        rows, decode = litdata.StreamingDataset(input_dir=str(folder / "lit"), shuffle=True, drop_last=True), Decode()
        collate = lambda found: decode([(row["image"], row["label"]) for row in found])
        return litdata.StreamingDataLoader(rows, collate_fn=collate, **options)
    import webdataset

    tars = sorted(map(str, folder.glob("*.tar")))
    split = {"nodesplitter": webdataset.split_by_node, "workersplitter": webdataset.split_by_worker}
    rows = webdataset.WebDataset(tars, shardshuffle=len(tars), **split).shuffle(1000).to_tuple("jpg", "cls")
    return DataLoader(rows, collate_fn=Decode(), **options)


def in_dali(folder, load, workers):
    """The same from DALI: normalised on the device by DALI itself."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.base_iterator import LastBatchPolicy
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    tars = sorted(map(str, folder.glob("*.tar")))
    indices = [str(Path(tar).with_suffix(".idx")) for tar in tars]

    @pipeline_def(batch_size=BATCH, num_threads=workers, device_id=0, prefetch_queue_depth=2)
    def pipeline():
        read = {"ext": ["jpg", "cls"], "random_shuffle": True, "initial_fill": 1024, "name": "reader"}
        files, _ = fn.readers.webdataset(paths=tars, index_paths=indices, missing_component_behavior="error", **read)
        crop = {"random_area": [0.08, 1.0], "random_aspect_ratio": [3 / 4, 4 / 3], "output_type": types.RGB}
        images = fn.decoders.image_random_crop(files, device="mixed", hw_decoder_load=load, **crop)
        images = fn.resize(images, size=[SIDE, SIDE], antialias=True)
        scale = {"mean": [127.5] * 3, "std": [127.5] * 3, "dtype": types.FLOAT, "output_layout": "CHW"}
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **scale)

    built = pipeline()
    built.build()
    options = {"reader_name": "reader", "auto_reset": True, "last_batch_policy": LastBatchPolicy.DROP}
    return DALIGenericIterator([built], ["images"], **options)


def run(args):
    import torch

    dali = args.peer.startswith("dali-")
    if dali:
        loader = in_dali(args.folder, float(args.peer.removeprefix("dali-")), args.workers)
    else:
        loader = in_torch(args.folder, args.peer, args.workers)
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) * 0.01
    about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "loader": args.peer, "batch": BATCH}
    about["version"] = importlib.import_module("nvidia.dali" if dali else args.peer).__version__
    about |= {"case": {"datasets": "parquet", "litdata": "litdata"}.get(args.peer, "tar"), "decoder": "device" if dali else "host"}
    for epoch in range(args.epochs):
        started, images, waited, first, batches, last = time.perf_counter(), 0, 0.0, 0.0, iter(loader), None
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            if batch is None:
                break
            if images:
                waited += time.perf_counter() - asked
            if dali:
                batch = batch[0]["images"]
            else:
                batch, labels = (part.cuda(non_blocking=True) for part in batch)
                batch = batch.float() / 127.5 - 1.0
            product = matrix
            for _ in range(args.matmuls):
                product = product @ matrix
            last = (batch.mean(), product)
            if not images:
                torch.cuda.synchronize()
                first = time.perf_counter() - started
            images += len(batch)
        torch.cuda.synchronize()
        del last
        seconds = time.perf_counter() - started
        timed = {"images": images, "items_per_s": round(images / seconds), "first_batch_ms": round(1e3 * first), "wait": round(waited / seconds, 3)}
        print(json.dumps({**about, "workers": args.workers, "matmuls": args.matmuls, "epoch": epoch, **timed}), flush=True)
    # The workers of some loaders do not end by themselves.
    os._exit(0)


def peer(name):
    """The name of a peer, once it is known to be one."""
    if name not in ("webdataset", "datasets", "litdata"):
        if not name.startswith("dali-") or not 0 <= float(name.removeprefix("dali-")) <= 1:
            raise ValueError(name)
    return name


def main():
    if sys.argv[1:2] == ["make"]:
        return make(Path(sys.argv[2]), int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("peer", type=peer, help="webdataset, datasets, litdata, or dali-LOAD")
    parser.add_argument("--workers", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--matmuls", type=int, default=0)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
