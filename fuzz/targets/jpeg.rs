//! Any bytes as a JPEG: its head, and its decoder behind that.
#![no_main]

use burn_pinned_fuzz::{begin, jpegs, picture::decode, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: begin(jpegs), |data: &[u8]| run(|| decode(data)));
