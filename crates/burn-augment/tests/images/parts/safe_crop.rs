//! `BBoxSafeRandomCrop`.

use super::rng;
use crate::vision::statistics::even;
use burn_augment::{Augment, BoxError, images::*};
use image::RgbImage;

const BOXES: [[f32; 4]; 2] = [[60.5, 40.0, 90.0, 70.25], [80.0, 55.0, 120.25, 60.0]];

fn parts(crop: BBoxSafeRandomCrop, boxes: &[[f32; 4]]) -> Vec<CropBox> {
    (0..4_000).map(|nth| crop.draw(200, 100, boxes, &mut rng(nth))).collect()
}

#[test]
fn all_boxes_stay_whole() -> Result<(), BoxError> {
    let crop = BBoxSafeRandomCrop::new();
    for nth in 0..300 {
        let part = crop.draw(200, 100, &BOXES, &mut rng(nth));
        let boxes = Boxes::new(BOXES, [4, 5], BoxFormat::Xyxy)?;
        let (image, boxes) = crop.apply((RgbImage::new(200, 100), boxes), &mut rng(nth))?;
        assert_eq!((image.dimensions(), boxes.labels()), ((part.width, part.height), &[4, 5][..]));
        for (after, [left, top, right, bottom]) in boxes.xyxy().iter().zip(BOXES) {
            let (x, y) = (part.left as f32, part.top as f32);
            assert_eq!(*after, [left - x, top - y, right - x, bottom - y]);
        }
    }
    Ok(())
}

#[test]
fn an_edge_is_anywhere_between_the_boxes_and_the_border() {
    let drawn = parts(BBoxSafeRandomCrop::new(), &BOXES);
    let ends = |value: fn(&CropBox) -> i64, low: i64, high: i64| {
        let (least, most) = (drawn.iter().map(value).min(), drawn.iter().map(value).max());
        assert_eq!((least, most), (Some(low), Some(high)));
    };
    ends(|part| part.left, 0, 60);
    ends(|part| part.top, 0, 39);
    ends(|part| part.left + i64::from(part.width), 121, 200);
    ends(|part| part.top + i64::from(part.height), 71, 100);
    let mut counts = vec![0; 39];
    drawn.iter().filter(|part| part.top < 39).for_each(|part| counts[part.top as usize] += 1);
    even("top", &counts);
}

#[test]
fn eroded_boxes_may_be_cut() {
    let eroded = BBoxSafeRandomCrop::new().erosion_rate(0.5).unwrap();
    let drawn = parts(eroded, &BOXES);
    // Around all: 60.5 to 120.25. Half as wide: 75.4 to 105.3.
    assert_eq!(drawn.iter().map(|part| part.left).max(), Some(75));
    assert_eq!(drawn.iter().map(|part| part.left + i64::from(part.width)).min(), Some(106));
    assert_eq!(parts(eroded, &BOXES[..1]), parts(BBoxSafeRandomCrop::new(), &BOXES[..1]), "one box alone");
}

#[test]
fn without_boxes_the_proportions_stay() {
    let crop = BBoxSafeRandomCrop::new().erosion_rate(0.4).unwrap();
    let drawn = parts(crop, &[]);
    assert!(drawn.iter().all(|part| part.width == 2 * part.height && (60..=100).contains(&part.height)));
    let mut counts = [0; 41];
    drawn.iter().for_each(|part| counts[part.height as usize - 60] += 1);
    even("height", &counts);
    let tops = drawn.iter().filter(|part| part.height == 60).map(|part| part.top);
    assert!(tops.clone().min() < Some(4) && tops.clone().max() > Some(36) && tops.max() <= Some(40));
    let all = BBoxSafeRandomCrop::new().erosion_rate(1.0).unwrap();
    assert_eq!(parts(all, &BOXES), parts(all, &[]));
    let whole = CropBox { left: 0, top: 0, width: 200, height: 100 };
    assert!(parts(BBoxSafeRandomCrop::new(), &[]).iter().all(|part| *part == whole));
}

#[test]
fn boxes_at_the_border_and_without_area_leave_a_part() {
    for boxes in [[[0.0, 0.0, 200.0, 100.0]], [[200.0, 100.0, 200.0, 100.0]], [[-0.5, -0.5, -0.5, 100.5]]] {
        for part in parts(BBoxSafeRandomCrop::new(), &boxes) {
            let (right, bottom) = (part.left + i64::from(part.width), part.top + i64::from(part.height));
            assert!(part.width > 0 && part.height > 0 && part.left >= 0 && part.top >= 0, "{part:?}");
            assert!(right <= 200 && bottom <= 100, "{part:?}");
        }
    }
    let error = BBoxSafeRandomCrop::new().apply(RgbImage::new(9, 9), &mut rng(0)).unwrap_err().to_string();
    assert!(error.contains("the boxes of a sample are missing, and `BBoxSafeRandomCrop` needs them"), "{error}");
}

/// A promise, as the bytes in `tests/images/golden.rs` of the repository.
#[test]
fn a_seed_draws_the_same_parts() {
    let drawn = |crop: BBoxSafeRandomCrop, boxes: &[[f32; 4]]| {
        [1, 2]
            .map(|nth| crop.draw(200, 100, boxes, &mut rng(nth)))
            .map(|part| (part.left, part.top, part.width, part.height))
    };
    let eroded = BBoxSafeRandomCrop::new().erosion_rate(0.5).unwrap();
    let all = [drawn(BBoxSafeRandomCrop::new(), &BOXES), drawn(eroded, &BOXES), drawn(eroded, &[])];
    assert_eq!(
        all,
        [
            [(14, 17, 165, 62), (31, 13, 137, 63)],
            [(17, 20, 157, 54), (39, 15, 123, 54)],
            [(63, 10, 116, 58), (0, 1, 198, 99)]
        ]
    );
}
