//! The numbers of masks are those of the file.

use super::{png, rng};
use burn_augment::{Augment, BoxError, images::*};
use image::{ImageBuffer, Luma, RgbImage};

fn depths() -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_fn(5, 3, |x, y| Luma([(1000 * x + y) as u16]))
}

#[test]
fn sixteen_bits_are_read_as_they_are() -> Result<(), BoxError> {
    let mask = Mask::from_bytes(png(depths()), &Limits::default())?;
    assert_eq!(mask.dimensions(), (5, 3));
    assert_eq!(mask.to_numbers()?, depths());
    Ok(())
}

#[test]
fn what_comes_from_outside_has_the_fill() -> Result<(), BoxError> {
    for (mask, fill) in [(Mask::from(depths()), 255), (Mask::from(depths()).fill(65_535), 65_535)] {
        let (_, mask) = CenterCrop::new(7)?.apply((RgbImage::new(5, 3), mask), &mut rng(0))?;
        let numbers = mask.to_numbers()?;
        assert_eq!([(0, 0), (1, 2), (6, 6)].map(|(x, y)| numbers.get_pixel(x, y).0[0]), [fill, 0, fill]);
    }
    Ok(())
}
