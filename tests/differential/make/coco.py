"""COCO's annotations: polygons and runs with the masks that pycocotools draws, and found boxes with the measure of its COCOeval."""
import contextlib
import io
import json
import os

import numpy as np
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from pycocotools import mask as masks


def number(rng, side):
    """A coordinate, often near or on the middle of a pixel's part, sometimes outside."""
    value = rng.uniform(-0.3 * side, 1.3 * side)
    return rng.choice([value, round(value), round(value, 1), round(value, 2), round(value * 2) / 2, float(np.nextafter(round(value, 1), rng.choice([-9e9, 9e9])))])


def polygon(rng, width, height):
    corners = [[number(rng, width), number(rng, height)] for _ in range(rng.choice([3, 4, 5, 9, 40]))]
    if rng.random() < 0.3:
        corners.append(corners[rng.randrange(len(corners))])
    return [value for corner in corners for value in corner]


def segmentation(rng, width, height):
    kind = rng.randrange(4)
    if kind < 2:
        return [polygon(rng, width, height) for _ in range(rng.choice([1, 1, 2, 3]))]
    noise = np.array([[rng.random() < rng.choice([0.1, 0.9]) for _ in range(width)] for _ in range(height)], np.uint8)
    runs = masks.encode(np.asfortranarray(noise))
    if kind == 2:
        return {"size": runs["size"], "counts": runs["counts"].decode()}
    flat = noise.flatten(order="F")
    ends = np.flatnonzero(np.diff(np.concatenate([[0], flat]))).tolist() + [flat.size]
    return {"size": [height, width], "counts": np.diff([0] + ends).tolist()}


def box(rng, width, height):
    """Inside, of quarters of pixels, which a float of 32 bits holds."""
    left, top = rng.randrange(4 * width - 8), rng.randrange(4 * height - 8)
    return [left / 4, top / 4, rng.randint(4, 4 * width - left) / 4, rng.randint(4, 4 * height - top) / 4]


def near(rng, place, width, height):
    left, top, wide, high = [max(0, value + rng.choice([-1, 0, 0, 1, 3]) / 4) for value in place]
    return [left, top, max(1, min(wide, width - left)), max(1, min(high, height - top))]


def coco_set(rng, folder):
    images, annotations, found, ids = [], [], [], [3, 8, 90]
    for image in range(rng.randrange(1, 7)):
        width, height = rng.choice([3, 7, 32, 61]), rng.choice([3, 5, 31, 50])
        name = f"{image}.png"
        Image.new("RGB", (width, height)).save(os.path.join(folder, name))
        images.append({"id": 100 - image * 7, "file_name": name, "width": width, "height": height})
        for _ in range(rng.choice([0, 1, 3, 8])):
            place, category = box(rng, width, height), rng.choice(ids)
            annotations.append({"id": len(annotations) + 1, "image_id": images[-1]["id"], "category_id": category, "bbox": place,
                                "area": place[2] * place[3], "iscrowd": int(rng.random() < 0.15),
                                "segmentation": segmentation(rng, width, height)})
            for _ in range(rng.choice([0, 1, 1, 2])):
                found.append({"image_id": images[-1]["id"], "category_id": rng.choice(ids + [category] * 6),
                              "bbox": near(rng, place, width, height), "score": rng.randrange(1, 9) / 8})
    # COCOeval takes the images by their ids, and boxes of equal scores in that order.
    images.sort(key=lambda image: image["id"])
    rng.shuffle(annotations)
    data = {"images": images, "annotations": annotations, "categories": [{"id": id, "name": str(id)} for id in reversed(ids)]}
    paths = [os.path.join(folder, name) for name in ("annotations.json", "found.json", "right.bin")]
    with open(paths[0], "w") as file:
        json.dump(data, file)
    mean = -1.0
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(paths[0])
        with open(paths[2], "wb") as file:
            for image in images:
                for annotation in coco.imgToAnns[image["id"]]:
                    file.write(coco.annToMask(annotation).tobytes())
        if found and annotations:
            score = COCOeval(coco, coco.loadRes(found), "bbox")
            score.evaluate()
            score.accumulate()
            score.summarize()
            mean = float(score.stats[0])
    with open(paths[1], "w") as file:
        json.dump({"found": found, "mean": mean}, file)
    return {"reader": "coco", "paths": [paths[0], folder, paths[1]], "right": paths[2],
            "how": f"{len(images)} images, {len(annotations)} objects, {len(found)} found boxes"}
