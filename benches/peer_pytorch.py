#!/usr/bin/env python3
"""PyTorch's DataLoader on the same work as this project's benches: one JSON object a line.

Run it on the GPU machine in the same command as the project's own bench, so that both are measured in one run:
    python3 benches/peer_pytorch.py [--workers 8,15] [--steps 100] [--cases ram,small,jpeg] [--fetch items,batch] [--data DIR]

Cases (N samples in RAM, drawn with a stride, batches of B to the GPU, `non_blocking=True`, pinned):
  ram           uint8 [3,224,224], B=256; also with the step of n bf16 8192^2 matmuls
  ram-alone     the same without the step
  small         uint8 [1,28,28],   B=1024
  rows          float32 [20],      B=128
These are read sample by sample with the default collate (`--fetch items`), or a batch at once: by one index into the tensor, in
`__getitems__`, without a collate (`--fetch batch`).
  jpeg-pil      JPEG files, RandomResizedCrop(224) + flip, B=256: torchvision's ImageFolder way
  jpeg-tvio     the same with decode_jpeg + transforms.v2
  jpeg-nvjpeg   decode_jpeg on the GPU, a list of B=256 files a call: one process, decoding only, images of their own sizes
`jpeg` stands for the three. Their files are those below `--data DIR`, as the project's bench takes them: every .jpg and .jpeg,
sorted, read into RAM once. Without it they are synthetic: 500x375, quality 90, 4:2:0. `--max-side N` leaves out larger files.
The jpeg cases time `--jpeg-steps` batches: without it as many as a given `--steps`, or 30.
Fields: loader, case, fetch, batch, workers, steps, matmuls, decoder (where JPEGs are decoded: host or device), files (how many there are),
items_per_s, gb_per_s, link_gb_per_s (raw pinned copy, same run), step_ms, wait_us_p50, wait_us_p99 (what the training loop
waited for its next batch). For `jpeg-nvjpeg`, gb_per_s counts the decoded images, which cross no link, and the wait is the
time of a call; step_ms includes what the GPU still did after the last one.
"""
import argparse, io, json, os, time
from pathlib import Path
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset

SIDE = 224
ITEM = 3 * SIDE * SIDE
DEV = torch.device("cuda")


# Of each case from memory: its name in the records, samples, batch, their shape and type.
MEMORY = {
    "ram": ("ram-u8-224", 2048, 256, (3, SIDE, SIDE), torch.uint8),
    "small": ("small-u8-28", 60_000, 1024, (1, 28, 28), torch.uint8),
    "rows": ("rows-f32-20", 60_000, 128, (20,), torch.float32),
}


class Items(Dataset):
    """Samples in RAM, one by one."""

    def __init__(self, x, length):
        self.x, self.length = x, length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return self.x[(i * 7919) % len(self.x)], i % 10


class Batches(Items):
    """The same samples, a whole batch at once."""

    def __getitems__(self, numbers):
        numbers = torch.tensor(numbers)
        return self.x[(numbers * 7919) % len(self.x)], numbers % 10


def as_it_is(batch):
    return batch


class Jpeg(Dataset):
    def __init__(self, blobs, length, mode):
        from torchvision import transforms as T
        from torchvision.transforms import v2
        self.blobs, self.length, self.mode = blobs, length, mode
        self.pil = T.Compose([T.RandomResizedCrop(SIDE), T.RandomHorizontalFlip(), T.PILToTensor()])
        self.tv = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()])

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        blob = self.blobs[i % len(self.blobs)]
        if self.mode == "pil":
            from PIL import Image
            return self.pil(Image.open(io.BytesIO(blob)).convert("RGB")), i % 10
        import torchvision.io as tio
        raw = torch.frombuffer(bytearray(blob), dtype=torch.uint8)
        return self.tv(tio.decode_jpeg(raw, mode=tio.ImageReadMode.RGB)), i % 10


