//! The checked options of a loader. Its copies share them.

use super::{
    kept::{KeptData, TableRoom},
    options::{Options, PREFETCH},
    state::SharedPosition,
    unread_errors::UnreadErrors,
};
use crate::{
    batch::Source,
    device::Target,
    fault::{Error, Faults},
    memory::{PoolLimits, SPARE},
    observe::Counters,
    order::Schedule,
    stream::OpenStream,
};
use std::sync::{Arc, OnceLock};

/// The number of slots for small batches, and the most bytes that these slots may take together.
const SMALL: (usize, usize) = (16, 16 << 20);
/// The number of slots for samples whose times differ much, and the most bytes that these slots may take together.
/// While one batch waits for a slow sample, others are filled.
const UNEVEN: (usize, usize) = (12, 512 << 20);
/// Several devices share the host's memory bandwidth. So the slots of all devices together take at most the size of the
/// last-level cache divided by `OF_CACHE`, as long as each device still has `FEWEST` slots: one to write and one to
/// copy. See benches/README.md.
const OF_CACHE: usize = 2;
const FEWEST: usize = 2;

/// Where batches come from.
pub(crate) enum Origin<O> {
    /// Samples, which are read in each epoch.
    Samples {
        /// The source, not yet for a particular device.
        source: Arc<dyn Source<O>>,
        /// The source that `build` has checked. It keeps the device's decoder open for the first epoch, because opening
        /// it takes a second or two.
        checked: Option<Arc<dyn Source<O>>>,
    },
    /// Rows that are kept on the device.
    KeptData(KeptData<O>),
}

/// Not derived: `O` need not be `Clone`.
impl<O> Clone for Origin<O> {
    fn clone(&self) -> Self {
        match self {
            Self::Samples { source, checked } => Self::Samples { source: Arc::clone(source), checked: checked.clone() },
            Self::KeptData(kept) => Self::KeptData(kept.clone()),
        }
    }
}

/// The checked options of a loader, and what follows from them. Copies of the loader share them or clone them.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) options: Options,
    pub(crate) schedule: Schedule,
    pub(crate) standing: SharedPosition,
    /// The fingerprint texts of the sampler, once a state was made.
    pub(crate) fingerprints: Arc<OnceLock<(String, String)>>,
    pub(crate) faults: Faults,
    pub(crate) unread_errors: Arc<UnreadErrors>,
    /// How many of the user's batches are read as one when a dataset is read to be kept on a device. Otherwise 1.
    pub(crate) read_as_one: usize,
    /// The stream that samples come from, if they have no index.
    pub(crate) stream: Option<Arc<dyn OpenStream>>,
    /// The memory that all rows take together, if the rows are the same in each epoch.
    pub(crate) room: Option<TableRoom>,
    /// The number of the device that this copy is for, among those that the loader is cut for.
    pub(crate) device: Option<u16>,
}

impl Plan {
    /// The device that batches go to.
    pub(crate) fn target(&self) -> Target {
        Target::of(self.options.device.clone().unwrap_or_default())
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.faults.counters
    }

    /// The source of batches for this copy's device. Also notes whether the device could keep the dataset.
    pub(crate) fn source_here<O>(&self, source: &dyn Source<O>) -> Result<Arc<dyn Source<O>>, Error> {
        let mut target = self.target();
        target.workers = self.options.workers(self.copies(), true).start;
        let keepable = self.room.filter(|room| room.is_small(&target)).map(|room| room.bytes);
        self.counters().note(|stats| stats.keepable = keepable.filter(|bytes| *bytes > 0));
        source.on(target)
    }

    /// The number of copies that share the memory limit and the machine: one for each device that the loader is cut
    /// for.
    pub(crate) fn copies(&self) -> usize {
        if self.device.is_some() { self.options.devices() } else { self.schedule.devices }
    }

