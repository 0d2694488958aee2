//! Images and parts of files for tests.

use image::{Rgb, RgbImage};

/// A picture with slopes, edges and something like texture, made with integers only.
pub(crate) fn photo(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let noise = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(2_246_822_519)).wrapping_mul(3_266_489_917) >> 28;
        let edge = if (x / 11 + y / 7) % 3 == 0 { 90 } else { 0 };
        Rgb([255 * x / width, 255 * y / height, edge + 2 * noise + 4 * ((x + y) % 17)].map(|byte| byte.min(255) as u8))
    })
}

pub(crate) fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [kind, data].concat();
    [&(data.len() as u32).to_be_bytes()[..], &body, &crc(&body).to_be_bytes()].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    })
}
