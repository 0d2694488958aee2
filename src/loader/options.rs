//! The options of a loader are checked, once, and become a loader.

use super::{
    builder::{PREFETCH, Parts, PinnedDataLoaderBuilder},
    data_loader::PinnedDataLoader,
    plan::Plan,
    state::Standings,
};
use crate::{
    batch::Samples,
    device::{Target, alloc_for},
    fault::Error,
    memory::{MemoryLimit, check_system},
    order::{At, Orders, RandomSampler, Sampler, Sampling, SequentialSampler},
    pipeline::{Count, MOST_AHEAD},
};
use burn::data::dataset::Dataset;
use std::{sync::Arc, thread::available_parallelism};

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Checks the options and builds the loader. No thread is started and no slot is allocated before the first `iter()`.
    ///
    /// # Errors
    /// [`Error::Config`], which names the option, what is wrong with it, and what to write instead. [`Error::Panicked`], if
    /// `Collate::layout` panics.
    ///
    /// # Panics
    /// If no device is set and Burn has no backend to choose one from; if `Dataset::len` panics, or a method of the sampler that is
    /// called here (`check`, `len`, those of a batch sampler that tell its sizes, with `resume` its `Debug`).
    pub fn build<D>(self, dataset: D) -> Result<Arc<PinnedDataLoader<O>>, Error>
    where
        D: Dataset<I> + 'static,
    {
        let dataset_len = dataset.len();
        if dataset_len == 0 {
            return Err(Error::config("build", "the dataset has no items", "check where it reads from"));
        }
        let (workers, tune_workers) = match self.workers {
            Some(Count::Fixed(workers)) => (workers, false),
            Some(Count::Auto) => (most_workers(), true),
            None => (default_workers(), false),
        };
        let (prefetch, prefetch_most) = match self.prefetch {
            Count::Fixed(prefetch) => (prefetch, prefetch),
            Count::Auto => (PREFETCH, MOST_AHEAD),
        };
        let counts =
            [("num_workers", workers), ("prefetch", prefetch), ("transfer_threads", self.transfers.unwrap_or(1))];
        for (option, value) in counts {
            if value == 0 {
                return Err(Error::config(
                    option,
                    "0 would never load anything",
                    "use at least 1, or leave the default",
                ));
            }
            if value > 1024 {
                return Err(Error::config(option, format!("{value} is too many"), "use at most 1024"));
            }
        }
        if self.require_pinned && self.alloc.is_some() {
            let advice = "leave it out: the allocator decides which memory it gives";
            return Err(Error::config("require_pinned", "`allocator` is set too", advice));
        }
        if self.lease_timeout.is_zero() {
            return Err(Error::config("lease_timeout", "0 would end every wait at once", "use seconds"));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::config("timeout", "0 would end every wait at once", "use seconds, or leave it out"));
        }
        let seed = self.seed.or(self.shuffle).unwrap_or(0);
        let sampling = match self.batch_sampler {
            Some(sampler) => {
                let others = [
                    ("batch_size", self.batch_size.is_some()),
                    ("shuffle", self.shuffle.is_some()),
                    ("sampler", self.sampler.is_some()),
                    ("drop_last", self.drop_last),
                ];
                if let Some((option, _)) = others.into_iter().find(|(_, set)| *set) {
                    let problem = "`batch_sampler` is set too, and decides it";
                    return Err(Error::config(option, problem, "leave one of them out"));
                }
                sampler.check(dataset_len)?;
                Sampling::Batches { sampler }
            }
            None => {
                let sampler = sampler(self.shuffle, self.sampler)?;
                sampler.check(dataset_len)?;
                let batch_size = match self.batch_size {
                    Some(0) => return Err(Error::config("batch_size", "0 samples make no batch", "use at least 1")),
                    Some(size) => size,
                    None => return Err(Error::config("batch_size", "it is not set", "add e.g. `.batch_size(32)`")),
                };
                Sampling::Samples { sampler, batch_size, drop_last: self.drop_last }
            }
        };
        let start = match (&self.resume, self.start_epoch) {
            (Some(_), Some(_)) => {
                let advice = "leave out `start_epoch`: the state knows the epoch";
                return Err(Error::config("start_epoch", "`resume` is set too", advice));
            }
            (Some(state), None) => state.at(),
            (None, epoch) => At::begin(epoch.unwrap_or(0)),
        };
        let distributed = self.distributed;
        let orders =
            Orders { sampling, dataset_len, distributed, slice: None, resumed: self.resume.as_ref().map(|_| start) };
        orders.check()?;
        self.faults.policy.check(orders.items())?;
        let (faults, counters) = (self.faults.clone(), Arc::clone(&self.faults.counters));
        let samples = Arc::new(Samples {
            dataset: Arc::new(dataset),
            len: dataset_len,
            augment: self.augment,
            seed,
            counters: Arc::clone(&counters),
            faults: self.faults,
        });
        let (batch_size, host_device) = (orders.max_batch_size(), self.host_device);
        let parts = Parts { samples, batch_size, host_device, streaming: self.streaming };
        let make_source = (self.make)(parts)?;
        let device = self.device.unwrap_or_default();
        let plan = Plan {
            make_source,
            orders,
            seed,
            standing: Standings::new(start),
            workers,
            tune_workers,
            prefetch,
            prefetch_most,
            transfers: self.transfers,
            limit: self.limit,
            lease_timeout: self.lease_timeout,
            timeout: self.timeout,
            alloc: self.alloc,
            shared_limit: self.shared_limit,
            require_pinned: self.require_pinned,
            device,
            faults,
            counters,
        };
        if let Some(state) = &self.resume {
            state.fits(&plan.state(start))?;
        }
        // What can be refused for this device is refused now rather than at the first epoch.
        let target = Target::of(plan.device.clone());
        let host = target.host;
        if plan.require_pinned {
            alloc_for(&target, true)?;
        }
        let source = (plan.make_source)(target)?;
        let limits = plan.limits(source.slot_bytes(), host)?;
        if let Some(bytes) = source.slot_bytes() {
            check_system(bytes.saturating_mul(limits.slots))?;
            let shared = plan.shared_limit.as_ref().map_or(usize::MAX, MemoryLimit::bytes);
            if bytes > shared {
                let problem = format!("{shared} bytes are less than one batch of {bytes}");
                return Err(Error::config("shared_limit", problem, format!("allow at least {bytes}")));
            }
        }
        Ok(Arc::new(PinnedDataLoader::new(plan, start.epoch)))
    }
}

/// What orders the samples: at most one of two options.
fn sampler(shuffle: Option<u64>, sampler: Option<Arc<dyn Sampler>>) -> Result<Arc<dyn Sampler>, Error> {
    match (shuffle, sampler) {
        (Some(_), Some(_)) => {
            let advice = "leave out `shuffle`: a sampler orders the epoch itself";
            Err(Error::config("sampler", "`shuffle` is set too", advice))
        }
        (Some(seed), None) => Ok(Arc::new(RandomSampler::new(seed))),
        (None, Some(sampler)) => Ok(sampler),
        (None, None) => Ok(Arc::new(SequentialSampler)),
    }
}

/// What [`Auto`](crate::Auto) starts with: all of the machine's threads but one, where there are many.
fn most_workers() -> usize {
    available_parallelism().map_or(1, |threads| threads.get() - 1).max(default_workers())
}

/// The machine's threads, less one in eight where there are that many: training and transfer need their own.
fn default_workers() -> usize {
    let threads = available_parallelism().map_or(1, usize::from);
    threads - threads / 8
}
