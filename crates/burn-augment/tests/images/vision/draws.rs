//! The drawn parameters have torchvision's distributions.

use super::{apply, greys, rng, statistics::*};
use burn_augment::{
    Augment, KeyedRng,
    augment::{OneOf, RandomApply},
    images::*,
};
use image::{Rgb, RgbImage};

const N: usize = 20_000;

#[test]
fn resized_crops_area_aspect_and_place() {
    // So large that rounding to pixels does not show, and a range of areas that always fits: no second tries.
    let side = 1_000_000;
    let crop = RandomResizedCrop::new(224).unwrap().scale(0.08, 0.5).unwrap();
    let boxes: Vec<CropBox> = (0..N).map(|nth| crop.draw(side, side, &mut rng(nth))).collect();
    let of = |value: fn(&CropBox) -> f64| boxes.iter().map(value).collect::<Vec<f64>>();
    follows("area", of(|part| f64::from(part.width) * f64::from(part.height) / 1e12), uniform(0.08, 0.5));
    let (low, high) = (0.75f64.ln(), (4f64 / 3.0).ln());
    follows("log of the ratio", of(|part| (f64::from(part.width) / f64::from(part.height)).ln()), uniform(low, high));
    follows("left", of(|part| part.left as f64 / (1e6 - f64::from(part.width))), uniform(0.0, 1.0));
    follows("top", of(|part| part.top as f64 / (1e6 - f64::from(part.height))), uniform(0.0, 1.0));
}

#[test]
fn resized_crops_that_never_fit_are_central() {
    let crop = RandomResizedCrop::new(224).unwrap();
    // Wide: as high as the image, 4:3. High: as wide, 3:4. A line of pixels: at least one pixel.
    let at = |width, height| crop.draw(width, height, &mut rng(0));
    let wide = crop.scale(1.0, 1.0).unwrap().draw(1000, 30, &mut rng(0));
    assert_eq!(wide, CropBox { left: 480, top: 0, width: 40, height: 30 });
    let high = crop.scale(1.0, 1.0).unwrap().draw(30, 1000, &mut rng(0));
    assert_eq!(high, CropBox { left: 0, top: 480, width: 30, height: 40 });
    // The whole area of a square in another proportion does not fit into the square. After ten tries, the crop is the
    // whole square.
    let all = RandomResizedCrop::new(8).unwrap().scale(1.0, 1.0).unwrap().ratio(0.1, 10.0).unwrap();
    let whole = CropBox { left: 0, top: 0, width: 100, height: 100 };
    assert!((0..1000).filter(|nth| all.draw(100, 100, &mut rng(*nth)) == whole).count() > 900);
    for (width, height) in [(1, 1), (1, 5000), (5000, 1), (2, 3)] {
        let part = at(width, height);
        assert!((1..=width).contains(&part.width) && (1..=height).contains(&part.height));
    }
}

#[test]
fn crops_are_anywhere_with_and_without_padding() {
    let crop = RandomCrop::new([8, 8]).unwrap().padding(4);
    let mut counts = [[0; 9]; 2];
    for nth in 0..N {
        let part = crop.draw(8, 8, &mut rng(nth)).unwrap();
        counts[0][(part.left + 4) as usize] += 1;
        counts[1][(part.top + 4) as usize] += 1;
    }
    even("left", &counts[0]);
    even("top", &counts[1]);
    let wide = RandomCrop::new([2, 10]).unwrap().pad_if_needed(true);
    let mut counts = [0; 9];
    for nth in 0..N {
        let part = wide.draw(6, 2, &mut rng(nth)).unwrap();
        assert_eq!((part.top, part.width, part.height), (0, 10, 2));
        counts[(part.left + 4) as usize] += 1; // 4 columns are missing and are added on both sides: 14 for 10
    }
    even("pad if needed", &counts[..5]);
    assert_eq!(counts[5..], [0; 4]);
    let each = RandomCrop::new(10).unwrap().padding_each([1, 2, 3, 4]);
    let parts: Vec<CropBox> = (0..200).map(|nth| each.draw(10, 10, &mut rng(nth)).unwrap()).collect();
    assert!(parts.iter().all(|part| (-1..=3).contains(&part.left) && (-2..=4).contains(&part.top)));
}

