//! Colours by lightness: CIE L*a*b* of sRGB, in bytes as OpenCV has them.

use std::{array::from_fn, sync::LazyLock};

/// X, Y and Z of linear red, green and blue, as shares of those of white, in units of 2^-12. OpenCV's numbers are such
/// integers, and one level of L can be many after an equalization, so they are taken over.
const XYZ: [[i32; 3]; 3] = [[1777, 1541, 778], [871, 2929, 296], [73, 448, 3575]];

/// The inverse of [`XYZ`], before its entries were rounded.
const RGB: [[f32; 3]; 3] =
    [[3.079_935, -1.537_152, -0.542_783], [-0.921_234, 1.875_99, 0.045_244], [0.052_89, -0.204_041, 1.151_152]];

/// The most linear light.
const WHITE: f64 = 2040.0;

/// The linear light of each byte.
static LIGHT: LazyLock<[i32; 256]> = LazyLock::new(|| from_fn(|byte| (WHITE * linear(byte as f64)).round() as i32));

/// The light between each byte and the next, where white has 1.
static EDGES: LazyLock<[f32; 255]> = LazyLock::new(|| from_fn(|byte| linear(byte as f64 + 0.5) as f32));

/// The cube root of each light, straight near black, in units of 2^-15.
static ROOTS: LazyLock<[i32; 2041]> = LazyLock::new(|| {
    let root = |t: f64| if t < 0.008_856 { 7.787 * t + 16.0 / 116.0 } else { libm::cbrt(t) };
    from_fn(|light| (32_768.0 * root(light as f64 / WHITE)).round() as i32)
});

fn linear(byte: f64) -> f64 {
    let share = byte / 255.0;
    if share <= 0.040_45 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
}

/// Returns L from 0 to 255, and a and b around 128.
pub(super) fn of_rgb(pixel: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = pixel.map(|byte| LIGHT[usize::from(byte)]);
    let [x, y, z] = XYZ.map(|[r, g, b]| ROOTS[((r * red + g * green + b * blue + (1 << 11)) >> 12) as usize]);
    // 296 is 116 in bytes for percents, and the shift is 16 in these.
    let lab = [296 * y - 1_336_934, 500 * (x - y) + (128 << 15), 200 * (y - z) + (128 << 15)];
    lab.map(|value| ((value + (1 << 14)) >> 15).clamp(0, 255) as u8)
}

pub(super) fn to_rgb(lab: [u8; 3]) -> [u8; 3] {
    let [l, a, b] = lab.map(f32::from);
    let y = (l / 2.55 + 16.0) / 116.0;
    let cube = |t: f32| if t > 0.206_893 { t * t * t } else { (t - 16.0 / 116.0) / 7.787 };
    let [x, y, z] = [y + (a - 128.0) / 500.0, y, y - (b - 128.0) / 200.0].map(cube);
    RGB.map(|row| EDGES.partition_point(|edge| *edge <= row[0] * x + row[1] * y + row[2] * z) as u8)
}
