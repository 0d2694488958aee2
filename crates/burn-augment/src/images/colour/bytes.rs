//! Changes of colour. Bytes are rounded down, as in torchvision. Results differ from torchvision's by at most one.
//!
//! A device that decodes makes the same changes, operation by operation: `device/decode/resample.cu`.

use image::RgbImage;

/// Moves colours away from the image's mean grey, or towards it.
pub(crate) fn contrast(image: &mut RgbImage, factor: f32) {
    let sum: u64 = image.chunks_exact(3).map(|pixel| u64::from(grey(pixel))).sum();
    let mean = (sum as f64 / (image.len() / 3) as f64) as f32;
    map(image, &table(|byte| blend(byte, mean, factor)));
}

/// Moves colours away from grey, or towards it. For 0 they become the grey of Pillow: torchvision's sums of weights are
/// below 1, so its grey of white is 254.
pub(crate) fn saturation(image: &mut RgbImage, factor: f32) {
    if factor == 0.0 {
        image.pixels_mut().for_each(|pixel| pixel.0 = [light(pixel.0.map(u32::from)) as u8; 3]);
        return;
    }
    for pixel in image.chunks_exact_mut(3) {
        let grey = f32::from(grey(pixel));
        for byte in pixel {
            *byte = blend(f32::from(*byte), grey, factor) as u8;
        }
    }
}

/// Turns the hue by this part of the colour circle, -0.5 to 0.5.
pub(crate) fn hue(image: &mut RgbImage, turn: f32) {
    for pixel in image.chunks_exact_mut(3) {
        let [r, g, b] = [pixel[0], pixel[1], pixel[2]];
        let (max, min) = (r.max(g).max(b), r.min(g).min(b));
        if max == min {
            continue; // grey has no hue
        }
        let chroma = f32::from(max - min);
        let part = |a: u8, b: u8| (f32::from(a) - f32::from(b)) / chroma;
        // In sixths of the circle.
        let sixths = if max == r {
            part(g, b)
        } else if max == g {
            part(b, r) + 2.0
        } else {
            part(r, g) + 4.0
        };
        // One correction by a whole circle is enough: the hue is -1 to 5 sixths, and the turn is at most half of the
        // circle.
        let once = |x: f32| if x >= 6.0 { x - 6.0 } else { x };
        let turned = sixths + 6.0 * turn;
        let turned = once(if turned < 0.0 { turned + 6.0 } else { turned });
        // https://en.wikipedia.org/wiki/HSL_and_HSV#HSV_to_RGB_alternative
        for (byte, offset) in pixel.iter_mut().zip([5.0, 3.0, 1.0]) {
            let k = once(offset + turned);
            *byte = (f32::from(max) - chroma * k.min(4.0 - k).clamp(0.0, 1.0) + 0.5) as u8;
        }
    }
}

/// Returns the luma by ITU-R BT.601. Its weights are in units of 2^-16.
fn grey(pixel: &[u8]) -> u8 {
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((19_588 * r + 38_470 * g + 7_471 * b) >> 16) as u8
}

/// Pillow's luma of a pixel. Grey is unchanged.
pub fn light([red, green, blue]: [u32; 3]) -> u32 {
    (19_595 * red + 38_470 * green + 7_471 * blue + (1 << 15)) >> 16
}

/// Mixes `factor` parts of `of` and the rest of `rest`. `as u8` then clamps the result.
pub(crate) fn blend(of: f32, rest: f32, factor: f32) -> f32 {
    of * factor + rest * (1.0 - factor)
}

pub(crate) fn table(of: impl Fn(f32) -> f32) -> [u8; 256] {
    std::array::from_fn(|byte| of(byte as f32) as u8)
}

pub(crate) fn map(image: &mut RgbImage, table: &[u8; 256]) {
    for byte in image.iter_mut() {
        *byte = table[usize::from(*byte)];
    }
}
