//! Any bytes as a GIF: its frames on their screen, and its decoder behind them.
#![no_main]

use burn_pinned_fuzz::{begin, picture::decode, run};
use image::{Delay, Frame, RgbaImage, codecs::gif::GifEncoder};
use libfuzzer_sys::fuzz_target;

fn file(frames: &[(u32, u32, u32)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = GifEncoder::new(&mut file);
    for &(width, height, left) in frames {
        let colour = |x: u32, y: u32| image::Rgba([(x * 20 % 256) as u8, (y * 30 % 256) as u8, 7, 255 - (x % 2) as u8]);
        let pixels = RgbaImage::from_fn(width, height, colour);
        let frame = Frame::from_parts(pixels, left, 1, Delay::from_numer_denom_ms(10, 1));
        encoder.encode_frame(frame).expect("memory has no errors");
    }
    drop(encoder);
    file
}

fuzz_target!(
    init: begin(|| vec![file(&[(9, 5, 0)]), file(&[(20, 11, 0), (7, 5, 3)]), file(&[(4, 4, 6)])]),
    |data: &[u8]| run(|| decode(data))
);
