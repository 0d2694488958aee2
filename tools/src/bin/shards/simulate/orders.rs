//! The orders that are compared, and what it takes to plan one.

use burn_pinned::{
    BoxError,
    order::{BlockShuffle, Blocks, RandomSampler, Sampler, SequentialSampler},
};
use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

/// So many samples are planned to measure planning.
const PLANNED: usize = 256;

pub(super) struct SimulatedOrder {
    pub(super) name: String,
    pub(super) sampler: Arc<dyn Sampler>,
}

/// A full shuffle, the shuffle by blocks with its own number of streams and with another one, and the order of the files.
pub(super) fn orders(blocks: &Blocks, world: usize, streams: Option<usize>, seed: u64) -> Vec<SimulatedOrder> {
    let order = |name: String, sampler: Arc<dyn Sampler>| SimulatedOrder { name, sampler };
    let streams = streams.unwrap_or(world);
    vec![
        order("full shuffle".into(), Arc::new(RandomSampler::new(seed))),
        order("blocks".into(), Arc::new(BlockShuffle::new(blocks.clone(), seed))),
        order(
            format!("blocks, streams({streams})"),
            Arc::new(BlockShuffle::new(blocks.clone(), seed).streams(streams)),
        ),
        order("in order".into(), Arc::new(SequentialSampler)),
    ]
}

/// What the order of an epoch costs one process, as measured here.
#[derive(Clone, Copy, Default)]
pub(super) struct Planning {
    pub(super) time: Duration,
    /// `None` where the system does not say.
    pub(super) bytes: Option<u64>,
}

/// Measures the first samples of an order.
pub(super) fn plan(
    begin: impl FnOnce() -> Result<Box<dyn Iterator<Item = usize> + Send>, BoxError>,
) -> Result<Planning, BoxError> {
    let (before, begun) = (resident(), Instant::now());
    let mut samples = begin()?;
    samples.by_ref().take(PLANNED).for_each(drop);
    let (time, after) = (begun.elapsed(), resident());
    Ok(Planning { time, bytes: before.zip(after).map(|(before, after)| after.saturating_sub(before)) })
}

/// The memory of this process, on Linux.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