    /// Permits and bytes for batches of a known or unknown size.
    pub(crate) fn limits<O>(&self, source: &dyn Source<O>) -> Result<PoolLimits, Error> {
        let (prefetch, copies) = (self.options.prefetch(), self.copies());
        let (slot_bytes, host) = (source.slot_bytes(), source.target().host);
        // A single device is not limited by the host's memory bandwidth. If the user sets a limit, that decides the number of slots.
        let shared = copies * self.options.distributed().local_world() > 1;
        let cache = if shared && self.options.pinned_limit.is_none() { self.options.machine().cache } else { None };
        let wanted = slots(slot_bytes.filter(|_| !host), source.is_uneven(), copies, prefetch, cache);
        let wanted = wanted.min(self.schedule.fewest_batches());
        let limit = self.options.pinned_limit.map(|limit| limit / copies);
        let Some(bytes) = slot_bytes else {
            return Ok(PoolLimits { slots: wanted, bytes: limit.unwrap_or(usize::MAX) });
        };
        let limit = limit.unwrap_or_else(|| bytes.saturating_mul(wanted));
        let slots = wanted.min(limit / bytes.max(1));
        if slots == 0 {
            let each = if copies > 1 { format!(" for each of {copies} devices") } else { String::new() };
            let problem = format!("{limit} bytes{each} are less than one batch of {bytes}");
            let of_all = |slots: usize| bytes.saturating_mul(slots).saturating_mul(copies);
            let advice = format!("allow at least {}, better {}", of_all(1), of_all(wanted));
            return Err(Error::config("pinned_limit", problem, advice));
        }
        // On a CPU backend the consumer gives back ordinary memory. It is kept in addition to the limit on page-locked
        // bytes.
        let spare = if host { SPARE } else { 0 };
        Ok(PoolLimits { slots, bytes: bytes.saturating_mul(slots + spare) })
    }
}

