//! Any bytes as a PNG, of 8 and 16 bits. The decoder does not compare checksums here.
#![no_main]

use burn_pinned::vision::Image;
use burn_pinned_fuzz::{
    begin,
    picture::{LIMITS, decode},
    pngs, run,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: begin(pngs), |data: &[u8]| run(|| {
    decode(data);
    _ = Image::from_bytes(data.to_vec(), &LIMITS).and_then(|image| image.to_rgb16());
}));
