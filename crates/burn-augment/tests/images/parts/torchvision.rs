//! Changes with drawn parameters, written for torchvision, which makes the same: `.ci/torchvision`.

use super::{png, red, rng};
use crate::photo::photo;
use burn_augment::{Augment, KeyedRng, images::*};
use image::{DynamicImage, RgbImage};
use serde_json::{Value, json};
use std::{fs, io::Write, path::PathBuf};

type Sample = (RgbImage, Mask, Boxes, Points);

/// A sample of all parts.
struct All(Sample);

impl HasImage for All {
    type Image = RgbImage;
    fn image_mut(&mut self) -> &mut RgbImage {
        &mut self.0.0
    }
    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        let (_, mask, boxes, points) = &mut self.0;
        vec![Part::Mask(mask), Part::Boxes(boxes), Part::Points(points)]
    }
}

/// What is written of a sample: two files, and the numbers of its boxes and points.
fn written(folder: &std::path::Path, name: &str, (image, mask, boxes, points): &Sample) -> Value {
    let numbers = DynamicImage::ImageLuma16(mask.to_numbers().unwrap());
    for (end, file) in [("png", png(image.clone())), ("mask.png", png(numbers))] {
        fs::write(folder.join(format!("{name}.{end}")), file).unwrap();
    }
    json!({"name": name, "boxes": boxes.xyxy(), "labels": boxes.labels(), "points": points.xy()})
}

/// The name of an operation, and its strength.
fn operation(op: &RandAugmentOp) -> Value {
    let text = format!("{op:?}");
    let (name, strength) = text.trim_end_matches(')').split_once('(').unwrap_or((&text, "0"));
    json!([name, strength.parse::<f64>().unwrap()])
}

/// How often each operation is drawn with each strength, for `compare.py`.
fn policies() -> Value {
    let policies = [AutoAugmentPolicy::ImageNet, AutoAugmentPolicy::Cifar10, AutoAugmentPolicy::Svhn];
    let counts = policies.map(|policy| {
        let mut counts = std::collections::BTreeMap::new();
        for nth in 0..50_000 {
            for op in AutoAugment::new(policy).draw(331, 331, &mut rng(nth)) {
                *counts.entry(operation(&op).to_string()).or_insert(0) += 1;
            }
        }
        counts
    });
    json!({"draws": 50_000, "counts": counts})
}

