//! Everything that the copies of a loader share, or take over: the checked options.

use super::{
    crew::SharedCrew,
    options::Options,
    state::{LoaderState, SharedPosition},
};
use crate::{
    batch::Source,
    device::Target,
    fault::{Error, Faults},
    memory::{PoolLimits, SPARE, last_cache},
    observe::Counters,
    order::{Position, Schedule},
};
use std::sync::Arc;

/// There may be more than a few slots: so many, if they take no more bytes than this together.
const SMALL: (usize, usize) = (16, 16 << 20);
/// The same for samples that take very different times. While one batch waits for a slow sample, others are filled.
const UNEVEN: (usize, usize) = (12, 512 << 20);
/// Several devices share the host's memory. Then there are fewer slots, if all of them take more than this part of the last
/// cache; see benches/README.md.
const OF_CACHE: usize = 2;
/// One slot that is written, and one that is copied.
const FEWEST: usize = 2;

/// Makes the source of batches for a device.
pub(crate) type MakeSource<O> = Arc<dyn Fn(Target) -> Result<Arc<dyn Source<O>>, Error> + Send + Sync>;

/// Everything that a copy of a loader shares with it or takes over: the checked options.
pub(crate) struct Plan<O> {
    pub(crate) make_source: MakeSource<O>,
    /// What `build` has checked. It keeps the device's decoder open for the first epoch: to open it takes a second or two.
    pub(crate) checked: Option<Arc<dyn Source<O>>>,
    pub(crate) options: Options,
    pub(crate) schedule: Schedule,
    pub(crate) standing: SharedPosition,
    pub(crate) faults: Faults,
    pub(crate) counters: Arc<Counters>,
    pub(crate) crew: SharedCrew<O>,
    /// The number of the device that this copy is for, among those that the loader is cut for.
    pub(crate) device: Option<u16>,
}

/// Not derived: `O` need not be `Clone`.
impl<O> Clone for Plan<O> {
    fn clone(&self) -> Self {
        Self {
            make_source: Arc::clone(&self.make_source),
            checked: self.checked.clone(),
            options: self.options.clone(),
            schedule: self.schedule.clone(),
            standing: self.standing.clone(),
            faults: self.faults.clone(),
            counters: Arc::clone(&self.counters),
            crew: self.crew.clone(),
            device: self.device,
        }
    }
}

impl<O> Plan<O> {
    /// The device that batches go to.
    pub(crate) fn target(&self) -> Target {
        Target::of(self.options.device.clone().unwrap_or_default())
    }

    /// The state of this loader when it stands at a place of an epoch.
    pub(crate) fn state(&self, at: Position) -> LoaderState {
        let Schedule { sampling, dataset_len, .. } = &self.schedule;
        let (batches, sampler) = sampling.fingerprint();
        LoaderState::new(at, self.options.seed(), *dataset_len, batches, sampler)
    }

    /// The number of slots for batches of a known or unknown size, where no limit makes it less.
    fn slots(&self, source: &dyn Source<O>, devices: usize) -> usize {
        // There is one slot for each batch that may wait for the step, one for a batch that is copied, and one for a
        // batch that is written. More slots are pushed out of the CPU cache before they are copied; see benches/README.md.
        // If all batches fit in the cache, there may be more slots, so that workers need not be woken for each.
        let few = self.options.prefetch().0 + 2;
        let slots = match source.slot_bytes().filter(|_| !source.target().host) {
            None => few,
            Some(bytes) => {
                let of = |(count, together): (usize, usize)| (together / bytes.max(1)).min(count);
                match source.is_uneven() {
                    true => few.max(of(SMALL)).max(of(UNEVEN)),
                    false if devices > 1 && self.options.pinned_limit.is_none() => {
                        in_cache(few, bytes.saturating_mul(devices), last_cache()).max(of(SMALL))
                    }
                    false => few.max(of(SMALL)),
                }
            }
        };
        slots.min(self.schedule.fewest_batches())
    }

    /// Permits and bytes for batches of a known or unknown size.
    pub(crate) fn limits(&self, source: &dyn Source<O>) -> Result<PoolLimits, Error> {
        let (prefetch, most) = self.options.prefetch();
        let more = most - prefetch;
        // The copies for several devices share the limit.
        let copies = if self.device.is_some() { self.options.devices } else { self.schedule.devices };
        let wanted = self.slots(source, copies);
        let (slot_bytes, host) = (source.slot_bytes(), source.target().host);
        let limit = self.options.pinned_limit.map(|limit| limit / copies);
        let Some(bytes) = slot_bytes else {
            return Ok(PoolLimits { slots: wanted, bytes: limit.unwrap_or(usize::MAX) });
        };
        let limit = limit.unwrap_or_else(|| bytes.saturating_mul(wanted + more));
        let slots = wanted.min(limit / bytes.max(1));
        if slots == 0 {
            let each = if copies > 1 { format!(" for each of {copies} devices") } else { String::new() };
            let problem = format!("{limit} bytes{each} are less than one batch of {bytes}");
            let of_all = |slots: usize| bytes.saturating_mul(slots).saturating_mul(copies);
            let advice = format!("allow at least {}, better {}", of_all(1), of_all(wanted));
            return Err(Error::config("pinned_limit", problem, advice));
        }
        // On a CPU backend the consumer gives back ordinary memory. It is kept beyond the limit on page-locked bytes.
        let spare = if host { SPARE } else { 0 };
        let more = more.min(limit / bytes.max(1) - slots);
        Ok(PoolLimits { slots, bytes: bytes.saturating_mul(slots + more + spare) })
    }
}

/// So many slots of each device, or fewer if all do not fit in the cache. `bytes` are those of one slot of each device.
fn in_cache(slots: usize, bytes: usize, cache: Option<usize>) -> usize {
    let fit = cache.map_or(slots, |cache| cache / OF_CACHE / bytes.max(1));
    slots.min(fit.max(FEWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_several_devices_fit_in_the_cache() {
        let (cache, mb) = (Some(300 << 20), 1_000_000);
        for (devices, batch, slots) in [(1, 39, 4), (2, 39, 2), (2, 19, 4), (4, 19, 2), (2, 25, 3), (8, 39, 2)] {
            assert_eq!(in_cache(4, devices * batch * mb, cache), slots, "{devices} devices, {batch} MB");
        }
        assert_eq!(in_cache(4, 39 * mb, None), 4, "the cache is not known");
        assert_eq!((in_cache(2, 39 * mb, cache), in_cache(4, 0, cache)), (2, 4));
    }
}
