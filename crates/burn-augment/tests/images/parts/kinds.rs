//! Masks, boxes and points of every kind of file and size, through every change of shape.

use super::{png, red, rng, shapes};
use crate::{
    exif::exif,
    photo::{photo, png_chunk},
};
use burn_augment::{
    Augment, BoxError,
    augment::{OneOf, RandomApply, RandomOrder, Views},
    images::*,
};
use image::{DynamicImage, GrayImage, ImageBuffer, Luma, RgbImage};
use rand::RngExt;

/// A PNG that says how it is turned.
fn turned(image: impl Into<DynamicImage>, orientation: u8) -> Vec<u8> {
    let file = png(image);
    [&file[..33], &png_chunk(b"eXIf", &exif(orientation)), &file[33..]].concat()
}

/// Checks that a mask has the numbers that its image has as red.
#[track_caller]
fn agree(image: Image, mask: &Mask, what: &str) {
    let (image, mask) = (red(&image.into_rgb().unwrap()), mask.to_numbers().unwrap());
    assert_eq!(image.dimensions(), mask.dimensions(), "{what}");
    assert!(image.iter().zip(mask.iter()).all(|(red, number)| u16::from(*red) == *number), "{what}");
}

fn files(picture: &RgbImage, orientation: u8) -> (Image, Mask) {
    let (image, mask) = (turned(picture.clone(), orientation), turned(red(picture), orientation));
    let limits = Limits::default();
    (Image::from_bytes(image, &limits).unwrap(), Mask::from_bytes(mask, &limits).unwrap())
}

#[test]
fn a_mask_is_turned_as_its_exif_says_and_then_moves() {
    let picture = photo(97, 71);
    for orientation in 1..=8 {
        let (image, mask) = files(&picture, orientation);
        assert_eq!(mask.dimensions(), if orientation < 5 { (97, 71) } else { (71, 97) });
        agree(image, &mask, "as it is");
        for (name, augment) in shapes::<(Image, Mask)>() {
            for nth in 0..4 {
                let (image, mask) = augment.apply(files(&picture, orientation), &mut rng(nth)).unwrap();
                agree(image, &mask, &format!("{name}, {nth}, orientation {orientation}"));
            }
        }
    }
}

#[test]
fn an_image_that_is_turned_and_a_mask_that_is_not_are_refused() {
    let (image, _) = files(&photo(61, 43), 6);
    let (_, mask) = files(&photo(61, 43), 1);
    let error = RandomHorizontalFlip::default().apply((image, mask), &mut rng(0)).unwrap_err().to_string();
    assert!(error.contains("is of 61 x 43 pixels, and its image of 43 x 61") && error.contains("EXIF"), "{error}");
}

#[test]
fn a_mask_of_one_pixel_moves() {
    for size in [(1, 1), (1, 41), (41, 1)] {
        // The crop of the middle fills with black.
        for (name, augment) in shapes::<(Image, Mask)>().into_iter().filter(|(name, _)| *name != "crop") {
            for nth in 0..20 {
                let (image, mask) = augment.apply(files(&photo(size.0, size.1), 1), &mut rng(nth)).unwrap();
                agree(image, &mask, &format!("{name}, {nth}, {size:?}"));
            }
        }
    }
}

#[test]
fn sixteen_bits_are_moved_as_they_are() -> Result<(), BoxError> {
    let number = |x: u32, y: u32| (x * 7919 + y * 104_729) as u16;
    let numbers = ImageBuffer::from_fn(500, 376, |x, y| Luma([number(x, y)]));
    let mask = Mask::from_bytes(png(numbers), &Limits::default())?;
    let changes = (RandomHorizontalFlip::new(1.0)?, CenterCrop::new([100, 200])?, RandomVerticalFlip::new(1.0)?);
    let (_, mask) = changes.apply((RgbImage::new(500, 376), mask), &mut rng(0))?;
    let (left, above) = (150, 138);
    for (x, y, got) in mask.to_numbers()?.enumerate_pixels() {
        let (x, y) = (499 - (left + x), above + (99 - y));
        assert_eq!(got.0[0], number(x, y), "{x} {y}");
    }
    Ok(())
}

#[test]
fn a_mask_of_a_format_of_colours_says_what_to_do() {
    for format in [image::ImageFormat::Gif, image::ImageFormat::WebP] {
        let mut file = std::io::Cursor::new(Vec::new());
        DynamicImage::from(photo(9, 7)).write_to(&mut file, format).unwrap();
        let error = Mask::from_bytes(file.into_inner(), &Limits::default()).unwrap_err().to_string();
        assert!(
            error.contains("the mask of a sample has the colours") && error.contains("as PNG"),
            "{format:?}: {error}"
        );
    }
}

