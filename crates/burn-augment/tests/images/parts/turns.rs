//! Turns by multiples of 90 degrees: whole pixels, with all parts.

use super::{red, rng};
use crate::{photo::photo, vision::lazy::jpeg};
use burn_augment::{Augment, BoxError, images::*};
use image::{DynamicImage, ImageBuffer, Rgb, RgbImage, imageops};
use jpeg_encoder::SamplingFactor;
use std::collections::BTreeSet;

/// A pixel with a number of its own.
fn numbered(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(y * width + x + 1) as u8; 3]))
}

/// Counterclockwise.
fn turned(image: &RgbImage, quarters: usize) -> RgbImage {
    (0..quarters).fold(image.clone(), |image, _| imageops::rotate270(&image))
}

fn rotation(degrees: f64) -> RandomRotation {
    RandomRotation::new((degrees, degrees)).unwrap().fill([99; 3])
}

const TURNS: [(f64, usize); 9] =
    [(-360.0, 0), (-270.0, 1), (-180.0, 2), (-90.0, 3), (0.0, 0), (90.0, 1), (180.0, 2), (270.0, 3), (360.0, 0)];

#[test]
fn no_pixel_is_lost_and_none_made_up() -> Result<(), BoxError> {
    for (width, height) in [(5, 4), (4, 5), (5, 5), (4, 4), (1, 7), (6, 1), (1, 1), (9, 2)] {
        let image = numbered(width, height);
        for by in [Interpolation::Nearest, Interpolation::Bilinear] {
            for (degrees, quarters) in TURNS {
                let (turn, what) =
                    (rotation(degrees).interpolation(by), format!("{width} x {height}, {by:?}, {degrees}"));
                let expected = turned(&image, quarters);
                let grown = turn.expand(true).apply((image.clone(), Mask::from(red(&image))), &mut rng(0))?;
                assert_eq!(grown.0, expected, "{what}");
                assert_eq!(
                    grown.1.to_numbers()?.iter().map(|n| *n as u8).collect::<Vec<_>>(),
                    red(&expected).into_raw()
                );
                if width == height || quarters % 2 == 0 {
                    assert_eq!(turn.apply(image.clone(), &mut rng(0))?, expected, "{what}, of the same size");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_turn_of_another_grid_has_no_stray_pixels() -> Result<(), BoxError> {
    // Of 6 x 4 the middle 4 x 4 are turned. Of 5 x 4 the middles lie between pixels: all go the same way.
    let even = rotation(90.0).apply(numbered(6, 4), &mut rng(0))?;
    let inner = turned(&imageops::crop_imm(&numbered(6, 4), 1, 0, 4, 4).to_image(), 1);
    assert_eq!(imageops::crop_imm(&even, 1, 0, 4, 4).to_image(), inner);
    for degrees in [90.0, -90.0] {
        let odd = rotation(degrees).apply(numbered(5, 4), &mut rng(0))?;
        let rows: Vec<Vec<u8>> = odd.rows().map(|row| row.map(|pixel| pixel.0[0]).collect()).collect();
        for pair in rows.windows(2) {
            let steps: BTreeSet<i16> = pair[0]
                .iter()
                .zip(&pair[1])
                .filter(|(a, b)| **a != 99 && **b != 99)
                .map(|(a, b)| i16::from(*b) - i16::from(*a))
                .collect();
            assert!(steps.len() <= 1, "{degrees}: {rows:?}");
        }
    }
    Ok(())
}

#[test]
fn an_affine_turn_and_a_turn_of_trivial_augment_move_whole_pixels() -> Result<(), BoxError> {
    let image = photo(31, 31);
    let affine = RandomAffine::new((90.0, 90.0))?; // clockwise
    assert_eq!(affine.apply(image.clone(), &mut rng(0))?, turned(&image, 3));
    let smooth = affine.interpolation(Interpolation::Bilinear);
    assert_eq!(smooth.apply(image.clone(), &mut rng(0))?, turned(&image, 3));
    Ok(())
}

#[test]
fn boxes_and_points_turn_about_the_middle() -> Result<(), BoxError> {
    let boxes = || Boxes::new([[1.0, 0.0, 3.0, 1.0]], [7], BoxFormat::Xyxy);
    let points = || Points::new([[1.5, 0.5], [0.0, 4.0]]);
    // Of 5 x 4, counterclockwise: (x, y) goes to (y, 5 - x), (5 - x, 4 - y), (4 - y, x).
    let expected = [
        (90.0, [0.0, 2.0, 1.0, 4.0], [[0.5, 3.5], [4.0, 5.0]]),
        (180.0, [2.0, 3.0, 4.0, 4.0], [[3.5, 3.5], [5.0, 0.0]]),
        (270.0, [3.0, 1.0, 4.0, 3.0], [[3.5, 1.5], [0.0, 0.0]]),
    ];
    for (degrees, edges, places) in expected {
        let sample = (numbered(5, 4), boxes()?, points()?);
        let (_, boxes, points) = rotation(degrees).expand(true).apply(sample, &mut rng(0))?;
        assert_eq!((boxes.xyxy(), points.xy()), (&[edges][..], &places[..]), "{degrees}");
    }
    Ok(())
}

/// The eight pictures that a picture of these sides can become.
fn symmetries(image: &RgbImage) -> Vec<RgbImage> {
    let mirrored = imageops::flip_horizontal(image);
    [image, &mirrored].into_iter().flat_map(|image| (0..4).map(|quarters| turned(image, quarters))).collect()
}

#[test]
fn all_turns_and_symmetries_come_up_and_no_other() -> Result<(), BoxError> {
    let image = numbered(5, 4);
    let all = symmetries(&image);
    let place = |image: &RgbImage| all.iter().position(|other| other == image).expect("a symmetry");
    let mut seen = ([0; 8], [0; 8]);
    for nth in 0..4_000 {
        let quarters = RandomRotate90.draw(&mut rng(nth));
        let at = place(&RandomRotate90.apply(image.clone(), &mut rng(nth))?);
        assert_eq!(at, quarters as usize);
        seen.0[at] += 1;
        let (mirrored, quarters) = D4.draw(&mut rng(nth));
        let at = place(&D4.apply(image.clone(), &mut rng(nth))?);
        assert_eq!(at, 4 * usize::from(mirrored) + quarters as usize);
        seen.1[at] += 1;
    }
    assert!(seen.0[..4].iter().all(|count| (850..1150).contains(count)) && seen.0[4..] == [0; 4], "{seen:?}");
    assert!(seen.1.iter().all(|count| (400..600).contains(count)), "{seen:?}");
    Ok(())
}

#[test]
fn parts_go_with_all_symmetries() -> Result<(), BoxError> {
    for nth in 0..60 {
        let image = numbered(5, 4);
        let boxes = Boxes::new([[1.0, 2.0, 2.0, 3.0]], [1], BoxFormat::Xyxy)?;
        // A point names its pixel by column and row, as a flip has it.
        let points = Points::new([[1.0, 2.0]])?;
        let ((image, mask, boxes), (_, points)) = (
            D4.apply((image.clone(), Mask::from(red(&image)), boxes), &mut rng(nth))?,
            D4.apply((image, points), &mut rng(nth))?,
        );
        let numbers = mask.to_numbers()?;
        assert_eq!(numbers.dimensions(), image.dimensions());
        let own = 2 * 5 + 1 + 1; // the pixel at column 1 of row 2
        let (x, y, _) = image.enumerate_pixels().find(|(.., pixel)| pixel.0[0] == own).ok_or("lost")?;
        assert_eq!(numbers.get_pixel(x, y).0[0], u16::from(own));
        let (x, y) = (x as f32, y as f32);
        assert_eq!((boxes.xyxy(), points.xy()), (&[[x, y, x + 1.0, y + 1.0]][..], &[[x, y]][..]));
    }
    Ok(())
}

#[test]
fn turns_of_a_file_are_noted() -> Result<(), BoxError> {
    let resized = RandomResizedCrop::new([20, 28])?;
    let turns = (D4, RandomRotate90, resized, D4, CenterCrop::new(17)?, RandomRotate90);
    let colours = (turns, ColorJitter::new().contrast(0.5)?, RandomErasing::new(1.0)?, D4);
    for orientation in 1..=8 {
        let file = jpeg((61, 43), SamplingFactor::F_2_2, false, orientation);
        let whole = decode(&file, &Limits::default())?;
        for nth in 0..24 {
            let image = Image::from_bytes(file.clone(), &Limits::default())?;
            let (image, expected) =
                (colours.clone().apply(image, &mut rng(nth))?, colours.clone().apply(whole.clone(), &mut rng(nth))?);
            assert!(!image.is_decoded());
            assert_eq!(image.dimensions(), expected.dimensions());
            assert!(image.into_rgb()? == expected, "orientation {orientation}, {nth}");
        }
    }
    Ok(())
}

#[test]
fn turns_keep_sixteen_bits() -> Result<(), BoxError> {
    let pixels = ImageBuffer::from_fn(6, 5, |x, y| Rgb([(x * 7919 + y * 104_729) as u16, 1, 2]));
    let file = super::png(pixels.clone());
    for nth in 0..40 {
        let (mirrored, quarters) = D4.draw(&mut rng(nth));
        let mut expected = DynamicImage::ImageRgb16(pixels.clone());
        if mirrored {
            expected = expected.fliph();
        }
        expected = (0..quarters).fold(expected, |image, _| image.rotate270());
        let image = D4.apply(Image::from_bytes(file.clone(), &Limits::default())?, &mut rng(nth))?;
        assert_eq!(image.to_rgb16()?, expected.into_rgb16(), "{nth}");
    }
    Ok(())
}

#[test]
fn no_turn_decodes_nothing() -> Result<(), BoxError> {
    let file = jpeg((61, 43), SamplingFactor::F_2_2, false, 1);
    for degrees in [0.0, 360.0, -360.0] {
        let image = Image::from_bytes(file.clone(), &Limits::default())?;
        assert!(!rotation(degrees).expand(true).apply(image, &mut rng(0))?.is_decoded());
    }
    Ok(())
}
