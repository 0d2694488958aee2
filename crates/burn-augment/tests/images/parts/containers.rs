//! Parts in tuples, lists and other containers: they move, or the first transform is an error.

use super::{png, red, rng, shapes};
use crate::photo::photo;
use burn_augment::{
    Augment, BoxError,
    augment::{OneOf, RandomApply},
    images::*,
};
use image::{DynamicImage, GrayImage, ImageBuffer, Luma, RgbImage};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

const SIZE: (u32, u32) = (61, 43);

fn picture() -> RgbImage {
    photo(SIZE.0, SIZE.1)
}

fn mask() -> Mask {
    Mask::from(GrayImage::new(SIZE.0, SIZE.1))
}

#[track_caller]
fn refused<T: 'static>(container: T) {
    let errors = [
        RandomHorizontalFlip::new(0.0).unwrap().apply((picture(), container), &mut rng(0)).map(|_| ()),
        Grayscale.apply((picture(), 1, None::<T>), &mut rng(0)).map(|_| ()), // also without any: it is of the type
    ];
    for error in errors {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("which no transform looks into") && error.contains("HasImage"), "{error}");
        assert!(error.contains(std::any::type_name::<T>()), "{error}");
    }
}

#[test]
fn containers_that_nobody_looks_into_are_errors() {
    refused((mask(), Boxes::default()));
    refused((mask(), 5usize));
    refused((1u8, (2u8, Points::default())));
    refused([mask(), mask()]);
    refused([Boxes::default()]);
    refused(Arc::new(mask()));
    refused(Box::new(Points::default()));
    refused(Mutex::new(Boxes::default()));
    refused(vec![vec![mask()]]);
    refused(Vec::<Option<Boxes>>::new());
    refused(Some((mask(), Boxes::default())));
    refused(HashMap::from([("road", mask())]));
    refused(BTreeMap::<u8, Points>::new());
    refused((Image::from(picture()), 3));
    refused([Image::from(picture())]);
    refused((picture(), picture()));
    refused(Arc::new(picture()));
    refused(Ok::<Mask, ()>(mask()));
}

#[test]
fn pictures_that_are_no_masks_are_errors() {
    let error = |error: Result<(), BoxError>| {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("which no transform looks into") && error.contains("`Mask`"), "{error}");
    };
    let flip = RandomHorizontalFlip::default();
    error(flip.apply((picture(), GrayImage::new(61, 43)), &mut rng(0)).map(|_| ()));
    let deep = ImageBuffer::<Luma<u16>, Vec<u16>>::new(61, 43);
    error(flip.apply((picture(), vec![deep]), &mut rng(0)).map(|_| ()));
    error(flip.apply((picture(), DynamicImage::new_luma8(61, 43)), &mut rng(0)).map(|_| ()));
}

#[test]
fn labels_stay_labels() -> Result<(), BoxError> {
    let flip = RandomHorizontalFlip::new(1.0)?;
    flip.apply((picture(), (1usize, "a".to_string())), &mut rng(0))?;
    flip.apply((picture(), vec![0.5f32; 3], [1u8; 4]), &mut rng(0))?;
    flip.apply((picture(), Arc::<str>::from("file.png"), Some(HashMap::from([(1, 2)]))), &mut rng(0))?;
    flip.apply((picture(), BoxFormat::Xywh, Limits::default()), &mut rng(0))?;
    Ok(())
}

