//! Checks the options once, and makes a loader from them. A dataset that is kept on the device is read here.

use super::{
    any_dataset::AnyDataset,
    builder::PinnedDataLoaderBuilder,
    data_loader::PinnedDataLoader,
    kept::{AT_ONCE, TableRoom, read::read},
    options::Options,
    plan::{Origin, Plan},
    state::{LoaderState, SharedPosition},
};
use crate::{
    batch::{self, RowMut, Samples, Way},
    device::host_alloc,
    fault::{Error, Faults, READ_AS_ONE},
    memory::{Field, MemoryLimit, Role, check_system},
    observe::Counters,
    order::{AnySampler, Position, ReadAhead, Schedule},
};
use burn::{
    data::{dataloader::DataLoader, dataset::Dataset},
    tensor::Device,
};
use burn_augment::Augment;
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, atomic::Ordering::Relaxed},
    time::Duration,
};

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Checks the options and builds the loader. No thread is started and no slot is allocated before the first
    /// `iter()`.
    ///
    /// The dataset may have its own error type `E`, like Burn's `SqliteDataset`. Such an error is the `source` of the
    /// loader's [`Error::Failed`].
    ///
    /// The loader reads as many samples as the dataset has now. If the dataset grows later, build another loader to read the new samples.
    ///
    /// # Errors
    /// [`Error::Config`], which names the option, the problem, and what to write instead. [`Error::Panicked`], if
    /// `Collate::layout` panics.
    ///
    /// # Panics
    /// If no device is set and Burn has no backend to choose one from. If `Dataset::len` panics, or a sampler method
    /// that is called here: `check`, `len`, the size methods of a batch sampler and, with `resume`, `fingerprint`.
    pub fn build<D, E>(self, dataset: D) -> Result<Arc<PinnedDataLoader<O>>, Error>
    where
        D: Dataset<I, E> + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let dataset = AnyDataset::of(dataset);
        let Self { way, options, augment } = self;
        let mut plan = Plan::checked(options, dataset.len(), Arc::default())?;
        plan.look_at(&dataset);
        let fields = way.fields()?;
        let samples = plan.samples_of(dataset, augment);
        plan.loader(way, fields, samples)
    }

    /// Like [`build`](Self::build), but returns Burn's trait object, as Burn's own builder does. An `Arc<PinnedDataLoader<_>>` coerces to
    /// the trait object where that type is expected, but not inside a tuple or a `Vec`, or behind a reference.
    ///
    /// ```
    /// use burn::data::{dataloader::DataLoader, dataset::InMemDataset};
    /// # use burn::{prelude::*, tensor::DType};
    /// # use burn_pinned::{Field, PinnedDataLoaderBuilder, collate};
    /// use std::sync::Arc;
    ///
    /// # let squares = collate(
    /// #     [Field::new("x", DType::F32, [])],
    /// #     |x: &f32, row| Ok(row.put("x", x * x)?),
    /// #     |mut batch| Ok(batch.take::<1, Float>("x")?),
    /// # );
    /// let builder = PinnedDataLoaderBuilder::new(squares).batch_size(2); // any collate, or a batcher
    /// let loader = builder.build_dyn(InMemDataset::new(vec![1.0f32, 2.0, 3.0]))?;
    /// let tests: Vec<(&str, Arc<dyn DataLoader<_>>)> = vec![("plain", loader)];
    /// assert_eq!(tests[0].1.num_items(), 3);
    /// # Ok::<(), burn_pinned::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `build`.
    ///
    /// # Panics
    /// As `build`.
    pub fn build_dyn<D, E>(self, dataset: D) -> Result<Arc<dyn DataLoader<O>>, Error>
    where
        D: Dataset<I, E> + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(self.build(dataset)?)
    }

    /// Reads the whole dataset once into device memory, and builds a loader whose batches are gathered there. It is for
    /// data that fit in device memory. After this, no sample is read, collated or copied again.
    ///
    /// ```
    /// use burn::data::dataset::InMemDataset;
    /// use burn::{prelude::*, tensor::DType};
    /// use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
    /// # struct Squares;
    /// # impl Collate<f32> for Squares {
    /// #     type Batch = Tensor<1>;
    /// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
    /// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
    /// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
    /// # }
    ///
    /// let builder = || PinnedDataLoaderBuilder::new(Squares).batch_size(2).shuffle(42); // any Collate
    /// let dataset = || InMemDataset::new(vec![1.0f32, 2.0, 3.0]);
    /// let (kept, read) = (builder().build_kept(dataset())?, builder().build(dataset())?);
    /// for (kept, read) in kept.iter().zip(read.iter()) {
    ///     assert_eq!(kept?.into_data(), read?.into_data()); // the same batches
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The batches are the same as with [`build`](Self::build), byte for byte. State, resume, shares of processes, slices and samplers also
    /// work the same. The loader's workers read the dataset in its own order, with all options for workers. Then the dataset is dropped.
    /// `Collate::write` runs once for each sample. [`Collate::finish`](crate::Collate::finish) runs for each batch, in `next()`, even on a
    /// CPU backend.
    ///
    /// It blocks until everything is read. Call it on the training thread: on CUDA, a tensor is fastest to use on the
    /// thread that made it.
    ///
    /// Each field is one tensor with a row for each sample of the dataset. Rows of padded fields are as long as the
    /// longest one. All copies of the loader on a device share these tensors. A copy for another device copies them
    /// there at its first `iter()`. They are freed with the last copy of the loader.
    ///
    /// A sample that is skipped or replaced stays so in every epoch; it is not tried again. The quota counts in each
    /// epoch, not while the dataset is read. [`on_fault`](Self::on_fault) gets a bad sample once, while the dataset is
    /// read.
    ///
    /// # Errors
    /// [`Error::Config`], as for `build`, and
    /// - if the dataset does not fit: its size is compared with the free memory of the device, if the device reports
    ///   it;
    /// - with [`augment`](Self::augment): augmentation on the host differs in each epoch, so use `vision::device` in
    ///   `finish` instead;
    /// - with [`from_batcher`](Self::from_batcher), whose batches have no rows;
    /// - with a field whose rows vary in two dimensions, or a jagged one;
    /// - if every sample is bad.
    ///
    /// The first error in place of a batch while the dataset is read. With `BadSamples::Fail` this is the first bad
    /// sample. Everything that was read until then is freed.
    ///
    /// # Panics
    /// As `build`.
    pub fn build_kept<D, E>(self, dataset: D) -> Result<Arc<PinnedDataLoader<O>>, Error>
    where
        D: Dataset<I, E> + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let Self { way, options, augment } = self;
        if augment.is_some() {
            let problem = "`augment` changes samples on the host, anew in each epoch, but they are read only once";
            let advice = "change whole batches in `finish` (`vision::device`), or use `build`";
            return Err(Error::config("build_kept", problem, advice));
        }
        let Way::Rows(collate) = way else {
            let advice = "write a `Collate` and use `new`, or use `build`";
            return Err(Error::config("build_kept", "the batches of a batcher have no rows to keep", advice));
        };
        let dataset = AnyDataset::of(dataset);
        let mut plan = Plan::checked(options, dataset.len(), Arc::default())?;
        let fields = Way::Rows(Arc::clone(&collate)).fields()?;
        if let Some(field) = fields.iter().find(|field| !can_be_kept(field)) {
            let what = if field.varies_in_2d { "vary in two dimensions" } else { "lie end to end" };
            let problem = format!("the rows of field `{}` {what}", field.name());
            return Err(Error::config("build_kept", problem, "use `build`, or make all rows of one size"));
        }
        let (columns, fields): (Vec<_>, Vec<_>) = fields.into_iter().partition(|field| field.column.is_some());
        let mut once = plan.once(TableRoom::of(&fields, 1).bytes);
        once.look_at(&dataset);
        let samples = once.samples_of(dataset, None);
        let write = Arc::clone(&collate);
        let write = move |sample: &I, row: &mut RowMut<'_>| write.write(sample, row);
        let plain = Way::Rows(Arc::new(batch::collate(Vec::new(), write, Ok)));
        let reader = once.loader(plain, [&fields[..], &columns[..]].concat(), samples)?;
        let kept = read(&reader, fields, columns, move |raw| collate.finish(raw))?;
        drop(reader); // its threads and slots
        plan.options.ahead.clear(); // the datasets that fetch ahead may hold the dataset
        plan.counters().note(|stats| (stats.is_kept, stats.keepable) = (true, None));
        Ok(Arc::new(PinnedDataLoader::new(Origin::KeptData(kept), plan)))
    }
}

