//! Gamma, noise, JPEG, local contrast, orders of channels, waves.

use super::{apply, greys, rng};
use crate::photo::photo;
use burn_augment::images::*;
use image::{Rgb, RgbImage};
use std::collections::BTreeSet;

fn grey(side: u32, byte: u8) -> RgbImage {
    RgbImage::from_pixel(side, side, Rgb([byte; 3]))
}

#[test]
fn noise_has_its_mean_and_deviation() {
    let noisy = apply(&GaussianNoise::new(0.1, 0.05).unwrap(), &grey(200, 100), 0);
    let offs: Vec<f64> = noisy.iter().map(|byte| f64::from(*byte) - 100.0).collect();
    let mean = offs.iter().sum::<f64>() / offs.len() as f64;
    let deviation = (offs.iter().map(|off| (off - mean).powi(2)).sum::<f64>() / offs.len() as f64).sqrt();
    // Noise is cut towards 0, which is half a level.
    assert!((mean - 25.0).abs() < 0.3 && (deviation - 12.75).abs() < 0.1, "{mean} {deviation}");
    let beyond = offs.iter().filter(|off| (*off - mean).abs() > 2.0 * deviation).count() as f64 / offs.len() as f64;
    assert!((beyond - 0.0455).abs() < 0.006, "{beyond}");
    assert!(apply(&GaussianNoise::new(1.0, 0.0).unwrap(), &photo(9, 9), 0).iter().all(|byte| *byte == 255));
    assert_eq!(apply(&GaussianNoise::new(0.0, 0.0).unwrap(), &photo(9, 9), 0), photo(9, 9));
}

#[test]
fn gamma_is_a_power() {
    let image = greys(&[[0, 51, 128, 255]]);
    // 255 * 0.2 ^ 2 is 10.2, and 255 * (128 / 255) ^ 2 is 64.25.
    assert_eq!(apply(&RandomGamma::new(200.0, 200.0).unwrap(), &image, 0), greys(&[[0, 10, 64, 255]]));
    let draws: BTreeSet<u64> =
        (0..50).map(|nth| RandomGamma::new(80.0, 120.0).unwrap().draw(&mut rng(nth)).to_bits()).collect();
    assert!(draws.len() == 50 && draws.iter().all(|bits| (0.8..=1.2).contains(&f64::from_bits(*bits))));
}

#[test]
fn lower_quality_loses_more() {
    let image = photo(70, 50);
    let lost = |quality: u8| {
        let saved = apply(&JPEG::new(quality..=quality).unwrap(), &image, 0);
        assert_eq!(saved.dimensions(), image.dimensions());
        saved.iter().zip(image.iter()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>()
    };
    assert!(lost(100) < lost(75) && lost(75) < lost(30) && lost(30) < lost(5));
    let qualities: BTreeSet<u8> = (0..200).map(|nth| JPEG::new(7..=9).unwrap().draw(&mut rng(nth))).collect();
    assert_eq!(Vec::from_iter(qualities), [7, 8, 9]);
}

#[test]
fn local_contrast_grows_and_keeps_hues() {
    // A dark and a light half, each with little contrast.
    let image = RgbImage::from_fn(64, 64, |x, y| Rgb([if x < 32 { 40 } else { 200 } + (y / 8) as u8; 3]));
    let flat = apply(&CLAHE::new(40.0, 40.0).unwrap().tile_grid_size(2).unwrap(), &image, 0);
    let spread = |image: &RgbImage, x: u32| {
        let column: Vec<u8> = (0..64).map(|y| image.get_pixel(x, y).0[0]).collect();
        column.iter().max().unwrap() - column.iter().min().unwrap()
    };
    assert!(spread(&flat, 10) > 10 * spread(&image, 10) && spread(&flat, 50) > 10 * spread(&image, 50));
    assert!(flat.pixels().all(|pixel| pixel.0.iter().max().unwrap() - pixel.0.iter().min().unwrap() <= 1));
}

#[test]
fn all_orders_of_channels_come() {
    let image = RgbImage::from_pixel(2, 1, Rgb([1, 2, 3]));
    let orders: BTreeSet<[u8; 3]> =
        (0..100).map(|nth| apply(&RandomChannelPermutation, &image, nth).get_pixel(1, 0).0).collect();
    assert_eq!(orders.len(), 6);
    assert!(orders.iter().all(|order| BTreeSet::from(*order).len() == 3));
}

#[test]
fn waves_are_smooth_and_of_their_strength() {
    let image = photo(60, 40);
    for by in [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic] {
        assert_eq!(apply(&ElasticTransform::new(0.0, 5.0).unwrap().interpolation(by), &image, 0), image, "{by:?}");
    }
    let shifts = ElasticTransform::new(10.0, 0.0).unwrap().draw(60, 40, &mut rng(1));
    assert_eq!(shifts.len(), 60 * 40);
    let most = shifts.as_flattened().iter().fold(0.0f32, |most, by| most.max(by.abs()));
    assert!(most <= 5.0 && most > 4.9, "{most}");
    let smooth = ElasticTransform::new(10.0, 4.0).unwrap().draw(60, 40, &mut rng(1));
    let steps = |shifts: &[[f32; 2]]| shifts.windows(2).map(|pair| (pair[0][0] - pair[1][0]).abs()).sum::<f32>();
    assert!(steps(&smooth) < steps(&shifts) / 20.0);
}

#[test]
fn a_turn_about_a_place_keeps_it() {
    let mut image = RgbImage::new(41, 31);
    image.put_pixel(8, 20, Rgb([255; 3]));
    for by in [Interpolation::Nearest, Interpolation::Bicubic] {
        for degrees in [-70.0, 35.0, 90.0] {
            let turn = RandomRotation::new((degrees, degrees)).unwrap().interpolation(by).center(8.5, 20.5).unwrap();
            assert_eq!(apply(&turn, &image, 0).get_pixel(8, 20).0, [255; 3], "{by:?} {degrees}");
            let affine = RandomAffine::new((degrees, degrees)).unwrap().shear(20.0, 10.0).unwrap();
            let affine = affine.interpolation(by).center(8.5, 20.5).unwrap();
            assert_eq!(apply(&affine, &image, 0).get_pixel(8, 20).0, [255; 3], "{by:?} {degrees}");
        }
    }
}
