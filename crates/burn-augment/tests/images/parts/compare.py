"""Makes the changes that `torchvision.rs` wrote by torchvision, and compares image, mask, boxes and points.

Colours may be 2 levels off (4 after several changes, since a contrast enlarges what was rounded before it), and boxes and points 0.01 pixels. Masks are equal, but for pixels whose middle falls on the border of
two others. At the border of a bilinear warp torchvision multiplies twice by the share of the image, so it is left out."""

import io
import json
import sys
from collections import Counter
from pathlib import Path

import albumentations
import numpy
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms.v2 import AugMix, AutoAugment, AutoAugmentPolicy, InterpolationMode
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


def shifts(x, w):
    """In halves of a side, as `elastic` takes them."""
    height, width = F.get_size(x)
    return (torch.tensor(w["shifts"]).reshape(height, width, 2) * torch.tensor([2 / width, 2 / height]))[None]


def aug_mix(x, w):
    made = AugMix()
    # Operations whose strength is a factor: torchvision takes how far it is from 1.
    factors = ("Brightness", "Color", "Contrast", "Sharpness")
    total = torch.zeros(x.shape)
    for share, chain in w["chains"]:
        copy = x
        for name, strength in chain:
            strength = strength / 255 if name == "Solarize" else strength - (name in factors)
            copy = made._apply_image_or_video_transform(copy, name, strength, InterpolationMode.NEAREST, made._fill)
        total += share * copy
    return total.to(torch.uint8)


def clahe(x, w):
    image = albumentations.CLAHE(clip_limit=(w["limit"], w["limit"]), p=1)(image=x.permute(1, 2, 0).numpy())["image"]
    return torch.from_numpy(image).permute(2, 0, 1)


def jpeg(x, w):
    """Without the subsampling of torchvision's files."""
    file = io.BytesIO()
    F.to_pil_image(x).save(file, "jpeg", quality=w["quality"], subsampling=0)
    return F.pil_to_tensor(Image.open(file))


CHANGES = {
    "crop": lambda x, w: F.crop(x, *part(w)),
    "resized_crop": lambda x, w: F.resized_crop(x, *part(w["part"]), w["size"]),
    "resize": lambda x, w: F.resize(x, w["size"]),
    "resize_by": lambda x, w: F.resize(x, w["size"], max_size=w["most"]),
    "distort": distort,
    "rotate": lambda x, w: F.rotate(x, w["angle"], interpolation=by(w), expand=w["expand"], center=w.get("center")),
    "affine": lambda x, w: F.affine(
        x, w["angle"], w["translate"], w["scale"], w["shear"], interpolation=by(w), center=w.get("center")
    ),
    "elastic": lambda x, w: F.elastic(x, shifts(x, w), interpolation=by(w)),
    "aug_mix": aug_mix,
    "gamma": lambda x, w: torch.from_numpy(((numpy.arange(256) / 255) ** w["power"] * 255).astype(numpy.uint8))[x.long()],
    "clahe": clahe,
    "jpeg": jpeg,
    "perspective": perspective,
    "pad": lambda x, w: F.pad(x, w["padding"], padding_mode=w["mode"]),
    "gaussian_blur": lambda x, w: F.gaussian_blur(x, w["kernel"], [w["sigma"]] * 2),
    "grayscale": lambda x, w: F.rgb_to_grayscale(x, 3),
    "solarize": lambda x, w: F.solarize(x, w["amount"]),
    "posterize": lambda x, w: F.posterize(x, w["amount"]),
    "adjust_sharpness": lambda x, w: F.adjust_sharpness(x, w["amount"]),
}
SHAPES = ["crop", "resized_crop", "resize", "resize_by", "rotate", "affine", "perspective", "elastic", "pad"]
SHAPES += ["horizontal_flip", "vertical_flip"]
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

    if with_.get("by") == "bicubic":
        # Only of images of Pillow.
        tensors = change
        change = lambda x, w: (
            F.pil_to_tensor(tensors(F.to_pil_image(x), w)) if isinstance(x, tv_tensors.Image) else tensors(x, w)
        )
    expected, got = change(tv_tensors.Image(image), with_), read(after["name"] + ".png").permute(2, 0, 1)
    expected = expected.int()
    if expected.shape != got.shape:
        wrong.append(f"{case}: of {tuple(got.shape)}, not {tuple(expected.shape)}")
        continue
    off = (expected - got).abs().amax(0)
    if name == "aug_mix":
        found["pixels of other places"] = (off > 3).float().mean().item()
        off = off[off <= 3]
    if name in ("rotate", "affine", "perspective", "elastic"):
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
            if name == "elastic":
                # Some releases have no shifts at the far edges.
                before["boxes"], after["boxes"] = before["boxes"][:1], after["boxes"][:1]
            boxes = tv_tensors.BoundingBoxes(before["boxes"], format="XYXY", canvas_size=size)
            found["pixels of boxes"] = (change(boxes, with_) - torch.tensor(after["boxes"])).abs().max().item()
            points = tv_tensors.KeyPoints(before["points"], canvas_size=size)
            found["pixels of points"] = (change(points, with_) - torch.tensor(after["points"])).abs().max().item()

    limits = {"levels": 4 if name == "distort" else 2, "pixels of boxes": 0.01, "pixels of points": 0.01}
    limits["numbers of other places"] = 0 if name in RESIZES else 0.01
    if name == "elastic":
        # torchvision rounds places to pixels.
        limits["pixels of boxes"] = limits["pixels of points"] = 2
    if name == "aug_mix":
        # `Equalize` and `Posterize` make many levels of one.
        limits["pixels of other places"] = 0.15
    if name == "jpeg":
        # A value between two steps may go to either.
        found = {"levels on average": (expected - got).abs().float().mean().item()}
        limits["levels on average"] = 2
    if name in ("aug_mix", "clahe"):
        limits["levels"] = 3 if name == "aug_mix" else 6
    for what, amount in found.items():
        worst[name, what] = max(worst.get((name, what), 0), amount)
        if amount > limits.get(what, 0.01):
            wrong.append(f"{amount} {what}: {case}")

policies = json.load(open(folder / "policies.json"))
for policy, counts in zip(AutoAugmentPolicy, policies["counts"]):
    expected, made = Counter(), AutoAugment(policy)
    for pair in made._policies:
        for name, probability, magnitude in pair:
            strengths, signed = made._AUGMENTATION_SPACE[name]
            strengths = strengths(10, 331, 331)
            strength = 0.0 if strengths is None else float(strengths[magnitude])
            for sign in (1, -1) if signed else (1,):
                expected[name, round(sign * strength, 3)] += probability / 25 / (2 if signed else 1)
    got = Counter()
    for op, count in counts.items():
        name, strength = json.loads(op)
        if name == "Solarize":
            name, strength = ("Invert", 0.0) if strength == 0 else (name, strength / 255)
        if name.startswith("Translate"):
            # torchvision cuts it when it is used.
            strength = min((s for n, s in expected if n == name), key=lambda s: abs(s - strength))
        strength -= name in ("Brightness", "Color", "Contrast", "Sharpness")
        got[name, round(strength, 3)] += count / policies["draws"]
    off = max(abs(got[key] - expected[key]) for key in got.keys() | expected.keys())
    worst["auto_augment", "of the draws"] = max(worst.get(("auto_augment", "of the draws"), 0), off)
    if off > 0.005:
        wrong.append(f"{policy}: {off} of the draws")

for (name, what), amount in sorted(worst.items()):
    print(f"{name}: {amount:.4f} {what}")
print(f"torchvision: {len(wrong)} differ")
sys.exit("\n".join(wrong) or 0)
