//! Resizes to sides that are given or drawn, and canvases.

use super::{apply, rng, statistics::*};
use crate::photo::photo;
use burn_augment::images::*;
use image::RgbImage;

const N: usize = 20_000;

fn made(resize: &Resize, (width, height): (u32, u32)) -> (u32, u32) {
    resize.resize(&RgbImage::new(width, height)).unwrap().dimensions()
}

#[test]
fn a_given_side_has_torchvisions_other_side() {
    // `_compute_resized_output_size` of torchvision; it makes (999, 0) of (3000, 2).
    for (image, side, most, expected) in [
        ((500, 375), 256, None, (341, 256)),
        ((640, 480), 800, Some(1333), (1066, 800)),
        ((1333, 400), 800, Some(1333), (1333, 400)),
        ((100, 1000), 50, Some(60), (6, 60)),
        ((37, 41), 36, Some(40), (36, 39)),
        ((1024, 683), 299, None, (448, 299)),
        ((7, 3), 5, Some(11), (11, 5)),
        ((3000, 2), 10, Some(999), (999, 1)),
        ((480, 640), 800, Some(1000), (750, 1000)),
        ((333, 333), 10, Some(12), (10, 10)),
    ] {
        let resize = Resize::shorter_side(side).unwrap();
        let resize = most.map_or(resize, |most| resize.max_size(most).unwrap());
        assert_eq!(made(&resize, image), expected, "{image:?} to {side}, {most:?}");
    }
    for (image, side, expected) in [
        ((500, 375), 640, (640, 480)),
        ((375, 500), 640, (480, 640)),
        ((641, 333), 77, (77, 40)),
        ((333, 333), 12, (12, 12)),
        ((1000, 3), 600, (600, 1)),
        ((9, 2000), 500, (2, 500)),
        ((9, 20_000), 500, (1, 500)),
    ] {
        assert_eq!(made(&Resize::longer_side(side).unwrap(), image), expected, "{image:?} to {side}");
    }
}

#[test]
fn a_drawn_shorter_side_is_below_the_last() {
    let resize = RandomResize::new(30, 37).unwrap();
    let mut counts = [0; 7];
    for nth in 0..N {
        let Size { height, width } = resize.draw(200, 100, &mut rng(nth)).unwrap();
        assert_eq!(width, 2 * height);
        counts[height as usize - 30] += 1;
    }
    even("shorter sides", &counts);
    let Size { height, width } = RandomResize::new(30, 31).unwrap().draw(50, 101, &mut rng(0)).unwrap();
    assert_eq!((width, height), (30, 60));
}

#[test]
fn a_listed_shorter_side_has_torchvisions_other_side() {
    let listed = [480, 512, 544];
    let resize = RandomResize::shortest_size(&listed, Some(800)).unwrap();
    let mut counts = [0; 3];
    for nth in 0..N {
        let Size { height, width } = resize.draw(500, 400, &mut rng(nth)).unwrap();
        let at = listed.iter().position(|side| *side == height).unwrap();
        assert_eq!(width, [600, 640, 680][at]);
        counts[at] += 1;
    }
    even("listed sides", &counts);
    // What torchvision makes, by floats: 15 / 11 * 11 is below 15.
    let size = |image: (u32, u32), side, most| {
        let Size { height, width } =
            RandomResize::shortest_size(&[side], most).unwrap().draw(image.0, image.1, &mut rng(0)).unwrap();
        (width, height)
    };
    assert_eq!(size((1333, 400), 800, Some(1333)), (1333, 400));
    assert_eq!(size((100, 1000), 50, Some(60)), (6, 60));
    assert_eq!(size((11, 22), 15, None), (14, 29));
    assert_eq!(size((1, 5000), 3, Some(60)), (1, 60));
}

#[test]
fn a_jittered_scale_is_uniform() {
    let resize = RandomResize::scale_jitter([20_000, 30_000], 0.1, 2.0).unwrap();
    let sizes: Vec<Size> = (0..N).map(|nth| resize.draw(6_000, 6_000, &mut rng(nth)).unwrap()).collect();
    // The image fits the frame at 20,000 a side.
    follows("scale", sizes.iter().map(|size| f64::from(size.width) / 20_000.0).collect(), uniform(0.1, 2.0));
    assert!(sizes.iter().all(|size| size.width == size.height));
    let wide = RandomResize::scale_jitter([100, 50], 1.0, 1.0).unwrap();
    assert_eq!(wide.draw(200, 100, &mut rng(0)).unwrap(), Size { height: 25, width: 50 });
    let tiny = RandomResize::scale_jitter(10, 0.001, 0.001).unwrap();
    assert_eq!(tiny.draw(7, 9, &mut rng(0)).unwrap(), Size { height: 1, width: 1 });
    let huge = RandomResize::scale_jitter(60_000, 1.5, 1.5).unwrap();
    assert!(matches!(huge.draw(7, 9, &mut rng(0)), Err(VisionError::ResultTooLarge { width: 7, height: 9, .. })));
}

