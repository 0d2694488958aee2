//! Pictures as a camera makes them, in files of all kinds.

use crate::exif::exif;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// Slopes, waves and edges, as a camera sees them; noise of single pixels would only show how chroma is rounded.
fn scene(width: u32, height: u32, nth: usize) -> Vec<u8> {
    let (fx, fy) = (0.05 + 0.01 * (nth % 7) as f32, 0.03 + 0.02 * (nth % 5) as f32);
    let pixel = |at: u32| {
        let (x, y) = ((at % width) as f32, (at / width) as f32);
        let wave = 60.0 * (x * fx).sin() * (y * fy).cos();
        let edge = if ((x / 40.0 + y / 30.0) as u32).is_multiple_of(3) { 50.0 } else { 0.0 };
        let slope = 120.0 * x / width as f32;
        [60.0 + slope + wave * 0.5, 90.0 + wave + edge, 100.0 + edge + 60.0 * y / height as f32]
            .map(|value| value.clamp(0.0, 255.0) as u8)
    };
    (0..width * height).flat_map(pixel).collect()
}

pub(crate) fn jpeg(nth: usize, sampling: SamplingFactor, progressive: bool, (width, height): (u32, u32)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 80 + (nth % 16) as u8);
    encoder.set_progressive(progressive);
    encoder.set_sampling_factor(sampling);
    encoder.add_exif_metadata(&exif(1 + (nth % 8) as u8)).unwrap();
    encoder.encode(&scene(width, height, nth), width as u16, height as u16, ColorType::Rgb).unwrap();
    bytes
}

/// Files of all kinds: what the engines take, and what they do not.
pub(crate) fn files() -> Vec<Vec<u8>> {
    let samplings = [
        SamplingFactor::F_2_2,
        SamplingFactor::F_1_1,
        SamplingFactor::F_2_1,
        SamplingFactor::F_1_2,
        SamplingFactor::F_2_2,
        SamplingFactor::F_4_1,
    ];
    let sizes = [(500, 375), (333, 499), (129, 131), (97, 640), (1600, 1200), (64, 64), (200, 17), (21, 40)];
    let file = |nth: usize| {
        let (sampling, size) = (samplings[nth % 6], sizes[nth % 8]);
        match nth % 24 {
            23 => {
                let image = image::RgbImage::from_raw(size.0, size.1, scene(size.0, size.1, nth)).unwrap();
                let mut png = std::io::Cursor::new(Vec::new());
                image.write_to(&mut png, image::ImageFormat::Png).unwrap();
                png.into_inner()
            }
            22 => {
                let mut grey = Vec::new();
                let pixels: Vec<u8> = scene(size.0, size.1, nth).chunks(3).map(|pixel| pixel[1]).collect();
                Encoder::new(&mut grey, 90).encode(&pixels, size.0 as u16, size.1 as u16, ColorType::Luma).unwrap();
                grey
            }
            _ => jpeg(nth, sampling, nth % 11 == 10, size),
        }
    };
    (0..96).map(file).collect()
}
