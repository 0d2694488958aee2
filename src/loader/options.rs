//! The options of a loader as they were set. The builder and all copies of the loader use this type.

use super::{
    machine::{MOST, Machine},
    state::LoaderState,
};
use crate::{
    fault::{BadSamples, Error, OnFault},
    memory::{HostAlloc, MemoryLimit},
    order::{AnySampler, Distributed, OrderBy, RandomSampler, ReadAhead, SequentialSampler, StepsSampler},
    pipeline::Bounds,
};
use burn::tensor::Device;
use std::{sync::Arc, time::Duration};

/// The default number of batches ahead: one for the next step, one more in case a step is short.
pub(super) const PREFETCH: usize = 2;

/// The options. `None` means the default, which may depend on the machine or the device.
#[derive(Clone, Default, derive_more::Debug)]
#[debug(
    "Options {{ batch_size: {batch_size:?}, shuffle: {shuffle:?}, order: {order:?}, workers: {workers:?}, \
     prefetch: {prefetch:?}, drop_last: {drop_last}, device: {device:?}, .. }}"
)]
pub(crate) struct Options {
    pub(crate) batch_size: Option<usize>,
    pub(crate) drop_last: bool,
    pub(crate) steps: Option<usize>,
    pub(crate) shuffle: Option<u64>,
    pub(crate) order: Option<OrderBy>,
    pub(crate) distributed: Option<Distributed>,
    pub(crate) devices: Option<usize>,
    pub(crate) start_epoch: Option<usize>,
    pub(crate) resume: Option<LoaderState>,
    pub(crate) seed: Option<u64>,
    pub(crate) workers: Option<usize>,
    pub(crate) read_many: Option<usize>,
    pub(crate) prefetch: Option<usize>,
    pub(crate) transfers: Option<usize>,
    pub(crate) pinned_limit: Option<usize>,
    pub(crate) shared_limit: Option<MemoryLimit>,
    pub(crate) require_pinned: bool,
    pub(crate) alloc: Option<Arc<dyn HostAlloc>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) policy: BadSamples,
    pub(crate) on_fault: Option<OnFault>,
    pub(crate) device: Option<Device>,
    pub(crate) host_device: Option<Device>,
    /// The datasets that fetch samples ahead, each with the index of its first sample in the loader's dataset.
    pub(crate) ahead: Vec<(usize, Arc<dyn ReadAhead>)>,
}

