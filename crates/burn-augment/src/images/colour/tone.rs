//! Changes of tone for RandAugment and TrivialAugmentWide, as in Pillow's `ImageOps` and `ImageEnhance`.

use super::bytes::{blend, map};
use image::RgbImage;

/// Keeps the top `bits` of every byte.
pub(crate) fn posterize(image: &mut RgbImage, bits: u8) {
    let mask = !(0xFFu8.checked_shr(bits.into()).unwrap_or(0));
    image.iter_mut().for_each(|byte| *byte &= mask);
}

/// Inverts bytes from `threshold` up.
pub(crate) fn solarize(image: &mut RgbImage, threshold: f32) {
    map(image, &std::array::from_fn(|byte| if byte as f32 >= threshold { 255 - byte as u8 } else { byte as u8 }));
}

/// Stretches each channel to the whole range of 0 to 255.
pub(crate) fn auto_contrast(image: &mut RgbImage) {
    each_channel(image, |counts| {
        let least = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let most = counts.iter().rposition(|count| *count > 0).unwrap_or(255);
        if least == most {
            return std::array::from_fn(|byte| byte as u8);
        }
        let scale = 255.0 / (most - least) as f32;
        std::array::from_fn(|byte| ((byte as f32 - least as f32) * scale) as u8)
    });
}

/// Makes each value of a channel about as frequent as any other.
pub(crate) fn equalize(image: &mut RgbImage) {
    each_channel(image, |counts| {
        let same = std::array::from_fn(|byte| byte as u8);
        let Some(last) = counts.iter().rposition(|count| *count > 0) else { return same };
        let step = (counts.iter().sum::<u64>() - counts[last]) / 255;
        if step == 0 {
            return same;
        }
        let mut below = 0;
        std::array::from_fn(|byte| {
            let level = (below + step / 2) / step;
            below += counts[byte];
            level.min(255) as u8
        })
    });
}

/// Moves pixels away from a blur of 3 x 3 pixels, or towards it. The outermost pixels are unchanged.
pub(crate) fn sharpness(image: &mut RgbImage, factor: f32) {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let source = image.as_raw().clone();
    let pitch = 3 * width;
    for y in 1..height.saturating_sub(1) {
        for at in y * pitch + 3..(y + 1) * pitch - 3 {
            let sum: u32 = [at - pitch, at, at + pitch]
                .map(|at| u32::from(source[at - 3]) + u32::from(source[at]) + u32::from(source[at + 3]))
                .iter()
                .sum();
            // The middle pixel weighs 5, those around it 1.
            let own = source[at];
            let blurred = (f64::from(sum + 4 * u32::from(own)) / 13.0).round_ties_even() as f32;
            (**image)[at] = blend(own.into(), blurred, factor) as u8;
        }
    }
}

/// Maps each channel by a table. `table` makes it from how often each value occurs in the channel.
fn each_channel(image: &mut RgbImage, table: impl Fn(&[u64; 256]) -> [u8; 256]) {
    let mut counts = [[0u64; 256]; 3];
    for pixel in image.chunks_exact(3) {
        for (counts, byte) in counts.iter_mut().zip(pixel) {
            counts[usize::from(*byte)] += 1;
        }
    }
    let tables = counts.each_ref().map(table);
    for pixel in image.chunks_exact_mut(3) {
        for (byte, table) in pixel.iter_mut().zip(&tables) {
            *byte = table[usize::from(*byte)];
        }
    }
}
