//! The smallest images: one pixel, one column, one row. Code that looks at neighbours, or divides by distances, finds
//! none here.

use super::{apply, rng};
use crate::photo::photo;
use burn_augment::{Augment, images::*};
use image::RgbImage;

/// It is odd, so that after a turn by 90 degrees the pixels lie on the grid again.
const LONG: u32 = 41;

const SIZES: [(u32, u32); 3] = [(1, 1), (1, LONG), (LONG, 1)];

/// Every draw gives an image of the size that is expected of the width and the height before.
#[track_caller]
fn gives(augment: &impl Augment<RgbImage>, expected: impl Fn(u32, u32) -> (u32, u32)) {
    for (width, height) in SIZES {
        let image = photo(width, height);
        for nth in 0..40 {
            assert_eq!(apply(augment, &image, nth).dimensions(), expected(width, height));
        }
    }
}

fn keeps(augment: &impl Augment<RgbImage>) {
    gives(augment, |width, height| (width, height));
}

#[test]
fn colours_change() {
    let jitter = ColorJitter::new().brightness(0.9).unwrap().contrast(0.9).unwrap().saturation(0.9).unwrap();
    keeps(&jitter.hue(0.5).unwrap());
    keeps(&Grayscale);
    keeps(&RandomPhotometricDistort::new(1.0).unwrap());
    keeps(&RandomGrayscale::new(1.0).unwrap());
    keeps(&RandomEqualize::new(1.0).unwrap());
    keeps(&RandomAutocontrast::new(1.0).unwrap());
    keeps(&RandomAdjustSharpness::new(2.0, 1.0).unwrap());
    keeps(&GaussianBlur::new([7, 99]).unwrap());
    keeps(&RandomChannelPermutation);
    keeps(&GaussianNoise::new(0.0, 1.0).unwrap());
    keeps(&RandomGamma::new(1.0, 10_000.0).unwrap());
    keeps(&CLAHE::new(1.0, 256.0).unwrap());
    keeps(&CLAHE::new(1.0, 1.0).unwrap().tile_grid_size([1, 50]).unwrap());
    keeps(&JPEG::new(1..=100).unwrap());
    for value in [Erased::Color([1, 2, 3]), Erased::Noise] {
        keeps(&RandomErasing::new(1.0).unwrap().scale(0.0, 1.0).unwrap().value(value));
    }
}

#[test]
fn pixels_move() {
    keeps(&RandomHorizontalFlip::new(1.0).unwrap());
    keeps(&RandomVerticalFlip::new(1.0).unwrap());
    keeps(&AugMix::new(10, 2).unwrap().chain_depth(5).unwrap().alpha(0.001).unwrap());
    for policy in [AutoAugmentPolicy::ImageNet, AutoAugmentPolicy::Cifar10, AutoAugmentPolicy::Svhn] {
        keeps(&AutoAugment::new(policy));
    }
    for by in [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic] {
        for sigma in [0.0, 0.01, 30.0] {
            keeps(&ElasticTransform::new(65_535.0, sigma).unwrap().interpolation(by));
        }
        keeps(&RandomRotation::new(90.0).unwrap().interpolation(by).center(1e6, -1e6).unwrap());
        let turn = |degrees| RandomRotation::new(degrees).unwrap().interpolation(by);
        keeps(&turn((-360.0, 360.0)));
        keeps(&RandomAffine::new(360.0).unwrap().translate(1.0, 1.0).unwrap().shear(89.0, 89.0).unwrap());
        keeps(&RandomPerspective::new(1.0, 1.0).unwrap().interpolation(by));
        gives(&turn((90.0, 90.0)).expand(true), |width, height| (height, width));
        for augment in [RandAugment::new(14, 30).unwrap(), RandAugment::new(14, 0).unwrap()] {
            keeps(&augment.interpolation(by));
        }
        keeps(&TrivialAugmentWide::new().interpolation(by));
    }
}

#[test]
fn sizes_change() {
    gives(&CenterCrop::new([5, 7]).unwrap(), |_, _| (7, 5));
    gives(&CenterCrop::new(1).unwrap(), |_, _| (1, 1));
    gives(&RandomCrop::new(1).unwrap(), |_, _| (1, 1));
    gives(&RandomZoomOut::new(1.0).unwrap().side_range(2.0, 2.0).unwrap(), |width, height| (2 * width, 2 * height));
    gives(&Pad::each([1, 2, 3, 4]).padding_mode(PaddingMode::Reflect), |width, height| (width + 4, height + 6));
    for mode in [PaddingMode::Constant, PaddingMode::Edge, PaddingMode::Reflect, PaddingMode::Symmetric] {
        let crop = |size: [u32; 2]| RandomCrop::new(size).unwrap().padding_mode(mode);
        gives(&crop([5, 7]).pad_if_needed(true), |_, _| (7, 5));
        gives(&crop([5, 5]).padding(2), |_, _| (5, 5));
    }
    for by in [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic] {
        gives(&RandomResizedCrop::new([6, 9]).unwrap().interpolation(by), |_, _| (9, 6));
        gives(&Resize::exact([6, 9]).unwrap().interpolation(by), |_, _| (9, 6));
        gives(&Resize::exact(1).unwrap().interpolation(by), |_, _| (1, 1));
        let shorter = Resize::shorter_side(8).unwrap().interpolation(by);
        gives(&shorter, |width, height| (8 * width, 8 * height));
        let limited = |side: u32, most: u32| {
            move |width: u32, height: u32| {
                if width == height { (side, side) } else { (width.min(most), height.min(most)) }
            }
        };
        gives(&shorter.max_size(9).unwrap(), limited(8, 9));
        gives(&Resize::longer_side(7).unwrap().interpolation(by), limited(7, 7));
        gives(&LetterBox::new([6, 9]).unwrap().interpolation(by), |_, _| (9, 6));
        gives(&RandomResize::new(8, 9).unwrap().interpolation(by), |width, height| (8 * width, 8 * height));
    }
}

#[test]
fn patches_stay_within() {
    let mix = device::CutMix::new(1.0).unwrap();
    for (width, height) in SIZES {
        for nth in 0..40 {
            let device::Patch { x, y } = mix.draw(width as usize, height as usize, &mut rng(nth));
            assert!(x.start <= x.end && x.end <= width as usize && y.start <= y.end && y.end <= height as usize);
            assert!(width > 1 || x.is_empty());
        }
    }
}
