#!/usr/bin/env python3
"""`.npy` members of tars, read by webdataset's decoder: the peer of `npy.rs`, which says how both are run.

    pip install webdataset==1.0.2 numpy
"""
import glob
import io
import multiprocessing
import os
import sys
import tarfile
import time

import numpy as np

SIZES = {"small": ((512,), 20000), "medium": ((3, 64, 64), 4000), "large": ((1024, 1024), 100)}
SHARDS, PASSES = 4, 3


def make(folder):
    rng = np.random.default_rng(0)
    for size, (shape, count) in SIZES.items():
        os.makedirs(f"{folder}/{size}", exist_ok=True)
        for shard in range(SHARDS):
            with tarfile.open(f"{folder}/{size}/{shard}.tar", "w") as tar:
                for n in range(count // SHARDS):
                    file = io.BytesIO()
                    np.save(file, rng.random(shape, np.float32))
                    info = tarfile.TarInfo(f"{shard}-{n:06d}.npy")
                    info.size = file.tell()
                    file.seek(0)
                    tar.addfile(info, file)


def worker(shards, start, done):
    import warnings

    import webdataset as wds
    warnings.filterwarnings("ignore")
    start.wait()
    count = sum = 0
    for sample in wds.WebDataset(shards, shardshuffle=False).decode():
        count, sum = count + 1, sum + sample["npy"].shape[0]
    done.put(count)


def read(folder, workers):
    for size, (shape, count) in SIZES.items():
        shards, best = sorted(glob.glob(f"{folder}/{size}/*.tar")), None
        for _ in range(PASSES):
            start, done = multiprocessing.Barrier(workers + 1), multiprocessing.Queue()
            processes = [multiprocessing.Process(target=worker, args=(shards[n::workers], start, done)) for n in range(workers)]
            for process in processes:
                process.start()
            start.wait()
            started = time.perf_counter()
            assert sum(done.get() for _ in processes) == count
            took = time.perf_counter() - started
            best = min(best or took, took)
            for process in processes:
                process.join()
        print(f"{size}: {count / best:.0f} arrays/s, {count * np.prod(shape) * 4 / 1e6 / best:.0f} MB/s")


if __name__ == "__main__":
    make(sys.argv[2]) if sys.argv[1] == "make" else read(sys.argv[2], int(sys.argv[3]))