impl Options {
    /// Checks the options, without the dataset.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        let counts = [
            ("num_workers", self.workers.unwrap_or(1)),
            ("read_many", self.read_many.unwrap_or(1)),
            ("prefetch", self.prefetch()),
            ("devices", self.devices()),
            ("transfer_threads", self.transfers.unwrap_or(1)),
        ];
        for (option, value) in counts {
            if value == 0 {
                let advice = "use at least 1, or leave the default";
                return Err(Error::config(option, "0 would never load anything", advice));
            }
            if value > MOST {
                return Err(Error::config(option, format!("{value} is too many"), format!("use at most {MOST}")));
            }
        }
        if self.require_pinned && self.alloc.is_some() {
            let advice = "leave it out: the allocator decides which memory it gives";
            return Err(Error::config("require_pinned", "`allocator` is set too", advice));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::config("timeout", "0 would end every wait at once", "use seconds, or leave it out"));
        }
        if self.resume.is_some() && self.start_epoch.is_some_and(|epoch| epoch > 0) {
            let advice = "leave out `start_epoch`: the state knows the epoch";
            return Err(Error::config("start_epoch", "`resume` is set too", advice));
        }
        Ok(())
    }

    pub(super) fn prefetch(&self) -> usize {
        self.prefetch.unwrap_or(PREFETCH)
    }

    pub(super) fn devices(&self) -> usize {
        self.devices.unwrap_or(1)
    }

    /// The share of this process.
    pub(super) fn distributed(&self) -> Distributed {
        self.distributed.unwrap_or(Distributed::alone())
    }

    /// The seed of augmentations and of batches.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.or(self.shuffle).unwrap_or(0)
    }

    /// The bounds on the number of workers of each of `copies` copies of a loader. With images it starts with more
    /// workers, because decoding is much work.
    pub(super) fn workers(&self, copies: usize, images: bool) -> Bounds {
        match self.workers {
            Some(workers) => Bounds::fixed((workers / copies).max(1)),
            None => workers(self.machine().threads / copies, images),
        }
    }

    /// The part of the machine that is for this process.
    pub(super) fn machine(&self) -> Machine {
        Machine::of(self.distributed().local_world())
    }

    /// The units of an epoch of all processes and devices, if its number of steps is set. `batch` is the number of units per batch.
    ///
    /// # Errors
    /// [`Error::Config`] if there are none, or too many to count.
    pub(super) fn epoch_units(&self, batch: usize) -> Result<Option<usize>, Error> {
        let Some(steps) = self.steps else { return Ok(None) };
        let all =
            [steps, batch, self.distributed().world(), self.devices()].into_iter().try_fold(1usize, usize::checked_mul);
        match all.filter(|size| *size > 0) {
            Some(size) => Ok(Some(size)),
            None => {
                let advice = "use at least 1, and a number that a training can reach";
                Err(Error::config("steps_per_epoch", format!("{steps} batches make no epoch"), advice))
            }
        }
    }

    /// The sampler for a dataset of `len` samples with epochs of the wanted number of steps, and the number of its units per batch.
    ///
    /// # Errors
    /// As those of [`of_passes`](Self::of_passes).
    pub(crate) fn sampler(&self, len: usize) -> Result<(AnySampler, usize), Error> {
        let (by, batch) = self.of_passes(len)?;
        let Some(size) = self.epoch_units(batch)? else { return Ok((by, batch)) };
        let by = match by {
            AnySampler::Samples(sampler) => AnySampler::Samples(Arc::new(StepsSampler::new(sampler, size))),
            AnySampler::Batches(sampler) => AnySampler::Batches(Arc::new(StepsSampler::new(sampler, size))),
        };
        Ok((by, batch))
    }

    /// The sampler of whole passes, and the number of its units per batch.
    ///
    /// # Errors
    /// [`Error::Config`], from these checks or from the sampler.
    fn of_passes(&self, len: usize) -> Result<(AnySampler, usize), Error> {
        let by = match (self.shuffle, &self.order) {
            (Some(_), Some(_)) => {
                let advice = "leave out `shuffle`: a sampler orders the epoch itself";
                return Err(Error::config("order", "`shuffle` is set too", advice));
            }
            (Some(seed), None) => AnySampler::Samples(Arc::new(RandomSampler::new(seed))),
            (None, Some(OrderBy(by))) => by.clone(),
            (None, None) => AnySampler::Samples(Arc::new(SequentialSampler)),
        };
        match &by {
            AnySampler::Samples(sampler) => {
                sampler.check(len)?;
                match self.batch_size {
                    Some(0) => Err(Error::config("batch_size", "0 samples make no batch", "use at least 1")),
                    Some(size) => Ok((by, size)),
                    None => Err(Error::config("batch_size", "it is not set", "add e.g. `.batch_size(32)`")),
                }
            }
            AnySampler::Batches(sampler) => {
                let others = [("batch_size", self.batch_size.is_some()), ("drop_last", self.drop_last)];
                if let Some((option, _)) = others.into_iter().find(|(_, set)| *set) {
                    let problem = "`order` has a batch sampler, which decides it";
                    return Err(Error::config(option, problem, "leave one of them out"));
                }
                sampler.check(len)?;
                Ok((by, 1))
            }
        }
    }
}

/// The bounds on the number of workers for `threads` CPU threads. If there are many threads, one is left for the
/// training.
fn workers(threads: usize, images: bool) -> Bounds {
    let threads = threads.max(1);
    let most = if threads < 8 { threads } else { threads - 1 };
    let start = if threads < 8 || images { most } else { threads / 2 };
    let most_asleep = (4 * threads).clamp(MANY, MOST);
    Bounds { start: start.min(MOST), most: most.min(MOST), most_asleep }
}

/// If workers sleep, at least this many are allowed: they cost little, even with few threads.
const MANY: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_many_threads_begin() {
        let of = |threads, images| {
            let Bounds { start, most, most_asleep } = workers(threads, images);
            [start, most, most_asleep]
        };
        assert_eq!([1, 2, 7].map(|threads| of(threads, false)), [[1, 1, 16], [2, 2, 16], [7, 7, 28]]);
        assert_eq!([8, 16, 64].map(|threads| of(threads, false)), [[4, 7, 32], [8, 15, 64], [32, 63, 256]]);
        assert_eq!([2, 16].map(|threads| of(threads, true)), [[2, 2, 16], [15, 15, 64]]);
        assert_eq!(of(4096, false), [MOST; 3]);
        let options = Options { workers: Some(7), ..Options::default() };
        assert_eq!([1, 2, 9].map(|copies| options.workers(copies, false).start), [7, 3, 1]);
    }
}
