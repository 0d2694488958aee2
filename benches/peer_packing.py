#!/usr/bin/env python3
"""Documents packed into rows by others, as `cargo bench --bench packing` does it: a JSON object a line.

    python3 benches/peer_packing.py [documents, 200,000 by default] [rounds, 3] [cases, grain,trl,wrapped]

Lengths are log-normal: median 400, sigma 1, at most 2,048. The documents are made in no time, and each case runs in one process, from
documents in random order to batches of 16 rows of 2,048 tokens in NumPy or PyTorch.

  grain    grain.experimental.BestFitPackIterDataset, with as many rows open as a window of the bench has
  trl      trl.pack_dataset(strategy="bfd") on a datasets.Dataset, then its rows with padding; the time of both
  wrapped  datasets.IterableDataset, documents laid end to end and cut, in PyTorch's DataLoader: no padding, and documents are parted

Fields: case, documents, tokens_per_s (positions of rows, with padding, as the bench counts them), padding (their share), rows.
It needs numpy, and of each case its packages: grain; trl, datasets, transformers; datasets, torch. A case without them says so."""

import json
import sys
import time

import numpy as np

ROW, ROWS, WINDOW = 2048, 16, 4096


def lengths(documents):
    rng = np.random.default_rng(7)
    return np.clip(400 * np.exp(rng.standard_normal(documents)), 1, ROW).astype(np.int64)


def document(number, length):
    return np.full(length, number % 50_000, np.int32)


def grain(sizes):
    import grain.python as gp
    from grain import experimental

    class Documents(gp.RandomAccessDataSource):
        def __len__(self):
            return len(sizes)

        def __getitem__(self, number):
            return {"tokens": document(number, sizes[number])}

    open_rows = int(WINDOW * sizes.mean() / ROW)
    rows = gp.MapDataset.source(Documents()).shuffle(seed=1).to_iter_dataset()
    rows = experimental.BestFitPackIterDataset(rows, length_struct={"tokens": ROW}, num_packing_bins=open_rows)
    for batch in rows.batch(ROWS):
        yield batch["tokens"].shape[0], (batch["tokens_segment_ids"] > 0).sum()


def trl(sizes):
    from datasets import Dataset, disable_caching, disable_progress_bars
    from trl.data_utils import pack_dataset

    disable_caching(), disable_progress_bars()
    order = np.random.default_rng(1).permutation(len(sizes))
    documents = Dataset.from_generator(lambda: ({"input_ids": document(number, sizes[number])} for number in order))
    yield None  # the data set is there: the time begins
    packed = pack_dataset(documents, ROW, "bfd", {"batch_size": WINDOW}).with_format("numpy")
    for batch in packed.iter(ROWS):
        tokens = np.zeros((len(batch["input_ids"]), ROW), np.int32)
        for row, ids in zip(tokens, batch["input_ids"]):
            row[: len(ids)] = ids
        yield len(tokens), sum(map(len, batch["input_ids"]))


def wrapped(sizes):
    import torch
    from datasets import IterableDataset
    from torch.utils.data import DataLoader

    order = np.random.default_rng(1).permutation(len(sizes))

    def rows(columns):
        tokens = np.concatenate(columns["input_ids"])
        return {"input_ids": list(tokens[: len(tokens) // ROW * ROW].reshape(-1, ROW))}

    documents = IterableDataset.from_generator(lambda: ({"input_ids": document(number, sizes[number])} for number in order))
    documents = documents.with_format("numpy").map(rows, batched=True, batch_size=1000)
    collate = lambda rows: torch.from_numpy(np.stack([row["input_ids"] for row in rows]))
    for batch in DataLoader(documents, ROWS, collate_fn=collate):
        yield len(batch), batch.numel()


def main():
    arg = lambda at, usual: type(usual)(sys.argv[at]) if len(sys.argv) > at else usual
    documents, rounds, cases = arg(1, 200_000), arg(2, 3), arg(3, "grain,trl,wrapped").split(",")
    sizes = lengths(documents)
    for number in range(rounds):
        for case in cases:
            line = {"bench": "packing", "case": case, "round": number, "documents": documents}
            try:
                batches = {"grain": grain, "trl": trl, "wrapped": wrapped}[case](sizes)
                begun, rows, tokens = time.perf_counter(), 0, 0
                for batch in batches:
                    if batch is None:
                        begun = time.perf_counter()
                    else:
                        rows, tokens = rows + batch[0], tokens + int(batch[1])
                took = time.perf_counter() - begun
                line |= {"tokens_per_s": round(rows * ROW / took), "padding": round(1 - tokens / (rows * ROW), 5), "rows": rows}
            except ImportError as error:
                line["missing"] = str(error)
            print(json.dumps(line), flush=True)


main()
