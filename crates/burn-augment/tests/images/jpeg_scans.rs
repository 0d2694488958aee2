//! JPEGs with every order of scans and every sampling have the pixels that libjpeg-turbo makes of them, within a few levels. With the feature
//! `turbo` it is libjpeg-turbo itself that decodes here, so the reference is tested too.

mod encoder;
mod reference;

use burn_augment::images::{self, Image, Limits, VisionError};
use encoder::{Coding, Picture};
use image::RgbImage;

const SAMPLINGS: [(&str, [(usize, usize); 3]); 8] = [
    ("4:4:4", [(1, 1), (1, 1), (1, 1)]),
    ("4:2:2", [(2, 1), (1, 1), (1, 1)]),
    ("4:2:0", [(2, 2), (1, 1), (1, 1)]),
    ("4:4:0", [(1, 2), (1, 1), (1, 1)]),
    ("4:1:1", [(4, 1), (1, 1), (1, 1)]),
    ("4:1:0", [(4, 2), (1, 1), (1, 1)]),
    ("three to one", [(3, 1), (1, 1), (1, 1)]),
    ("finer colours", [(1, 1), (2, 1), (1, 2)]),
];

const ORDERS: [&[&[usize]]; 8] = [
    &[&[0, 1, 2]],
    &[&[0], &[1], &[2]],
    &[&[0, 1], &[2]],
    &[&[0], &[1, 2]],
    &[&[0, 2], &[1]],
    &[&[1], &[2], &[0]],
    &[&[1, 2], &[0]],
    &[&[2], &[1], &[0]],
];

fn decode(file: &[u8]) -> Result<RgbImage, VisionError> {
    let at_once = images::decode(file, &Limits::default());
    let late = Image::from_bytes(file.to_vec(), &Limits::default()).and_then(|image| image.to_rgb());
    assert_eq!(at_once.as_ref().ok(), late.as_ref().ok());
    at_once
}

fn coding(order: &[&[usize]]) -> Coding {
    Coding { scans: order.iter().map(|scan| scan.to_vec()).collect(), progressive: false, restart: 0, adobe: None }
}

/// Strong colours that change within a few pixels.
fn colours(component: usize, x: usize, y: usize) -> f64 {
    let (x, y) = (x as f64, y as f64);
    match component {
        0 => 128.0 + 60.0 * (0.4 * x + 0.3 * y).sin(),
        1 => 128.0 + 50.0 * (0.5 * x - 0.2 * y).cos(),
        _ => 128.0 - 50.0 * (0.3 * x + 0.6 * y).sin(),
    }
}

/// Compares with the reference: light within 3 levels; pixels within 4 of colours that are whole, else within 12 and 2 in
/// the mean.
fn check(picture: &Picture, size: (usize, usize), coding: &Coding, of: &str) {
    let image = decode(&picture.file(coding)).unwrap_or_else(|error| panic!("{of}: {error}"));
    assert_eq!((image.width() as usize, image.height() as usize), size, "{of}");
    let planes = &picture.planes;
    let whole = planes.iter().all(|plane| (plane.across, plane.down) == (planes[0].across, planes[0].down));
    let mut sum = 0.0;
    for (x, y, pixel) in image.enumerate_pixels() {
        let right = reference::pixel(planes, x as usize, y as usize);
        let light = |[r, g, b]: [f64; 3]| 0.299 * r + 0.587 * g + 0.114 * b;
        let pixel = pixel.0.map(f64::from);
        assert!((light(pixel) - light(right)).abs() <= 3.0, "{of} at {x}, {y}: {pixel:?}, not {right:?}");
        for (value, right) in pixel.into_iter().zip(right) {
            let off = (value - right).abs();
            sum += off;
            assert!(off <= if whole { 4.0 } else { 12.0 }, "{of} at {x}, {y}: {pixel:?}, not {right:?}");
        }
    }
    assert!(sum / (3 * size.0 * size.1) as f64 <= 2.0, "{of}: {sum}");
}

#[test]
fn every_order_of_scans_has_the_right_pixels() {
    for (name, sampling) in SAMPLINGS {
        for width in 1..=33 {
            for height in [1, 2, 6, 19] {
                let picture = Picture::new((width, height), &sampling, colours);
                for order in ORDERS {
                    check(&picture, (width, height), &coding(order), &format!("{name}, {width} x {height}, {order:?}"));
                }
            }
        }
    }
}