#[test]
fn flips_and_choices_are_as_likely_as_said() {
    let image = greys(&[[1, 2], [3, 4]]);
    let hits = |augment: &dyn Fn(usize) -> bool| (0..N).filter(|nth| augment(*nth)).count();
    for p in [0.0, 0.1, 0.5, 1.0] {
        let flip = RandomHorizontalFlip::new(p).unwrap();
        likely("horizontal flip", hits(&|nth| apply(&flip, &image, nth) != image), N, p);
        let flip = RandomVerticalFlip::new(p).unwrap();
        likely("vertical flip", hits(&|nth| apply(&flip, &image, nth) != image), N, p);
        let grey = RandomGrayscale::new(p).unwrap();
        let red = RgbImage::from_pixel(1, 1, Rgb([200, 0, 0]));
        likely("grey", hits(&|nth| apply(&grey, &red, nth) != red), N, p);
        let erase = RandomErasing::new(p).unwrap();
        likely("erasing", hits(&|nth| erase.draw(100, 100, &mut rng(nth)).is_some()), N, p);
        let some = RandomApply::new(p, |x: u8, _: &mut KeyedRng| Ok(x + 1)).unwrap();
        likely("RandomApply", hits(&|nth| some.apply(0, &mut rng(nth)).unwrap() == 1), N, p);
    }
    let add = |by: usize| move |x: usize, _: &mut KeyedRng| Ok(x + by);
    let one = OneOf::new(add(0)).or(add(1)).or(add(2));
    let counts = |one: &OneOf<usize>| {
        let mut counts = [0; 3];
        (0..N).for_each(|nth| counts[one.apply(0, &mut rng(nth)).unwrap()] += 1);
        counts
    };
    even("OneOf", &counts(&one));
    let weighed = counts(&one.clone().weights(&[3.0, 0.0, 1.0]).unwrap());
    assert_eq!(weighed[1], 0);
    likely("OneOf with weights", weighed[0], N, 0.75);
    assert_eq!(counts(&one.weights(&[0.0, 5.0, 0.0]).unwrap())[1], N);
    let none: Option<RandomGrayscale> = None;
    assert_eq!(apply(&none, &image, 0), image);
}

#[test]
fn jitter_factors_and_their_order() {
    let jitter = ColorJitter::new().brightness(0.4).unwrap().contrast((0.5, 3.0)).unwrap();
    let jitter = jitter.saturation(1.5).unwrap().hue(0.1).unwrap();
    let mut factors: [Vec<f64>; 4] = Default::default();
    let mut orders = [0; 24];
    for nth in 0..N {
        let drawn = jitter.draw(&mut rng(nth));
        let kinds: Vec<usize> = drawn
            .iter()
            .map(|adjust| {
                let (kind, factor) = match *adjust {
                    Adjust::Brightness(factor) => (0, factor),
                    Adjust::Contrast(factor) => (1, factor),
                    Adjust::Saturation(factor) => (2, factor),
                    Adjust::Hue(factor) => (3, factor),
                };
                factors[kind].push(f64::from(factor));
                kind
            })
            .collect();
        assert_eq!(kinds.len(), 4);
        // The number of the permutation: how many smaller ones follow each.
        let smaller = |at: usize| kinds[at + 1..].iter().filter(|kind| **kind < kinds[at]).count();
        orders[smaller(0) * 6 + smaller(1) * 2 + smaller(2)] += 1;
    }
    let [brightness, contrast, saturation, hue] = factors;
    follows("brightness", brightness, uniform(0.6, 1.4));
    follows("contrast", contrast, uniform(0.5, 3.0));
    follows("saturation", saturation, uniform(0.0, 2.5)); // 1 - 1.5 is cut off at 0
    follows("hue", hue, uniform(-0.1, 0.1));
    even("order", &orders);
    let none = ColorJitter::new().brightness(0.0).unwrap().hue(0.0).unwrap();
    assert_eq!(none.draw(&mut rng(0)), []);
}

#[test]
fn angles_are_uniform() {
    let angles = |rotation: RandomRotation| (0..N).map(|nth| rotation.draw(&mut rng(nth))).collect();
    follows("around", angles(RandomRotation::new(15.0).unwrap()), uniform(-15.0, 15.0));
    follows("between", angles(RandomRotation::new((20.0, 90.0)).unwrap()), uniform(20.0, 90.0));
}

#[test]
fn erased_area_aspect_and_place() {
    let side = 1_000_000;
    // Fits for every ratio up to 3.3: 0.2 * 3.3 < 1.
    let erase = RandomErasing::new(1.0).unwrap().scale(0.02, 0.2).unwrap();
    let boxes: Vec<CropBox> = (0..N).filter_map(|nth| erase.draw(side, side, &mut rng(nth))).collect();
    assert_eq!(boxes.len(), N);
    let of = |value: fn(&CropBox) -> f64| boxes.iter().map(value).collect::<Vec<f64>>();
    follows("area", of(|part| f64::from(part.width) * f64::from(part.height) / 1e12), uniform(0.02, 0.2));
    let (low, high) = (0.3f64.ln(), 3.3f64.ln());
    follows("log of the ratio", of(|part| (f64::from(part.height) / f64::from(part.width)).ln()), uniform(low, high));
    follows("left", of(|part| part.left as f64 / (1e6 - f64::from(part.width))), uniform(0.0, 1.0));
    follows("top", of(|part| part.top as f64 / (1e6 - f64::from(part.height))), uniform(0.0, 1.0));
    // A rectangle as large as the image is never erased.
    let all = RandomErasing::new(1.0).unwrap().scale(1.0, 1.0).unwrap().ratio(1.0, 1.0).unwrap();
    assert!((0..100).all(|nth| all.draw(64, 64, &mut rng(nth)).is_none()));
}

