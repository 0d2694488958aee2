//! A picture of a dozen batches, or a trace of the run.

use burn_pinned::observe::Timeline;
use std::{io, path::Path};

/// Events to keep so that the last epoch's second half is there: of a batch, one for each sample at most, and some ten others.
pub(crate) fn events(batches: usize, batch_size: usize) -> usize {
    ((batches / 2 + 24) * (batch_size + 10)).min(500_000) // 40 MB
}

/// Saves a trace (`.json`), or a picture (`.svg`) of a dozen batches from the middle of an epoch, or, of what was recorded, from its end.
pub(crate) fn save(timeline: &Timeline, file: &Path, epoch: usize, batches: usize) -> io::Result<()> {
    if file.extension().is_none_or(|ending| ending != "svg") {
        return timeline.save(file);
    }
    let dozen = |middle: usize| timeline.batches(epoch, middle.saturating_sub(6)..middle + 6);
    let middle = dozen(batches / 2);
    if middle.is_empty() { dozen(batches.saturating_sub(6)).save(file) } else { middle.save(file) }
}
