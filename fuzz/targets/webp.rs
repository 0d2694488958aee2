//! Any bytes as a WebP: the checks of its RIFF chunks, and its decoder behind them.
#![no_main]

use burn_pinned_fuzz::{begin, picture::decode, run};
use image::{ExtendedColorType, codecs::webp::WebPEncoder};
use libfuzzer_sys::fuzz_target;

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let padding = vec![0; data.len() % 2];
    [&kind[..], &(data.len() as u32).to_le_bytes(), data, &padding].concat()
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    chunk(b"RIFF", &[b"WEBP".to_vec(), chunks.concat()].concat())
}

/// The chunk `VP8L` of a picture.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let pixels: Vec<u8> = (0..width * height * 4).map(|at| (at * 37 % 251) as u8).collect();
    WebPEncoder::new_lossless(&mut file).encode(&pixels, width, height, ExtendedColorType::Rgba8).expect("memory");
    file.split_off(12)
}

/// The chunk `VP8X`: flags and the size of the canvas.
fn canvas(flags: u8, width: u8, height: u8) -> Vec<u8> {
    chunk(b"VP8X", &[flags, 0, 0, 0, width - 1, 0, 0, height - 1, 0, 0])
}

fuzz_target!(
    init: begin(|| {
        let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let frame = [&[1, 0, 0, 0, 0, 0, 7, 0, 0, 4, 0, 0, 100, 0, 0, 0][..], &picture(8, 5)].concat();
        // Of its head, a lossy picture needs ten bytes.
        let lossy = chunk(b"VP8 ", &[0x30, 1, 0, 0x9D, 1, 0x2A, 8, 0, 5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        vec![
            riff(&[picture(3, 2)]),
            riff(&[canvas(0x08, 9, 4), picture(9, 4), chunk(b"EXIF", exif)]),
            riff(&[canvas(0x02, 12, 9), chunk(b"ANIM", &[0; 6]), chunk(b"ANMF", &frame), chunk(b"ANMF", &frame)]),
            riff(&[canvas(0x10, 8, 5), chunk(b"ALPH", &[0; 41]), lossy.clone()]),
            riff(&[lossy]),
        ]
    }),
    |data: &[u8]| run(|| decode(data))
);