/// The number of the operation, and how far its strength is from no change.
fn kind(op: RandAugmentOp) -> (usize, f64) {
    use RandAugmentOp as Op;
    match op {
        Op::Identity => (0, 0.0),
        Op::ShearX(by) => (1, by),
        Op::ShearY(by) => (2, by),
        Op::TranslateX(by) => (3, by),
        Op::TranslateY(by) => (4, by),
        Op::Rotate(by) => (5, by),
        Op::Brightness(by) => (6, f64::from(by) - 1.0),
        Op::Color(by) => (7, f64::from(by) - 1.0),
        Op::Contrast(by) => (8, f64::from(by) - 1.0),
        Op::Sharpness(by) => (9, f64::from(by) - 1.0),
        Op::Posterize(bits) => (10, 8.0 - f64::from(bits)),
        Op::Solarize(from) => (11, 255.0 - f64::from(from)),
        Op::AutoContrast => (12, 0.0),
        Op::Equalize => (13, 0.0),
        other => panic!("{other:?} is new"),
    }
}

/// These kinds have a sign.
const SIGNED: std::ops::RangeInclusive<usize> = 1..=9;

#[test]
fn rand_augment_draws_each_operation_with_torchvisions_strength() {
    let augment = RandAugment::new(3, 15).unwrap(); // 15 of 30: half of the strength
    let half = [0.0, 0.15, 0.15, 75.0, 150.0, 15.0, 0.45, 0.45, 0.45, 0.45, 2.0, 127.5, 0.0, 0.0];
    let mut counts = [0; 14];
    let mut negative = 0;
    for nth in 0..N {
        let drawn = augment.draw(331, 662, &mut rng(nth));
        assert_eq!(drawn.len(), 3);
        for op in drawn {
            let (kind, by) = kind(op);
            let size = if SIGNED.contains(&kind) { by.abs() } else { by };
            assert!((size - half[kind]).abs() < 1e-6, "{op:?}");
            counts[kind] += 1;
            negative += usize::from(by < 0.0);
        }
    }
    even("operations", &counts);
    likely("negative", negative, counts[SIGNED].iter().sum(), 0.5);
}

#[test]
fn trivial_augment_draws_each_operation_with_each_of_torchvisions_strengths() {
    let most = [0.0, 0.99, 0.99, 32.0, 32.0, 135.0, 0.99, 0.99, 0.99, 0.99, 6.0, 255.0, 0.0, 0.0];
    let augment = TrivialAugmentWide::default();
    for (augment, bins) in [(augment, 31), (augment.num_magnitude_bins(2).unwrap(), 2)] {
        let last = (bins - 1) as f64;
        let mut counts = [0; 14];
        let mut of_bin = vec![[0; 14]; bins];
        let mut bits = [0; 9];
        let (mut signed, mut negative) = (0, 0);
        for nth in 0..N {
            let op = augment.draw(&mut rng(nth));
            let (kind, by) = kind(op);
            counts[kind] += 1;
            match kind {
                0 | 12 | 13 => continue,
                10 => bits[8 - by as usize] += 1,
                _ => {
                    let size = if SIGNED.contains(&kind) { by.abs() } else { by };
                    // Shifts are cut to whole pixels: 14 of 30 is 14.93 pixels, so 14 pixels.
                    let bin = (size / most[kind] * last - 1e-4).ceil();
                    let exact = bin / last * most[kind];
                    let expected = if let 3 | 4 = kind { exact.trunc() } else { exact };
                    assert!((size - expected).abs() < 1e-5, "{op:?}");
                    of_bin[bin as usize][kind] += 1;
                    signed += usize::from(SIGNED.contains(&kind) && by != 0.0);
                    negative += usize::from(by < 0.0);
                }
            }
        }
        even("operations", &counts);
        likely("negative", negative, signed, 0.5);
        for kind in SIGNED.chain([11]) {
            let of_kind: Vec<usize> = of_bin.iter().map(|counts| counts[kind]).collect();
            even("bins", &of_kind);
        }
        // Rounded: three of 31 bins take no bits, five take one, and so on.
        let shares: [f64; 9] = match bins {
            31 => [0.0, 0.0, 3.0, 5.0, 5.0, 5.0, 5.0, 5.0, 3.0].map(|share| share / 31.0),
            _ => [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5],
        };
        for (kept, share) in shares.into_iter().enumerate() {
            likely(&format!("{kept} bits"), bits[kept], counts[10], share);
        }
    }
}
