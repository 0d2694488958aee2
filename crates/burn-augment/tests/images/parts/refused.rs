//! Parts that do not belong to their image: the error names the part and what to do.

use super::{png, red, rng};
use crate::{photo::photo, vision::lazy::jpeg};
use burn_augment::{Augment, images::*};
use image::{GrayImage, RgbImage};
use jpeg_encoder::SamplingFactor;

/// The part that an error is about, and its text.
#[track_caller]
fn part<T: std::fmt::Debug>(result: Result<T, impl Into<burn_augment::BoxError>>) -> (&'static str, String) {
    let error = result.unwrap_err().into().downcast::<VisionError>().unwrap();
    let text = error.to_string();
    match *error {
        VisionError::Part { part, cure, .. } => {
            assert!(text.contains(part) && text.ends_with(cure), "{text}");
            (part, text)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_mask_of_another_size_is_refused() {
    let sample = (RgbImage::new(64, 48), Mask::from(GrayImage::new(48, 64)));
    let (name, text) = part(RandomHorizontalFlip::default().apply(sample, &mut rng(0)));
    assert_eq!(name, "mask");
    assert!(text.contains("is of 48 x 64 pixels, and its image of 64 x 48"), "{text}");
}

#[test]
fn a_mask_that_is_a_jpeg_is_refused() {
    let file = jpeg((64, 48), SamplingFactor::F_2_2, false, 1);
    let (name, text) = part(Mask::from_bytes(file.clone(), &Limits::default()));
    assert!(name == "mask" && text.contains("is a JPEG") && text.contains("PNG"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mask.png");
    std::fs::write(&path, file).unwrap();
    let error = Mask::open(&path, &Limits::default()).unwrap_err().to_string();
    assert!(error.contains("mask.png") && error.contains("is a JPEG"), "{error}");
}

#[test]
fn a_mask_of_colours_is_refused() {
    let (name, text) = part(Mask::from_bytes(png(photo(9, 7)), &Limits::default()));
    assert!(name == "mask" && text.contains("colours Rgb"), "{text}");
    assert!(Mask::from_bytes(png(red(&photo(9, 7))), &Limits { side: 8, ..Limits::default() }).is_err());
    assert!(Mask::from_bytes(Vec::new(), &Limits::default()).is_err());
}

#[test]
fn boxes_that_are_none_are_refused() {
    let of = |edges: [f32; 4]| Boxes::new([[0.0, 0.0, 1.0, 1.0], edges], [0, 1], BoxFormat::Xyxy);
    for edges in [[0.0, f32::NAN, 1.0, 1.0], [0.0, 0.0, f32::INFINITY, 1.0], [5.0, 0.0, 4.0, 1.0], [0.0, 5.0, 1.0, 4.0]]
    {
        let (name, text) = part(of(edges));
        assert!(name == "boxes" && text.contains("box 1"), "{text}");
    }
    let (_, text) = part(Boxes::new([[0.0; 4]], [1, 2], BoxFormat::Xywh));
    assert!(text.contains("are 1, and have 2 labels"), "{text}");
    assert_eq!(part(Points::new([[0.0, f32::NAN]])).0, "points");
}

#[test]
fn boxes_outside_their_image_are_refused() {
    let flip = RandomHorizontalFlip::default();
    let change = |edges: [f32; 4], clip: bool| {
        let boxes = Boxes::new([edges], [3], BoxFormat::Xyxy).unwrap();
        let boxes = if clip { boxes.clip((64, 48)) } else { boxes };
        flip.apply((RgbImage::new(64, 48), boxes), &mut rng(0)).map(|(_, boxes)| boxes)
    };
    for edges in [[0.0, 0.0, 66.0, 9.0], [-2.0, 0.0, 6.0, 9.0], [0.0, 40.0, 6.0, 50.0], [0.0, -9.0, 6.0, 5.0]] {
        let (name, text) = part(change(edges, false));
        assert!(name == "boxes" && text.contains("64 x 48") && text.contains("`Boxes::clip`"), "{text}");
        assert_eq!(change(edges, true).unwrap().labels(), [3]);
    }
    // Annotations that are rounded reach a little beyond.
    let rounded = change([-0.5, 0.0, 64.5, 48.2], false).unwrap();
    assert_eq!((rounded.len(), rounded.xyxy()[0][3]), (1, 48.0));
}
