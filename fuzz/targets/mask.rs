//! Any bytes as a mask: numbers of a palette, or grey of any depth.
#![no_main]

use burn_pinned::vision::Mask;
use burn_pinned_fuzz::{begin, picture::LIMITS, pngs, run};
use libfuzzer_sys::fuzz_target;

fn decode(data: &[u8]) {
    let Ok(mask) = Mask::from_bytes(data.to_vec(), &LIMITS) else { return };
    let Ok(numbers) = mask.to_numbers() else { return };
    assert_eq!(numbers.dimensions(), mask.dimensions(), "the header tells another size");
    assert_eq!(mask.to_numbers().ok().as_ref(), Some(&numbers), "decoded again, it is another mask");
}

fuzz_target!(init: begin(pngs), |data: &[u8]| run(|| decode(data)));
