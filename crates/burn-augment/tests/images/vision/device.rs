//! The changes of batches on the device.

use super::{rng, statistics::*};
use burn::prelude::*;
use burn::tensor::{DType, TensorData};
use burn_augment::{
    KeyedRng,
    images::{
        Erased, PaddingMode, RandomCrop, RandomErasing, RandomHorizontalFlip, RandomVerticalFlip,
        device::{
            CutMix, MixUp, Pixel, normalize, one_hot, random_crop, random_erasing, random_horizontal_flip,
            random_vertical_flip,
        },
        write_chw,
    },
};
use image::RgbImage;

fn device() -> Device {
    Device::flex()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec::<f32>().unwrap()
}

/// All values of image `n` are `n`.
fn plain(count: usize, side: usize) -> Tensor<4> {
    let data = (0..count * side * side).map(|at| (at / (side * side)) as f32).collect();
    Tensor::from_data(TensorData::new(data, [count, 1, side, side]), &device())
}

#[test]
fn normalising_is_by_channel() {
    let bytes = TensorData::from_bytes_vec(vec![0, 255, 51, 102], [1, 2, 1, 2], DType::U8);
    let images = || Tensor::<4, Int>::from_data(bytes.clone(), (&device(), DType::U8));
    let normal = values(normalize(images(), &[0.5, 0.2], &[0.5, 0.1]).unwrap());
    // (0 - 0.5) / 0.5, (1 - 0.5) / 0.5, (0.2 - 0.2) / 0.1, (0.4 - 0.2) / 0.1
    for (value, expected) in normal.iter().zip([-1.0f32, 1.0, 0.0, 2.0]) {
        assert!((value - expected).abs() < 1e-5, "{normal:?}");
    }
    assert!(normalize(images(), &[0.5], &[0.5, 0.1]).is_err());
    assert!(normalize(images(), &[0.5, 0.2], &[0.5, 0.0]).is_err());
}

#[test]
fn each_image_is_flipped_by_itself() {
    let count = 4000;
    let data = (0..count * 3).map(|at| (at % 3) as f32).collect();
    let images = Tensor::<4>::from_data(TensorData::new(data, [count, 1, 1, 3]), &device());
    let flipped = values(random_horizontal_flip(images.clone(), 0.3, &mut rng(0)).unwrap());
    let hits = flipped.chunks(3).filter(|row| **row == [2.0, 1.0, 0.0]).count();
    assert_eq!(hits + flipped.chunks(3).filter(|row| **row == [0.0, 1.0, 2.0]).count(), count);
    likely("flips", hits, count, 0.3);
    let again = values(random_horizontal_flip(images.clone(), 0.3, &mut rng(0)).unwrap());
    assert_eq!(again, flipped, "the generator alone decides");
    assert!(random_horizontal_flip(images, 2.0, &mut rng(0)).is_err());
}