#[test]
fn an_animation_of_smaller_frames_is_no_panic() {
    let file = png(red(&photo(9, 7)));
    let frames = |width: u32, height: u32| {
        let mut control = [0, width, height, 0, 0].map(u32::to_be_bytes).concat();
        control.extend([0, 1, 0, 1, 0, 0]);
        let animation = png_chunk(b"acTL", &[1u32, 0].map(u32::to_be_bytes).concat());
        [&file[..33], &animation, &png_chunk(b"fcTL", &control), &file[33..]].concat()
    };
    let read =
        |width, height| Mask::from_bytes(frames(width, height), &Limits::default()).and_then(|mask| mask.to_numbers());
    assert_eq!(read(9, 7).unwrap().dimensions(), (9, 7));
    for (width, height) in [(1, 1), (9, 6), (8, 7), (0, 0), (10, 7)] {
        assert!(read(width, height).is_err(), "{width} x {height}");
    }
}

#[test]
fn combinations_of_transforms_move_all_parts() -> Result<(), BoxError> {
    let nearest = || RandomResizedCrop::new(30).map(|crop| crop.interpolation(Interpolation::Nearest));
    let flip = RandomHorizontalFlip::default();
    let turn = RandomRotation::new(40.0)?.fill([255; 3]);
    let picture = photo(61, 43);
    let some = RandomApply::new(0.5, (turn, flip))?;
    let one = OneOf::new(nearest()?).or(turn).or(RandomVerticalFlip::new(1.0)?).or(ColorJitter::new());
    let all = RandomOrder::new(nearest()?).and(flip).and(turn);
    let views = Views::new(3, (nearest()?, flip))?;
    for nth in 0..40 {
        let (image, mask) = some.apply(files(&picture, 1), &mut rng(nth))?;
        agree(image, &mask, "RandomApply");
        let (image, mask) = one.apply(files(&picture, 1), &mut rng(nth))?;
        agree(image, &mask, "OneOf");
        let (image, mask) = all.apply(files(&picture, 1), &mut rng(nth))?;
        agree(image, &mask, "RandomOrder");
        let made = views.apply(vec![files(&picture, 1)], &mut rng(nth))?;
        assert_eq!(made.len(), 3);
        let numbers: Vec<_> = made.iter().map(|(_, mask)| mask.to_numbers()).collect::<Result<_, _>>()?;
        assert!(numbers[0] != numbers[1] || numbers[1] != numbers[2], "views differ");
        made.into_iter().for_each(|(image, mask)| agree(image, &mask, "Views"));
    }
    Ok(())
}

#[test]
fn parts_in_lists_and_options_move() -> Result<(), BoxError> {
    let picture = photo(61, 43);
    let flip = RandomHorizontalFlip::new(1.0)?;
    let mask = || Mask::from(red(&picture));
    let (image, masks) = flip.apply((picture.clone(), vec![mask(), mask()]), &mut rng(0))?;
    masks.iter().for_each(|mask| agree(image.clone().into(), mask, "a list"));
    let (image, some, none) = flip.apply((picture.clone(), Some(mask()), None::<Boxes>), &mut rng(0))?;
    agree(image.into(), &some.ok_or("no mask")?, "an option");
    assert!(none.is_none());
    let wrong = vec![mask(), Mask::from(GrayImage::new(2, 2))];
    assert!(flip.apply((picture.clone(), wrong), &mut rng(0)).is_err());
    Ok(())
}

