//! Everything that the copies of a loader share, or take over: the checked options.

use super::state::{LoaderState, Standings};
use crate::{
    batch::Source,
    device::Target,
    fault::{Error, Faults},
    memory::{HostAlloc, Limits, MemoryLimit, SPARE},
    observe::Counters,
    order::{At, Orders},
};
use burn::tensor::Device;
use std::{sync::Arc, time::Duration};

/// Slots that take no more than this together may be more than a few.
const SMALL_SLOTS: usize = 16 << 20;

/// Makes the source of batches for a device.
pub(crate) type MakeSource<O> = Arc<dyn Fn(Target) -> Result<Arc<dyn Source<O>>, Error> + Send + Sync>;

/// Everything that a copy of a loader shares with it or takes over: the checked options.
pub(crate) struct Plan<O> {
    pub(crate) make_source: MakeSource<O>,
    pub(crate) orders: Orders,
    /// For the loader's state.
    pub(crate) seed: u64,
    pub(crate) standing: Standings,
    pub(crate) workers: usize,
    /// Whether fewer of them are tried.
    pub(crate) tune_workers: bool,
    pub(crate) prefetch: usize,
    /// The most that are tried.
    pub(crate) prefetch_most: usize,
    pub(crate) transfers: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) lease_timeout: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) alloc: Option<Arc<dyn HostAlloc>>,
    pub(crate) shared_limit: Option<MemoryLimit>,
    pub(crate) require_pinned: bool,
    pub(crate) device: Device,
    pub(crate) faults: Faults,
    pub(crate) counters: Arc<Counters>,
}

impl<O> Clone for Plan<O> {
    fn clone(&self) -> Self {
        Self {
            make_source: Arc::clone(&self.make_source),
            orders: self.orders.clone(),
            standing: self.standing.clone(),
            alloc: self.alloc.clone(),
            shared_limit: self.shared_limit.clone(),
            device: self.device.clone(),
            faults: self.faults.clone(),
            counters: Arc::clone(&self.counters),
            ..*self
        }
    }
}

impl<O> Plan<O> {
    /// Where the loader is at a place of an epoch, and of what.
    pub(crate) fn state(&self, at: At) -> LoaderState {
        let Orders { sampling, dataset_len, .. } = &self.orders;
        let (batches, sampler) = sampling.fingerprint();
        LoaderState::new(at, self.seed, *dataset_len, batches, sampler)
    }

    /// Permits and bytes for batches of a known or unknown size.
    pub(crate) fn limits(&self, slot_bytes: Option<usize>, host: bool) -> Result<Limits, Error> {
        // One slot for each batch that may wait for the step, one being copied, one being written: more are pushed out of the CPU
        // cache before they are copied (34 against 51 GB/s with 24 and 4 slots on an H200's host). Batches that all fit in the
        // cache may be more, so that workers need not be woken for each.
        let (few, more) = (self.prefetch + 2, self.prefetch_most - self.prefetch);
        let many = slot_bytes.filter(|_| !host).map_or(0, |bytes| (SMALL_SLOTS / bytes.max(1)).min(16));
        let wanted = few.max(many).min(self.orders.fewest_batches());
        let Some(bytes) = slot_bytes else {
            return Ok(Limits { slots: wanted, bytes: self.limit.unwrap_or(usize::MAX) });
        };
        let limit = self.limit.unwrap_or_else(|| bytes.saturating_mul(wanted + more));
        let slots = wanted.min(limit / bytes.max(1));
        if slots == 0 {
            let problem = format!("{limit} bytes are less than one batch of {bytes}");
            return Err(Error::config(
                "pinned_limit",
                problem,
                format!("allow at least {bytes}, better {}", bytes.saturating_mul(wanted)),
            ));
        }
        // What the consumer of a CPU backend gives back is ordinary memory, kept beyond the limit on page-locked bytes.
        let spare = if host { SPARE } else { 0 };
        let more = more.min(limit / bytes.max(1) - slots);
        Ok(Limits { slots, bytes: bytes.saturating_mul(slots + more + spare) })
    }
}
