//! Boxes in shares of their image, YOLO's text, and points with a left and a right.

use super::rng;
use burn_augment::{Augment, BoxError, images::*};
use image::RgbImage;

#[test]
fn shares_of_an_image_are_pixels_times_its_size() -> Result<(), BoxError> {
    let (size, xyxy) = ((320, 200), [[80.0, 50.0, 240.0, 100.0]]);
    let boxes = Boxes::new(xyxy, [1], BoxFormat::Xyxy)?;
    for (format, values) in [
        (BoxFormat::Xyxy, [0.25, 0.25, 0.75, 0.5]),
        (BoxFormat::Xywh, [0.25, 0.25, 0.5, 0.25]),
        (BoxFormat::Cxcywh, [0.5, 0.375, 0.5, 0.25]),
    ] {
        assert_eq!(Boxes::of_shares([values], [1], format, size)?, boxes);
        assert_eq!(boxes.shares(format, size), values);
    }
    assert!(Boxes::default().shares(BoxFormat::Xyxy, size).is_empty());
    Ok(())
}

#[test]
fn yolos_text_is_read() -> Result<(), BoxError> {
    let text = "3 0.5 0.375 0.5 0.25\r\n\n  -1\t5e-1 .5 1 1.0  \n";
    let boxes = Boxes::from_yolo(text, (320, 200))?;
    assert_eq!(boxes.labels(), [3, -1]);
    assert_eq!(boxes.xyxy(), [[80.0, 50.0, 240.0, 100.0], [0.0, 0.0, 320.0, 200.0]]);
    assert!(Boxes::from_yolo("", (320, 200))?.is_empty());
    Ok(())
}

#[test]
fn a_line_that_is_no_box_is_named() {
    let good = "1 0.5 0.5 0.1 0.1\n";
    for bad in [
        "cat 0.5 0.5 0.1 0.1",
        "1 0.5 0.5 0.1",
        "1 0.5 0.5 0.1 0.1 0.1",
        "1",
        "1 0.5 0,5 0.1 0.1",
        "1.5 0.5 0.5 0.1 0.1",
    ] {
        let error = Boxes::from_yolo(&format!("{good}\n{bad}\n{good}"), (320, 200)).unwrap_err().to_string();
        assert!(error.contains("in line 3") && error.contains("center_x"), "{bad}: {error}");
    }
    for bad in ["1 0.5 0.5 -0.1 0.1", "1 nan 0.5 0.1 0.1", "1 0.5 inf 0.1 0.1"] {
        let error = Boxes::from_yolo(&format!("{good}{bad}"), (320, 200)).unwrap_err().to_string();
        assert!(error.contains("the edges of box 1"), "{bad}: {error}");
    }
}

#[test]
fn left_and_right_change_places_in_each_mirror() -> Result<(), BoxError> {
    let image = || RgbImage::new(41, 41);
    let places = [[3.0, 5.0], [10.0, 20.0], [30.0, 22.0], [7.0, 40.0]];
    let (plain, paired) = (Points::new(places)?, Points::new(places)?.pairs([(2, 1)])?);
    let same = |mirrored: bool, plain: &Points, paired: &Points| {
        let order = if mirrored { [0, 2, 1, 3] } else { [0, 1, 2, 3] };
        assert_eq!(paired.order(), order);
        assert!(order.iter().zip(paired.xy()).all(|(from, place)| plain.xy()[*from] == *place));
        assert_eq!(plain.order(), [0, 1, 2, 3]);
    };
    let mut mirrors = 0;
    for nth in 0..60 {
        let (mirrored, _) = D4.draw(&mut rng(nth));
        mirrors += usize::from(mirrored);
        let (_, a, b) = D4.apply((image(), plain.clone(), paired.clone()), &mut rng(nth))?;
        same(mirrored, &a, &b);
        let (_, a, b) = RandomRotate90.apply((image(), plain.clone(), paired.clone()), &mut rng(nth))?;
        same(false, &a, &b);
    }
    assert!((15..45).contains(&mirrors));
    let (left, up) = (RandomHorizontalFlip::new(1.0)?, RandomVerticalFlip::new(1.0)?);
    let (_, a, b) = left.apply((image(), plain.clone(), paired.clone()), &mut rng(0))?;
    same(true, &a, &b);
    let (_, a, b) = up.apply((image(), plain.clone(), paired.clone()), &mut rng(0))?;
    same(true, &a, &b);
    let (_, a, b) = (left, up).apply((image(), plain, paired), &mut rng(0))?;
    same(false, &a, &b);
    Ok(())
}

#[test]
fn pairs_that_are_none_are_refused() {
    let points = || Points::new([[0.0; 2]; 4]).unwrap();
    assert!(points().pairs([]).is_ok() && points().pairs([(0, 3), (2, 1)]).is_ok());
    assert!(Points::default().pairs([]).is_ok());
    for pairs in [vec![(0, 4)], vec![(usize::MAX, 0)], vec![(1, 1)], vec![(0, 1), (1, 2)], vec![(0, 1), (1, 0)]] {
        let error = points().pairs(pairs).unwrap_err().to_string();
        assert!(error.contains("points of a sample are 4, and have the pair"), "{error}");
    }
}
