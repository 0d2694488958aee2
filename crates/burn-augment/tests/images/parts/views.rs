//! Several views of one sample.

use super::rng;
use crate::{photo::photo, vision::lazy::jpeg};
use burn::data::dataset::{Dataset, InMemDataset};
use burn_augment::{
    Augment, BoxError,
    augment::{RandomOrder, Single, Views},
    images::*,
};
use image::RgbImage;
use jpeg_encoder::SamplingFactor;

#[test]
fn views_of_a_file_are_changed_apart_and_decoded_late() -> Result<(), BoxError> {
    let file = jpeg((64, 48), SamplingFactor::F_2_2, false, 1);
    let data = InMemDataset::new(vec![(Image::from_bytes(file, &Limits::default())?, 3)]);
    let views = Views::new(3, (RandomResizedCrop::new(24)?, RandomHorizontalFlip::default()))?;
    let made = views.apply(Single(data).get(0)?, &mut rng(0))?;
    assert_eq!(made.len(), 3);
    assert!(made.iter().all(|(image, label)| !image.is_decoded() && image.dimensions() == (24, 24) && *label == 3));
    let pixels: Vec<RgbImage> = made.iter().map(|(image, _)| image.to_rgb()).collect::<Result<_, _>>()?;
    assert!(pixels[0] != pixels[1] && pixels[1] != pixels[2]);
    Ok(())
}

#[test]
fn a_list_that_has_not_one_sample_is_refused() {
    let views = Views::new(2, Grayscale).unwrap();
    for many in [0, 2] {
        let error = views.apply(vec![photo(4, 4); many], &mut rng(0)).unwrap_err().to_string();
        assert!(error.contains(&format!("not of {many}")) && error.contains("`Single`"), "{error}");
    }
}

#[test]
fn views_of_two_kinds_come_in_their_order_and_size() -> Result<(), BoxError> {
    let crops = Views::new(2, RandomResizedCrop::new(24)?)?.and(3, (RandomResizedCrop::new(8)?, Grayscale))?;
    let made = crops.apply(vec![photo(64, 48)], &mut rng(0))?;
    let sides: Vec<u32> = made.iter().map(|image| image.width()).collect();
    assert_eq!(sides, [24, 24, 8, 8, 8]);
    let is_grey = |image: &RgbImage| image.pixels().all(|pixel| pixel.0[0] == pixel.0[1] && pixel.0[1] == pixel.0[2]);
    assert!(!is_grey(&made[0]) && made[2..].iter().all(is_grey) && made[2] != made[3]);
    assert_eq!(crops.clone().apply(vec![photo(64, 48)], &mut rng(0))?, made);
    // Views of one kind draw the same numbers, whatever follows.
    assert_eq!(Views::new(2, RandomResizedCrop::new(24)?)?.apply(vec![photo(64, 48)], &mut rng(0))?, made[..2]);
    Ok(())
}

#[test]
fn every_order_is_as_likely_as_any_other() -> Result<(), BoxError> {
    let digit = |n: u32| move |x: u32, _: &mut burn_augment::KeyedRng| Ok(10 * x + n);
    let all = RandomOrder::new(digit(1)).and(digit(2)).and(digit(3));
    let mut counts = std::collections::BTreeMap::new();
    for nth in 0..6_000 {
        *counts.entry(all.apply(0, &mut rng(nth))?).or_insert(0) += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [123, 132, 213, 231, 312, 321]);
    assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    Ok(())
}
