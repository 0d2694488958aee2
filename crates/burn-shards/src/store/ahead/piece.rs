//! What one request fetches ahead.

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
};

/// Neighbouring parts of an object.
#[derive(Debug)]
pub struct AheadPiece {
    /// Its number in the data set.
    pub object: usize,
    /// The number of the request.
    pub request: u64,
    /// Ranges of the object, in order, without overlaps.
    pub parts: Vec<Range<u64>>,
    /// Set once no later row needs the piece.
    pub(super) ended: Arc<AtomicBool>,
}

impl AheadPiece {
    /// The range of the object from the first part to the last.
    pub fn range(&self) -> Range<u64> {
        let (first, last) = (self.parts.first(), self.parts.last());
        first.map_or(0, |part| part.start)..last.map_or(0, |part| part.end)
    }
}
