//! Any bytes as a sound.
#![no_main]

use burn_pinned::data::Audio;
use burn_pinned_fuzz::{as_file, begin, run};
use libfuzzer_sys::fuzz_target;

fn open(data: &[u8]) {
    as_file("a.wav", &[data], |path| {
        let (length, audio) = (Audio::len_of(path), Audio::open(path));
        let Ok(audio) = audio.map(|audio| audio.limit(1 << 24)) else { return };
        let (channels, frames) = (usize::from(audio.channels()), audio.frames());
        assert_eq!(length.ok(), Some(frames.saturating_mul(channels)), "the head tells another length");
        assert!(channels > 0 && audio.rate() > 0, "{channels} channels, {} Hz", audio.rate());
        if let Ok(samples) = audio.samples() {
            assert_eq!(samples.len(), frames * channels);
        }
    });
}

/// A file of these chunks.
fn riff(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        [&kind[..], &(data.len() as u32).to_le_bytes(), data, &[0][..data.len() % 2]].concat()
    };
    let chunks = chunks.iter().flat_map(|(kind, data)| chunk(kind, data)).collect::<Vec<u8>>();
    chunk(b"RIFF", &[&b"WAVE"[..], &chunks].concat())
}

fn format(code: u16, channels: u16, bits: u16) -> Vec<u8> {
    let (rate, block) = (16_000u32, channels * bits.div_ceil(8));
    let numbers = [code, channels].map(u16::to_le_bytes).concat();
    let rates = [rate, rate * u32::from(block)].map(u32::to_le_bytes).concat();
    [numbers, rates, [block, bits].map(u16::to_le_bytes).concat()].concat()
}

fuzz_target!(
    init: begin(|| {
        let bytes: Vec<u8> = (0..48u8).map(|at| at.wrapping_mul(37)).collect();
        let guid = b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71";
        let extensible = |bits: u16, valid: u16| {
            let more = [&22u16.to_le_bytes()[..], &valid.to_le_bytes(), &[3, 0, 0, 0], &[1, 0], &guid[..]].concat();
            riff(&[(b"fmt ", &[format(0xFFFE, 2, bits), more].concat()), (b"data", &bytes)])
        };
        let plain = |code, bits| riff(&[(b"fmt ", &format(code, 1, bits)), (b"data", &bytes)]);
        vec![
            plain(1, 8),
            plain(1, 16),
            plain(1, 24),
            plain(1, 32),
            plain(3, 32),
            plain(6, 8),
            extensible(32, 24),
            extensible(16, 16),
            riff(&[(b"LIST", b"INFOdata"), (b"fmt ", &format(1, 2, 16)), (b"fact", &[12, 0, 0, 0]), (b"data", &bytes)]),
        ]
    }),
    |data: &[u8]| run(|| open(data))
);
