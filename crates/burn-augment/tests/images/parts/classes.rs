//! Crops by the classes in them.

use super::{png, rng};
use burn_augment::{Augment, BoxError, images::*};
use image::{GrayImage, Luma, RgbImage};

/// Class 0, but for a column of class 1.
fn street(ignored: bool) -> GrayImage {
    GrayImage::from_fn(100, 20, |x, y| {
        Luma([if (40..52).contains(&x) {
            1
        } else if ignored && y > 1 {
            255
        } else {
            0
        }])
    })
}

fn share(numbers: &Mask) -> f64 {
    let numbers = numbers.to_numbers().unwrap();
    let counts = [0, 1].map(|class| numbers.iter().filter(|number| **number == class).count() as f64);
    counts[0].max(counts[1]) / (counts[0] + counts[1])
}

#[test]
fn a_crop_with_one_class_is_drawn_again() -> Result<(), BoxError> {
    let mixed = |crop: &RandomCrop, ignored: bool| {
        let shares = (0..1_000).map(|nth| {
            let sample = (RgbImage::new(100, 20), Mask::from(street(ignored)));
            share(&crop.apply(sample, &mut rng(nth)).unwrap().1)
        });
        shares.filter(|share| *share < 0.75).count()
    };
    let (any, few) = (RandomCrop::new(20)?, RandomCrop::new(20)?.cat_max_ratio(0.75)?);
    // At least 6 of the 20 columns are of class 1 in 21 of 81 places. There are eleven draws.
    let chance = 21.0 / 81.0;
    assert!((mixed(&any, false) as f64 / 1_000.0 - chance).abs() < 0.04);
    let expected = 1.0 - (1.0 - chance).powi(11);
    assert!((mixed(&few, false) as f64 / 1_000.0 - expected).abs() < 0.02, "{expected}");
    assert!(mixed(&few, true) > mixed(&any, true));
    Ok(())
}

#[test]
fn a_crop_that_is_mixed_is_the_first_one() -> Result<(), BoxError> {
    let plaid = GrayImage::from_fn(60, 60, |x, y| Luma([u8::from((x + y) % 2 == 0)]));
    let (any, few) = (RandomCrop::new(50)?.padding(40), RandomCrop::new(50)?.padding(40).cat_max_ratio(0.75)?);
    for nth in 0..40 {
        let sample = || (RgbImage::new(60, 60), Mask::from(plaid.clone()).fill(1));
        let (expected, got) = (any.apply(sample(), &mut rng(nth))?.1, few.apply(sample(), &mut rng(nth))?.1);
        // Padding has the number 1 here, and does not count.
        assert_eq!(got.to_numbers()?, expected.to_numbers()?);
    }
    Ok(())
}

#[test]
fn a_mask_of_a_file_is_cut_as_one_of_numbers() -> Result<(), BoxError> {
    let crop = (Resize::exact([30, 150])?, RandomCrop::new(20)?.cat_max_ratio(0.6)?);
    for nth in 0..20 {
        let file = Mask::from_bytes(png(street(false)), &Limits::default())?;
        let (_, a) = crop.apply((RgbImage::new(100, 20), file), &mut rng(nth))?;
        let (_, b) = crop.apply((RgbImage::new(100, 20), Mask::from(street(false))), &mut rng(nth))?;
        assert_eq!(a.to_numbers()?, b.to_numbers()?);
    }
    // All is ignored: it is drawn again, and in the end taken.
    let none = Mask::from(GrayImage::from_pixel(100, 20, Luma([255])));
    let (_, mask) = RandomCrop::new(20)?.cat_max_ratio(0.6)?.apply((RgbImage::new(100, 20), none), &mut rng(0))?;
    assert_eq!(mask.dimensions(), (20, 20));
    Ok(())
}

#[test]
fn a_crop_by_classes_needs_a_mask() {
    let crop = RandomCrop::new(2).unwrap().cat_max_ratio(0.5).unwrap();
    let error = crop.apply((RgbImage::new(9, 9), 3), &mut rng(0)).unwrap_err().to_string();
    assert!(error.contains("needs one of all classes"), "{error}");
}

/// A promise, as the bytes in `tests/images/golden.rs` of the repository.
#[test]
fn a_seed_cuts_the_same_parts() -> Result<(), BoxError> {
    let crop = RandomCrop::new(20)?.cat_max_ratio(0.6)?;
    let columns = GrayImage::from_fn(200, 20, |x, _| Luma([x as u8 / 12]));
    let left = |nth| -> Result<u16, BoxError> {
        let image = RgbImage::from_fn(200, 20, |x, _| image::Rgb([x as u8; 3]));
        let (image, _) = crop.apply((image, Mask::from(columns.clone())), &mut rng(nth))?;
        Ok(image.get_pixel(0, 0).0[0].into())
    };
    assert_eq!([left(0)?, left(1)?, left(2)?, left(3)?], [99, 51, 95, 169]);
    Ok(())
}
