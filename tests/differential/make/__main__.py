"""Random files as other people's tools write them, with what is in them.

    python tests/differential/make FOLDER SEED COUNT [KIND ..]

Each line of FOLDER/manifest.jsonl is a data set, a picture or a sound. One seed gives the same values each time, and data set N
does not depend on those before it. See exact.py for how values are written.
"""
import json
import os
import random
import sys

import chats
import coco
import lines
import pictures
import shards
import sounds
import specials
import tables
import tars

# How many of each kind there are for one COUNT.
KINDS = {
    "parquet": (tables.pyarrow_set, 1),
    "pandas": (tables.pandas_set, 0.3),
    "json": (lines.json_set, 0.6),
    "json-nan": (lines.nan_set, 0.1),
    "pandas-json": (lines.pandas_set, 0.3),
    "tarfile": (tars.tarfile_set, 0.6),
    "tar-hidden": (tars.hidden_set, 0.1),
    "webdataset": (tars.webdataset_set, 0.3),
    "mds": (shards.mds_set, 0.6),
    "jpeg": (pictures.jpeg, 1.5),
    "cjpeg": (pictures.cjpeg, 2),
    "png": (pictures.png, 1),
    "webp": (pictures.webp, 1),
    "gif": (pictures.gif, 0.5),
    "resize": (pictures.resize, 3),
    "coco": (coco.coco_set, 2),
    "sound": (sounds.sound, 3),
    "chat": (chats.chat_set, 2.2),
    "special": (specials.special_set, 1),
}


def main(folder, seed, count, *kinds):
    os.makedirs(folder, exist_ok=True)
    made = 0
    with open(os.path.join(folder, "manifest.jsonl"), "w") as manifest:
        for kind in kinds or KINDS:
            make, share = KINDS[kind]
            for number in range(max(1, round(int(count) * share))):
                name = f"{kind}-{number}"
                place = os.path.join(folder, name)
                os.makedirs(place)
                line = make(random.Random(f"{seed}/{name}"), place)
                line["name"] = name
                manifest.write(json.dumps(line) + "\n")
                made += 1
    print(f"{made} data sets, pictures and sounds of seed {seed} in {folder}")


main(*sys.argv[1:])
