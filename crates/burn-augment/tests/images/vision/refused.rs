//! Wrong parameters are refused, with the method's name and what to write instead.

use super::rng;
use burn_augment::{
    Augment, Error, KeyedRng,
    augment::{OneOf, RandomApply, Views},
    images::*,
};
use image::RgbImage;

#[test]
fn wrong_parameters() {
    fn refused<T>(option: &str, result: Result<T, Error>) {
        let Err(error) = result else { panic!("{option} was taken") };
        let message = error.to_string();
        assert!(message.starts_with(&format!("`{option}")) && message.contains("; give "), "{message}");
    }
    let nan = f64::NAN;
    for p in [-0.1, 1.1, nan] {
        refused("RandomHorizontalFlip::new", RandomHorizontalFlip::new(p));
        refused("RandomVerticalFlip::new", RandomVerticalFlip::new(p));
        refused("RandomGrayscale::new", RandomGrayscale::new(p));
        refused("RandomErasing::new", RandomErasing::new(p));
        refused("RandomZoomOut::new", RandomZoomOut::new(p));
        refused("RandomPhotometricDistort::new", RandomPhotometricDistort::new(p));
        refused("RandomCrop::cat_max_ratio", RandomCrop::new(8).unwrap().cat_max_ratio(p));
        refused("BBoxSafeRandomCrop::erosion_rate", BBoxSafeRandomCrop::new().erosion_rate(p));
        refused("RandomApply::new", RandomApply::new(p, Grayscale));
        refused("RandomSolarize::new", RandomSolarize::new(1, p));
        refused("RandomPerspective::new", RandomPerspective::new(p, 0.5));
        refused("RandomPerspective::new", RandomPerspective::new(0.5, p));
        refused("RandomAffine::translate", RandomAffine::new(0.0).unwrap().translate(0.0, p));
    }
    for size in [[0, 5], [5, 0], [5, 70_000]] {
        refused("RandomCrop::new", RandomCrop::new(size));
        refused("CenterCrop::new", CenterCrop::new(size));
        refused("RandomResizedCrop::new", RandomResizedCrop::new(size));
        refused("Resize::exact", Resize::exact(size));
        refused("LetterBox::new", LetterBox::new(size));
        refused("RandomResize::scale_jitter", RandomResize::scale_jitter(size, 0.1, 2.0));
    }
    refused("Resize::shorter_side", Resize::shorter_side(0));
    refused("Resize::longer_side", Resize::longer_side(0));
    for most in [0, 8, 70_000] {
        refused("Resize::max_size", Resize::shorter_side(8).unwrap().max_size(most));
    }
    refused("Resize::max_size", Resize::longer_side(8).unwrap().max_size(9));
    refused("Resize::max_size", Resize::exact(8).unwrap().max_size(9));
    for (low, high) in [(0, 5), (5, 5), (6, 5), (5, 70_000)] {
        refused("RandomResize::new", RandomResize::new(low, high));
    }
    for sizes in [&[][..], &[8, 0], &[70_000]] {
        refused("RandomResize::shortest_size", RandomResize::shortest_size(sizes, Some(9)));
    }
    refused("RandomResize::shortest_size", RandomResize::shortest_size(&[8], Some(0)));
    for (low, high) in [(0.0, 1.0), (2.0, 1.0), (nan, 1.0), (1.0, f64::INFINITY)] {
        refused("RandomResize::scale_jitter", RandomResize::scale_jitter(8, low, high));
        refused("RandomZoomOut::side_range", RandomZoomOut::default().side_range(low, high));
    }
    refused("RandomZoomOut::side_range", RandomZoomOut::default().side_range(0.9, 2.0));
    for (low, high) in [(0.0, 1.0), (0.5, 0.4), (0.5, 1.1), (nan, 1.0), (0.5, nan)] {
        refused("RandomResizedCrop::scale", RandomResizedCrop::new(8).unwrap().scale(low, high));
    }
    for (low, high) in [(0.0, 1.0), (2.0, 1.0), (1.0, f64::INFINITY), (nan, 1.0)] {
        refused("RandomResizedCrop::ratio", RandomResizedCrop::new(8).unwrap().ratio(low, high));
        refused("RandomErasing::ratio", RandomErasing::default().ratio(low, high));
    }
    refused("RandomErasing::scale", RandomErasing::default().scale(-0.1, 0.5));
    for by in [-0.1, nan, f64::INFINITY] {
        refused("ColorJitter::brightness", ColorJitter::new().brightness(by));
        refused("ColorJitter::contrast", ColorJitter::new().contrast(by));
        refused("ColorJitter::saturation", ColorJitter::new().saturation((by, 1.0)));
        refused("ColorJitter::hue", ColorJitter::new().hue(by));
        refused("RandomRotation::new", RandomRotation::new(by));
        refused("RandomAffine::new", RandomAffine::new(by));
        refused("RandomAffine::shear", RandomAffine::new(0.0).unwrap().shear(1.0, by));
        refused("RandomAdjustSharpness::new", RandomAdjustSharpness::new(by as f32, 0.5));
        refused("MixUp::new", device::MixUp::new(by));
        refused("CutMix::new", device::CutMix::new(by));
    }
    refused("ColorJitter::hue", ColorJitter::new().hue(0.6));
    refused("ColorJitter::hue", ColorJitter::new().hue((-0.6, 0.1)));
    refused("RandomRotation::new", RandomRotation::new((10.0, -10.0)));
    refused("RandAugment::new", RandAugment::new(2, 31));
    refused("RandAugment::num_magnitude_bins", RandAugment::default().num_magnitude_bins(9));
    let trivial = TrivialAugmentWide::new();
    for bins in [0, 1] {
        refused("TrivialAugmentWide::num_magnitude_bins", trivial.num_magnitude_bins(bins));
    }
    refused("RandomPosterize::new", RandomPosterize::new(9, 0.5));
    refused("RandomAffine::shear", RandomAffine::new(0.0).unwrap().shear(90.0, 0.0));
    for place in [nan, f64::INFINITY, 1e300] {
        refused("RandomAffine::center", RandomAffine::new(0.0).unwrap().center(place, 0.0));
        refused("RandomRotation::center", RandomRotation::new(0.0).unwrap().center(0.0, place));
    }
    refused("Mosaic::new", Mosaic::new(3));
    refused("Mosaic::center_range", Mosaic::new(8).unwrap().center_range(0.5, 0.25));
    refused("MixUpBoxes::new", MixUpBoxes::new(0.0));
    refused("CopyPaste::new", CopyPaste::new(nan));
    refused("RandomAffine::scale", RandomAffine::new(0.0).unwrap().scale(0.0, 1.0));
    refused("GaussianBlur::new", GaussianBlur::new(4));
    refused("GaussianBlur::new", GaussianBlur::new([3, 0]));
    refused("GaussianBlur::sigma", GaussianBlur::new(3).unwrap().sigma(0.0, 1.0));
    refused("RandomIoUCrop::scale", RandomIoUCrop::new().scale(0.5, 1.1));
    refused("RandomIoUCrop::aspect_ratio", RandomIoUCrop::new().aspect_ratio(0.0, 1.1));
    refused("RandomIoUCrop::sampler_options", RandomIoUCrop::new().sampler_options(&[]));
    refused("RandomIoUCrop::sampler_options", RandomIoUCrop::new().sampler_options(&[0.5, nan]));
    for by in [-0.1, nan, f64::INFINITY] {
        refused("ElasticTransform::new", ElasticTransform::new(by, 5.0));
        refused("ElasticTransform::new", ElasticTransform::new(50.0, by));
        refused("GaussianNoise::new", GaussianNoise::new(0.0, by));
        refused("GaussianNoise::new", GaussianNoise::new(20.0 * by, 0.1));
        refused("RandomGamma::new", RandomGamma::new(by, 100.0));
        refused("CLAHE::new", CLAHE::new(1.0, by));
        refused("AugMix::alpha", AugMix::new(3, 3).unwrap().alpha(by));
    }
    for (severity, width) in [(0, 3), (11, 3), (3, 0), (3, usize::MAX)] {
        refused("AugMix::new", AugMix::new(severity, width));
    }
    refused("AugMix::chain_depth", AugMix::new(3, 3).unwrap().chain_depth(101));
    refused("CLAHE::tile_grid_size", CLAHE::new(1.0, 4.0).unwrap().tile_grid_size([8, 0]));
    refused("JPEG::new", JPEG::new(0..=50));
    refused("JPEG::new", JPEG::new(50..=101));
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    refused("JPEG::new", JPEG::new(60..=50));
    refused("Views", Views::<RgbImage>::new(0, Grayscale));
    refused("Views", Views::<RgbImage>::new(1, Grayscale).unwrap().and(0, Grayscale));
    refused("MixUp::new", device::MixUp::new(0.0));
    let one = || OneOf::new(Grayscale).or(Grayscale) as OneOf<RgbImage>;
    for weights in [&[1.0][..], &[1.0, -1.0], &[0.0, 0.0], &[nan, 1.0], &[f64::MAX, f64::MAX]] {
        refused("OneOf::weights", one().weights(weights));
    }
}

#[test]
fn images_that_do_not_fit() {
    let error = |augment: &dyn Fn(&mut KeyedRng) -> Result<RgbImage, burn_augment::BoxError>| {
        augment(&mut rng(0)).unwrap_err().downcast::<VisionError>().unwrap().to_string()
    };
    let crop = RandomCrop::new(10).unwrap().padding(1);
    let message = error(&|rng| crop.apply(RgbImage::new(7, 20), rng));
    assert!(message.starts_with("a crop of 10 x 10 pixels does not fit an image of 9 x 22"), "{message}");
    let empty = error(&|rng| Grayscale.apply(RgbImage::new(0, 3), rng));
    assert_eq!(empty, "an image without pixels");
    let wide = error(&|rng| Pad::new(40_000).apply(RgbImage::new(2, 2), rng));
    assert!(wide.contains("longer than 65535"), "{wide}");
    let line = error(&|rng| Resize::shorter_side(224).unwrap().apply(RgbImage::new(1, 16_384), rng));
    assert!(line.contains("longer than 65535"), "{line}");
    assert!(matches!(
        write_chw(&RgbImage::new(2, 2), &mut [0; 11]),
        Err(VisionError::RowLength { expected: 12, given: 11, .. })
    ));
}