#[test]
fn a_canvas_is_of_any_size_and_has_its_image_anywhere() {
    let zoom = RandomZoomOut::new(0.3).unwrap().side_range(1.5, 3.0).unwrap();
    let drawn: Vec<[u32; 4]> = (0..N).filter_map(|nth| zoom.draw(100_000, 50_000, &mut rng(nth))).collect();
    likely("zooms", drawn.len(), N, 0.3);
    let of = |value: fn(&[u32; 4]) -> f64| drawn.iter().map(value).collect::<Vec<f64>>();
    follows("width", of(|[left, _, right, _]| f64::from(100_000 + left + right) / 1e5), uniform(1.5, 3.0));
    follows("left", of(|[left, _, right, _]| f64::from(*left) / f64::from(left + right)), uniform(0.0, 1.0));
    follows("top", of(|[_, top, _, bottom]| f64::from(*top) / f64::from(top + bottom)), uniform(0.0, 1.0));
    assert!(drawn.iter().all(|[left, top, right, bottom]| (top + bottom).abs_diff((left + right) / 2) <= 1));
    let image = photo(20, 10);
    let zoom = RandomZoomOut::new(1.0).unwrap().fill([1, 2, 3]);
    let [left, top, right, bottom] = zoom.draw(20, 10, &mut rng(4)).unwrap();
    let canvas = apply(&zoom, &image, 4);
    assert_eq!(canvas.dimensions(), (20 + left + right, 10 + top + bottom));
    let within = |at: u32, first: u32, side: u32| (first..first + side).contains(&at);
    for (x, y, pixel) in canvas.enumerate_pixels() {
        let seen = within(x, left, 20) && within(y, top, 10);
        assert_eq!(pixel.0, if seen { image.get_pixel(x - left, y - top).0 } else { [1, 2, 3] });
    }
    assert_eq!(apply(&RandomZoomOut::new(0.0).unwrap(), &image, 0), image);
}

#[test]
fn a_distortion_is_that_of_torchvision() {
    let distort = RandomPhotometricDistort::new(0.4).unwrap();
    let (mut factors, mut early, mut orders) = ([const { Vec::new() }; 4], 0, [0; 6]);
    for nth in 0..N {
        let (changes, channels) = distort.draw(&mut rng(nth));
        let mut places = Vec::new();
        for change in changes {
            let (place, factor) = match change {
                Adjust::Brightness(by) => (0, by),
                Adjust::Contrast(by) => (1, by),
                Adjust::Saturation(by) => (2, by),
                Adjust::Hue(by) => (3, by),
            };
            factors[place].push(f64::from(factor));
            places.push(place);
        }
        let at = places.iter().position(|place| *place == 1);
        let last = at.is_some_and(|at| places[at..] == [1]);
        let first = at.is_some_and(|at| places[..at].iter().all(|place| *place == 0));
        assert!(at.is_none() || first || last, "{places:?}");
        places.retain(|place| *place != 1);
        assert!(places.is_sorted(), "{places:?}");
        early += usize::from(first && places.last() > Some(&1));
        orders[2 * channels[0] + usize::from(channels[1] > channels[2])] += 1;
    }
    let [brightness, contrast, saturation, hue] = factors;
    likely("brightness", brightness.len(), N, 0.4);
    likely("hue", hue.len(), N, 0.4);
    follows("brightness", brightness, uniform(0.875, 1.125));
    follows("contrast", contrast, uniform(0.5, 1.5));
    follows("saturation", saturation, uniform(0.5, 1.5));
    follows("hue", hue, uniform(-0.05, 0.05));
    // The contrast and one of the two after it are drawn.
    likely("early contrast", early, N, 0.4 * 0.5 * (1.0 - 0.6 * 0.6));
    likely("no permutation", orders[0], N, 0.6 + 0.4 / 6.0);
    even("permutations", &orders[1..]);
    let own = RandomPhotometricDistort::new(1.0).unwrap().ranges(ColorJitter::new().hue((0.1, 0.1)).unwrap());
    assert_eq!(own.draw(&mut rng(0)).0, [Adjust::Hue(0.1)]);
    let none = RandomPhotometricDistort::new(1.0).unwrap().ranges(ColorJitter::new());
    let image = photo(9, 7);
    let (_, [red, green, blue]) = none.draw(&mut rng(1));
    assert_ne!([red, green, blue], [0, 1, 2]);
    let changed = apply(&none, &image, 1);
    assert!(image.pixels().zip(changed.pixels()).all(|(a, b)| b.0 == [a.0[red], a.0[green], a.0[blue]]));
}
