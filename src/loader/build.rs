//! Checks the options once, and makes a loader of them.

use super::{
    builder::{PinnedDataLoaderBuilder, SourceParts},
    data_loader::PinnedDataLoader,
    plan::Plan,
    state::{Epochs, SharedPosition},
};
use crate::{
    batch::{Many, Samples},
    device::alloc_for,
    fault::{Error, Faults},
    memory::{MemoryLimit, check_system},
    observe::Counters,
    order::{Position, Schedule},
};
use burn::data::dataset::Dataset;
use std::sync::Arc;

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Checks the options and builds the loader. No thread is started and no slot is allocated before the first
    /// `iter()`.
    ///
    /// The dataset may have errors of its own type `E`, as Burn's `SqliteDataset` has. Such an error is the `source` of
    /// the loader's [`Error::Failed`].
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
        let dataset_len = dataset.len();
        if dataset_len == 0 {
            return Err(Error::config("build", "the dataset has no items", "check where it reads from"));
        }
        let Self { make, mut options, augment } = self;
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
        let counters = Arc::<Counters>::default();
        #[cfg(feature = "data")]
        if let Some(rows) = super::scattered::rows::<I>(&*dataset) {
            super::scattered::check(rows, &schedule.sampling, start.epoch, &counters);
            #[cfg(feature = "remote")]
            options.reads_ahead(rows);
        }
        let (policy, on_fault) = (options.policy, options.on_fault.clone());
        let faults = Faults { policy, on_fault, counters: Arc::clone(&counters) };
        let samples = Arc::new(Samples {
            many: options.read_many.map(|count| {
                let dataset = Arc::clone(&dataset);
                Many { count, get: Arc::new(move |indices| Ok(dataset.get_many(indices)?)) }
            }),
            get: Arc::new(move |index| Ok(dataset.get(index)?)),
            len: dataset_len,
            augment,
            seed: options.seed(),
            counters: Arc::clone(&counters),
            faults: faults.clone(),
        });
        let (batch_size, host_device) = (schedule.max_batch_size(), options.host_device.clone());
        let make_source = make(SourceParts { samples, batch_size, host_device })?;
        options.device.get_or_insert_default();
        let mut plan = Plan {
            make_source,
            checked: None,
            options,
            schedule,
            standing: SharedPosition::new(start, devices),
            faults,
            counters,
            device: None,
        };
        if let Some(state) = &plan.options.resume {
            state.fits(&plan.state(start))?;
        }
        // What can be refused for this device is refused now rather than at the first epoch.
        let target = plan.target();
        if plan.options.require_pinned {
            alloc_for(&target, true)?;
        }
        let source = (plan.make_source)(target)?;
        let limits = plan.limits(&*source)?;
        if let Some(bytes) = source.slot_bytes() {
            check_system(bytes.saturating_mul(limits.slots).saturating_mul(plan.schedule.devices))?;
            let shared = plan.options.shared_limit.as_ref().map_or(usize::MAX, MemoryLimit::bytes);
            if bytes > shared {
                let problem = format!("{shared} bytes are less than one batch of {bytes}");
                return Err(Error::config("shared_limit", problem, format!("allow at least {bytes}")));
            }
        }
        plan.checked = Some(source);
        Ok(Arc::new(PinnedDataLoader::new(plan, Epochs::new(start.epoch))))
    }
}