#[test]
fn labels_become_rows() {
    let labels = Tensor::<1, Int>::from_data(TensorData::new(vec![2i32, 0], [2]), (&device(), DType::I32));
    assert_eq!(values(one_hot(labels, 3)), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn mixup_mixes_with_the_neighbour() {
    let mixup = MixUp::new(1.0).unwrap();
    follows("Beta(1, 1) is uniform", (0..5000).map(|nth| mixup.draw(&mut rng(nth))).collect(), uniform(0.0, 1.0));
    // Beta(1/2, 1/2) is the arcsine distribution, Beta(2, 2) has the distribution function 3 x^2 - 2 x^3.
    let draws = |alpha| (0..5000).map(|nth| MixUp::new(alpha).unwrap().draw(&mut rng(nth))).collect();
    follows("Beta(0.5, 0.5)", draws(0.5), |x| 2.0 / std::f64::consts::PI * x.sqrt().asin());
    follows("Beta(2, 2)", draws(2.0), |x| 3.0 * x * x - 2.0 * x * x * x);

    let targets = Tensor::<2>::eye(3, &device());
    let share = mixup.draw(&mut rng(5)) as f32;
    let (images, targets) = mixup.apply(plain(3, 2), targets, &mut rng(5));
    assert_eq!(images.dims(), [3, 1, 2, 2]);
    for (at, value) in values(images).into_iter().enumerate() {
        let own = (at / 4) as f32;
        let other = ((at / 4 + 2) % 3) as f32;
        assert!((value - share * own - (1.0 - share) * other).abs() < 1e-5);
    }
    let rest = 1.0 - share;
    let expected = [share, 0.0, rest, rest, share, 0.0, 0.0, rest, share];
    assert!(values(targets).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5));
}

#[test]
fn the_smallest_alpha_gives_shares_too() {
    let mixup = MixUp::new(f64::MIN_POSITIVE).unwrap();
    assert!((0..400).all(|nth| (0.0..=1.0).contains(&mixup.draw(&mut rng(nth)))));
}

/// They are a promise too, for every system: `ln` and `exp` of systems differ in the last bits of some of these.
#[test]
fn the_draws_of_mixes() {
    let mut wrong = String::new();
    for (alpha, expected) in [
        (1e-3, 0xC09D_6A78_D0AA_2766),
        (0.2, 0xF030_C6D4_AB4C_9B72),
        (0.4, 0xB83F_08A2_2D7F_34F3),
        (1.0, 0x2510_69FB_947F_7B38),
        (1.5, 0x01A7_3E73_E913_EEA6),
        (8.0, 0xE129_785E_8BE7_8227),
        (1e6, 0x8661_6C7C_74F1_5B87),
    ] {
        let (mixup, cutmix) = (MixUp::new(alpha).unwrap(), CutMix::new(alpha).unwrap());
        let shares = (0..400).map(|nth| mixup.draw(&mut rng(nth)).to_bits());
        let patches = (0..400).map(|nth| cutmix.draw(1 << 40, 1 << 40, &mut rng(nth)));
        let edges = patches.flat_map(|patch| [patch.x.start, patch.x.end, patch.y.start, patch.y.end]);
        let hash = shares
            .chain(edges.map(|edge| edge as u64))
            .fold(0xCBF2_9CE4_8422_2325u64, |hash, number| (hash ^ number).wrapping_mul(0x100_0000_01B3));
        if hash != expected {
            wrong += &format!("\n({alpha}, {hash:#018X})");
        }
    }
    assert!(wrong.is_empty(), "other draws than promised:{wrong}");
}

#[test]
fn cutmix_puts_in_a_rectangle_of_the_neighbour() {
    let cutmix = CutMix::new(1.0).unwrap();
    let side = 16;
    let mut seen = 0;
    for nth in 0..50 {
        let patch = cutmix.draw(side, side, &mut rng(nth));
        assert!(patch.x.end <= side && patch.y.end <= side);
        let (images, targets) = cutmix.apply(plain(3, side), Tensor::eye(3, &device()), &mut rng(nth));
        for (at, value) in values(images).into_iter().enumerate() {
            let (image, y, x) = (at / (side * side), at / side % side, at % side);
            let inside = patch.x.contains(&x) && patch.y.contains(&y);
            seen += usize::from(inside);
            assert_eq!(value, if inside { (image + 2) % 3 } else { image } as f32);
        }
        let share = 1.0 - (patch.x.len() * patch.y.len()) as f32 / (side * side) as f32;
        let targets = values(targets);
        assert!((targets[0] - share).abs() < 1e-5 && (targets[2] - (1.0 - share)).abs() < 1e-5, "{targets:?}");
    }
    assert!(seen > 0);
    // The area that stays is uniform for alpha = 1 where nothing is cut off at the border; the middle is uniform everywhere.
    let large = 1_000_000;
    let patches: Vec<_> = (0..20_000).map(|nth| cutmix.draw(large, large, &mut rng(nth))).collect();
    let inner = patches.iter().filter(|p| p.x.start > 0 && p.x.end < large && p.y.start > 0 && p.y.end < large);
    let ratio = inner.clone().map(|p| p.x.len() as f64 / p.y.len().max(1) as f64);
    assert!(
        ratio.clone().count() > 1000 && ratio.into_iter().all(|ratio| (ratio - 1.0).abs() < 0.2),
        "the images' proportions"
    );
    // For a half side h the middle lies within [h, 1 - h] both ways with probability (1 - 2 h)^2; 2 h is sqrt(1 - share), and with
    // u = 1 - share uniform the mean of (1 - sqrt(u))^2 is 1 - 4/3 + 1/2 = 1/6.
    likely("patches that are not cut off", inner.count(), patches.len(), 1.0 / 6.0);
}

/// Bytes, as they come from a loader.
fn bytes(count: usize, side: usize) -> Tensor<4, Int> {
    let bytes = (0..count * 3 * side * side).map(|at| (at * 37 % 256) as u8).collect();
    let data = TensorData::from_bytes_vec(bytes, [count, 3, side, side], DType::U8);
    Tensor::from_data(data, (&device(), DType::U8))
}

#[test]
fn bytes_become_what_floats_become() {
    let targets = |count| Tensor::<2>::eye(count, &device());
    let (mixup, cutmix) = (MixUp::new(1.0).unwrap(), CutMix::new(1.0).unwrap());
    for (nth, count) in [(0, 1), (1, 2), (2, 5), (3, 5), (4, 5)] {
        let images = bytes(count, 12);
        assert_eq!(images.dtype(), DType::U8);
        let rng = || rng(nth);
        let normal = |images| values(normalize(images, &[0.4, 0.5, 0.6], &[0.2, 0.3, 0.4]).unwrap());
        let floats = images.clone().float();
        assert_eq!(
            normal(images.clone()),
            values(normalize(floats.clone(), &[0.4, 0.5, 0.6], &[0.2, 0.3, 0.4]).unwrap())
        );

        let flipped = random_horizontal_flip(images.clone(), 0.5, &mut rng()).unwrap();
        assert_eq!(flipped.dtype(), DType::U8);
        assert_eq!(values(flipped.float()), values(random_horizontal_flip(floats.clone(), 0.5, &mut rng()).unwrap()));

        let (of_bytes, its_targets) = mixup.apply(images.clone(), targets(count), &mut rng());
        let (of_floats, other_targets) = mixup.apply(floats.clone(), targets(count), &mut rng());
        assert_eq!((values(of_bytes), values(its_targets)), (values(of_floats), values(other_targets)));

        let (of_bytes, its_targets) = cutmix.apply(images.clone(), targets(count), &mut rng());
        assert_eq!(of_bytes.dtype(), DType::U8);
        let (of_floats, other_targets) = cutmix.apply(floats, targets(count), &mut rng());
        assert_eq!((values(of_bytes.float()), values(its_targets)), (values(of_floats), values(other_targets)));
    }
}

#[test]
fn one_image_is_its_own_neighbour() {
    let (images, targets) = (bytes(1, 6), Tensor::<2>::eye(1, &device()));
    for nth in 0..5 {
        let (mixed, its_targets) = MixUp::new(1.0).unwrap().apply(images.clone(), targets.clone(), &mut rng(nth));
        let expected = values(images.clone().float());
        assert!(values(mixed).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3));
        assert!((values(its_targets)[0] - 1.0).abs() < 1e-5);
        let (cut, its_targets) = CutMix::new(1.0).unwrap().apply(images.clone(), targets.clone(), &mut rng(nth));
        assert_eq!(values(cut.float()), values(images.clone().float()));
        assert_eq!(values(its_targets), [1.0]);
    }
}

