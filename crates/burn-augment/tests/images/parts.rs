//! Samples of several parts: masks, boxes and points move with their image.

mod annotated;
mod classes;
mod containers;
mod iou_crop;
mod kinds;
mod letter_box;
mod numbers;
mod pasted;
mod places;
mod refused;
mod safe_crop;
mod stored;
mod together;
mod torchvision;
mod turns;
mod views;

use burn_augment::{Augment, KeyedRng, images::*};
use image::{GrayImage, Luma, RgbImage};
use std::io::Cursor;

fn rng(nth: usize) -> KeyedRng {
    KeyedRng::for_order(49, nth)
}

/// The red of an image, as a mask.
fn red(image: &RgbImage) -> GrayImage {
    GrayImage::from_fn(image.width(), image.height(), |x, y| Luma([image.get_pixel(x, y).0[0]]))
}

fn png(image: impl Into<image::DynamicImage>) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.into().write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}

/// Every transform that changes a shape, with pixels that are copied and not mixed, and filled with white.
fn shapes<S: HasImage + Send + Sync + 'static>() -> Vec<(&'static str, Box<dyn Augment<S>>)> {
    fn shape<S: 'static>(name: &'static str, augment: impl Augment<S>) -> (&'static str, Box<dyn Augment<S>>) {
        (name, Box::new(augment))
    }
    let resized = || RandomResizedCrop::new([40, 56]).unwrap().interpolation(Interpolation::Nearest);
    let small = || Resize::exact([33, 47]).unwrap().interpolation(Interpolation::Nearest);
    let (white, nearest) = ([255; 3], Interpolation::Nearest);
    let affine = || {
        let turned = RandomAffine::new(40.0).unwrap().translate(0.1, 0.2).unwrap().scale(0.7, 1.2).unwrap();
        turned.shear(20.0, (-10.0, 0.0)).unwrap().fill(white)
    };
    vec![
        shape("crop", (CenterCrop::new([50, 60]).unwrap(), RandomCrop::new(40).unwrap())),
        shape("padding", RandomCrop::new(60).unwrap().padding(40).fill(white)),
        shape("edges", RandomCrop::new(80).unwrap().pad_if_needed(true).padding_mode(PaddingMode::Reflect)),
        shape("flips", (RandomHorizontalFlip::default(), RandomVerticalFlip::default())),
        shape("symmetries", (D4, RandomRotate90, resized(), D4, CenterCrop::new(30).unwrap(), RandomRotate90)),
        shape("resized crop", (RandomHorizontalFlip::default(), resized(), RandomVerticalFlip::default())),
        shape("two resizes", (resized(), small(), RandomHorizontalFlip::default(), CenterCrop::new(20).unwrap())),
        shape("rotation", (small(), RandomRotation::new(80.0).unwrap().fill(white))),
        shape("expanded", (RandomRotation::new(30.0).unwrap().expand(true).fill(white), RandomVerticalFlip::default())),
        shape("pad", (Pad::each([9, 0, 3, 20]).fill(white), RandomVerticalFlip::default())),
        shape("affine", affine()),
        shape("letter box", LetterBox::new([40, 70]).unwrap().fill(white).interpolation(nearest)),
        shape("zoom out", (RandomZoomOut::default().fill(white), RandomHorizontalFlip::default())),
        shape("longer side", Resize::longer_side(50).unwrap().interpolation(nearest)),
        shape("jitter", RandomResize::scale_jitter([40, 70], 0.5, 2.0).unwrap().interpolation(nearest)),
        shape("turned about a corner", RandomRotation::new(40.0).unwrap().center(5.0, 70.0).unwrap().fill(white)),
        shape("affine about a place", affine().center(-3.0, 20.0).unwrap()),
        shape("elastic", ElasticTransform::new(40.0, 5.0).unwrap().interpolation(nearest).fill(white)),
        shape("perspective", RandomPerspective::new(0.6, 0.9).unwrap().interpolation(nearest).fill(white)),
    ]
}
