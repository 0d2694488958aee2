//! A bit for each page, which is set once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
pub(super) struct Bits(Vec<AtomicU64>);

impl Bits {
    pub(super) fn new(pages: u64) -> Self {
        Self((0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn has(&self, page: u64) -> bool {
        self.0.get((page / 64) as usize).is_some_and(|bits| bits.load(Relaxed) >> (page % 64) & 1 == 1)
    }

    pub(super) fn set(&self, page: u64) {
        if let Some(bits) = self.0.get((page / 64) as usize) {
            bits.fetch_or(1 << (page % 64), Relaxed);
        }
    }
}
