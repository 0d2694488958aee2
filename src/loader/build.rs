//! Checks the options once, and makes a loader of them.

use super::{
    builder::PinnedDataLoaderBuilder,
    data_loader::PinnedDataLoader,
    frozen_len::FrozenLen,
    make::SourceParts,
    options::Options,
    plan::{MakeSource, Origin, Plan},
    state::{Epochs, Fingerprints, LoaderState, SharedPosition},
};
use crate::{
    augment::Augment,
    batch::{Many, Samples, Source},
    device::host_alloc,
    fault::{Error, Faults},
    memory::{MemoryLimit, check_system},
    observe::{AskedToWait, Counters},
    order::{Position, ReadAhead, Schedule},
};
use burn::data::dataset::Dataset;
use std::{any::Any, sync::Arc, time::Duration};

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Checks the options and builds the loader. No thread is started and no slot is allocated before the first
    /// `iter()`.
    ///
    /// The dataset may have errors of its own type `E`, as Burn's `SqliteDataset` has. Such an error is the `source` of
    /// the loader's [`Error::Failed`].
    ///
    /// The loader reads as many samples as the dataset has now. If it grows later, what is new is not read: an epoch that
    /// finds another length logs a warning. Build another loader then.
    ///
    /// # Errors
    /// [`Error::Config`], which names the option, what is wrong with it, and what to write instead.
    /// [`Error::Panicked`], if `Collate::layout` panics.
    ///
    /// # Panics
    /// If no device is set and Burn has no backend to choose one from. If `Dataset::len` panics, or a method of the
    /// sampler that is called here: `check`, `len`, those of a batch sampler that tell its sizes, and with `resume` its
    /// `fingerprint`.
    pub fn build<D, E>(self, dataset: D) -> Result<Arc<PinnedDataLoader<O>>, Error>
    where
        D: Dataset<I, E> + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let dataset = Arc::new(dataset);
        let Self { make, options, augment, .. } = self;
        let mut checked = Checked::new(options, dataset.len(), Arc::default())?;
        checked.look_at::<I>(&*dataset);
        let of = Arc::clone(&dataset);
        checked.len = Some(Arc::new(FrozenLen::new(checked.schedule.dataset_len, move || of.len())));
        let make_source = make(checked.parts(dataset, augment))?;
        checked.loader(make_source)
    }
}

/// Options that were checked, and what follows from them.
pub(super) struct Checked {
    pub(super) options: Options,
    pub(super) schedule: Schedule,
    pub(super) start: Position,
    pub(super) fingerprints: Fingerprints,
    pub(super) len: Option<Arc<FrozenLen>>,
    pub(super) faults: Faults,
}

impl Checked {
    /// Checks all that depends on the options and on the length of the dataset.
    pub(super) fn new(mut options: Options, dataset_len: usize, counters: Arc<Counters>) -> Result<Self, Error> {
        if dataset_len == 0 {
            return Err(Error::config("build", "the dataset has no items", "check where it reads from"));
        }
        options.check()?;
        let sampling = options.sampling(dataset_len)?;
        let start = match &options.resume {
            Some(state) => state.at(),
            None => Position::begin(options.start_epoch.unwrap_or(0)),
        };
        let (distributed, resumed) = (options.distributed, options.resume.as_ref().map(|_| start));
        let devices = options.devices;
        let schedule = Schedule { sampling, dataset_len, distributed, slice: None, devices, resumed };
        schedule.check()?;
        options.policy.check(schedule.items())?;
        let fingerprints = Fingerprints::default();
        if let Some(state) = &options.resume {
            state.fits(&LoaderState::of(&schedule, &fingerprints, options.seed(), start))?;
        }
        options.device.get_or_insert_default();
        let (policy, on_fault) = (options.policy, options.on_fault.clone());
        let faults = Faults { policy, on_fault, counters };
        Ok(Self { options, schedule, start, fingerprints, len: None, faults })
    }