#[test]
#[ignore = "writes for Python: run .ci/torchvision"]
fn changes_for_torchvision() {
    let folder =
        PathBuf::from(std::env::var_os("BURN_PINNED_TORCHVISION").expect("BURN_PINNED_TORCHVISION names a folder"));
    fs::write(folder.join("policies.json"), policies().to_string()).unwrap();
    let mut lines = fs::File::create(folder.join("changes.jsonl")).unwrap();
    let mut nth = 0;
    let mut write = |name: &str,
                     change: &dyn Fn(All, &mut KeyedRng) -> All,
                     with: &dyn Fn((u32, u32), &mut KeyedRng) -> Value| {
        for size in [(97, 71), (64, 64), (33, 120)] {
            nth += 1;
            let image = photo(size.0, size.1);
            let edges = [[3.0, 5.0, 20.5, 30.0], [10.0, 20.0, 33.0, 64.0], [0.0, 0.0, size.0 as f32, size.1 as f32]];
            let boxes = Boxes::new(edges, [0, 1, 2], BoxFormat::Xyxy)
                .unwrap()
                .least_side(0.0)
                .unwrap()
                .least_area(0.0)
                .unwrap();
            let points = Points::new([[3.0, 5.0], [20.5, 30.25]]).unwrap();
            let sample: Sample = (image.clone(), Mask::from(red(&image)).fill(0), boxes, points);
            let before = written(&folder, &format!("{nth}.before"), &sample);
            let after = written(&folder, &format!("{nth}.after"), &change(All(sample), &mut rng(nth)).0);
            let with = with(size, &mut rng(nth));
            writeln!(lines, "{}", json!({"change": name, "with": with, "before": before, "after": after})).unwrap();
        }
    };
    macro_rules! case {
        ($name:literal, $augment:expr, |$size:pat_param, $rng:ident| $with:expr) => {
            let augment = $augment;
            write($name, &|sample, rng| augment.apply(sample, rng).unwrap(), &|$size, $rng| {
                let _ = &$rng;
                $with
            });
        };
    }
    let part = |part: CropBox| json!({"top": part.top, "left": part.left, "height": part.height, "width": part.width});
    let (smooth, nearest) = (Interpolation::Bilinear, Interpolation::Nearest);
    for _ in 0..4 {
        let crop = RandomCrop::new(30).unwrap();
        case!("crop", crop.clone(), |(w, h), rng| part(crop.draw(w, h, rng).unwrap()));
        let crop = RandomCrop::new(80).unwrap().padding(40);
        case!("crop", crop.clone(), |(w, h), rng| part(crop.draw(w, h, rng).unwrap()));
        let crop = RandomResizedCrop::new([40, 56]).unwrap();
        case!("resized_crop", crop, |(w, h), rng| json!({"part": part(crop.draw(w, h, rng)), "size": [40, 56]}));
        for (by, name) in [(nearest, "nearest"), (smooth, "bilinear"), (Interpolation::Bicubic, "bicubic")] {
            let turn = RandomRotation::new(180.0).unwrap().interpolation(by);
            for expand in [false, true] {
                let turn = turn.expand(expand);
                case!("rotate", turn, |_, rng| json!({"angle": turn.draw(rng), "by": name, "expand": expand}));
            }
            let about = turn.center(20.0, 51.5).unwrap();
            case!(
                "rotate",
                about,
                |_, rng| json!({"angle": about.draw(rng), "by": name, "expand": false, "center": [20.0, 51.5]})
            );
            let about =
                RandomAffine::new(90.0).unwrap().scale(0.7, 1.5).unwrap().interpolation(by).center(20.0, 51.5).unwrap();
            case!("affine", about, |(w, h), rng| {
                let Affine { angle, scale, .. } = about.draw(w, h, rng);
                json!({"angle": angle, "translate": [0, 0], "scale": scale, "shear": [0.0, 0.0], "by": name, "center": [20.0, 51.5]})
            });
            let affine = RandomAffine::new(90.0).unwrap().translate(0.2, 0.3).unwrap().scale(0.7, 1.5).unwrap();
            let affine = affine.shear(30.0, (-20.0, 10.0)).unwrap().interpolation(by);
            case!("affine", affine, |(w, h), rng| {
                let Affine { angle, translate, scale, shear } = affine.draw(w, h, rng);
                json!({"angle": angle, "translate": translate.map(|by| by as i64), "scale": scale, "shear": shear, "by": name})
            });
            let tilt = RandomPerspective::new(0.7, 1.0).unwrap().interpolation(by);
            case!("perspective", tilt, |(w, h), rng| json!({"corners": tilt.draw(w, h, rng).unwrap(), "by": name}));
        }
        for (by, name) in [(nearest, "nearest"), (smooth, "bilinear")] {
            let wave = ElasticTransform::new(120.0, 4.0).unwrap().interpolation(by);
            case!("elastic", wave, |(w, h), rng| json!({"shifts": wave.draw(w, h, rng), "by": name}));
        }
        let mix = AugMix::new(10, 3).unwrap().interpolation(nearest);
        case!("aug_mix", mix, |(w, h), rng| {
            let chains = mix.draw(w, h, rng).into_iter();
            let chains = chains.map(|(share, chain)| json!([share, chain.iter().map(operation).collect::<Vec<_>>()]));
            json!({"chains": chains.collect::<Vec<_>>()})
        });
        let gamma = RandomGamma::new(30.0, 250.0).unwrap();
        case!("gamma", gamma, |_, rng| json!({"power": gamma.draw(rng)}));
        let local = CLAHE::new(1.0, 4.0).unwrap();
        case!("clahe", local, |_, rng| json!({"limit": local.draw(rng)}));
        let saved = JPEG::new(5..=100).unwrap();
        case!("jpeg", saved, |_, rng| json!({"quality": saved.draw(rng)}));
        let blur = GaussianBlur::new([7, 11]).unwrap().sigma(0.3, 4.0).unwrap();
        case!("gaussian_blur", blur, |_, rng| json!({"kernel": [11, 7], "sigma": blur.draw(rng)}));
    }
    for size in [[33, 47], [130, 200], [71, 20]] {
        case!("resize", Resize::exact(size).unwrap(), |_, _rng| json!({"size": size}));
    }
    for (side, most) in [(40, None), (90, None), (40, Some(60)), (64, Some(65))] {
        let resize = Resize::shorter_side(side).unwrap();
        let resize = most.map_or(resize, |most| resize.max_size(most).unwrap());
        case!("resize_by", resize, |_, _rng| json!({"size": [side], "most": most}));
    }
    for side in [30, 64, 150] {
        case!("resize_by", Resize::longer_side(side).unwrap(), |_, _rng| json!({"size": null, "most": side}));
    }
    for _ in 0..4 {
        let jitter = RandomResize::scale_jitter([60, 90], 0.3, 2.0).unwrap();
        case!("resize", jitter.clone(), |(w, h), rng| {
            let Size { height, width } = jitter.draw(w, h, rng).unwrap();
            json!({"size": [height, width]})
        });
        let zoom = RandomZoomOut::new(1.0).unwrap();
        case!("pad", zoom, |(w, h), rng| json!({"padding": zoom.draw(w, h, rng).unwrap(), "mode": "constant"}));
        let distort = RandomPhotometricDistort::new(0.5).unwrap();
        case!("distort", distort.clone(), |_, rng| {
            let (changes, channels) = distort.draw(rng);
            let change = |change: Adjust| match change {
                Adjust::Brightness(by) => json!(["brightness", by]),
                Adjust::Contrast(by) => json!(["contrast", by]),
                Adjust::Saturation(by) => json!(["saturation", by]),
                Adjust::Hue(by) => json!(["hue", by]),
            };
            json!({"changes": changes.into_iter().map(change).collect::<Vec<_>>(), "channels": channels})
        });
    }
    for (mode, name) in [
        (PaddingMode::Constant, "constant"),
        (PaddingMode::Edge, "edge"),
        (PaddingMode::Reflect, "reflect"),
        (PaddingMode::Symmetric, "symmetric"),
    ] {
        let pad = Pad::each([9, 0, 3, 20]).padding_mode(mode);
        case!("pad", pad, |_, _rng| json!({"padding": [9, 0, 3, 20], "mode": name}));
    }
    case!("horizontal_flip", RandomHorizontalFlip::new(1.0).unwrap(), |_, _rng| json!({}));
    case!("vertical_flip", RandomVerticalFlip::new(1.0).unwrap(), |_, _rng| json!({}));
    case!("equalize", RandomEqualize::new(1.0).unwrap(), |_, _rng| json!({}));
    case!("autocontrast", RandomAutocontrast::new(1.0).unwrap(), |_, _rng| json!({}));
    case!("invert", RandomInvert::new(1.0).unwrap(), |_, _rng| json!({}));
    case!("grayscale", Grayscale, |_, _rng| json!({}));
    for amount in [0, 3, 100, 255] {
        case!("solarize", RandomSolarize::new(amount, 1.0).unwrap(), |_, _rng| json!({"amount": amount}));
    }
    for amount in [0, 1, 4, 8] {
        case!("posterize", RandomPosterize::new(amount, 1.0).unwrap(), |_, _rng| json!({"amount": amount}));
    }
    for amount in [0.0, 0.5, 3.0] {
        case!(
            "adjust_sharpness",
            RandomAdjustSharpness::new(amount, 1.0).unwrap(),
            |_, _rng| json!({"amount": amount})
        );
    }
}