/// Images of the host, and the same on the device.
fn pictures(count: usize, width: u32, height: u32) -> (Vec<RgbImage>, Tensor<4, Int>) {
    let byte = |n: usize, x: u32, y: u32, c: u32| (n as u32 * 91 + x * 17 + y * 5 + c * 61) as u8;
    let image = |n| RgbImage::from_fn(width, height, |x, y| image::Rgb([0, 1, 2].map(|c| byte(n, x, y, c))));
    let images: Vec<_> = (0..count).map(image).collect();
    (images.clone(), on_device(&images))
}

fn on_device(images: &[RgbImage]) -> Tensor<4, Int> {
    let (width, height) = images[0].dimensions();
    let row = 3 * (width * height) as usize;
    let mut bytes = vec![0; row * images.len()];
    bytes.chunks_mut(row).zip(images).for_each(|(row, image)| write_chw(image, row).unwrap());
    let data = TensorData::from_bytes_vec(bytes, [images.len(), 3, height as usize, width as usize], DType::U8);
    Tensor::from_data(data, (&device(), DType::U8))
}

/// Both change the images with one generator, image after image. The device does so for bytes and for floats.
fn as_on_the_host(
    host: &impl burn_augment::Augment<RgbImage>,
    bytes: impl Fn(Tensor<4, Int>, &mut KeyedRng) -> Tensor<4, Int>,
    floats: impl Fn(Tensor<4>, &mut KeyedRng) -> Tensor<4>,
) {
    let mut changed = 0;
    for nth in 0..20 {
        let (images, batch) = pictures(5, 9, 7);
        let mut of_host = rng(nth);
        let expected: Vec<_> = images.iter().map(|image| host.apply(image.clone(), &mut of_host).unwrap()).collect();
        changed += expected.iter().zip(&images).filter(|(a, b)| a != b).count();
        let expected = on_device(&expected);
        let made = bytes(batch.clone(), &mut rng(nth));
        assert_eq!((made.dtype(), made.dims()), (DType::U8, expected.dims()));
        assert_eq!(values(floats(batch.float(), &mut rng(nth))), values(expected.clone().float()));
        assert_eq!(values(made.float()), values(expected.float()));
    }
    assert!(changed > 20, "{changed} of 100 images were changed");
}