/// Samples that fill no batch cause a warning if they are at least one in this many.
const LARGE_REST: usize = 10;

/// Reports the samples that an epoch leaves out: once in the log, and in the statistics.
fn say_what_is_left_out(schedule: &Schedule, counters: &Counters) {
    let ((left_out, rest), len) = (schedule.left_out(), schedule.dataset_len);
    counters.note(|stats| stats.left_out = left_out);
    if rest > 0 && rest >= len.div_ceil(LARGE_REST) {
        counters.warn(&format!(
            "`drop_last` or `drop_uneven` leaves out {rest} of the {len} samples of the data set in each epoch, since they fill \
             no batch: use smaller batches, or fewer processes"
        ));
    } else if left_out > 0 {
        let text = format!("each epoch leaves out {left_out} of the {len} samples of the data set");
        log::info!("{text}");
        // A sampler of samples leaves out what the user said.
        if rest > 0 || matches!(schedule.sampler, AnySampler::Batches(_)) {
            counters.remark(&text);
        }
    }
}

impl Plan {
    /// Checks everything that depends on the options and on the length of the dataset.
    pub(super) fn checked(mut options: Options, dataset_len: usize, counters: Arc<Counters>) -> Result<Self, Error> {
        if dataset_len == 0 {
            return Err(Error::config("build", "the dataset has no items", "check where it reads from"));
        }
        options.check()?;
        let (sampler, batch) = options.sampler(dataset_len)?;
        let start = match &options.resume {
            Some(state) => state.at(),
            None => Position::begin(options.start_epoch.unwrap_or(0)),
        };
        let (distributed, resumed) = (options.distributed(), options.resume.as_ref().map(|_| start));
        let (drop_last, devices, counted) = (options.drop_last, options.devices(), options.policy.is_share());
        let schedule = Schedule::sequential(dataset_len, batch);
        let schedule = Schedule { sampler, drop_last, distributed, devices, resumed, counted, ..schedule };
        schedule.check()?;
        options.policy.check(schedule.items())?;
        say_what_is_left_out(&schedule, &counters);
        let fingerprints = Arc::<OnceLock<_>>::default();
        if let Some(state) = &options.resume {
            let streams = BTreeMap::new();
            state.check_against(&LoaderState::of(&schedule, &fingerprints, options.seed(), start, streams))?;
        }
        options.device.get_or_insert_default();
        let (policy, on_fault) = (options.policy, options.on_fault.clone());
        let faults = Faults { policy, on_fault, counters };
        let (standing, unread_errors) = (SharedPosition::new(start, devices), Arc::default());
        options.resume.iter().for_each(|state| standing.set_streams(&state.streams));
        Ok(Self {
            options,
            schedule,
            standing,
            fingerprints,
            faults,
            unread_errors,
            read_as_one: 1,
            stream: None,
            room: None,
            device: None,
        })
    }