def synthetic_jpegs(n, width=500, height=375, quality=90):
    """Photo-like noise: a smooth random field plus grain, 4:2:0."""
    from PIL import Image
    rng, out = np.random.default_rng(0), []
    for _ in range(n):
        base = rng.normal(128, 50, (height // 8 + 2, width // 8 + 2, 3)).clip(0, 255).astype(np.uint8)
        img = np.asarray(Image.fromarray(base).resize((width, height), Image.BICUBIC)).astype(np.float32)
        img = (img + rng.normal(0, 6, img.shape)).clip(0, 255).astype(np.uint8)
        buf = io.BytesIO()
        Image.fromarray(img).save(buf, "JPEG", quality=quality, subsampling=2)
        out.append(buf.getvalue())
    return out


def read_jpegs(folder):
    """The files that the project's own bench takes from the folder, in its order."""
    # Links to folders are followed, as there.
    paths = (Path(at) / name for at, _, names in os.walk(folder, followlinks=True) for name in names)
    paths = sorted((p for p in paths if p.suffix.lower() in (".jpg", ".jpeg")), key=lambda p: p.parts)
    return [path.read_bytes() for path in paths]


def longer_side(blob):
    from PIL import Image
    return max(Image.open(io.BytesIO(blob)).size)


class Step:
    """Stands in for a training step: reads the batch twice and runs n large matmuls."""
    def __init__(self, n):
        self.n, self.h = n, (torch.randn(8192, 8192, device=DEV) * 0.01).bfloat16()

    def __call__(self, x):
        x = x.float() * 0.0039 - 0.5
        h = self.h
        for _ in range(self.n):
            h = h @ self.h
        return x.mean() + (2 * x).mean() + h.mean()


def link_gb_per_s(nbytes=256 * ITEM):
    host, dev = torch.ones(nbytes, dtype=torch.uint8).pin_memory(), torch.empty(nbytes, dtype=torch.uint8, device=DEV)
    for _ in range(10):
        dev.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
    t = time.perf_counter()
    for _ in range(100):
        dev.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
    return 100 * nbytes / (time.perf_counter() - t) / 1e9


def report(case, s, steps, items, nbytes, waits, link, decoder=None, matmuls=None, **about):
    waits.sort()
    print(json.dumps(dict(loader="pytorch " + torch.__version__, case=case, matmuls=matmuls, decoder=decoder, steps=steps, **about,
                          items_per_s=round(items / s), gb_per_s=round(nbytes / s / 1e9, 3), link_gb_per_s=round(link, 2),
                          step_ms=round(1e3 * s / steps, 3), wait_us_p50=round(1e6 * waits[len(waits) // 2], 1),
                          wait_us_p99=round(1e6 * waits[len(waits) * 99 // 100], 1))), flush=True)


def drive(case, batches, step, steps, warm, link, **about):
    waits, items, nbytes = [], 0, 0
    for k in range(warm + steps):
        if k == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        t = time.perf_counter()
        x, y = next(batches)
        x, y = x.to(DEV, non_blocking=True), torch.as_tensor(y).to(DEV, non_blocking=True)
        if k >= warm:
            waits.append(time.perf_counter() - t)
            items, nbytes = items + x.shape[0], nbytes + x.numel() * x.element_size()
        if step:
            step(x)
    torch.cuda.synchronize()
    report(case, time.perf_counter() - start, steps, items, nbytes, waits, link, matmuls=step.n if step else None, **about)


def drive_nvjpeg(blobs, batch, steps, warm, link):
    """Decodes on the GPU and does nothing else: the files in order, again and again."""
    import torchvision.io as tio
    files = [torch.frombuffer(bytearray(blob), dtype=torch.uint8) for blob in blobs]
    waits, nbytes = [], 0
    for k in range(warm + steps):
        if k == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        t = time.perf_counter()
        images = tio.decode_jpeg([files[i % len(files)] for i in range(k * batch, (k + 1) * batch)],
                                 mode=tio.ImageReadMode.RGB, device="cuda")
        if k >= warm:
            waits.append(time.perf_counter() - t)
            nbytes += sum(image.numel() for image in images)
    torch.cuda.synchronize()
    report("jpeg-nvjpeg", time.perf_counter() - start, steps, steps * batch, nbytes, waits, link, decoder="device",
           batch=batch, workers=0, files=len(files))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="8,15")
    parser.add_argument("--steps", type=int, help="timed batches; 100, for the jpeg cases 30")
    parser.add_argument("--jpeg-steps", type=int, help="timed batches of the jpeg cases, whatever --steps says")
    parser.add_argument("--cases", default="ram,small,jpeg", help="exact names, with commas between them")
    parser.add_argument("--fetch", default="items", help="how samples in memory are read: items, batch, or both with a comma")
    parser.add_argument("--data", help="folder of JPEGs for the jpeg cases")
    parser.add_argument("--max-side", type=int, help="leave out JPEGs with more pixels than this on a side")
    a = parser.parse_args()
    steps, jpeg_steps = a.steps or 100, a.jpeg_steps or a.steps or 30
    jpeg = ("jpeg-pil", "jpeg-tvio", "jpeg-nvjpeg")
    cases = {name for case in a.cases.split(",") for name in (jpeg if case == "jpeg" else (case,))}
    if unknown := cases - {"ram", "ram-alone", "small", "rows", *jpeg}:
        parser.error("no such case: " + ", ".join(sorted(unknown)))
    ways = a.fetch.split(",")
    if unknown := {*ways} - {"items", "batch"}:
        parser.error("no such fetch: " + ", ".join(sorted(unknown)))
    blobs = []
    if cases & set(jpeg):
        blobs = read_jpegs(a.data) if a.data else synthetic_jpegs(256)
        blobs = [blob for blob in blobs if a.max_side is None or longer_side(blob) <= a.max_side]
        if not blobs:
            parser.error("no JPEGs to decode")
    link, warm = link_gb_per_s(), 20
    workers = [int(w) for w in a.workers.split(",")]

    def loader(ds, batch, w, collate=None):
        options = {"pin_memory": True, "prefetch_factor": 4 if w else None}
        return iter(DataLoader(ds, batch_size=batch, num_workers=w, collate_fn=collate, **options))

    def memory(key, step=None):
        """A case from memory, with each number of workers and each way to read."""
        case, count, batch, shape, dtype = MEMORY[key]
        x, length = torch.randint(0, 255, (count, *shape), dtype=torch.uint8).to(dtype), batch * (steps + warm + 80)
        for fetch in ways:
            for w in workers:
                made = loader(Items(x, length), batch, w) if fetch == "items" else loader(Batches(x, length), batch, w, as_it_is)
                drive(case, made, step, steps, warm, link, batch=batch, workers=w, fetch=fetch)

    if "ram" in cases:
        resident = torch.randint(0, 255, (256, 3, SIDE, SIDE), dtype=torch.uint8, device=DEV)
        for n in (None, 2, 8):
            step = Step(n) if n else None
            if step:
                drive("resident", iter(lambda: (resident, 0), None), step, steps, warm, link, batch=256, workers=0)
            memory("ram", step)
    elif "ram-alone" in cases:
        memory("ram")
    for key in ("small", "rows"):
        if key in cases:
            memory(key)
    for mode in ("pil", "tvio"):
        if "jpeg-" + mode in cases:
            for w in workers:
                drive("jpeg-" + mode, loader(Jpeg(blobs, 256 * (jpeg_steps + 8 + 80), mode), 256, w), None, jpeg_steps, 8, link, decoder="host", batch=256, workers=w, files=len(blobs))
    if "jpeg-nvjpeg" in cases:
        drive_nvjpeg(blobs, 256, jpeg_steps, 8, link)


if __name__ == "__main__":
    main()