    /// Looks whether the order scatters the rows of a dataset, and whether they are fetched ahead.
    #[cfg_attr(
        not(feature = "data"),
        expect(clippy::extra_unused_type_parameters, reason = "there are no rows without it")
    )]
    pub(super) fn look_at<I: 'static>(&mut self, dataset: &dyn Any) {
        #[cfg(feature = "data")]
        if let Some(rows) = super::scattered::rows::<I>(dataset) {
            super::scattered::check(rows, &self.schedule.sampling, self.start.epoch, &self.faults.counters);
            #[cfg(feature = "remote")]
            self.options.reads_ahead(rows);
        }
        let _ = dataset;
    }

    /// The samples of the dataset, and what the ways of making batches need besides.
    pub(super) fn parts<I, D, E>(&self, dataset: Arc<D>, augment: Option<Arc<dyn Augment<I>>>) -> SourceParts<I>
    where
        I: Send + 'static,
        D: Dataset<I, E> + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let samples = Arc::new(Samples {
            many: self.options.read_many.map(|count| {
                let dataset = Arc::clone(&dataset);
                Many { count, get: Arc::new(move |indices| Ok(dataset.get_many(indices)?)) }
            }),
            get: Arc::new(move |index| Ok(dataset.get(index)?)),
            len: self.schedule.dataset_len,
            augment,
            seed: self.options.seed(),
            counters: Arc::clone(&self.faults.counters),
            faults: self.faults.clone(),
        });
        SourceParts {
            samples,
            batch_size: self.schedule.max_batch_size(),
            host_device: self.options.host_device.clone(),
        }
    }

    /// A plan of batches of this origin.
    pub(super) fn plan<O>(self, origin: Origin<O>) -> Plan<O> {
        let Self { options, schedule, start, fingerprints, len, faults } = self;
        options.ahead.iter().for_each(|(_, dataset)| faults.counters.watch_store(asked_to_wait(dataset)));
        let standing = SharedPosition::new(start, schedule.devices);
        let (counters, unasked) = (Arc::clone(&faults.counters), Arc::default());
        Plan { origin, options, schedule, standing, fingerprints, len, faults, unasked, counters, device: None }
    }

    /// The loader that reads samples. What can be refused for its device is refused now rather than at the first epoch.
    pub(super) fn loader<O: Send + 'static>(
        self,
        make_source: MakeSource<O>,
    ) -> Result<Arc<PinnedDataLoader<O>>, Error> {
        let epochs = Epochs::new(self.start.epoch);
        let mut plan = self.plan(Origin::Samples { make_source: Arc::clone(&make_source), checked: None });
        let target = plan.target();
        if plan.options.require_pinned {
            host_alloc(&target.device, true)?;
        }
        let source: Arc<dyn Source<O>> = make_source(target)?;
        let limits = plan.limits(&*source)?;
        if let Some(bytes) = source.slot_bytes() {
            check_system(bytes.saturating_mul(limits.slots).saturating_mul(plan.schedule.devices))?;
            let shared = plan.options.shared_limit.as_ref().map_or(usize::MAX, MemoryLimit::bytes);
            if bytes > shared {
                let problem = format!("its {shared} bytes are too few for one batch of {bytes}");
                return Err(Error::config("shared_limit", problem, format!("allow at least {bytes}")));
            }
        }
        plan.origin = Origin::Samples { make_source, checked: Some(source) };
        Ok(Arc::new(PinnedDataLoader::new(plan, epochs)))
    }
}

/// How long a store makes requests wait from now on, as long as somebody else has it.
fn asked_to_wait(dataset: &Arc<dyn ReadAhead>) -> AskedToWait {
    let (dataset, before) = (Arc::downgrade(dataset), dataset.asked_to_wait());
    Box::new(move || dataset.upgrade().map_or(Duration::ZERO, |dataset| dataset.asked_to_wait().saturating_sub(before)))
}
