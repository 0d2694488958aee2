//! Rotations, shears, shifts, perspective, waves: each pixel of the result looks up where it comes from.

use super::{matrix::Matrix, pixels::Interpolation};
use crate::images::parameters::Size;
use image::RgbImage;

/// The options of all transforms that warp.
macro_rules! warp_options {
    ($transform:ident) => {
        impl $transform {
            /// Sets the interpolation. Masks always use the nearest pixel. Default: that of torchvision, which is
            /// nearest or, for perspectives, elastic changes and `AugMix`, bilinear.
            pub fn interpolation(mut self, interpolation: Interpolation) -> Self {
                self.interpolation = interpolation;
                self
            }

            /// Sets the colour of pixels from outside the image. Default: black.
            pub fn fill(mut self, colour: [u8; 3]) -> Self {
                self.fill = colour;
                self
            }
        }
    };
}
pub(crate) use warp_options;

/// Where the pixels of a warp come from.
#[derive(Debug, Clone, Copy)]
#[expect(unnameable_types, reason = "only the sealed half of `Picture` takes it")]
pub enum Mapping<'a> {
    /// Maps a place of the result to its place in the image, both in pixels from the middle of their image. Its last
    /// entry is 1.
    Matrix(Matrix),
    /// For each pixel, how far to the right and below in the image it comes from, in pixels. Both images have one size.
    Shifts(&'a [[f32; 2]]),
}

/// The way back between places in pixels from the middle of their image, of one between places in pixels from the top left
/// corner. Both images have this size.
pub(super) fn from_corners(matrix: Matrix, size: (u32, u32)) -> Matrix {
    let [right, below] = middle(size);
    let centred = Matrix::scale_shift([1.0; 2], [right, below])
        .then(matrix)
        .then(Matrix::scale_shift([1.0; 2], [-right, -below]));
    let scale = centred.0[2][2];
    Matrix(centred.0.map(|row| row.map(|entry| entry / scale)))
}

/// Turns the way back of a [`warp`] into the way of places from an image of size `from` to the result of size `to`, both in
/// pixels from the top left corner.
pub(crate) fn forward(inverse: Matrix, from: (u32, u32), to: (u32, u32)) -> Matrix {
    let shift = |[right, below]: [f64; 2]| Matrix::scale_shift([1.0; 2], [right, below]);
    shift(middle(from).map(|half| -half)).then(inverse.inverse()).then(shift(middle(to)))
}

fn middle((width, height): (u32, u32)) -> [f64; 2] {
    [f64::from(width) / 2.0, f64::from(height) / 2.0]
}

/// The same change about another place than the middle: `[x, y]` in pixels from the top left corner.
pub(super) fn about(place: Option<[f64; 2]>, inverse: Matrix, size: (u32, u32)) -> Matrix {
    let (Some([x, y]), [right, below]) = (place, middle(size)) else { return inverse };
    let shift = |by: f64| Matrix::scale_shift([1.0; 2], [by * (x - right), by * (y - below)]);
    shift(-1.0).then(inverse).then(shift(1.0))
}

/// Draws the image into one of `size`. Pixels from outside of the image have the colour `fill`.
///
/// Bilinear mixes the four nearest pixels, without antialiasing, as torchvision does. Bicubic is as Pillow's. Anything
/// else takes the nearest pixel. At the border of a bilinear warp torchvision multiplies twice by the share of a pixel that the image covers: once in the mix and
/// once for the fill. Where the image covers half of a pixel p, over black, the result is p / 4 there and p / 2 here.
pub(crate) fn warp(image: &RgbImage, size: Size, from: Mapping<'_>, by: Interpolation, fill: [u8; 3]) -> RgbImage {
    let mut out = RgbImage::new(size.width, size.height);
    let (pixels, whole, places) = (image.as_chunks().0, image.dimensions(), out.as_chunks_mut().0);
    match by {
        Interpolation::Bilinear => draw(whole, size, from, places, |x, y| mixed(pixels, whole, x - 0.5, y - 0.5, fill)),
        Interpolation::Bicubic => draw(whole, size, from, places, |x, y| cubic(pixels, whole, x, y, fill)),
        Interpolation::Nearest => warp_nearest(pixels, whole, size, from, fill, places),
    }
    out
}

