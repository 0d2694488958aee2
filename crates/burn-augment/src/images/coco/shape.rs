//! The pixels of an object: polygons or runs, drawn as by pycocotools, bit for bit.

use crate::images::error::VisionError;
use image::{ImageBuffer, Luma};
use serde::Deserialize;

/// pycocotools draws edges on a grid that is finer than the pixels by this factor.
const FINER: i64 = 5;

/// Polygons `[x, y, x, y, ..]`, or the lengths of runs in a mask of `[height, width]`, as they are or compressed.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a segmentation is a list of polygons, or has `counts` and `size`")]
enum Segmentation {
    Polygons(Vec<Vec<f64>>),
    Runs { counts: Vec<u32>, size: [u32; 2] },
    Packed { counts: String, size: [u32; 2] },
}

/// The pixels of an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Segmentation")]
pub(super) enum Shape {
    /// The corners of each polygon, on the finer grid.
    Polygons(Box<[Box<[[i32; 2]]>]>),
    /// The places where runs of 0 and 1 end by turns, column by column, in a mask of this width and height.
    Runs { size: (u32, u32), ends: Box<[u64]> },
}

impl TryFrom<Segmentation> for Shape {
    type Error = &'static str;

    fn try_from(segmentation: Segmentation) -> Result<Self, Self::Error> {
        let (counts, [height, width]) = match segmentation {
            Segmentation::Polygons(polygons) => {
                let fine = |number: &f64| (FINER as f64 * number + 0.5) as i32;
                let corners = |polygon: Vec<f64>| match polygon.as_chunks() {
                    (corners @ [_, _, _, ..], []) => Ok(corners.iter().map(|[x, y]| [fine(x), fine(y)]).collect()),
                    _ => Err("a polygon has three corners or more, and two numbers for each"),
                };
                return polygons.into_iter().map(corners).collect::<Result<_, _>>().map(Self::Polygons);
            }
            Segmentation::Runs { counts, size } => (counts, size),
            Segmentation::Packed { counts, size } => (unpacked(&counts)?, size),
        };
        let mut end = 0;
        let mut add = |count| {
            end += u64::from(count);
            end
        };
        let ends = counts.into_iter().map(&mut add).collect();
        let is_whole = end == u64::from(width) * u64::from(height);
        is_whole
            .then_some(Self::Runs { size: (width, height), ends })
            .ok_or("the `counts` of a segmentation do not add up to its `size`")
    }
}

impl Shape {
    /// Draws a mask of 0 and 1.
    ///
    /// # Errors
    /// If the runs are of an image of another size.
    pub(super) fn draw(&self, size: (u32, u32)) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
        let mut mask = ImageBuffer::new(size.0, size.1);
        let mut fill = |ends: &[u64]| {
            let (height, all) = (u64::from(size.1), u64::from(size.0) * u64::from(size.1));
            for ones in ends.chunks(2) {
                for place in ones[0]..*ones.get(1).unwrap_or(&all) {
                    mask.put_pixel((place / height) as u32, (place % height) as u32, Luma([1]));
                }
            }
        };
        match self {
            Self::Polygons(polygons) => polygons.iter().for_each(|corners| fill(&crossings(corners, size))),
            Self::Runs { size: own, ends } if *own == size => fill(ends),
            Self::Runs { size: own, .. } => {
                let problem = format!("has runs for {own:?} pixels, and its image {size:?}");
                return Err(VisionError::of_part("mask", problem, "give each image its own annotations"));
            }
        }
        Ok(mask)
    }
}

/// The lengths of runs in a text: digits of 5 bits, the lowest first. From the fourth length on, it is the difference from the last but one.
fn unpacked(text: &str) -> Result<Vec<u32>, &'static str> {
    const WRONG: &str = "the `counts` of a segmentation are no compressed runs";
    let (mut counts, mut number, mut shift) = (Vec::<u32>::new(), 0i64, 0);
    for byte in text.bytes() {
        let digit = byte.checked_sub(48).filter(|digit| *digit < 64 && shift <= 30).ok_or(WRONG)?;
        number |= i64::from(digit & 31) << shift;
        shift += 5;
        if digit & 32 == 0 {
            let sign = if digit & 16 == 0 { 0 } else { -1 << shift };
            let before = if counts.len() > 2 { i64::from(counts[counts.len() - 2]) } else { 0 };
            counts.push(u32::try_from((number | sign) + before).map_err(|_| WRONG)?);
            (number, shift) = (0, 0);
        }
    }
    if shift == 0 { Ok(counts) } else { Err(WRONG) }
}

/// Where the edge of a polygon crosses the columns of an image: the pixels from which on, column by column, inside and outside change.
fn crossings(corners: &[[i32; 2]], (width, height): (u32, u32)) -> Vec<u64> {
    let mut places = Vec::new();
    for (start, end) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let ([x, y], [to_x, to_y]) = (start.map(i64::from), end.map(i64::from));
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
