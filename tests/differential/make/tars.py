"""Tars by Python's `tarfile` and by webdataset. What webdataset reads again is what is right."""
import io
import os
import tarfile

import numpy as np
import webdataset as wds
from webdataset.tariterators import group_by_keys, tar_file_expander

from exact import column

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def told(paths, how):
    """The samples of shards as webdataset groups them. Each column has the bytes of its files."""
    streams = [{"url": path, "stream": open(path, "rb")} for path in paths]
    samples = list(group_by_keys(tar_file_expander(streams)))
    names = sorted({name for sample in samples for name in sample if not name.startswith("__")})
    values = {name: [sample.get(name) for sample in samples] for name in names}
    values["__key__"] = [sample["__key__"].encode() for sample in samples]
    columns = [column(name, values[name], "bytes") for name in values]
    return {"reader": "tar", "paths": paths, "how": how, "columns": columns}


def name_part(rng, kind):
    parts = ["a", "0001", "train", "with space", "x" * 40, "Upper"]
    parts += ["ü猫"] if kind != "ustar" else []
    return rng.choice(parts)


def key(rng, number, kind):
    """A key that is there once: folders, some with dots, some so long that formats need a trick."""
    depth = rng.choice([0, 0, 1, 2, 5])
    folders = [name_part(rng, kind) + rng.choice(["", "", ".d"]) for _ in range(depth)]
    name = rng.choice([f"{number:06}", f"{name_part(rng, kind)}-{number}"])
    if kind != "ustar" and rng.random() < 0.15:
        name = "n" * rng.choice([95, 100, 160, 300]) + name
    elif kind == "ustar" and rng.random() < 0.2:
        folders = ["f" * 70, "g" * 60]  # a prefix
    start = rng.choice(["", "", "", "./", "/"])
    return start + "/".join([*folders, name])


def members(rng, kind):
    """Names and data of files, samples one behind the other."""
    extensions = ["jpg", "cls", "json", "seg.png", "JPG2", "txt", "left.RGB.png", "bin"] + ([] if kind == "ustar" else ["größe"])
    for number in range(rng.choice([1, 5, 60])):
        of = key(rng, number, kind)
        for extension in rng.sample(extensions, rng.randrange(1, 5)):
            yield f"{of}.{extension}", rng.randbytes(rng.choice([0, 1, 511, 512, 513, 2000]))
        if rng.random() < 0.05:
            yield rng.choice(["__info__", "__meta__/a.json", f"no-extension-{number}", f"a.b/no-extension-{number}"]), b"{}"


def other(rng, kind, number):
    """A member that is no file."""
    info = tarfile.TarInfo(f"other-{number}.jpg")
    info.type = rng.choice([tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
    if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        info.linkname = rng.choice(["a.jpg", "l" * (60 if kind == "ustar" else 200)])
    return info


def write(rng, path, kind, files):
    with tarfile.open(path, "w", format=FORMATS[kind]) as tar:
        for number, (name, data) in enumerate(files):
            if rng.random() < 0.05:
                tar.addfile(other(rng, kind, number))
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = rng.choice([0, 1_700_000_000, 1.5 if kind == "pax" else 7])
            info.uname = rng.choice(["", "root", "üser" if kind != "ustar" else "user"])
            info.uid = rng.choice([0, 1000, 1 << 22 if kind != "ustar" else 7])
            # Of the old type for files, Python takes a long name that is cut behind a slash for that of a folder.
            old = [tarfile.AREGTYPE] if len(name.encode()) < 100 else []
            info.type = rng.choice([tarfile.REGTYPE, tarfile.REGTYPE, tarfile.CONTTYPE, *old])
            if kind == "pax" and rng.random() < 0.2:
                info.pax_headers = {"comment": "c" * rng.choice([1, 600]), "path": name} if rng.random() < 0.5 else {"SCHILY.xattr.user.a": "b"}
            tar.addfile(info, io.BytesIO(data))


def tarfile_set(rng, place):
    kind, paths = rng.choice(list(FORMATS)), []
    for shard in range(rng.choice([1, 1, 3])):
        paths.append(os.path.join(place, f"{shard}.tar"))
        write(rng, paths[-1], kind, members(rng, kind))
    return told(paths, f"tarfile {kind}")


def hidden_set(rng, place):
    """Files whose names begin with a dot, as macOS and tools leave them."""
    hidden = ["._0001.jpg", ".DS_Store", "a/._b.jpg", "./plain/.hid.jpg", "plain/.hid.jpg", ".hidden.jpg", "a.b/.c.jpg", "a.b/c/.hid.jpg", "./.d.jpg", "__MACOSX/._a.jpg", "x..jpg", "x."]
    files = [(f"{n:04}.jpg", rng.randbytes(9)) for n in range(4)] + [(name, rng.randbytes(9)) for name in rng.sample(hidden, rng.randrange(1, 5))]
    first, rest = files[0], files[1:]
    rng.shuffle(rest)
    path = os.path.join(place, "0.tar")
    write(rng, path, "gnu", [first, *rest])
    return told([path], f"hidden {[name for name, _ in rest]}")


def webdataset_set(rng, place):
    path = os.path.join(place, "0.tar")
    with wds.TarWriter(path, mtime=rng.choice([None, 0.0, 1_700_000_000])) as writer:
        for number in range(rng.choice([1, 10, 100])):
            sample = {"__key__": key(rng, number, "pax"), "cls": rng.randrange(1000), "json": {"a": [number, 0.5, "ü"]}, "txt": "text", "jpg": rng.randbytes(rng.randrange(3000)),
                      "npy": np.arange(rng.randrange(1, 9))}
            chosen = rng.sample(["cls", "json", "txt", "jpg", "npy"], rng.randrange(1, 6))
            writer.write({"__key__": sample["__key__"], **{name: sample[name] for name in chosen}})
    return told([path], "webdataset")