/// Draws pixels into `out`, which has this `size`: the nearest, or `fill` from outside.
pub(crate) fn warp_nearest<P: Copy>(
    pixels: &[P],
    whole: (u32, u32),
    size: Size,
    from: Mapping<'_>,
    fill: P,
    out: &mut [P],
) {
    draw(whole, size, from, out, |x, y| at(pixels, whole, floor(x), floor(y), fill));
}

/// Makes each pixel of `out` from the place in the image that it comes from. Pixel n lies from n to n + 1.
fn draw<P>(whole: (u32, u32), size: Size, from: Mapping<'_>, out: &mut [P], pixel: impl Fn(f64, f64) -> P) {
    let ([right, below], middle) = (middle(whole), middle((size.width, size.height)));
    let Matrix([[xx, xy, x0], [yx, yy, y0], [zx, zy, z0]]) = match from {
        Mapping::Matrix(inverse) => inverse,
        Mapping::Shifts(shifts) => {
            for (n, (place, shift)) in out.iter_mut().zip(shifts).enumerate() {
                let (x, y) = (n % size.width as usize, n / size.width as usize);
                *place = pixel(x as f64 + 0.5 + f64::from(shift[0]), y as f64 + 0.5 + f64::from(shift[1]));
            }
            return;
        }
    };
    let flat = zx == 0.0 && zy == 0.0;
    for (row, pixels) in out.chunks_exact_mut(size.width as usize).enumerate() {
        let down = row as f64 + 0.5 - middle[1];
        for (column, place) in pixels.iter_mut().enumerate() {
            let across = column as f64 + 0.5 - middle[0];
            let mut x = xx * across + xy * down + x0;
            let mut y = yx * across + yy * down + y0;
            if !flat {
                let z = zx * across + zy * down + z0;
                (x, y) = (x / z, y / z);
            }
            *place = pixel(x + right, y + below);
        }
    }
}

/// Rounds down a place that is no further from 0 than an image is long.
///
/// The standard `floor` is a function call if the CPU is not known to the compiler.
fn floor(x: f64) -> i64 {
    let towards_zero = x as i64;
    towards_zero.saturating_sub(i64::from(x < towards_zero as f64))
}

fn at<P: Copy>(pixels: &[P], (width, height): (u32, u32), x: i64, y: i64, fill: P) -> P {
    if x < 0 || y < 0 || x >= i64::from(width) || y >= i64::from(height) {
        return fill;
    }
    pixels[y as usize * width as usize + x as usize]
}

fn mixed(pixels: &[[u8; 3]], size: (u32, u32), x: f64, y: f64, fill: [u8; 3]) -> [u8; 3] {
    let (left, top) = (floor(x), floor(y));
    let (right_share, below_share) = (x - left as f64, y - top as f64);
    let of_row = |y: i64| [left, left.saturating_add(1)].map(|x| at(pixels, size, x, y, fill));
    let ([a, b], [c, d]) = (of_row(top), of_row(top.saturating_add(1)));
    let mix = |from: f64, to: f64, share: f64| from + (to - from) * share;
    std::array::from_fn(|n| {
        let above = mix(a[n].into(), b[n].into(), right_share);
        let below = mix(c[n].into(), d[n].into(), right_share);
        (mix(above, below, below_share) + 0.5) as u8
    })
}

/// Mixes 4 x 4 pixels as Pillow's warps do: a cubic filter with a = -1, and beyond the border the pixels of the border.
fn cubic(pixels: &[[u8; 3]], (width, height): (u32, u32), x: f64, y: f64, fill: [u8; 3]) -> [u8; 3] {
    if !((0.0..width.into()).contains(&x) && (0.0..height.into()).contains(&y)) {
        return fill;
    }
    let mix = |[a, b, c, d]: [f64; 4], share: f64| {
        b + share * (c - a + share * (2.0 * (a - b) + c - d + share * (b - a - c + d)))
    };
    let (left, top) = (floor(x - 0.5), floor(y - 0.5));
    let (right_share, below_share) = (x - 0.5 - left as f64, y - 0.5 - top as f64);
    let at =
        |first: i64, side: u32| std::array::from_fn(|n| (first - 1 + n as i64).clamp(0, i64::from(side) - 1) as usize);
    let (columns, rows): ([usize; 4], [usize; 4]) = (at(left, width), at(top, height));
    std::array::from_fn(|n| {
        let row = |y: usize| columns.map(|x| f64::from(pixels[y * width as usize + x][n]));
        mix(rows.map(|y| mix(row(y), right_share)), below_share) as u8 // cut, as by Pillow
    })
}
