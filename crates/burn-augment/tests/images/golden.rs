//! The bytes that a seed gives. They are a promise, as those of the root's `tests/images/golden.rs`: whoever changes one of them
//! writes so into CHANGELOG.md.

use crate::photo::photo;
use burn::data::dataset::InMemDataset;
use burn_augment::{
    Augment, KeyedRng,
    augment::{Views, WithOthers},
    images::*,
};
use image::{GrayImage, Luma, RgbImage};

type Sample = (RgbImage, Vec<Mask>, Boxes);

/// A picture with three objects.
fn sample(width: u32, height: u32) -> Sample {
    let (w, h) = (width as f32, height as f32);
    let edges = [[0.1, 0.1, 0.4, 0.5], [0.5, 0.2, 0.9, 0.6], [0.2, 0.6, 0.7, 0.9]];
    let edges =
        edges.map(|[left, top, right, bottom]: [f32; 4]| [left * w, top * h, right * w, bottom * h].map(f32::round));
    let is_in = |[left, top, right, bottom]: [f32; 4], x: u32, y: u32| {
        (left..right).contains(&(x as f32)) && (top..bottom).contains(&(y as f32))
    };
    let mask = |edges| GrayImage::from_fn(width, height, |x, y| Luma([is_in(edges, x, y).into()])).into();
    (photo(width, height), edges.map(mask).to_vec(), Boxes::new(edges, [1, 2, 3], BoxFormat::Xyxy).unwrap())
}

fn bytes_of(image: &RgbImage) -> Vec<u8> {
    [&image.width().to_le_bytes()[..], &image.height().to_le_bytes(), image.as_raw()].concat()
}

fn bytes_of_all((image, masks, boxes): &Sample) -> Vec<u8> {
    let masks = masks.iter().flat_map(|mask| mask.to_numbers().unwrap().into_raw());
    let bytes = bytes_of(image).into_iter().chain(masks.flat_map(u16::to_le_bytes));
    let bytes = bytes.chain(boxes.xyxy().iter().flatten().flat_map(|edge| edge.to_le_bytes()));
    bytes.chain(boxes.labels().iter().flat_map(|label| label.to_le_bytes())).collect()
}

/// What twelve samples of seed 7 become, as an FNV-1a hash of 64 bits.
fn made<S: 'static>(augment: &impl Augment<S>, sample: impl Fn(u32, u32) -> S, bytes: impl Fn(&S) -> Vec<u8>) -> u64 {
    let apply = |n: u32| {
        let sample = sample(40 + 5 * n, 60 - 3 * n);
        bytes(&augment.apply(sample, &mut KeyedRng::for_sample(7, 0, n as usize)).unwrap())
    };
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    (0..12).flat_map(apply).fold(0xCBF2_9CE4_8422_2325, hash)
}

#[test]
fn the_bytes_of_more_transforms() {
    let data = InMemDataset::new(vec![sample(50, 40), sample(33, 57)]);
    let paste = WithOthers::new(data, CopyPaste::new(0.5).unwrap()).unwrap();
    let views = Views::new(2, RandomResizedCrop::new(24).unwrap()).unwrap();
    let views = views.and(3, (RandomResizedCrop::new(8).unwrap(), RandomHorizontalFlip::default())).unwrap();
    let shorter = Resize::shorter_side(24).unwrap().max_size(30).unwrap();
    let all = |views: &Vec<RgbImage>| views.iter().flat_map(bytes_of).collect();
    let mut wrong = String::new();
    for (name, made, expected) in [
        ("CopyPaste", made(&paste, sample, bytes_of_all), 0x2123_36FB_914B_FF60),
        ("RandomIoUCrop", made(&RandomIoUCrop::new(), sample, bytes_of_all), 0xF01A_2D9B_F420_8E47),
        ("Views", made(&views, |width, height| vec![photo(width, height)], all), 0x9E65_9C39_C4E2_727F),
        ("Resize, longer side", made(&Resize::longer_side(24).unwrap(), photo, bytes_of), 0x7A73_8798_34DE_1DB4),
        ("Resize, at most", made(&shorter, photo, bytes_of), 0x017F_2BE8_CBFF_7892),
    ] {
        if made != expected {
            wrong += &format!("\n{name}: {made:#018X}");
        }
    }
    assert!(wrong.is_empty(), "other bytes than promised:{wrong}");
}
