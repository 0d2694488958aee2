//! The pixels of an object: polygons or runs, drawn as by pycocotools, bit for bit.

use image::{ImageBuffer, Luma};
use serde::Deserialize;

/// pycocotools draws edges on a grid that is finer than the pixels by this factor.
const FINER: i64 = 5;

/// The pixels of an object, as the file has them. They are checked when they are drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a segmentation is a list of polygons, or has `counts` and `size`")]
pub(super) enum Shape {
    /// The corners of each polygon: x and y by turns.
    Polygons(Box<[Box<[Fine]>]>),
    /// The lengths of runs of 0 and 1 by turns, column by column, in a mask of this height and width.
    Runs { counts: Box<[u32]>, size: [u32; 2] },
    /// The same, compressed.
    Packed { counts: Box<str>, size: [u32; 2] },
}

/// A coordinate on the finer grid.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "f64")]
pub(super) struct Fine(i32);

impl From<f64> for Fine {
    fn from(pixels: f64) -> Self {
        Self((FINER as f64 * pixels + 0.5) as i32)
    }
}

impl Shape {
    /// Draws a mask of 0 and 1.
    ///
    /// # Errors
    /// The problem, if a polygon has half a corner, or the runs are damaged or do not fill the image.
    pub(super) fn draw(&self, size: (u32, u32)) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, String> {
        let mut mask = ImageBuffer::new(size.0, size.1);
        let (height, all) = (u64::from(size.1), u64::from(size.0) * u64::from(size.1));
        let mut fill = |ends: &[u64]| {
            for ones in ends.chunks(2) {
                for place in ones[0]..*ones.get(1).unwrap_or(&all) {
                    mask.put_pixel((place / height) as u32, (place % height) as u32, Luma([1]));
                }
            }
        };
        let (counts, own) = match self {
            Self::Polygons(polygons) => {
                for polygon in polygons {
                    match polygon.as_chunks() {
                        (corners @ [_, _, _, ..], []) => fill(&crossings(corners, size)),
                        (_, []) => {} // no area
                        _ => return Err("has a polygon with half a corner".into()),
                    }
                }
                return Ok(mask);
            }
            Self::Runs { counts, size } => (counts, size),
            Self::Packed { counts, size } => (&unpacked(counts).ok_or("has runs that cannot be unpacked")?, size),
        };
        let sum = |end: &mut u64, count: &u32| {
            *end += u64::from(*count);
            Some(*end)
        };
        let ends: Vec<u64> = counts.iter().scan(0, sum).collect();
        if *own != [size.1, size.0] || ends.last().copied().unwrap_or(0) != all {
            return Err(format!("has runs for {own:?} pixels that do not fill its image of {:?}", [size.1, size.0]));
        }
        fill(&ends);
        Ok(mask)
    }
}

/// The lengths of runs in a text: digits of 5 bits, the lowest first. From the fourth length on, it is the difference
/// from the last but one.
fn unpacked(text: &str) -> Option<Box<[u32]>> {
    let (mut counts, mut number, mut shift) = (Vec::<u32>::new(), 0i64, 0);
    for byte in text.bytes() {
        let digit = byte.checked_sub(48).filter(|digit| *digit < 64 && shift <= 30)?;
        number |= i64::from(digit & 31) << shift;
        shift += 5;
        if digit & 32 == 0 {
            let sign = if digit & 16 == 0 { 0 } else { -1 << shift };
            let before = if counts.len() > 2 { i64::from(counts[counts.len() - 2]) } else { 0 };
            counts.push(u32::try_from((number | sign) + before).ok()?);
            (number, shift) = (0, 0);
        }
    }
    (shift == 0).then(|| counts.into())
}

/// Where the edge of a polygon crosses the columns of an image: the pixels from which on, column by column, inside and
/// outside change.
fn crossings(corners: &[[Fine; 2]], (width, height): (u32, u32)) -> Vec<u64> {
    let mut places = Vec::new();
    for (start, end) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let ([x, y], [to_x, to_y]) = (start.map(|at| i64::from(at.0)), end.map(|at| i64::from(at.0)));
        let (across, down) = ((to_x - x).abs(), (to_y - y).abs());
        let is_wide = across >= down;
        // Edges are drawn to the right or downwards: the rounding depends on it.
        let is_back = if is_wide { x > to_x } else { y > to_y };
        let [x, y, to_x, to_y] = if is_back { [to_x, to_y, x, y] } else { [x, y, to_x, to_y] };
        let point = |step: i64| {
            let along = |from: i64, to: i64, length: i64| {
                (from as f64 + (to - from) as f64 / length as f64 * step as f64 + 0.5) as i64 // towards 0
            };
            if is_wide { (x + step, along(y, to_y, across)) } else { (along(x, to_x, down), y + step) }
        };
        let steps = across.max(down);
        let (first, last) = (point(0).0, point(steps).0);
        // The middle of column n lies between 5 n + 2 and 5 n + 3.
        let (left, right) = (first.min(last), first.max(last));
        let from = (left - 2 + FINER - 1).div_euclid(FINER).max(0);
        let to = (right - 3).div_euclid(FINER).min(i64::from(width) - 1);
        for column in from..=to {
            let (mut before, mut after) = (0, steps);
            while after - before > 1 {
                let middle = (before + after) / 2;
                let is_left = point(middle).0 < FINER * column + 3;
                *(if is_left == (first < last) { &mut before } else { &mut after }) = middle;
            }
            let upper = point(before).1.min(point(after).1);
            let row = (upper - 2 + FINER - 1).div_euclid(FINER).clamp(0, i64::from(height));
            places.push((column * i64::from(height) + row) as u64);
        }
    }
    places.sort_unstable();
    places
}
