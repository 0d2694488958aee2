//! Bicubic resizes against Pillow's rule: one way first, cut to bytes, then the other.

use crate::photo::photo;
use burn_augment::images::*;
use image::{Rgb, RgbImage, imageops};

/// Pillow's cubic of a = -0.5.
fn cubic(x: f64) -> f64 {
    let x = x.abs();
    match x {
        0.0..1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        1.0..2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// Resizes rows to `width`, by floats, and rounds to bytes.
fn across(image: &RgbImage, width: u32) -> RgbImage {
    if width == image.width() {
        return image.clone();
    }
    let scale = f64::from(image.width()) / f64::from(width);
    let wide = scale.max(1.0);
    RgbImage::from_fn(width, image.height(), |x, y| {
        let middle = (f64::from(x) + 0.5) * scale;
        let first = (middle - 2.0 * wide + 0.5).max(0.0) as u32;
        let last = ((middle + 2.0 * wide + 0.5) as u32).min(image.width());
        let weights: Vec<f64> = (first..last).map(|at| cubic((f64::from(at) + 0.5 - middle) / wide)).collect();
        let sum: f64 = weights.iter().sum();
        let value = |channel: usize| {
            let values = (first..last).map(|at| f64::from(image.get_pixel(at, y).0[channel]));
            (values.zip(&weights).map(|(value, weight)| value * weight).sum::<f64>() / sum + 0.5) as u8
        };
        Rgb([0, 1, 2].map(value))
    })
}

fn down(image: &RgbImage, height: u32) -> RgbImage {
    imageops::rotate270(&across(&imageops::rotate90(image), height))
}

/// Pillow 13 goes down first if that leaves out more than twice as many rows as columns.
fn expected(image: &RgbImage, width: u32, height: u32) -> RgbImage {
    let gone = |from: u32, to: u32| i64::from(from) - i64::from(to);
    let rows = gone(image.height(), height);
    if rows > 0 && rows > 2 * gone(image.width(), width) {
        across(&down(image, height), width)
    } else {
        down(&across(image, width), height)
    }
}

/// Letters have such edges: full colours beside each other.
fn edges(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let dark = (x * 7 + y * 13 + x * y) % 5 < 2;
        Rgb([if dark { 0 } else { 255 }, if x % 3 == 0 { 255 } else { 0 }, if y % 4 == 1 { 255 } else { 20 }])
    })
}

#[test]
fn cubic_resizes_are_pillows() {
    let sizes = [(1, 1), (1, 30), (30, 1), (2, 3), (5, 7), (17, 40), (32, 31), (97, 71)];
    let mut differ = 0;
    for from in sizes {
        for to in sizes.into_iter().chain([(200, 9), (from.0, 50), (50, from.1)]) {
            for image in [edges(from.0, from.1), photo(from.0, from.1)] {
                let resize = Resize::exact([to.1, to.0]).unwrap().interpolation(Interpolation::Bicubic);
                let (got, expected) = (resize.resize(&image).unwrap(), expected(&image, to.0, to.1));
                let far = got.iter().zip(expected.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                assert!(far <= 2, "{from:?} to {to:?}: {far} levels off"); // weights of 16 bits, in both passes
                differ += got.iter().zip(expected.iter()).filter(|(a, b)| a != b).count();
            }
        }
    }
    assert!(differ < 2000, "{differ} values");
}

/// The part of a file, mirrored and decoded late, is resized in the same order.
#[test]
fn a_part_is_resized_in_the_same_order() {
    let image = edges(60, 44);
    let part = CropBox { left: 7, top: 3, width: 41, height: 30 };
    let cut = imageops::crop_imm(&image, 7, 3, 41, 30).to_image();
    let mut file = std::io::Cursor::new(Vec::new());
    image.write_to(&mut file, image::ImageFormat::Png).unwrap();
    let mut late = Image::from_bytes(file.into_inner(), &Limits::default()).unwrap();
    late.flip_horizontal();
    let mirrored = CropBox { left: 60 - 7 - 41, ..part };
    late.resized_crop(mirrored, Size { width: 24, height: 55 }, Interpolation::Bicubic).unwrap();
    let expected = expected(&imageops::flip_horizontal(&cut), 24, 55);
    let far = late.to_rgb().unwrap().iter().zip(expected.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert!(far <= 1, "{far}");
}
