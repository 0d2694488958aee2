//! Checks the options once, reads the data set to the device, and makes a loader of it.

use super::{
    AT_ONCE, Finish, Kept, OfAll, Places,
    read::{Reading, read},
    room::Room,
};
use crate::{
    batch::{Collate, RawBatch, RowMut},
    fault::{BoxError, Error, READ_AS_ONE, guard},
    loader::{
        build::Checked,
        builder::PinnedDataLoaderBuilder,
        data_loader::PinnedDataLoader,
        make::SourceParts,
        options::Options,
        plan::{MakeSource, Origin},
        state::{Epochs, Fingerprints},
    },
    memory::Field,
    observe::OnDevice,
    order::{Distributed, Position, Sampling, Schedule, SequentialSampler},
    vocabulary::{BatchKey, Place, Stage},
};
use burn::{data::dataset::Dataset, tensor::Device};
use std::sync::{Arc, OnceLock};

/// Returns what makes the source of the tensors that are kept.
type Read<I> = Box<dyn FnOnce(SourceParts<I>) -> Result<MakeSource<RawBatch>, Error>>;

/// The two halves of a collate: what a data set is read with, and what makes batches of what is kept.
pub(crate) struct Keep<I, O> {
    /// Asks for the layout, and returns it.
    pub(crate) read: Box<dyn FnOnce() -> (Vec<Field>, Read<I>)>,
    pub(crate) finish: Finish<O>,
}

/// A collate whose batches are their plain tensors.
pub(crate) struct Plain<C> {
    pub(crate) collate: Arc<C>,
    pub(crate) layout: Vec<Field>,
}

impl<I, C: Collate<I>> Collate<I> for Plain<C> {
    type Batch = RawBatch;

    fn layout(&self) -> Vec<Field> {
        self.layout.clone()
    }

    fn write(&self, sample: &I, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        self.collate.write(sample, row)
    }

    fn finish(&self, batch: RawBatch) -> Result<RawBatch, BoxError> {
        Ok(batch)
    }
}

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Reads the whole dataset once, into the memory of the device, and builds a loader whose batches are gathered
    /// there. It is for data that fit: from then on no sample is read, collated or copied.
    ///
    /// ```
    /// use burn::data::{dataloader::DataLoader, dataset::InMemDataset};
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
    /// The batches are those of [`build`](Self::build), byte for byte, and so are state, resume, shares, slices and
    /// samplers. The dataset is read in its own order by the loader's workers, with all options for them, and is
    /// dropped then. `Collate::write` runs once for each sample, and [`Collate::finish`] for each batch, in `next()`,
    /// also on a CPU backend.
    ///
    /// It blocks until all is read. Call it on the thread that trains: on CUDA a tensor is used fastest by the thread
    /// that made it.
    ///
    /// Each field is one tensor of as many rows as the dataset has. Rows of padded fields are as long as the longest
    /// one. All copies of the loader on a device share these tensors. A copy for another device makes them there at its
    /// first `iter()`, from those of this device. They are freed with the last copy.
    ///
    /// A sample that is skipped or replaced is so in every epoch, without being tried again. The quota counts in each
    /// epoch, not while the dataset is read. [`on_fault`](Self::on_fault) sees a bad sample once, while it is read.
    ///
    /// # Errors
    /// [`Error::Config`], as by `build`, and
    /// - if the dataset does not fit: the bytes are compared with what the device has free, where it tells that;
    /// - with [`augment`](Self::augment): changes on the host are other ones in each epoch, so use those for the device
    ///   (`vision::device`) in `finish`;
    /// - with [`from_batcher`](Self::from_batcher): its batches have no rows;
    /// - if every sample is bad.
    ///
    /// The first error in place of a batch while the dataset is read. Under `BadSamples::Fail` this is the first bad
    /// sample. What was kept by then is freed.
    ///
    /// # Panics
    /// As `build`.
    pub fn build_kept<D, E>(self, dataset: D) -> Result<Arc<PinnedDataLoader<O>>, Error>
    where
        D: Dataset<I, E> + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let Self { keep, options, augment, .. } = self;
        if augment.is_some() {
            let problem = "`augment` changes samples on the host, anew in each epoch, but they are read only once";
            let advice = "change whole batches in `finish` (`vision::device`), or use `build`";
            return Err(Error::config("build_kept", problem, advice));
        }
        let Some(Keep { read: lay_out, finish }) = keep else {
            let advice = "write a `Collate` and use `new`, or use `build`";
            return Err(Error::config("build_kept", "the batches of a batcher have no rows to keep", advice));
        };
        let dataset = Arc::new(dataset);
        let mut checked = Checked::new(options, dataset.len(), Arc::default())?;
        let (fields, make) = guard(Place::batch(Stage::Collate, BatchKey::NONE), || Ok(lay_out()))?;
        let mut once = checked.once(Room::of(&fields, 1).bytes);
        once.look_at::<I>(&*dataset);
        let make_source = make(once.parts(dataset, None))?;
        let reader = once.loader(make_source)?;
        let Reading { tables, fates, lengths } = read(&reader, &fields)?;
        drop(reader); // its threads and slots
        checked.options.ahead.clear(); // they may hold the dataset
        checked.faults.counters.set_kept();
        let tables = Arc::new(tables);
        let watched: Arc<dyn OnDevice> = Arc::clone(&tables) as _;
        checked.faults.counters.watch_device(Arc::downgrade(&watched));
        let of_all = OfAll {
            fields,
            finish,
            fates,
            lengths,
            len: checked.schedule.dataset_len,
            seed: checked.options.seed(),
            faults: checked.faults.clone(),
            places: Places::new(&tables),
        };
        let epochs = Epochs::new(checked.start.epoch);
        let kept = Kept { of_all: Arc::new(of_all), tables, here: OnceLock::new() };
        Ok(Arc::new(PinnedDataLoader::new(checked.plan(Origin::Kept(kept)), epochs)))
    }
}

impl Checked {
    /// The same options, for reading each sample once, in the dataset's order. Several small batches are read as one, as
    /// each costs some operations of the device. They are not if a limit was set for the memory or the time of a batch,
    /// or if the memory is the user's.
    fn once(&self, row_bytes: usize) -> Self {
        let (asked, dataset_len) = (self.schedule.max_batch_size(), self.schedule.dataset_len);
        let options = &self.options;
        let memory = options.pinned_limit.is_some() || options.shared_limit.is_some() || options.alloc.is_some();
        let is_limited = memory || options.timeout.is_some();
        let of_batch = row_bytes.saturating_mul(asked).max(1);
        let batches = if is_limited { 1 } else { (AT_ONCE / of_batch).clamp(1, READ_AS_ONE) };
        let batches = batches.min(dataset_len.div_ceil(asked));
        let batch_size = asked.saturating_mul(batches);
        let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size, drop_last: false };
        let distributed = Distributed::alone();
        let schedule = Schedule { sampling, dataset_len, distributed, slice: None, devices: 1, resumed: None };
        let mut options = Options { read_as_one: batches, ..self.options.clone() };
        options.device = options.device.map(Device::without_autodiff);
        let (start, fingerprints, len) = (Position::begin(0), Fingerprints::default(), None);
        Self { options, schedule, start, fingerprints, len, faults: self.faults.clone() }
    }
}
