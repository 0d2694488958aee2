//! The orders that are compared, and what it takes to plan one.

use super::{args::Cluster, run::Run};
use burn_pinned::{
    BoxError,
    order::{BlockShuffle, Blocks, RandomSampler, Sampler, SequentialSampler},
};
use std::{fs, sync::Arc, time::Instant};

/// So many samples are planned to measure planning.
const PLANNED: usize = 256;

/// A full shuffle, the shuffle by blocks with its own number of streams and with another one, and the order of the files.
pub(super) fn orders(blocks: &Blocks, cluster: &Cluster) -> [(String, Arc<dyn Sampler>); 4] {
    let (seed, streams) = (cluster.seed, cluster.streams.unwrap_or(cluster.world()));
    let shuffle = || BlockShuffle::new(blocks.clone(), seed);
    [
        ("full shuffle".into(), Arc::new(RandomSampler::new(seed))),
        ("blocks".into(), Arc::new(shuffle())),
        (format!("blocks, streams({streams})"), Arc::new(shuffle().streams(streams))),
        ("in order".into(), Arc::new(SequentialSampler)),
    ]
}

/// Measures the first samples of an order: seconds, and bytes of memory, where the system tells them.
pub(super) fn plan(run: &Run<'_>) -> Result<(f64, Option<u64>), BoxError> {
    run.sampler.check(run.data.rows)?;
    let (before, begun) = (resident(), Instant::now());
    let mut samples = run.samples_of(0)?;
    samples.by_ref().take(PLANNED).for_each(drop);
    let (seconds, after) = (begun.elapsed().as_secs_f64(), resident());
    Ok((seconds, before.zip(after).map(|(before, after)| after.saturating_sub(before))))
}

/// The memory of this process, on Linux.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