/// All transforms that change a shape or a colour.
fn all<S: HasImage + Send + Sync + 'static>() -> Vec<(&'static str, Box<dyn Augment<S>>)> {
    let jitter = ColorJitter::new().brightness(0.4).unwrap().contrast(0.4).unwrap().hue(0.3).unwrap();
    let mut all = shapes::<S>();
    all.push(("colours", Box::new((jitter, RandomGrayscale::new(0.3).unwrap()))));
    all.push(("distorted", Box::new(RandomPhotometricDistort::new(0.5).unwrap())));
    all.push(("blur", Box::new(GaussianBlur::new(5).unwrap())));
    all.push(("noise", Box::new(RandomErasing::new(1.0).unwrap().value(Erased::Noise))));
    all.push(("erased", Box::new(RandomErasing::new(1.0).unwrap())));
    all.push(("operations", Box::new(RandAugment::new(4, 20).unwrap())));
    all.push(("operation", Box::new(TrivialAugmentWide::new())));
    all.push(("pairs", Box::new(AutoAugment::new(AutoAugmentPolicy::Svhn))));
    all.push(("mix", Box::new(AugMix::new(3, 3).unwrap())));
    all.push(("grain", Box::new(GaussianNoise::new(0.0, 0.1).unwrap())));
    all.push(("gamma", Box::new(RandomGamma::new(50.0, 200.0).unwrap())));
    all.push(("local contrast", Box::new(CLAHE::new(1.0, 4.0).unwrap())));
    all.push(("saved", Box::new(JPEG::new(10..=50).unwrap())));
    all.push(("channels", Box::new(RandomChannelPermutation)));
    let one = OneOf::new(RandomRotate90).or(RandomEqualize::new(1.0).unwrap());
    all.push(("some", Box::new(RandomApply::new(0.5, one).unwrap())));
    all
}

#[test]
fn a_second_image_moves_with_the_first() {
    let (picture, limits) = (picture(), Limits::default());
    let file = || Image::from_bytes(png(photo(61, 43)), &limits).unwrap();
    for ((name, pixels), (_, files)) in all::<(RgbImage, RgbImage)>().into_iter().zip(all::<(Image, Image)>()) {
        let mut changed = 0;
        for nth in 0..12 {
            let (first, second) = pixels.apply((picture.clone(), picture.clone()), &mut rng(nth)).unwrap();
            assert!(first == second, "{name}, {nth}");
            changed += usize::from(first != picture);
            let (a, b) = files.apply((file(), file()), &mut rng(nth)).unwrap();
            assert!(a.into_rgb().unwrap() == first && b.into_rgb().unwrap() == first, "{name}, {nth}, of files");
        }
        assert!(changed > 2, "{name}");
    }
}

#[test]
fn second_images_move_in_lists_options_and_triples() -> Result<(), BoxError> {
    let turn = (D4, RandomResizedCrop::new(20)?.interpolation(Interpolation::Nearest));
    for nth in 0..20 {
        let second = Image::from(picture());
        let (first, others, mask) =
            turn.apply((picture(), vec![second.clone(), second.clone()], Mask::from(red(&picture()))), &mut rng(nth))?;
        for other in others {
            assert_eq!(other.into_rgb()?, first);
        }
        assert!(mask.to_numbers()?.iter().zip(red(&first).iter()).all(|(a, b)| *a == u16::from(*b)));
        let (first, other, none) = turn.apply((second, Some(picture()), None::<Image>), &mut rng(nth))?;
        assert_eq!((Some(first.into_rgb()?), none.is_none()), (other, true));
    }
    Ok(())
}

#[test]
fn a_second_image_of_another_size_is_an_error() {
    let error = Grayscale.apply((picture(), RgbImage::new(61, 42)), &mut rng(0)).unwrap_err().to_string();
    assert!(error.contains("the second image of a sample is of 61 x 42 pixels, and the first of 61 x 43"), "{error}");
}

#[test]
fn no_second_image_changes_a_draw() -> Result<(), BoxError> {
    for ((name, alone), (_, pair)) in all::<RgbImage>().into_iter().zip(all::<(RgbImage, Image)>()) {
        for nth in 0..6 {
            let expected = alone.apply(picture(), &mut rng(nth))?;
            assert!(pair.apply((picture(), picture().into()), &mut rng(nth))?.0 == expected, "{name}, {nth}");
        }
    }
    Ok(())
}
