//! Objects of other images, pasted: boxes, masks and points of both.

use super::{rng, together::crowd};
use burn::data::dataset::InMemDataset;
use burn_augment::{Augment, augment::WithOthers, images::*};
use image::{GrayImage, Luma, Rgb, RgbImage};

/// Rectangles, each with its mask. The last one is in front, and the colour is the label.
fn objects(boxes: &[([f32; 4], i32)]) -> (RgbImage, Vec<Mask>, Boxes) {
    let is_in = |[left, top, right, bottom]: [f32; 4], x: u32, y: u32| {
        (left..right).contains(&(x as f32)) && (top..bottom).contains(&(y as f32))
    };
    let front = |x, y| boxes.iter().rposition(|(edges, _)| is_in(*edges, x, y));
    let image = RgbImage::from_fn(32, 32, |x, y| Rgb([front(x, y).map_or(0, |at| boxes[at].1 as u8); 3]));
    let mask = |at| GrayImage::from_fn(32, 32, |x, y| Luma([(front(x, y) == Some(at)).into()]));
    let (edges, labels): (Vec<_>, Vec<_>) = boxes.iter().copied().unzip();
    let masks = (0..boxes.len()).map(|at| mask(at).into()).collect();
    (image, masks, Boxes::new(edges, labels, BoxFormat::Xyxy).unwrap())
}

#[test]
fn pasted_objects_cover_those_below() {
    let other = objects(&[([0.0, 0.0, 16.0, 16.0], 9)]);
    let sample = objects(&[([4.0, 4.0, 12.0, 12.0], 3), ([8.0, 20.0, 20.0, 28.0], 4), ([8.0, 8.0, 24.0, 18.0], 5)]);
    let paste = |p| WithOthers::new(InMemDataset::new(vec![other.clone()]), CopyPaste::new(p).unwrap()).unwrap();
    let (image, masks, boxes) = paste(1.0).apply(sample.clone(), &mut rng(0)).unwrap();
    // The first object is covered. The third one is half visible.
    assert_eq!(boxes.labels(), [4, 5, 9]);
    for (index, label) in boxes.indices().iter().zip(boxes.labels()) {
        let numbers = masks[*index].to_numbers().unwrap();
        let is_its = |(x, y, number): (u32, u32, &Luma<u16>)| {
            (number.0[0] == 1) == (i32::from(image.get_pixel(x, y).0[0]) == *label)
        };
        assert!(numbers.enumerate_pixels().all(is_its), "{label}");
    }
    assert_eq!([(0, 0), (15, 15), (16, 15), (8, 20)].map(|(x, y)| image.get_pixel(x, y).0[0]), [9, 9, 5, 4]);
    let strict = (sample.0.clone(), sample.1.clone(), sample.2.clone().least_visible(0.7).unwrap());
    assert_eq!(paste(1.0).apply(strict, &mut rng(0)).unwrap().2.labels(), [4, 9]);
    let (image, _, boxes) = paste(0.0).apply(sample.clone(), &mut rng(0)).unwrap();
    assert_eq!((image, boxes.labels()), (sample.0, &[3, 4, 5][..]));
    // Half of it is left, and the box is around that half.
    let half = objects(&[([8.0, 2.0, 24.0, 10.0], 3)]);
    let (_, _, boxes) = paste(1.0).apply(half, &mut rng(0)).unwrap();
    assert_eq!(boxes.xyxy(), [[16.0, 2.0, 24.0, 10.0], [0.0, 0.0, 16.0, 16.0]]);
}

/// Boxes below their limits leave, however little is left, and points outside their image do not come back on any side.
#[test]
fn what_is_left_is_as_after_any_change() {
    let mut other = crowd(&[50]);
    other.points = vec![Points::new([[-5.0, 20.0], [40.0, 20.0], [20.0, -4.0], [20.0, 40.0], [8.0, 7.0]]).unwrap()];
    let paste = WithOthers::new(InMemDataset::new(vec![other]), CopyPaste::new(1.0).unwrap()).unwrap();
    let mut own = crowd(&[30]);
    // What is left of the mask lies outside the box.
    own.boxes = Boxes::new([[4.0, 4.0, 6.0, 6.0]], [30], BoxFormat::Xyxy).unwrap();
    own.masks = vec![
        Mask::from(GrayImage::from_fn(32, 32, |x, y| Luma([((4..20).contains(&x) && (4..10).contains(&y)).into()])))
            .fill(0),
    ];
    let made = (paste, Pad::new(20)).apply(own, &mut rng(0)).unwrap();
    assert_eq!(made.boxes.labels(), [50]);
    assert_eq!(made.points[1].within((72, 72)), [false, false, false, false, true]);

    let sliver = |colour| {
        (
            RgbImage::from_pixel(32, 32, Rgb([colour; 3])),
            Boxes::new([[-0.5, 0.0, 0.3, 9.0]], [1], BoxFormat::Xyxy).unwrap(),
        )
    };
    let mix = WithOthers::new(InMemDataset::new(vec![sliver(2)]), MixUpBoxes::new(1.0).unwrap()).unwrap();
    assert!(mix.apply(sliver(1), &mut rng(0)).unwrap().1.is_empty());
    for wrong in [-1.0, f32::NAN] {
        let boxes = Boxes::default;
        assert!(boxes().least_side(wrong).is_err() && boxes().least_area(wrong).is_err());
        assert!(boxes().least_visible(wrong).is_err() && boxes().least_visible(30.0).is_err());
    }
}

/// The mask of an object counts outside its box too.
#[test]
fn objects_are_what_their_masks_say() {
    let mut other = crowd(&[50]);
    other.boxes = Boxes::new([[4.0, 4.0, 6.0, 6.0]], [50], BoxFormat::Xyxy).unwrap();
    let paste = WithOthers::new(InMemDataset::new(vec![other]), CopyPaste::new(1.0).unwrap()).unwrap();
    let made = paste.apply(crowd(&[30]), &mut rng(0)).unwrap();
    assert!((4..12).all(|x| made.image.get_pixel(x, 5).0 == [50; 3]));
    assert_eq!(made.boxes.labels(), [50]); // all of the other is covered
    assert!(made.masks[0].to_numbers().unwrap().iter().all(|number| *number == 0));
}