/// The number of slots of each of `devices` devices, unless a limit reduces it. `bytes` is the size of a batch, if it is known and the
/// batch goes to an accelerator. Slots should fit in a part of the `cache`, if one is given.
fn slots(bytes: Option<usize>, is_uneven: bool, devices: usize, prefetch: usize, cache: Option<usize>) -> usize {
    // One slot for each batch that may wait for the step, one for a batch that is being copied, and one for a batch
    // that is being written. More slots are pushed out of the CPU cache before they are copied; see benches/README.md.
    let few = prefetch + 2;
    let Some(bytes) = bytes.map(|bytes| bytes.max(1)) else { return few };
    let of = |(count, together): (usize, usize)| (together / bytes).min(count);
    if is_uneven {
        return few.max(of(UNEVEN)).max(of(SMALL));
    }
    let usual = few.min(PREFETCH + 2);
    let fit = cache.map_or(usual, |cache| cache / OF_CACHE / bytes / devices);
    let fewer = if fit >= FEWEST { usual.min(fit) } else { usual };
    // If all batches fit in the cache, more slots are allowed, so that workers need not be woken for each batch.
    (few - usual + fewer).max(of(SMALL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        batch::{Batch, BatchPlan, BatchState, Content, Task},
        device::Uploader,
        memory::{Permit, Pool, Wait},
        observe::TaskClock,
    };
    use burn::tensor::Device;

    const MB: usize = 1_000_000;
    const CACHE: Option<usize> = Some(300 * MB);

    /// The slots of each device for batches of so many MB.
    fn even(devices: usize, mb: usize, prefetch: usize, cache: Option<usize>) -> usize {
        slots(Some(mb * MB), false, devices, prefetch, cache)
    }

    #[test]
    fn slots_of_several_devices_fit_in_half_of_the_cache() {
        for (devices, mb, slots) in [(1, 37, 4), (2, 37, 2), (2, 18, 4), (4, 18, 2), (2, 25, 3), (1, 75, 2)] {
            assert_eq!(even(devices, mb, 2, CACHE), slots, "{devices} devices, {mb} MB");
        }
        // Two slots do not fit either, or the size of the cache is not known.
        assert_eq!((even(4, 38, 2, CACHE), even(2, 38, 2, None)), (4, 4));
    }

    #[test]
    fn more_batches_ahead_have_more_slots() {
        assert_eq!([0, 1, 2, 3, 8].map(|prefetch| even(2, 37, prefetch, CACHE)), [2, 2, 2, 3, 8]);
        assert_eq!([0, 1, 2, 3, 8].map(|prefetch| slots(None, false, 2, prefetch, CACHE)), [2, 3, 4, 5, 10]);
    }

    #[test]
    fn small_and_uneven_batches_have_many() {
        assert_eq!((even(2, 1, 2, CACHE), even(8, 4, 2, CACHE)), (16, 4));
        assert_eq!([37, 200].map(|mb| slots(Some(mb * MB), true, 2, 2, CACHE)), [12, 4]);
    }

    /// Says how large its batches are, and where they go.
    struct OfSize(Option<usize>, Target);

    impl Source<()> for OfSize {
        fn target(&self) -> &Target {
            &self.1
        }
        fn slot_bytes(&self) -> Option<usize> {
            self.0
        }
        fn on(&self, _: Target) -> Result<Arc<dyn Source<()>>, Error> {
            unreachable!("no epoch begins")
        }
        fn faults(&self) -> &Faults {
            unreachable!("no epoch begins")
        }
        fn open(
            &self,
            _: Arc<BatchPlan>,
            _: Permit,
            _: &Arc<Pool>,
            _: &Wait<'_>,
            _: usize,
        ) -> Result<Vec<Task<()>>, Error> {
            unreachable!("no epoch begins")
        }
        fn run(&self, _: Task<()>, _: &mut TaskClock<'_>) -> Option<Batch<()>> {
            unreachable!("no epoch begins")
        }
        fn pin(&self, _: Box<Content<()>>, _: &Arc<Pool>, _: &Wait<'_>) -> Result<Box<Content<()>>, Error> {
            unreachable!("no epoch begins")
        }
        fn send(&self, _: Box<Content<()>>, _: &Arc<Pool>, _: &mut Uploader) -> Result<BatchState<()>, Error> {
            unreachable!("no epoch begins")
        }
        fn finish(&self, _: Content<()>) -> Result<BatchState<()>, Error> {
            unreachable!("no epoch begins")
        }
    }

    fn accelerator() -> Target {
        let mut target = Target::of(Device::flex());
        target.host = false;
        target
    }

    /// The slots and bytes of each device.
    fn limits(
        bytes: Option<usize>,
        target: Target,
        devices: usize,
        limit: Option<usize>,
    ) -> Result<(usize, usize), Error> {
        let (batch_size, device, devices) = (Some(1), Some(Device::flex()), Some(devices));
        let options = Options { batch_size, device, devices, pinned_limit: limit, ..Options::default() };
        let limits = Plan::checked(options, 1000, Arc::default())?.limits(&OfSize(bytes, target))?;
        Ok((limits.slots, limits.bytes))
    }

    #[test]
    fn slots_of_an_accelerator_never_exceed_the_limit() {
        // Large batches, and small ones that have more slots if they may.
        for (batch, most) in [(25 * MB, 4), (4096, 16)] {
            for (devices, part) in [1, 2, 3].into_iter().flat_map(|devices| (3..60).map(move |part| (devices, part))) {
                let limit = devices * (batch * part / 3);
                let (slots, bytes) = limits(Some(batch), accelerator(), devices, Some(limit)).unwrap();
                assert_eq!((slots, bytes), ((part / 3).min(most), slots * batch), "{limit} bytes, {devices} devices");
                assert!(devices * bytes <= limit, "{bytes} of {limit} bytes for each of {devices} devices");
            }
            let refused = limits(Some(batch), accelerator(), 3, Some(3 * batch - 1)).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("allow at least {}, better {}", 3 * batch, 3 * most * batch)),
                "{refused}"
            );
            assert_eq!(limits(Some(batch), accelerator(), 1, None).unwrap(), (most, most * batch));
        }
    }

    /// Batches of a batcher have any size: each device has its part of the limit, to the byte.
    #[test]
    fn batches_of_unknown_size_share_the_bytes() {
        for (devices, limit, bytes) in [(1, 1001, 1001), (2, 1001, 500), (3, 1001, 333)] {
            assert_eq!(limits(None, accelerator(), devices, Some(limit)).unwrap(), (4, bytes));
        }
    }

    /// A CPU backend has no page-locked memory. Its permits are those of an accelerator, and what its consumer gives
    /// back is kept beside them.
    #[test]
    fn a_cpu_backend_keeps_what_comes_back() {
        let host = || Target::of(Device::flex());
        for (limit, slots) in [(25 * MB, 1), (99 * MB, 3), (1000 * MB, 4)] {
            assert_eq!(limits(Some(25 * MB), host(), 1, Some(limit)).unwrap(), (slots, (slots + SPARE) * 25 * MB));
        }
    }
}