    /// Checks whether the order scatters the rows of a dataset, whether they are fetched ahead, and whether some are left out.
    fn look_at<I>(&mut self, dataset: &AnyDataset<I>) {
        self.counters().leaves_out.store(dataset.filters, Relaxed);
        if let Some(rows) = &dataset.rows {
            super::scattered::check(rows, &self.schedule.sampler, self.standing.get().epoch, self.counters());
            #[cfg(feature = "remote")]
            if self.options.ahead.is_empty() && rows.fetched().is_some() {
                self.options.ahead.push((0, Arc::new(rows.clone()))); // the user has not set `reads_ahead`
            }
        }
    }

    /// The samples of the dataset.
    fn samples_of<I>(&self, dataset: AnyDataset<I>, augment: Option<Arc<dyn Augment<I>>>) -> Arc<Samples<I>> {
        Arc::new(Samples {
            many: self.options.read_many.map(|count| (count, dataset.many)),
            get: dataset.get,
            len: self.schedule.dataset_len,
            augment,
            seed: self.options.seed(),
            faults: self.faults.clone(),
        })
    }

    /// The loader that reads samples. Options that its device does not support are refused now, not at the first epoch.
    pub(super) fn loader<I: Send + 'static, O: Send + 'static>(
        mut self,
        way: Way<I, O>,
        fields: Vec<Field>,
        samples: Arc<Samples<I>>,
    ) -> Result<Arc<PinnedDataLoader<O>>, Error> {
        let is_steady = self.stream.is_none()
            && matches!(way, Way::Rows(_))
            && samples.augment.is_none()
            && fields.iter().all(can_be_kept);
        self.room = is_steady.then(|| TableRoom::of(&fields, samples.len));
        let (target, host_device) = (self.target(), self.options.host_device.clone());
        let source = way.source(fields, samples, self.schedule.max_batch_size(), host_device, target)?;
        self.options.ahead.iter().for_each(|(_, dataset)| self.counters().watch_store(asked_to_wait(dataset)));
        if self.options.require_pinned {
            host_alloc(&self.target().device, true)?;
        }
        let here = self.source_here(&*source)?;
        let limits = self.limits(&*here)?;
        if let Some(bytes) = here.slot_bytes() {
            check_system(bytes.saturating_mul(limits.slots).saturating_mul(self.schedule.devices), self.counters())?;
            let shared = self.options.shared_limit.as_ref().map_or(usize::MAX, MemoryLimit::bytes);
            if bytes > shared {
                let problem = format!("its {shared} bytes are too few for one batch of {bytes}");
                return Err(Error::config("shared_limit", problem, format!("allow at least {bytes}")));
            }
        }
        Ok(Arc::new(PinnedDataLoader::new(Origin::Samples { source, checked: Some(here) }, self)))
    }

