//! `LetterBox`.

use super::{png, rng};
use crate::photo::photo;
use burn_augment::{Augment, BoxError, images::*};
use image::{GrayImage, RgbImage};
use rand::RngExt;

#[test]
fn an_image_is_where_ultralytics_has_it() -> Result<(), BoxError> {
    for (image, [height, width], up, center, [left, top, across, down]) in [
        ((500, 375), [640, 640], true, true, [0, 80, 640, 480]),
        ((375, 500), [640, 640], true, true, [80, 0, 480, 640]),
        ((1281, 721), [384, 640], true, true, [0, 12, 640, 360]),
        ((333, 500), [640, 641], true, true, [107, 0, 426, 640]),
        ((100, 50), [640, 640], false, true, [270, 295, 100, 50]),
        ((101, 50), [640, 640], false, true, [269, 295, 101, 50]),
        ((500, 375), [640, 640], true, false, [0, 0, 640, 480]),
        ((97, 71), [120, 33], true, true, [0, 48, 33, 24]),
        ((5000, 1), [9, 9], true, true, [0, 4, 9, 1]), // no image disappears
    ] {
        let frame = LetterBox::new([height, width])?.scale_up(up).center(center);
        let place = CropBox { left: left.into(), top: top.into(), width: across, height: down };
        assert_eq!(frame.place(image), place, "{image:?} in {width} x {height}");
    }
    Ok(())
}

#[test]
fn the_frame_is_filled_around_the_resized_image() -> Result<(), BoxError> {
    let image = photo(50, 30);
    let mask = Mask::from(GrayImage::new(50, 30));
    let small = Resize::exact([24, 40])?.resize(&image)?;
    for (frame, colour) in [(LetterBox::new(40)?, [114; 3]), (LetterBox::new(40)?.fill([1, 2, 3]), [1, 2, 3])] {
        let (framed, numbers) = frame.apply((image.clone(), mask.clone()), &mut rng(0))?;
        let numbers = numbers.to_numbers()?;
        assert_eq!((framed.dimensions(), numbers.dimensions()), ((40, 40), (40, 40)));
        for (x, y, pixel) in framed.enumerate_pixels() {
            let seen = (8..32).contains(&y);
            assert_eq!(pixel.0, if seen { small.get_pixel(x, y - 8).0 } else { colour }, "{x}, {y}");
            assert_eq!(numbers.get_pixel(x, y).0[0], if seen { 0 } else { 255 });
        }
    }
    Ok(())
}

#[test]
fn what_is_found_in_the_frame_is_found_in_the_image() -> Result<(), BoxError> {
    for nth in 0..300 {
        let mut drawn = rng(nth);
        let mut side = || drawn.random_range(20..200u32);
        let (size, frame) = ((side(), side()), LetterBox::new([side(), side()])?);
        let frame = frame.center(nth % 2 == 0).scale_up(nth % 3 == 0);
        let mut edge = |most: u32| drawn.random_range(0.0..most as f32 / 2.0);
        let (left, top, across, down) = (edge(size.0), edge(size.1), edge(size.0), edge(size.1));
        let edges = [left, top, left + across, top + down];
        let boxes = Boxes::new([edges], [1], BoxFormat::Xyxy)?.least_side(0.0)?.least_area(0.0)?;
        let (_, boxes) = frame.apply((RgbImage::new(size.0, size.1), boxes), &mut rng(0))?;
        let back = frame.to_image(boxes.xyxy()[0], size);
        assert!(back.iter().zip(edges).all(|(a, b)| (a - b).abs() < 1e-2), "{nth}: {back:?} for {edges:?}");
        // All of the frame is all of the image.
        let all = frame.to_image([-9.0, -9.0, 999.0, 999.0], size);
        assert_eq!(all, [0.0, 0.0, size.0 as f32, size.1 as f32]);
    }
    Ok(())
}

#[test]
fn an_image_that_fills_the_frame_stays_undecoded() -> Result<(), BoxError> {
    let file = || Image::from_bytes(png(photo(40, 20)), &Limits::default());
    let (full, padded) = (LetterBox::new([30, 60])?, LetterBox::new(60)?);
    assert!(!full.apply(file()?, &mut rng(0))?.is_decoded());
    assert_eq!(padded.apply(file()?, &mut rng(0))?.into_rgb()?, padded.apply(photo(40, 20), &mut rng(0))?);
    Ok(())
}