#[test]
fn progressive_files_and_restarts_have_the_right_pixels() {
    for (name, sampling) in SAMPLINGS {
        for (width, height) in [(1, 9), (2, 5), (3, 6), (4, 17), (5, 3), (33, 18)] {
            let picture = Picture::new((width, height), &sampling, colours);
            for order in ORDERS {
                for (progressive, restart) in [(true, 0), (true, 2), (false, 1), (false, 3)] {
                    let coding = Coding { progressive, restart, ..coding(order) };
                    check(&picture, (width, height), &coding, &format!("{name}, {width} x {height}, {coding:?}"));
                }
            }
        }
    }
}

#[test]
fn grey_files_of_any_sampling_have_the_right_pixels() {
    for sampling in [(1, 1), (2, 2), (1, 4), (3, 3)] {
        for (width, height) in [(1, 1), (3, 20), (17, 9), (40, 33)] {
            let picture = Picture::new((width, height), &[sampling], colours);
            check(&picture, (width, height), &coding(&[&[0]]), &format!("grey {sampling:?}, {width} x {height}"));
        }
    }
}

/// Other colours than YCbCr: the pixels are those of the same coefficients in one scan.
#[test]
fn scans_of_rgb_and_cmyk_have_the_pixels_of_one_scan() {
    for (kind, parts) in [(0, 3), (0, 4), (2, 4)] {
        for size in [(1, 1), (3, 3), (20, 11)] {
            let picture = Picture::new(size, &vec![(1, 1); parts], |part, x, y| colours(part % 3, x + 3 * part, y));
            let all: Vec<usize> = (0..parts).collect();
            let one = Coding { adobe: Some(kind), ..coding(&[&all]) };
            let one = decode(&picture.file(&one)).unwrap();
            for order in [[&all[..1], &all[1..]], [&all[2..], &all[..2]]] {
                let several = decode(&picture.file(&Coding { adobe: Some(kind), ..coding(&order) })).unwrap();
                let off = one.iter().zip(several.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                assert!(off <= 3, "Adobe's {kind}, {parts} components, {size:?}, {order:?}: {off}");
            }
        }
    }
}

/// Cameras append previews and films.
#[test]
fn what_follows_a_picture_is_none_of_it() {
    let colour = |at: usize| move |part: usize, x: usize, y: usize| colours(part, x + at, y);
    for (width, height) in [(3, 9), (4, 20)] {
        let (first, second) = (colour(0), colour(40));
        let [first, second] = [
            Picture::new((width, height), &SAMPLINGS[1].1, first),
            Picture::new((width, height), &SAMPLINGS[1].1, second),
        ];
        for (progressive, behind) in [(true, true), (true, false), (false, false)] {
            let file = first.file(&Coding { progressive, ..coding(&[&[0, 1, 2]]) });
            let more = second.file(&Coding { progressive: behind, ..coding(&[&[0, 1, 2]]) });
            let right = decode(&file).unwrap();
            assert_eq!(decode(&[file, more].concat()).unwrap(), right, "{width} x {height}, {progressive} {behind}");
        }
    }
}

#[test]
fn contradictory_scans_are_refused() {
    let picture = Picture::new((20, 10), &SAMPLINGS[2].1, colours);
    // Without the feature `turbo` a component that is missing is told. One that comes twice is decoded, as by libjpeg-turbo.
    let missing = decode(&picture.file(&coding(&[&[0], &[1]])));
    assert!(cfg!(feature = "turbo") || matches!(missing, Err(VisionError::Decode(_))), "{missing:?}");
    let [once, twice] = [&[&[0][..], &[1, 2]][..], &[&[0], &[0], &[1, 2]]].map(|order| picture.file(&coding(order)));
    assert!(cfg!(feature = "turbo") || decode(&twice).unwrap() == decode(&once).unwrap());
    // No byte of the headers or the data makes it crash.
    let limits = Limits { side: 1000, bytes: 1 << 20 };
    let file = picture.file(&Coding { restart: 2, ..coding(&[&[1], &[0, 2]]) });
    for at in 0..file.len() {
        for flip in [0x01, 0x10, 0xFF] {
            let mut damaged = file.clone();
            damaged[at] ^= flip;
            if let Err(VisionError::Panicked(message)) = images::decode(&damaged, &limits) {
                panic!("byte {at}: {message}");
            }
        }
    }
}
