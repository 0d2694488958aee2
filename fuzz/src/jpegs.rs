//! JPEGs of all kinds, small.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

fn file(
    colour: ColorType,
    channels: usize,
    width: u16,
    sampling: SamplingFactor,
    progressive: bool,
    restart: u16,
) -> Vec<u8> {
    let mut file = Vec::new();
    let pixels: Vec<u8> = (0..usize::from(width) * 11 * channels).map(|at| (at * 37 % 251) as u8).collect();
    let mut encoder = Encoder::new(&mut file, 80);
    encoder.set_sampling_factor(sampling);
    encoder.set_progressive(progressive);
    if restart > 0 {
        encoder.set_restart_interval(restart);
    }
    let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    encoder.add_app_segment(1, exif.to_vec()).expect("a short segment");
    encoder.encode(&pixels, width, 11, colour).expect("memory has no errors");
    file
}

/// A file of each kind.
pub fn jpegs() -> Vec<Vec<u8>> {
    vec![
        file(ColorType::Rgb, 3, 19, SamplingFactor::R_4_2_0, false, 0),
        file(ColorType::Rgb, 3, 19, SamplingFactor::R_4_2_2, true, 0),
        file(ColorType::Rgb, 3, 19, SamplingFactor::R_4_4_4, false, 2),
        file(ColorType::Luma, 1, 19, SamplingFactor::R_4_4_4, false, 0),
        file(ColorType::Cmyk, 4, 19, SamplingFactor::R_4_4_4, false, 0),
        // Of narrow ones a decoder of the crate's own makes the pixels.
        file(ColorType::Rgb, 3, 3, SamplingFactor::R_4_2_0, false, 0),
        file(ColorType::Rgb, 3, 2, SamplingFactor::R_4_2_2, true, 0),
        file(ColorType::Rgb, 3, 1, SamplingFactor::R_4_1_1, true, 2),
        file(ColorType::Ycck, 4, 19, SamplingFactor::R_4_2_0, true, 1),
    ]
}
