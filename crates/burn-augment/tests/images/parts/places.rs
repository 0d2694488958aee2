//! What is where in the image is there in the mask, the boxes and the points.

use super::{png, red, rng, shapes};
use crate::photo::photo;
use burn_augment::{
    Augment, BoxError, KeyedRng,
    augment::{OneOf, RandomApply},
    images::*,
};
use image::{GrayImage, Luma, Rgb, RgbImage};
use rand::RngExt;

#[test]
fn a_mask_is_changed_as_the_pixels_of_its_image() {
    let picture = photo(97, 71);
    let limits = Limits::default();
    let (file, numbers) = (png(picture.clone()), png(red(&picture)));
    for ((name, early), (_, late)) in shapes::<(RgbImage, Mask)>().into_iter().zip(shapes::<(Image, Mask)>()) {
        for nth in 0..40 {
            let (image, mask) = early.apply((picture.clone(), red(&picture).into()), &mut rng(nth)).unwrap();
            let expected = red(&image);
            let got = mask.to_numbers().unwrap();
            assert_eq!(got.dimensions(), expected.dimensions());
            let differ =
                got.iter().zip(expected.iter()).filter(|(got, expected)| **got != u16::from(**expected)).count();
            assert_eq!(differ, 0, "{name}, {nth}");
            let sample = (
                Image::from_bytes(file.clone(), &limits).unwrap(),
                Mask::from_bytes(numbers.clone(), &limits).unwrap(),
            );
            let (image, mask) = late.apply(sample, &mut rng(nth)).unwrap();
            assert_eq!(mask.to_numbers().unwrap(), got, "{name}, {nth}, of files");
            assert_eq!(red(&image.into_rgb().unwrap()), expected, "{name}, {nth}, of files");
        }
    }
}

/// A white rectangle on black, with its box and two of its corners.
fn rectangle([left, top, right, bottom]: [u32; 4]) -> (RgbImage, Mask, Boxes) {
    let inside = |x: u32, y: u32| (left..right).contains(&x) && (top..bottom).contains(&y);
    let image = RgbImage::from_fn(120, 90, |x, y| Rgb([if inside(x, y) { 255 } else { 0 }; 3]));
    let mask = GrayImage::from_fn(120, 90, |x, y| Luma([inside(x, y).into()]));
    let edges = [left, top, right, bottom].map(|edge| edge as f32);
    (image, Mask::from(mask).fill(0), Boxes::new([edges], [5], BoxFormat::Xyxy).unwrap())
}

/// The edges of what is not 0.
fn edges(mask: &Mask) -> Option<[f32; 4]> {
    let numbers = mask.to_numbers().unwrap();
    let places: Vec<_> = numbers.enumerate_pixels().filter(|(_, _, number)| number.0[0] == 1).collect();
    let least = |of: fn(&(u32, u32)) -> u32| places.iter().map(|(x, y, _)| of(&(*x, *y))).min();
    let most = |of: fn(&(u32, u32)) -> u32| places.iter().map(|(x, y, _)| of(&(*x, *y))).max();
    let edges = [least(|p| p.0)?, least(|p| p.1)?, most(|p| p.0)? + 1, most(|p| p.1)? + 1];
    Some(edges.map(|edge| edge as f32))
}