#[test]
fn crops_are_those_of_the_host() {
    let crop = |size: [u32; 2]| RandomCrop::new(size).unwrap();
    let filled = || crop([7, 9]).padding(4).fill([9, 200, 77]);
    let modes = [PaddingMode::Edge, PaddingMode::Reflect, PaddingMode::Symmetric];
    let padded = modes.map(|mode| crop([6, 11]).padding_each([1, 3, 8, 0]).padding_mode(mode));
    for crop in [crop([3, 4]), filled(), crop([12, 12]).pad_if_needed(true)].iter().chain(&padded) {
        let bytes = |images: Tensor<4, Int>, rng: &mut _| random_crop(images, crop, rng).unwrap();
        as_on_the_host(crop, bytes, |images, rng| random_crop(images, crop, rng).unwrap());
    }
    assert!(random_crop(pictures(2, 9, 7).1, &crop([8, 8]), &mut rng(0)).is_err(), "larger than the image");
    let grey = random_crop(plain(3, 4), &crop([4, 4]).padding(2).fill([50, 60, 70]), &mut rng(1)).unwrap();
    assert!(values(grey).iter().all(|value| [0.0, 1.0, 2.0, 50.0].contains(value)));
}

#[test]
fn flips_are_those_of_the_host() {
    let (across, down) = (RandomHorizontalFlip::new(0.4).unwrap(), RandomVerticalFlip::new(0.4).unwrap());
    fn horizontal<K: Pixel>(images: Tensor<4, K>, rng: &mut KeyedRng) -> Tensor<4, K> {
        random_horizontal_flip(images, 0.4, rng).unwrap()
    }
    fn vertical<K: Pixel>(images: Tensor<4, K>, rng: &mut KeyedRng) -> Tensor<4, K> {
        random_vertical_flip(images, 0.4, rng).unwrap()
    }
    as_on_the_host(&across, horizontal, horizontal);
    as_on_the_host(&down, vertical, vertical);
    assert!(random_vertical_flip(pictures(1, 2, 2).1, -0.1, &mut rng(0)).is_err());
}

#[test]
fn erased_parts_are_those_of_the_host() {
    let erasing = |p| RandomErasing::new(p).unwrap().value(Erased::Color([1, 2, 253]));
    let cutout = erasing(1.0).scale(0.25, 0.25).unwrap().ratio(1.0, 1.0).unwrap();
    for erasing in [erasing(0.7), cutout] {
        let bytes = |images: Tensor<4, Int>, rng: &mut _| random_erasing(images, &erasing, rng).unwrap();
        as_on_the_host(&erasing, bytes, |images, rng| random_erasing(images, &erasing, rng).unwrap());
    }
    let noise = random_erasing(pictures(1, 9, 7).1, &erasing(1.0).value(Erased::Noise), &mut rng(0));
    assert!(noise.unwrap_err().to_string().contains("noise"));
}
