//! Rotations, shears, shifts, perspective: each pixel of the result looks up where it comes from.

use super::{matrix::Matrix, pixels::Interpolation};
use crate::vision::parameters::Size;
use image::RgbImage;

/// Maps a place of the result to its place in the image. Both are in pixels from the middle of their image.
#[derive(Debug, Clone, Copy)]
#[expect(unnameable_types, reason = "only the sealed half of `Picture` takes it")]
pub struct Inverse {
    /// `x = (xx * X + xy * Y + x0) / z`
    pub(crate) xx: f64,
    pub(crate) xy: f64,
    pub(crate) x0: f64,
    /// `y = (yx * X + yy * Y + y0) / z`
    pub(crate) yx: f64,
    pub(crate) yy: f64,
    pub(crate) y0: f64,
    /// `z = zx * X + zy * Y + 1`: 1 but for a perspective.
    pub(crate) zx: f64,
    pub(crate) zy: f64,
}

impl Inverse {
    pub(crate) const IDENTITY: Self = Self { xx: 1.0, xy: 0.0, x0: 0.0, yx: 0.0, yy: 1.0, y0: 0.0, zx: 0.0, zy: 0.0 };

    /// The inverse of a turn by this many degrees, counterclockwise.
    pub(crate) fn rotation(degrees: f64) -> Self {
        let (sin, cos) = quarter_turns(degrees).unwrap_or_else(|| libm::sincos(degrees.to_radians()));
        Self { xx: cos, xy: -sin, yx: sin, yy: cos, ..Self::IDENTITY }
    }

    /// From a matrix that maps places of the result to those of the image, both in pixels from the top left corner of
    /// their image, which have the same size.
    pub(super) fn of_corners(matrix: Matrix, size: (u32, u32)) -> Self {
        let [right, below] = middle(size);
        let centred = Matrix::scale_shift([1.0; 2], [right, below])
            .then(matrix)
            .then(Matrix::scale_shift([1.0; 2], [-right, -below]));
        let [[xx, xy, x0], [yx, yy, y0], [zx, zy, z0]] = centred.0;
        let [xx, xy, x0, yx, yy, y0, zx, zy] = [xx, xy, x0, yx, yy, y0, zx, zy].map(|entry| entry / z0);
        Self { xx, xy, x0, yx, yy, y0, zx, zy }
    }

    /// Whether it maps at all: two corners of a perspective may meet.
    pub(super) fn is_finite(self) -> bool {
        let Self { xx, xy, x0, yx, yy, y0, zx, zy } = self;
        [xx, xy, x0, yx, yy, y0, zx, zy].iter().all(|entry| entry.is_finite())
    }

    /// Maps a place of the image of size `from` to its place in the result of size `to`, both in pixels from the top
    /// left corner.
    pub(crate) fn forward(self, from: (u32, u32), to: (u32, u32)) -> Matrix {
        let Self { xx, xy, x0, yx, yy, y0, zx, zy } = self;
        let back = Matrix([[xx, xy, x0], [yx, yy, y0], [zx, zy, 1.0]]);
        let shift = |[right, below]: [f64; 2]| Matrix::scale_shift([1.0; 2], [right, below]);
        shift(middle(from).map(|half| -half)).then(back.inverse()).then(shift(middle(to)))
    }
}

/// Sine and cosine of quarter turns. They are not computed from radians: the cosine of a float near a quarter turn is not 0, and
/// pixels on the border of two others would go either way.
pub(super) fn quarter_turns(degrees: f64) -> Option<(f64, f64)> {
    match degrees.rem_euclid(360.0) {
        0.0 => Some((0.0, 1.0)),
        90.0 => Some((1.0, 0.0)),
        180.0 => Some((0.0, -1.0)),
        270.0 => Some((-1.0, 0.0)),
        _ => None,
    }
}

fn middle((width, height): (u32, u32)) -> [f64; 2] {
    [f64::from(width) / 2.0, f64::from(height) / 2.0]
}

/// Draws the image into one of `size`. Pixels from outside of the image have the colour `fill`.
///
/// Bilinear mixes the four nearest pixels, without antialiasing, as torchvision does. Anything else takes the nearest
/// pixel. At the border torchvision multiplies twice by the share of a pixel that the image covers: once in the mix and
/// once for the fill. Where the image covers half of a pixel p, over black, the result is p / 4 there and p / 2 here.
pub(crate) fn warp(image: &RgbImage, size: Size, inverse: Inverse, by: Interpolation, fill: [u8; 3]) -> RgbImage {
    let mut out = RgbImage::new(size.width, size.height);
    let (pixels, from, places) = (image.as_chunks().0, image.dimensions(), out.as_chunks_mut().0);
    match by {
        Interpolation::Bilinear => {
            draw(from, size, inverse, places, |x, y| mixed(pixels, from, x - 0.5, y - 0.5, fill))
        }
        _ => warp_nearest(pixels, from, size, inverse, fill, places),
    }
    out
}

/// Draws pixels into `out`, which has this `size`: the nearest, or `fill` from outside.
pub(crate) fn warp_nearest<P: Copy>(
    pixels: &[P],
    from: (u32, u32),
    size: Size,
    inverse: Inverse,
    fill: P,
    out: &mut [P],
) {
    draw(from, size, inverse, out, |x, y| at(pixels, from, floor(x), floor(y), fill));
}

/// Makes each pixel of `out` from the place in the image that it comes from. Pixel n lies from n to n + 1.
fn draw<P>(from: (u32, u32), size: Size, inverse: Inverse, out: &mut [P], pixel: impl Fn(f64, f64) -> P) {
    let ([right, below], middle) = (middle(from), middle((size.width, size.height)));
    let flat = inverse.zx == 0.0 && inverse.zy == 0.0;
    for (row, pixels) in out.chunks_exact_mut(size.width as usize).enumerate() {
        let down = row as f64 + 0.5 - middle[1];
        for (column, place) in pixels.iter_mut().enumerate() {
            let across = column as f64 + 0.5 - middle[0];
            let mut x = inverse.xx * across + inverse.xy * down + inverse.x0;
            let mut y = inverse.yx * across + inverse.yy * down + inverse.y0;
            if !flat {
                let z = inverse.zx * across + inverse.zy * down + 1.0;
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