#[test]
fn a_box_stays_around_its_object() {
    let mut seen = 0;
    for (name, augment) in shapes::<(RgbImage, Mask, Boxes)>() {
        for nth in 0..60 {
            let mut places = rng(1000 + nth);
            let (left, top) = (places.random_range(0..80), places.random_range(0..60));
            let (right, bottom) = (left + places.random_range(8..=40), top + places.random_range(8..=30));
            let sample = rectangle([left, top, right, bottom]);
            let (_, mask, boxes) = augment.apply(sample, &mut rng(nth)).unwrap();
            assert_eq!(boxes.len(), boxes.labels().len());
            if name == "edges" {
                continue; // it may show an object twice, as in a mirror
            }
            let (Some(of_mask), Some(of_box)) = (edges(&mask), boxes.xyxy().first()) else {
                // Nothing is seen but a strip that is thinner than a pixel.
                assert!(edges(&mask).is_none_or(|[a, b, c, d]| (c - a) * (d - b) < 60.0), "{name}, {nth}");
                continue;
            };
            seen += 1;
            let far = of_mask.iter().zip(of_box).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // Of a turned rectangle the mask has no number at the very corners, and the box is around them. Each copy
            // of nearest pixels may be half a pixel beside it.
            let (most, slack) =
                if !["crop", "padding", "flips", "symmetries", "resized crop", "two resizes", "pad"].contains(&name) {
                    (40.0, 2.0)
                } else {
                    (1.0, 1.0)
                };
            assert!(far <= most, "{name}, {nth}: {of_mask:?} {of_box:?}");
            let around = of_mask[0] >= of_box[0] - slack
                && of_mask[1] >= of_box[1] - slack
                && of_mask[2] <= of_box[2] + slack
                && of_mask[3] <= of_box[3] + slack;
            assert!(around, "{name}, {nth}: {of_mask:?} {of_box:?}");
        }
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn a_turn_moves_boxes_and_points_with_the_pixels() -> Result<(), BoxError> {
    let turn = RandomRotation::new((90.0, 90.0))?;
    let (image, _, boxes) = rectangle([70, 20, 80, 50]);
    let square = (CenterCrop::new(90)?, turn);
    let (_, boxes) = square.apply((image.clone(), boxes), &mut rng(0))?;
    // The middle 90 columns begin at 15. Counterclockwise by 90 degrees: (x, y) goes to (y, 90 - x).
    let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
    assert!(close(&boxes.xyxy()[0], &[20.0, 25.0, 50.0, 35.0]), "{boxes:?}");
    let (_, points) = square.apply((image, Points::new([[70.0, 20.0]])?), &mut rng(0))?;
    assert!(close(&points.xy()[0], &[20.0, 35.0]), "{points:?}");
    Ok(())
}

#[test]
fn points_are_mirrored_as_in_torchvision() -> Result<(), BoxError> {
    let both = (RandomHorizontalFlip::new(1.0)?, RandomVerticalFlip::new(1.0)?);
    let (_, points) = both.apply((RgbImage::new(100, 50), Points::new([[0.0, 10.0], [99.0, 49.0]])?), &mut rng(0))?;
    assert_eq!(points.xy(), [[99.0, 39.0], [0.0, 0.0]]);
    Ok(())
}

#[test]
fn parts_change_no_draw_and_no_pixel_of_the_image() {
    let picture = photo(97, 71);
    let boxes = || Boxes::new([[10.0, 10.0, 60.0, 50.0]], [1], BoxFormat::Xyxy).unwrap();
    let with = shapes::<(RgbImage, Boxes, Points)>();
    for ((name, alone), (_, with)) in shapes::<RgbImage>().into_iter().zip(with) {
        for nth in 0..10 {
            let (mut a, mut b): (KeyedRng, KeyedRng) = (rng(nth), rng(nth));
            let expected = alone.apply(picture.clone(), &mut a).unwrap();
            let (image, _, _) = with.apply((picture.clone(), boxes(), Points::default()), &mut b).unwrap();
            assert!(image == expected, "{name}");
            assert_eq!(a.random::<u64>(), b.random::<u64>(), "{name}");
        }
    }
}

#[test]
fn colours_and_erasing_leave_the_parts_alone() -> Result<(), BoxError> {
    let colours = (
        ColorJitter::new().brightness(0.9)?,
        Grayscale,
        RandomErasing::new(1.0)?,
        RandomApply::new(0.5, OneOf::new(Grayscale).or(RandomGrayscale::new(1.0)?))?,
    );
    let before = rectangle([10, 10, 50, 60]);
    let (image, mask, boxes) = colours.apply(before.clone(), &mut rng(0))?;
    assert_ne!(image, before.0);
    assert_eq!(mask.to_numbers()?, before.1.to_numbers()?);
    assert_eq!(boxes, before.2);
    Ok(())
}

/// A sample of the user's own, with two masks.
struct Two {
    image: Image,
    masks: [Mask; 2],
}

impl HasImage for Two {
    type Image = Image;
    fn image_mut(&mut self) -> &mut Image {
        &mut self.image
    }
    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        let [first, second] = &mut self.masks;
        vec![Part::Mask(first), Part::Mask(second)]
    }
}

#[test]
fn a_sample_of_ones_own_names_its_parts() -> Result<(), BoxError> {
    let (image, mask, _) = rectangle([10, 10, 50, 60]);
    let sample = Two { image: image.into(), masks: [mask.clone(), mask] };
    let Two { image, masks } = RandomResizedCrop::new(30)?.apply(sample, &mut rng(3))?;
    assert_eq!(masks.each_ref().map(Mask::dimensions), [image.dimensions(); 2]);
    assert_eq!(masks[0].to_numbers()?, masks[1].to_numbers()?);
    Ok(())
}

#[test]
fn boxes_that_are_cut_off_go_with_their_labels() -> Result<(), BoxError> {
    let four = [[0.0, 0.0, 20.0, 20.0], [30.0, 30.0, 60.0, 60.0], [58.0, 40.0, 98.0, 50.0], [70.0, 1.0, 99.0, 99.0]];
    let boxes = || Boxes::new(four, [1, 2, 3, 4], BoxFormat::Xyxy).unwrap();
    let middle = |boxes: Boxes| -> Result<Boxes, BoxError> {
        Ok(CenterCrop::new(40)?.apply((RgbImage::new(100, 100), boxes), &mut rng(0))?.1)
    };
    let all = middle(boxes())?;
    assert_eq!((all.labels(), all.xyxy()), (&[2, 3][..], &[[0.0, 0.0, 30.0, 30.0], [28.0, 10.0, 40.0, 20.0]][..]));
    assert_eq!(middle(boxes().least_visible(0.31)?)?.labels(), [2]);
    assert_eq!(middle(boxes().least_area(121.0)?)?.labels(), [2]);
    // Three tenths are left of the third, and then half of that.
    let halves = |boxes: Boxes| -> Result<Boxes, BoxError> {
        let top = (CenterCrop::new(40)?, CenterCrop::new([10, 40])?);
        Ok(top.apply((RgbImage::new(100, 100), boxes), &mut rng(0))?.1)
    };
    assert_eq!(halves(boxes().least_visible(0.29)?)?.labels(), [2]);
    assert_eq!(halves(boxes().least_visible(0.14)?)?.labels(), [2, 3]);
    Ok(())
}

#[test]
fn formats_of_boxes_say_the_same() -> Result<(), BoxError> {
    let xyxy = [[10.0, 20.0, 50.0, 80.0]];
    let boxes = Boxes::new(xyxy, [1], BoxFormat::Xyxy)?;
    for (format, values) in [
        (BoxFormat::Xyxy, xyxy[0]),
        (BoxFormat::Xywh, [10.0, 20.0, 40.0, 60.0]),
        (BoxFormat::Cxcywh, [30.0, 50.0, 40.0, 60.0]),
    ] {
        assert_eq!(boxes.values(format), values);
        assert_eq!(Boxes::new([values], [1], format)?, boxes);
    }
    Ok(())
}
