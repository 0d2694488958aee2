//! How long the first batch takes.

use burn_pinned::{BoxError, LoaderState, PinnedDataLoader};
use burn_pinned_tools::collate::Tally;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Each kind is timed so often.
pub(crate) const ROUNDS: usize = 20;

/// Medians.
pub(crate) struct First {
    /// From the start of an epoch.
    pub(crate) fresh: Duration,
    /// From its half.
    pub(crate) resumed: Duration,
}

/// Times the first batch of new loaders over newly opened data: nothing is decoded yet. Opening is not timed.
pub(crate) fn first_batches<D>(
    open: impl Fn() -> Result<D, BoxError>,
    build: impl Fn(D, Option<LoaderState>) -> Result<Arc<PinnedDataLoader<Tally>>, BoxError>,
) -> Result<First, BoxError> {
    let first = |state: Option<LoaderState>| -> Result<Duration, BoxError> {
        let data = open()?;
        let begun = Instant::now();
        let loader = build(data, state)?;
        loader.iter().next().ok_or("the data set is too small")??;
        Ok(begun.elapsed())
    };
    let half = {
        let loader = build(open()?, None)?;
        let batches = loader.num_batches() / 2;
        loader.iter().take(batches).try_for_each(|batch| batch.map(drop))?;
        loader.state()
    };
    let (mut fresh, mut resumed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        fresh.push(first(None)?);
        resumed.push(first(Some(half.clone()))?);
    }
    Ok(First { fresh: median(fresh), resumed: median(resumed) })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
