"""Makes the changes that `torchvision.rs` wrote by torchvision, and compares image, mask, boxes and points.

Colours may be 2 levels off (4 after several changes, since a contrast enlarges what was rounded before it), and boxes and points 0.01 pixels. Masks are equal, but for pixels whose middle falls on the border of
two others. At the border of a bilinear warp torchvision multiplies twice by the share of the image, so it is left out."""

import json
import sys
from pathlib import Path

import numpy
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

folder = Path(sys.argv[1])


def part(with_):
    return [with_[name] for name in ("top", "left", "height", "width")]


def by(with_):
    return InterpolationMode(with_["by"])


def perspective(x, w):
    height, width = F.get_size(x)
    start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    return F.perspective(x, start, w["corners"], interpolation=by(w))


def distort(x, w):
    for name, by in w["changes"]:
        x = getattr(F, f"adjust_{name}")(x, by)
    return F.permute_channels(x, w["channels"])


CHANGES = {
    "crop": lambda x, w: F.crop(x, *part(w)),
    "resized_crop": lambda x, w: F.resized_crop(x, *part(w["part"]), w["size"]),
    "resize": lambda x, w: F.resize(x, w["size"]),
    "resize_by": lambda x, w: F.resize(x, w["size"], max_size=w["most"]),
    "distort": distort,
    "rotate": lambda x, w: F.rotate(x, w["angle"], interpolation=by(w), expand=w["expand"]),
    "affine": lambda x, w: F.affine(x, w["angle"], w["translate"], w["scale"], w["shear"], interpolation=by(w)),
    "perspective": perspective,
    "pad": lambda x, w: F.pad(x, w["padding"], padding_mode=w["mode"]),
    "gaussian_blur": lambda x, w: F.gaussian_blur(x, w["kernel"], [w["sigma"]] * 2),
    "grayscale": lambda x, w: F.rgb_to_grayscale(x, 3),
    "solarize": lambda x, w: F.solarize(x, w["amount"]),
    "posterize": lambda x, w: F.posterize(x, w["amount"]),
    "adjust_sharpness": lambda x, w: F.adjust_sharpness(x, w["amount"]),
}
SHAPES = ["crop", "resized_crop", "resize", "resize_by", "rotate", "affine", "perspective", "pad", "horizontal_flip", "vertical_flip"]
RESIZES = ["resized_crop", "resize", "resize_by"]


def read(name):
    return torch.from_numpy(numpy.array(Image.open(folder / name)).astype(numpy.int32))


def exact(mask, name, with_):
    """As `resize`, by the nearest pixel: what torchvision does to masks is half a pixel beside the image."""
    if name == "resized_crop":
        mask = F.crop(mask, *part(with_["part"]))
    most = with_.get("most")
    return F.resize(tv_tensors.Image(mask), with_["size"], max_size=most, interpolation=InterpolationMode.NEAREST_EXACT)


def between(size, parts):
    """Which columns, or rows, of a resized part have their middle on the border of two pixels, up to rounding."""
    middles = (torch.arange(size, dtype=torch.float64) + 0.5) * parts / size
    return (middles - middles.round()).abs() < 1e-3


worst, wrong = {}, []
for line in open(folder / "changes.jsonl"):
    case = json.loads(line)
    name, with_, before, after = case["change"], case["with"], case["before"], case["after"]
    change = CHANGES.get(name, lambda x, w: getattr(F, name)(x))
    image = read(before["name"] + ".png").permute(2, 0, 1).to(torch.uint8)
    size = tuple(image.shape[-2:])
    found = {}

    expected, got = change(tv_tensors.Image(image), with_).int(), read(after["name"] + ".png").permute(2, 0, 1)
    if expected.shape != got.shape:
        wrong.append(f"{case}: of {tuple(got.shape)}, not {tuple(expected.shape)}")
        continue
    off = (expected - got).abs().amax(0)
    if name in ("rotate", "affine", "perspective"):
        whole = torch.full_like(image, 255)
        seen = change(tv_tensors.Image(whole), with_)[0]
        inner = -torch.nn.functional.max_pool2d(-seen[None].float(), 3, 1, 1)[0]
        off = off[inner == 255]
        if with_["by"] == "nearest":
            found["pixels of other places"] = (off > 2).float().mean().item()
            off = off[off <= 2]
    found["levels"] = off.max().item() if off.numel() else 0

    if name in SHAPES:
        mask = tv_tensors.Mask(read(before["name"] + ".mask.png").to(torch.uint8)[None])
        expected = exact(mask, name, with_) if name in RESIZES else change(mask, {**with_, "by": "nearest"})
        differ = expected[0].int() != read(after["name"] + ".mask.png")
        if name in RESIZES:
            # Floats of torchvision may round such a middle the other way.
            height, width = part(with_["part"])[2:] if name == "resized_crop" else size
            rows, columns = between(differ.shape[0], height), between(differ.shape[1], width)
            differ &= ~(rows[:, None] | columns[None, :])
        found["numbers of other places"] = differ.float().mean().item()

        # Places in an image that grows: torchvision rounds the size, and not the shift.
        # It pads no boxes and points but by a colour.
        apart = (name == "rotate" and with_["expand"]) or with_.get("mode", "constant") != "constant"
        if not apart:
            boxes = tv_tensors.BoundingBoxes(before["boxes"], format="XYXY", canvas_size=size)
            found["pixels of boxes"] = (change(boxes, with_) - torch.tensor(after["boxes"])).abs().max().item()
            points = tv_tensors.KeyPoints(before["points"], canvas_size=size)
            found["pixels of points"] = (change(points, with_) - torch.tensor(after["points"])).abs().max().item()

    limits = {"levels": 4 if name == "distort" else 2, "pixels of boxes": 0.01, "pixels of points": 0.01}
    limits["numbers of other places"] = 0 if name in RESIZES else 0.01
    for what, amount in found.items():
        worst[name, what] = max(worst.get((name, what), 0), amount)
        if amount > limits.get(what, 0.01):
            wrong.append(f"{amount} {what}: {case}")

for (name, what), amount in sorted(worst.items()):
    print(f"{name}: {amount:.4f} {what}")
print(f"torchvision: {len(wrong)} differ")
sys.exit("\n".join(wrong) or 0)
