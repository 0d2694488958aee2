//! The pixels beside libjpeg-turbo's.

use super::decode;
use crate::images::{
    decode::{jpeg::JpegHeader, turbo::Turbo},
    geometry::Rect,
};

#[path = "../../../../tests/images/jpeg_scans/encoder.rs"]
#[expect(dead_code, reason = "the tests of images use the rest")]
mod encoder;

use encoder::{Coding, Picture};

const SAMPLINGS: [[(usize, usize); 3]; 8] = [
    [(1, 1), (1, 1), (1, 1)],
    [(2, 1), (1, 1), (1, 1)],
    [(2, 2), (1, 1), (1, 1)],
    [(1, 2), (1, 1), (1, 1)],
    [(4, 1), (1, 1), (1, 1)],
    [(4, 2), (1, 1), (1, 1)],
    [(3, 1), (1, 1), (1, 1)],
    [(1, 1), (2, 1), (1, 2)],
];
const ORDERS: [&[&[usize]]; 4] = [&[&[0, 1, 2]], &[&[0], &[1], &[2]], &[&[0, 2], &[1]], &[&[1, 2], &[0]]];

/// Strong colours that change within a few pixels.
fn colours(component: usize, x: usize, y: usize) -> f64 {
    let (x, y) = (x as f64, y as f64);
    [60.0 * (0.4 * x + 0.3 * y).sin(), 50.0 * (0.5 * x - 0.2 * y).cos(), -50.0 * (0.3 * x + 0.6 * y).sin()][component]
        + 128.0
}

/// How far the pixels of a file are from libjpeg-turbo's: the sum, the most, and the number of values.
fn off(file: &[u8]) -> (f64, u8, usize) {
    let jpeg = JpegHeader::read(file).unwrap();
    let (ours, mut theirs) = (decode(file, &jpeg).unwrap(), Vec::new());
    Turbo::open(file, &jpeg, 1 << 20).unwrap().decode(Rect::whole((jpeg.width, jpeg.height)), &mut theirs).unwrap();
    assert_eq!(ours.len(), theirs.len());
    let off = ours.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b));
    (off.clone().map(f64::from).sum(), off.max().unwrap(), ours.len())
}

#[test]
fn pixels_are_within_three_levels_of_libjpeg_turbo() {
    for sampling in SAMPLINGS {
        let (mut sum, mut values) = (0.0, 0);
        for size in (1..=33).flat_map(|width| [1, 2, 6, 19].map(|height| (width, height))) {
            let picture = Picture::new(size, &sampling, colours);
            for (order, progressive) in ORDERS.iter().flat_map(|order| [(order, false), (order, true)]) {
                let scans = order.iter().map(|scan| scan.to_vec()).collect();
                let (of_file, most, count) =
                    off(&picture.file(&Coding { scans, progressive, restart: 0, adobe: None }));
                // Where lines are doubled too, the values of a narrow picture are one level beside the true ones at most.
                assert!(most <= if size.0 <= 4 { 4 } else { 3 }, "{sampling:?}, {size:?}, {order:?}: {most}");
                (sum, values) = (sum + of_file, values + count);
            }
        }
        assert!(sum / (values as f64) < 0.5, "{sampling:?}: {}", sum / values as f64);
    }
}
