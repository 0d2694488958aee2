//! Any bytes as a JPEG for libjpeg-turbo, which is C: whole, and a part of it.
#![no_main]

use burn_pinned_fuzz::{begin, jpegs, picture::decode, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: begin(jpegs), |data: &[u8]| run(|| decode(data)));