#[test]
fn boxes_are_within_their_image_and_points_stay() {
    let (width, height) = (61.0, 43.0);
    for (name, augment) in shapes::<(RgbImage, Boxes, Points)>() {
        for nth in 0..60 {
            let mut places = rng(7000 + nth);
            let edge = |rng: &mut burn_augment::KeyedRng, most: f32| {
                // Some edges are those of the image.
                [0.0, most, rng.random_range(0.0..=most)][rng.random_range(0..3)]
            };
            let boxes: Vec<[f32; 4]> = (0..places.random_range(0..5))
                .map(|_| {
                    let [a, b] = [0; 2].map(|_| edge(&mut places, width));
                    let [c, d] = [0; 2].map(|_| edge(&mut places, height));
                    [a.min(b), c.min(d), a.max(b), c.max(d)]
                })
                .collect();
            let least = if nth % 2 == 0 { 0.0 } else { 9.0 };
            let labels: Vec<i32> = (0..boxes.len() as i32).collect();
            let given = Boxes::new(boxes.clone(), labels, BoxFormat::Xyxy).unwrap().least_area(least).unwrap();
            let points = Points::new([[0.0, 0.0], [width, height], [width - 1.0, 0.0]]).unwrap();
            let sample = (photo(61, 43), given, points);
            let (image, boxes, points) = augment.apply(sample, &mut rng(nth)).unwrap();
            let (width, height) = (image.width() as f32, image.height() as f32);
            for [left, top, right, bottom] in boxes.xyxy() {
                let within = 0.0 <= *left && left <= right && *right <= width;
                assert!(within && 0.0 <= *top && top <= bottom && *bottom <= height, "{name}, {nth}: {boxes:?}");
                // Also where no flip was drawn.
                let (across, down) = (right - left, bottom - top);
                assert!(across.min(down) >= 1.0 && across * down >= least, "{name}, {nth}: {boxes:?}");
            }
            assert_eq!(boxes.labels().len(), boxes.len());
            assert!(boxes.labels().is_sorted_by(|a, b| a < b), "{name}, {nth}: {boxes:?}");
            assert!(points.xy().len() == 3 && points.xy().as_flattened().iter().all(|place| place.is_finite()));
        }
    }
}

#[test]
fn two_flips_give_back_what_was_there() -> Result<(), BoxError> {
    let twice = (RandomHorizontalFlip::new(1.0)?, RandomVerticalFlip::new(1.0)?);
    let twice = (twice, twice);
    let boxes = Boxes::new([[0.0, 0.0, 61.0, 43.0], [3.0, 4.0, 9.0, 11.0]], [1, 2], BoxFormat::Xyxy)?;
    let points = Points::new([[0.0, 43.0], [60.0, 0.0], [-5.0, 99.0]])?;
    let (_, changed, moved) = twice.apply((photo(61, 43), boxes.clone(), points.clone()), &mut rng(0))?;
    assert_eq!((changed, moved), (boxes, points));
    Ok(())
}

#[test]
fn no_boxes_and_boxes_of_no_area_are_no_faults() -> Result<(), BoxError> {
    let changes = || (RandomIoUCrop::new(), RandomHorizontalFlip::default(), Resize::exact(30).unwrap());
    for nth in 0..40 {
        let (image, boxes) = changes().apply((photo(61, 43), Boxes::default()), &mut rng(nth))?;
        assert_eq!((image.dimensions(), boxes.len()), ((30, 30), 0));
        let flat = [[5.0, 5.0, 5.0, 20.0], [8.0, 8.0, 8.0, 8.0]];
        let (_, boxes) = changes().apply((photo(61, 43), Boxes::new(flat, [1, 2], BoxFormat::Xyxy)?), &mut rng(nth))?;
        assert!(boxes.is_empty() && boxes.labels().is_empty());
    }
    // With a least side and a least area of 0 they stay where they are seen.
    let line = Boxes::new([[5.0, 5.0, 5.0, 20.0]], [1], BoxFormat::Xyxy)?.least_side(0.0)?.least_area(0.0)?;
    let (_, boxes) = RandomHorizontalFlip::new(1.0)?.apply((photo(61, 43), line), &mut rng(0))?;
    assert_eq!(boxes.xyxy(), [[56.0, 5.0, 56.0, 20.0]]);
    Ok(())
}

#[test]
fn slivers_and_boxes_beyond_the_image_go_whether_a_change_is_drawn_or_not() -> Result<(), BoxError> {
    let edges = [
        [10.0, 5.0, 10.3, 40.0],   // a sliver
        [5.0, 10.0, 40.0, 10.9],   // one that lies
        [7.0, 7.0, 7.0, 30.0],     // no area
        [-1.0, 3.0, -0.5, 30.0],   // outside
        [-1.0, 3.0, 20.0, 30.0],   // partly outside
        [20.0, 20.0, 21.0, 21.0],  // one pixel
        [59.5, 20.0, 62.0, 30.0],  // one and a half columns are inside
        [60.25, 20.0, 62.0, 30.0], // and three quarters of one
    ];
    let boxes = || Boxes::new(edges, [0, 1, 2, 3, 4, 5, 6, 7], BoxFormat::Xyxy);
    let right: &[[f32; 4]] = &[[0.0, 3.0, 20.0, 30.0], [20.0, 20.0, 21.0, 21.0], [59.5, 20.0, 61.0, 30.0]];
    let none: [Box<dyn Augment<(RgbImage, Boxes)>>; 6] = [
        Box::new(RandomHorizontalFlip::new(0.0)?),
        Box::new(RandomRotation::new(0.0)?),
        Box::new(RandomPerspective::new(0.5, 0.0)?),
        Box::new(RandomIoUCrop::new().sampler_options(&[1.0])?),
        Box::new(RandomErasing::new(0.0)?),
        Box::new(Grayscale),
    ];
    for (nth, change) in none.iter().enumerate() {
        let (_, boxes) = change.apply((photo(61, 43), boxes()?), &mut rng(0))?;
        assert_eq!((boxes.labels(), boxes.xyxy()), (&[4, 5, 6][..], right), "{nth}");
    }
    let (_, boxes) = RandomVerticalFlip::new(1.0)?.apply((photo(61, 43), boxes()?), &mut rng(0))?;
    assert_eq!(boxes.labels(), [4, 5, 6]);
    Ok(())
}

