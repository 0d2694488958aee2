//! Files as they are stored, whatever their orientation.

use super::{png, red, rng};
use crate::{
    exif::exif,
    photo::{photo, png_chunk},
    vision::lazy::jpeg,
};
use burn_augment::{Augment, BoxError, images::*};
use image::{DynamicImage, ImageBuffer, Luma, Rgb};
use jpeg_encoder::SamplingFactor;

fn limits() -> Limits {
    Limits::default()
}

/// A PNG that says how it is turned.
fn turned(image: impl Into<DynamicImage>, orientation: u8) -> Vec<u8> {
    let file = png(image);
    [&file[..33], &png_chunk(b"eXIf", &exif(orientation)), &file[33..]].concat()
}

#[test]
fn a_file_is_as_it_is_stored() -> Result<(), BoxError> {
    let changes = (RandomResizedCrop::new(24)?, D4, ColorJitter::new().contrast(0.5)?);
    for orientation in 1..=8 {
        for file in [
            |orientation| jpeg((61, 43), SamplingFactor::F_2_2, false, orientation),
            |orientation| jpeg((61, 43), SamplingFactor::F_1_1, true, orientation),
            |orientation| turned(photo(61, 43), orientation),
        ] {
            let expected = decode(&file(1), &limits())?;
            let image = Image::from_bytes(file(orientation), &limits())?.as_stored()?;
            assert_eq!((image.dimensions(), image.is_decoded()), ((61, 43), false));
            assert!(image.to_rgb()? == expected, "{orientation}");
            for nth in 0..6 {
                let changed = changes.apply(image.clone(), &mut rng(nth))?.into_rgb()?;
                assert!(changed == changes.apply(expected.clone(), &mut rng(nth))?, "{orientation}, {nth}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_mask_and_sixteen_bits_are_as_they_are_stored() -> Result<(), BoxError> {
    let picture = photo(9, 7);
    let deep = ImageBuffer::from_fn(9, 7, |x, y| Rgb([(x * 7919 + y * 104_729) as u16, 1, 2]));
    let numbers = ImageBuffer::from_fn(9, 7, |x, y| Luma([(x * 7919 + y * 104_729) as u16]));
    for orientation in 1..=8 {
        let mask = Mask::from_bytes(turned(red(&picture), orientation), &limits())?.as_stored()?;
        let image = Image::from_bytes(turned(picture.clone(), orientation), &limits())?.as_stored()?;
        let (image, mask) = D4.apply((image, mask), &mut rng(orientation.into()))?;
        assert!(red(&image.into_rgb()?).iter().zip(mask.to_numbers()?.iter()).all(|(a, b)| u16::from(*a) == *b));
        let image = Image::from_bytes(turned(deep.clone(), orientation), &limits())?.as_stored()?;
        assert_eq!(image.to_rgb16()?, deep);
        let mask = Mask::from_bytes(turned(numbers.clone(), orientation), &limits())?.as_stored()?.as_stored()?;
        assert_eq!(mask.to_numbers()?, numbers);
    }
    Ok(())
}

/// A box in the stored frame is around its object only there.
#[test]
fn boxes_of_the_stored_frame_stay_around_their_objects() -> Result<(), BoxError> {
    let mut picture = image::RgbImage::new(40, 30);
    (5..15).for_each(|x| (2..9).for_each(|y| picture.put_pixel(x, y, Rgb([255; 3]))));
    let boxes = Boxes::new([[5.0, 2.0, 15.0, 9.0]], [1], BoxFormat::Xyxy)?;
    for orientation in 1..=8 {
        let image = Image::from_bytes(turned(picture.clone(), orientation), &limits())?.as_stored()?;
        let (image, boxes) = RandomHorizontalFlip::new(1.0)?.apply((image, boxes.clone()), &mut rng(0))?;
        let [left, top, right, bottom] = boxes.xyxy()[0].map(|edge| edge as u32);
        for (x, y, pixel) in image.into_rgb()?.enumerate_pixels() {
            let inside = (left..right).contains(&x) && (top..bottom).contains(&y);
            assert_eq!(pixel.0[0], if inside { 255 } else { 0 }, "{orientation}: {x} {y}");
        }
    }
    Ok(())
}

#[test]
fn what_was_changed_is_refused() -> Result<(), BoxError> {
    let refused = |error: Option<VisionError>| {
        let error = error.expect("an error").to_string();
        assert!(error.contains("is decoded or changed") && error.contains("call `as_stored` first"), "{error}");
    };
    let file = turned(photo(9, 7), 6);
    let flip = RandomHorizontalFlip::new(1.0)?;
    refused(flip.apply(Image::from_bytes(file.clone(), &limits())?, &mut rng(0))?.as_stored().err());
    let coloured = ColorJitter::new().brightness(0.5)?;
    refused(coloured.apply(Image::from_bytes(file, &limits())?, &mut rng(0))?.as_stored().err());
    refused(Image::from(photo(9, 7)).as_stored().err());
    let mask = Mask::from_bytes(turned(red(&photo(9, 7)), 6), &limits())?;
    refused(flip.apply((photo(7, 9), mask), &mut rng(0))?.1.as_stored().err());
    refused(Mask::from(red(&photo(9, 7))).as_stored().err());
    Ok(())
}
