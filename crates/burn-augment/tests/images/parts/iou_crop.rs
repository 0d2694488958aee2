//! `RandomIoUCrop`.

use super::rng;
use burn_augment::{Augment, images::*};
use image::RgbImage;

const BOXES: [[f32; 4]; 3] = [[10.0, 10.0, 50.0, 60.0], [100.0, 20.0, 190.0, 140.0], [60.0, 120.0, 80.0, 140.0]];

fn overlap(part: CropBox, [left, top, right, bottom]: [f32; 4]) -> f32 {
    let (a, b) = (part.left as f32, part.top as f32);
    let (c, d) = (a + part.width as f32, b + part.height as f32);
    let both = (right.min(c) - left.max(a)).max(0.0) * (bottom.min(d) - top.max(b)).max(0.0);
    both / ((c - a) * (d - b) + (right - left) * (bottom - top) - both)
}

#[test]
fn a_part_overlaps_a_box_by_the_drawn_share() {
    for least in [0.0, 0.3, 0.5] {
        let crop = RandomIoUCrop::new().sampler_options(&[least]).unwrap();
        let mut drawn = 0;
        for nth in 0..300 {
            let Some(part) = crop.draw(200, 150, &BOXES, &mut rng(nth)) else { continue };
            drawn += 1;
            let [across, down] = [part.width as f32 / 200.0, part.height as f32 / 150.0];
            assert!((0.29..=1.0).contains(&across) && (0.29..=1.0).contains(&down), "{part:?}");
            assert!((0.5..=2.0).contains(&(part.width as f32 / part.height as f32)), "{part:?}");
            assert!(part.left >= 0 && part.left + i64::from(part.width) <= 200, "{part:?}");
            assert!(BOXES.iter().any(|edges| overlap(part, *edges) >= least as f32 - 1e-5), "{least}: {part:?}");
        }
        assert!(drawn > 250, "{least}: {drawn}");
    }
}

#[test]
fn boxes_whose_middle_is_cut_off_go() {
    let crop = RandomIoUCrop::new().sampler_options(&[0.0]).unwrap();
    let mut fewer = 0;
    for nth in 0..200 {
        let part = crop.draw(200, 150, &BOXES, &mut rng(nth)).unwrap();
        let sample = (RgbImage::new(200, 150), Boxes::new(BOXES, [0, 1, 2], BoxFormat::Xyxy).unwrap());
        let (image, boxes) = crop.apply(sample, &mut rng(nth)).unwrap();
        assert_eq!(image.dimensions(), (part.width, part.height));
        let has_middle = |edges: &[f32; 4]| {
            let (x, y) =
                ((edges[0] + edges[2]) / 2.0 - part.left as f32, (edges[1] + edges[3]) / 2.0 - part.top as f32);
            x > 0.0 && y > 0.0 && x < part.width as f32 && y < part.height as f32
        };
        let expected: Vec<i32> = (0..3).filter(|at| has_middle(&BOXES[*at as usize])).collect();
        assert_eq!(boxes.labels(), expected);
        fewer += usize::from(boxes.len() < 3);
    }
    assert!(fewer > 50, "{fewer}");
}

#[test]
fn a_sample_stays_as_it_is_where_nothing_can_be_cut() {
    let image = || RgbImage::new(20, 15);
    let whole = RandomIoUCrop::new().sampler_options(&[1.0]).unwrap();
    let boxes = Boxes::new([[2.0, 2.0, 9.0, 9.0]], [1], BoxFormat::Xyxy).unwrap();
    assert_eq!(whole.apply((image(), boxes.clone()), &mut rng(0)).unwrap(), (image(), boxes));
    let never = RandomIoUCrop::new().sampler_options(&[0.99]).unwrap().trials(2);
    assert_eq!(never.apply((image(), Boxes::default()), &mut rng(0)).unwrap(), (image(), Boxes::default()));
    let error = whole.apply((image(), 3), &mut rng(0)).unwrap_err().to_string();
    assert!(error.contains("boxes of a sample are missing"), "{error}");
}