#[test]
fn the_least_side_is_chosen() -> Result<(), BoxError> {
    let edges = [[10.0, 5.0, 10.3, 40.0], [5.0, 5.0, 9.0, 8.0]];
    let of = |side: f32| -> Result<Vec<i32>, BoxError> {
        let boxes = Boxes::new(edges, [0, 1], BoxFormat::Xyxy)?.least_side(side)?;
        Ok(Grayscale.apply((photo(61, 43), boxes), &mut rng(0))?.1.labels().to_vec())
    };
    assert_eq!((of(0.0)?, of(0.25)?, of(3.0)?, of(3.5)?), (vec![0, 1], vec![0, 1], vec![1], vec![]));
    Ok(())
}

/// Of a perspective with corners that nearly meet, much of the plane lies beyond the horizon.
#[test]
fn points_and_boxes_stay_numbers() -> Result<(), BoxError> {
    let mut far = 0;
    for size in [(2, 2), (3, 2), (4, 4), (5, 9), (8, 8), (61, 43), (640, 480)] {
        let (width, height) = (size.0 as f32, size.1 as f32);
        let points: Vec<[f32; 2]> = (0..=8)
            .flat_map(|y| (0..=8).map(move |x| [x as f32 / 8.0 * width, y as f32 / 8.0 * height]))
            .chain([[-1e30, 0.0], [f32::MAX, f32::MIN], [1e9, 1e9]])
            .collect();
        let boxes =
            [[0.0, 0.0, width, height], [0.0, 0.0, width / 2.0, height], [width / 4.0, 0.0, width, height / 2.0]];
        let wild = RandomAffine::new(360.0)?.scale(1.0, 1e38)?.shear(89.0, 89.0)?;
        let tilt = (RandomPerspective::new(1.0, 1.0)?, RandomPerspective::new(1.0, 1.0)?, wild);
        for nth in 0..if size.0 > 100 { 8 } else { 400 } {
            let sample = (
                RgbImage::new(size.0, size.1),
                Points::new(points.clone())?,
                Boxes::new(boxes, [0, 1, 2], BoxFormat::Xyxy)?.least_side(0.0)?.least_area(0.0)?,
            );
            let (_, points, boxes) = tilt.apply(sample, &mut rng(nth))?;
            let numbers = points.xy().as_flattened();
            assert!(numbers.iter().all(|number| number.is_finite()), "{size:?}, {nth}: {points:?}");
            far += numbers.iter().filter(|number| number.abs() == f32::MAX).count();
            let all_within = boxes.xyxy().iter().all(|[left, top, right, bottom]| {
                0.0 <= *left && left <= right && *right <= width && 0.0 <= *top && top <= bottom && *bottom <= height
            });
            assert!(all_within, "{size:?}, {nth}: {boxes:?}");
            Points::new(points.xy())?; // what was moved can be taken again
        }
    }
    assert!(far > 100, "{far}");
    Ok(())
}

/// The example of the documentation of `Points`.
#[test]
fn a_flip_and_a_resize_name_the_pixel_of_a_point_each_in_its_way() -> Result<(), BoxError> {
    let point = |x: f32| Points::new([[x, 0.0]]);
    let flip = RandomHorizontalFlip::new(1.0)?;
    let double = Resize::exact([2, 8])?;
    let of = |points: Points| -> Result<f32, BoxError> {
        Ok((flip, double).apply((RgbImage::new(4, 1), points), &mut rng(0))?.1.xy()[0][0])
    };
    // 0 is the first of 4 columns, and then the last: 3. Of 8 columns that is 6, the first of its two.
    assert_eq!((of(point(0.0)?)?, of(point(3.0)?)?), (6.0, 0.0));
    Ok(())
}
