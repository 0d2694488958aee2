//! Reads epochs, with a clock.

use crate::collate::Tally;
use burn::data::dataloader::DataLoader;
use burn_pinned::BoxError;
use std::time::{Duration, Instant};

/// When a measurement ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Epochs(usize),
    /// In the middle of an epoch, too.
    Time(Duration),
    /// One epoch, or what of it comes in this time.
    First(Duration),
}

/// What an epoch brought, and how long it took.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    pub tally: Tally,
    pub time: Duration,
    /// From `iter()` to the first batch.
    pub first_batch: Duration,
    /// Whether it came to its end.
    pub whole: bool,
}

/// Reads batches, and does nothing else between them.
pub fn measure(loader: &dyn DataLoader<Tally>, until: Until) -> Result<Vec<Epoch>, BoxError> {
    let mut epochs = Vec::new();
    let begun = Instant::now();
    let over = |epochs: usize| match until {
        Until::Epochs(wanted) => epochs >= wanted,
        Until::Time(time) => begun.elapsed() >= time,
        Until::First(time) => epochs > 0 || begun.elapsed() >= time,
    };
    while epochs.is_empty() || !over(epochs.len()) {
        let started = Instant::now();
        let (mut tally, mut first_batch, mut whole) = (Tally::default(), None, true);
        for batch in loader.iter() {
            tally.add(&batch?);
            first_batch.get_or_insert_with(|| started.elapsed());
            if matches!(until, Until::Time(_) | Until::First(_)) && over(epochs.len()) {
                whole = tally.rows == loader.num_items() as u64;
                break;
            }
        }
        let time = started.elapsed();
        epochs.push(Epoch { tally, time, first_batch: first_batch.unwrap_or(time), whole });
    }
    Ok(epochs)
}

/// Whether all whole epochs had the same bytes.
pub fn agree(epochs: &[Epoch]) -> bool {
    let mut sums = epochs.iter().filter(|epoch| epoch.whole).map(|epoch| (epoch.tally.bytes, epoch.tally.sum));
    let first = sums.next();
    sums.all(|sum| Some(sum) == first)
}
