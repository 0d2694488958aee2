//! Rotations, shears and shifts: each pixel of the result looks up where it comes from.

use super::pixels::Interpolation;
use crate::vision::parameters::Size;
use image::RgbImage;

/// Maps a place of the result to its place in the image. Both are in pixels from the middle of their image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inverse {
    /// `x = xx * X + xy * Y + x0`
    pub(crate) xx: f64,
    pub(crate) xy: f64,
    pub(crate) x0: f64,
    /// `y = yx * X + yy * Y + y0`
    pub(crate) yx: f64,
    pub(crate) yy: f64,
    pub(crate) y0: f64,
}

impl Inverse {
    pub(crate) const IDENTITY: Self = Self { xx: 1.0, xy: 0.0, x0: 0.0, yx: 0.0, yy: 1.0, y0: 0.0 };

    /// The inverse of a turn by this many degrees, counterclockwise.
    pub(crate) fn rotation(degrees: f64) -> Self {
        let (sin, cos) = libm::sincos(degrees.to_radians());
        Self { xx: cos, xy: -sin, yx: sin, yy: cos, ..Self::IDENTITY }
    }
}

/// Draws the image into one of `size`. Pixels from outside of the image have the colour `fill`.
///
/// Bilinear mixes the four nearest pixels, without antialiasing, as torchvision does. Anything else takes the nearest
/// pixel. At the border torchvision multiplies twice by the share of a pixel that the image covers: once in the mix and
/// once for the fill. Where the image covers half of a pixel p, over black, the result is p / 4 there and p / 2 here.
pub(crate) fn warp(image: &RgbImage, size: Size, inverse: Inverse, by: Interpolation, fill: [u8; 3]) -> RgbImage {
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    let mut out = RgbImage::new(size.width, size.height);
    let middle = (f64::from(size.width) / 2.0, f64::from(size.height) / 2.0);
    for (row, pixels) in out.chunks_exact_mut(3 * size.width as usize).enumerate() {
        let down = row as f64 + 0.5 - middle.1;
        for (column, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let across = column as f64 + 0.5 - middle.0;
            let x = inverse.xx * across + inverse.xy * down + inverse.x0 + width / 2.0;
            let y = inverse.yx * across + inverse.yy * down + inverse.y0 + height / 2.0;
            // Pixel n lies from n to n + 1.
            let colour = match by {
                Interpolation::Bilinear => mixed(image, x - 0.5, y - 0.5, fill),
                _ => at(image, floor(x), floor(y), fill),
            };
            pixel.copy_from_slice(&colour);
        }
    }
    out
}

/// Rounds down a place that is no further from 0 than an image is long.
///
/// The standard `floor` is a function call if the CPU is not known to the compiler.
fn floor(x: f64) -> i64 {
    let towards_zero = x as i64;
    towards_zero - i64::from(x < towards_zero as f64)
}

fn at(image: &RgbImage, x: i64, y: i64, fill: [u8; 3]) -> [u8; 3] {
    if x < 0 || y < 0 || x >= i64::from(image.width()) || y >= i64::from(image.height()) {
        return fill;
    }
    let start = 3 * (y as usize * image.width() as usize + x as usize);
    let pixels = image.as_raw();
    [pixels[start], pixels[start + 1], pixels[start + 2]]
}

fn mixed(image: &RgbImage, x: f64, y: f64, fill: [u8; 3]) -> [u8; 3] {
    let (left, top) = (floor(x), floor(y));
    let (right_share, below_share) = (x - left as f64, y - top as f64);
    let [a, b] = [left, left + 1].map(|x| at(image, x, top, fill));
    let [c, d] = [left, left + 1].map(|x| at(image, x, top + 1, fill));
    let mix = |from: f64, to: f64, share: f64| from + (to - from) * share;
    std::array::from_fn(|n| {
        let above = mix(a[n].into(), b[n].into(), right_share);
        let below = mix(c[n].into(), d[n].into(), right_share);
        (mix(above, below, below_share) + 0.5) as u8
    })
}