    /// The same options, but they read each sample once, in the dataset's order. Several small batches are read as one,
    /// because each batch costs some device operations. They are read one by one if the user set a limit on the memory
    /// or the time of a batch, or an allocator.
    fn once(&self, row_bytes: usize) -> Self {
        let (asked, dataset_len) = (self.schedule.max_batch_size(), self.schedule.dataset_len);
        let options = &self.options;
        let memory = options.pinned_limit.is_some() || options.shared_limit.is_some() || options.alloc.is_some();
        let is_limited = memory || options.timeout.is_some();
        let of_batch = row_bytes.saturating_mul(asked).max(1);
        let batches = if is_limited { 1 } else { (AT_ONCE / of_batch).clamp(1, READ_AS_ONE) };
        let batches = batches.min(dataset_len.div_ceil(asked));
        let schedule = Schedule::sequential(dataset_len, asked.saturating_mul(batches));
        let mut options = self.options.clone();
        options.device = options.device.map(Device::without_autodiff);
        let standing = SharedPosition::new(Position::begin(0), 1);
        let (fingerprints, unread_errors) = (Arc::default(), Arc::default());
        Self { options, schedule, standing, fingerprints, unread_errors, read_as_one: batches, ..self.clone() }
    }
}

/// Whether the rows of a field can be gathered on the device.
fn can_be_kept(field: &Field) -> bool {
    !field.varies_in_2d && field.role != Role::Jagged
}

/// Reports how long a store makes requests wait from now on, as long as something else keeps the dataset alive.
fn asked_to_wait(dataset: &Arc<dyn ReadAhead>) -> impl Fn() -> Duration + Send + Sync + use<> {
    let (dataset, before) = (Arc::downgrade(dataset), dataset.asked_to_wait());
    move || dataset.upgrade().map_or(Duration::ZERO, |dataset| dataset.asked_to_wait().saturating_sub(before))
}
