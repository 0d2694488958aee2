//! The builder: one method for each option.

use super::{options::Options, state::LoaderState};
use crate::{
    batch::{Collate, Way},
    device::MapTensors,
    fault::{BadSamples, Error},
    memory::{HostAlloc, MemoryLimit},
    order::{Distributed, IntoOrder, ReadAhead},
};
use burn::{data::dataloader::batcher::Batcher, tensor::Device};
use burn_augment::Augment;
use std::{sync::Arc, time::Duration};

/// Builds a [`PinnedDataLoader`](crate::PinnedDataLoader). Each method sets one option. Options that mean the same as in Burn's
/// `DataLoaderBuilder` have the same name.
///
/// A wrong option is an [`Error::Config`] of [`build`](Self::build). It names the option, the problem, and what to write instead.
/// [`stats`](crate::PinnedDataLoader::stats) shows what the loader did.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn::{prelude::*, tensor::DType};
/// use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
///
/// struct Squares;
/// impl Collate<f32> for Squares {
///     type Batch = Tensor<1>;
///     fn layout(&self) -> Vec<Field> {
///         vec![Field::new("x", DType::F32, [])]
///     }
///     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> {
///         Ok(row.put("x", x * x)?)
///     }
///     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> {
///         Ok(batch.take("x")?)
///     }
/// }
///
/// let dataset = InMemDataset::new(vec![1.0f32, 2.0, 3.0]);
/// let loader = PinnedDataLoaderBuilder::new(Squares).batch_size(2).num_workers(2).build(dataset)?;
/// let batches: Vec<_> = loader.iter().map(|batch| batch.unwrap().to_data().try_to_vec::<f32>().unwrap()).collect();
/// assert_eq!(batches, [vec![1.0, 4.0], vec![9.0]]);
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// # Options by subject
///
/// | subject | options |
/// | --- | --- |
/// | batches | [`new`](Self::new), [`from_batcher`](Self::from_batcher), [`batch_size`](Self::batch_size), [`drop_last`](Self::drop_last) |
/// | order | [`shuffle`](Self::shuffle), [`order`](Self::order), [`steps_per_epoch`](Self::steps_per_epoch), [`start_epoch`](Self::start_epoch), [`resume`](Self::resume) |
/// | random changes | [`augment`](Self::augment), [`seed`](Self::seed) |
/// | processes and devices | [`distributed`](Self::distributed), [`devices`](Self::devices), [`set_device`](Self::set_device), [`host_device`](Self::host_device) |
/// | threads | [`num_workers`](Self::num_workers), [`prefetch`](Self::prefetch), [`transfer_threads`](Self::transfer_threads) |
/// | reading | [`read_many`](Self::read_many), [`reads_ahead`](Self::reads_ahead), [`reads_ahead_at`](Self::reads_ahead_at) |
/// | memory | [`pinned_limit`](Self::pinned_limit), [`shared_limit`](Self::shared_limit), [`require_pinned`](Self::require_pinned), [`allocator`](Self::allocator) |
/// | errors | [`bad_samples`](Self::bad_samples), [`on_fault`](Self::on_fault), [`timeout`](Self::timeout) |
/// | the loader | [`build`](Self::build), [`build_dyn`](Self::build_dyn), [`build_kept`](Self::build_kept) |
///
/// Only [`batch_size`](Self::batch_size) has no default. Whether workers or the device decode images is an option of the image
/// field, not of the builder: see [`Field::image`](crate::Field::image).
///
/// Each copy of a loader (`to_device`, `slice`, and so the one that `SupervisedTraining` makes) has threads and slots of its own, from
/// its first `iter()` on.
#[derive(derive_more::Debug)]
#[debug("PinnedDataLoaderBuilder {{ options: {options:?}, .. }}")]
#[must_use = "nothing happens before `build`"]
pub struct PinnedDataLoaderBuilder<I, O> {
    pub(crate) way: Way<I, O>,
    pub(crate) options: Options,
    pub(crate) augment: Option<Arc<dyn Augment<I>>>,
}

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Makes batches with a [`Collate`]: workers write each sample into its row, in the memory that crosses the link.
    /// [`collate`](crate::collate) makes one from closures.
    pub fn new<C: Collate<I, Batch = O>>(collate: C) -> Self {
        Self { way: Way::Rows(Arc::new(collate)), options: Options::default(), augment: None }
    }

    /// Makes batches with an ordinary Burn `Batcher`, unchanged. [`map_tensors!`](crate::map_tensors) names the tensors of its batch.
    ///
    /// The batcher runs on the workers. It uses the loader's device if that is a CPU backend, otherwise
    /// [`host_device`](Self::host_device). The loader then copies the tensors to page-locked memory and to the device. That is one copy
    /// more than with a [`Collate`], and the values cross the link in the batcher's dtype.
    pub fn from_batcher<B>(batcher: B) -> Self
    where
        B: Batcher<I, O> + 'static,
        O: MapTensors,
    {
        Self {
            way: Way::Items(Arc::new(batcher), |batch, mut visit| batch.map_tensors(&mut visit)),
            options: Options::default(),
            augment: None,
        }
    }

    /// The number of samples per batch, at least 1. The last batch of an epoch may have fewer. It must be set, except with a
    /// [`BatchSampler`](crate::order::BatchSampler), where setting it is an error.
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.options.batch_size = Some(batch_size);
        self
    }

    /// Shuffles globally, in a new order each epoch, with a [`RandomSampler`](crate::order::RandomSampler) of this seed. Default: the
    /// dataset's order.
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.options.shuffle = Some(seed);
        self
    }

    /// Orders epochs by a [`Sampler`](crate::order::Sampler) or a [`BatchSampler`](crate::order::BatchSampler) instead of
    /// [`shuffle`](Self::shuffle). Setting both is an error. Default: the dataset's order.
    ///
    /// A batch sampler also decides which samples share a batch: it replaces [`batch_size`](Self::batch_size) and
    /// [`drop_last`](Self::drop_last), and setting one of these too is an error.
    pub fn order<Kind: ?Sized>(mut self, order: impl IntoOrder<Kind>) -> Self {
        self.options.order = Some(order.into_order());
        self
    }

    /// Makes every epoch exactly `steps` batches, at least 1, of one order that continues: an epoch begins where the one before ended, and
    /// the passes over the dataset follow each other. Default: an epoch is one pass.
    ///
    /// ```
    /// use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
    /// use burn_pinned::{Field, PinnedDataLoaderBuilder, collate};
    ///
    /// let numbers = collate(
    ///     [Field::new("n", DType::I32, [])],
    ///     |n: &i32, row| Ok(row.put("n", *n)?),
    ///     |mut batch| Ok(batch.take::<1, Int>("n")?.into_data().try_to_vec::<i32>()?),
    /// );
    /// let builder = PinnedDataLoaderBuilder::new(numbers).batch_size(2).steps_per_epoch(2);
    /// let loader = builder.build(InMemDataset::new(vec![0, 1, 2, 3, 4, 5]))?;
    /// let epoch = || loader.iter().collect::<Result<Vec<_>, _>>();
    /// assert_eq!([epoch()?, epoch()?], [[[0, 1], [2, 3]], [[4, 5], [0, 1]]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It is for trainings that count steps. With Burn's learner, whose checkpoints and validations come at the ends of epochs, a training
    /// that was killed loses at most `steps` steps. The number is that of each process and of each [device](Self::devices). No batch is
    /// short, because batches continue across the ends of passes, except with a [`BatchSampler`](crate::order::BatchSampler), whose
    /// batches are unchanged. To begin an epoch, the pass that it begins in is planned, and with a batch sampler in a new process also the
    /// passes before it, to count their batches.
    ///
    /// It works with every sampler, and with [`distributed`](Self::distributed) and [`devices`](Self::devices). To
    /// [`resume`](Self::resume), the product of steps, processes and devices must be the same. A slice of such a loader that is not for a
    /// device is an error, because its samples would differ from epoch to epoch. `build` fails if `steps` is 0.
    pub fn steps_per_epoch(mut self, steps: usize) -> Self {
        self.options.steps = Some(steps);
        self
    }

    /// Delivers only the share of one process among several, with any sampler. Default: everything. With
    /// [`drop_uneven`](Distributed::drop_uneven), fewer samples than processes are an error.
    pub fn distributed(mut self, share: Distributed) -> Self {
        self.options.distributed = Some(share);
        self
    }

    /// The number of devices, from 1 to 1024, for which Burn will cut the loader, as `ExecutionStrategy::multi` and `ddp` do.
    /// Default: 1.
    ///
    /// Each device then gets an equal share of every epoch, with the same number of batches: `docs/processes.md` has the rules.
    /// `num_items()` is the sum for all devices. They share one [`state`](crate::PinnedDataLoader::state): take it when all have done
    /// the same number of steps. [`num_workers`](Self::num_workers) and [`pinned_limit`](Self::pinned_limit) are divided among them. An
    /// epoch that has no batch for each device is an error.
    ///
    /// Set it if Burn trains on several devices. Without it, Burn's slices follow each other in the order and may have different
    /// numbers of batches. Devices that train together then wait for each other forever, and the loader warns of that.
    pub fn devices(mut self, devices: usize) -> Self {
        self.options.devices = Some(devices);
        self
    }

    /// The number of the first epoch, on which order and augmentation depend. Default: 0.
    ///
    /// A training that continues after Burn's checkpoint of epoch `n` starts at `n`, because Burn counts from 1. With
    /// [`resume`](Self::resume) the state contains the epoch, so a number above 0 is an error.
    pub fn start_epoch(mut self, epoch: usize) -> Self {
        self.options.start_epoch = Some(epoch);
        self
    }

    /// Continues where another loader stood when its [`state`](crate::PinnedDataLoader::state) was taken. The first `iter()` returns
    /// exactly the batches of that epoch that the other loader had not returned, byte for byte. Default: the loader starts a new epoch.
    ///
    /// The number of workers, the device, [`devices`](Self::devices) and the number of processes may differ. Dataset, sampler, batch
    /// size, `drop_last` and seed must be the same. If the length of the dataset or one of the others differs, the error names it.
    pub fn resume(mut self, state: LoaderState) -> Self {
        self.options.resume = Some(state);
        self
    }

    /// The seed of [`augment`](Self::augment) and of [`RawBatch::rng`](crate::RawBatch::rng). Default: the seed of `shuffle`, else 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Changes each sample at random, on the workers. The changes depend on the seed, the epoch and the index of the sample, and are
    /// the same for any number of workers. A second call adds to the first. Default: none.
    ///
    /// A closure must name the types of its parameters: `|sample: Sample, rng: &mut KeyedRng| Ok(sample)`. [`build_kept`](Self::build_kept)
    /// reads samples only once, so `augment` is an error there.
    pub fn augment(mut self, augment: impl Augment<I>) -> Self {
        self.augment = Some(match self.augment.take() {
            None => Arc::new(augment),
            Some(first) => Arc::new(first.then(augment)),
        });
        self
    }

    /// The number of threads that read and write samples, from 1 to 1024. Each copy of the loader (`to_device`, `slice`) has this
    /// number. [`devices`](Self::devices) share it: each gets an equal part, but at least one.
    ///
    /// By default the loader chooses the number, and changes it while it runs. The batches do not depend on it.
    ///
    /// | threads of the CPU | fewer than 8 | 8 or more |
    /// | --- | --- | --- |
    /// | workers at first | all | half; all but one with image fields |
    /// | at most, if they compute | all | all but one, which is for the training |
    /// | at most, if they sleep while they read | four times as many, and at least 16 | four times as many |
    ///
    /// - The loader looks at windows of half a second or longer. If the step waits for more than 1 % of a window and the workers are
    ///   busy, their number doubles.
    /// - Workers that wait for slow storage sleep and need no core. The loader knows this on Linux, where reads take 1 ms or longer.
    /// - If a doubling gains less than 2 %, the new workers end. The loader tries again after 30 s at the earliest.
    /// - Waits for space on the device, and for the first batch of an epoch, do not count.
    /// - Each change goes to the log, at level info.
    ///
    /// Of several processes on a host, each counts only its part of the threads: see
    /// [`Distributed::with_local_world`](crate::Distributed::with_local_world). With [`devices`](Self::devices), each device counts its
    /// part of those.
    ///
    /// Set a number if the [`verdict`](crate::Stats::verdict) names one, or if other programs need the cores. The program
    /// `doctor` of burn-pinned-tools says how many are enough.
    ///
    /// On CUDA under Linux, workers lower their own priority (nice 10). Threads that your code starts on a worker inherit this
    /// priority.
    pub fn num_workers(mut self, num_workers: usize) -> Self {
        self.options.workers = Some(num_workers);
        self
    }

    /// Lets workers read `samples` samples at once, from 1 to 1024, with [`Dataset::get_many`](burn::data::dataset::Dataset::get_many).
    /// Default: one by one.
    ///
    /// Use it for datasets where one request costs as much as many, such as Burn's `SqliteDataset` or servers. Each worker then has
    /// this number of samples in memory at once. If `get_many` fails, panics or gives another number of samples, the samples are read
    /// one by one, so errors still name their sample. A filter of [`DatasetExt`](crate::DatasetExt) costs no further reads. A [`timeout`](Self::timeout) names the first sample of the group.
    pub fn read_many(mut self, samples: usize) -> Self {
        self.options.read_many = Some(samples);
        self
    }

    /// Tells a dataset the order of each epoch, so that it can fetch samples before workers read them. Each epoch is then planned
    /// twice.
    ///
    /// `data::Rows` on a store behind a network get the order without this option if they are the loader's dataset themselves, or behind
    /// `map` and `filter` of [`DatasetExt`](crate::DatasetExt). Set it for rows inside another dataset.
    pub fn reads_ahead<R: ReadAhead + Clone + 'static>(self, dataset: &R) -> Self {
        self.reads_ahead_at(0, dataset)
    }

    /// Like [`reads_ahead`](Self::reads_ahead), for a dataset whose samples are only a part of the loader's, as in Burn's
    /// `ComposedDataset`. `offset` is the index of its first sample.
    pub fn reads_ahead_at<R: ReadAhead + Clone + 'static>(mut self, offset: usize, dataset: &R) -> Self {
        self.options.ahead.push((offset, Arc::new(dataset.clone())));
        self
    }

    /// The number of batches that are ready ahead of the step, on each device, from 1 to 1024. Default: 2.
    ///
    /// Raise it if steps take very different times, or if some samples are slow. More batches need more slots and, on CUDA, more device
    /// memory: `docs/memory.md` says how much.
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.options.prefetch = Some(prefetch);
        self
    }

    /// The number of threads that copy to each device, from 1 to 1024. On CUDA each has its own copy stream. Default: 3, which keeps
    /// the link busy. A CPU backend has no such threads.
    pub fn transfer_threads(mut self, transfers: usize) -> Self {
        self.options.transfers = Some(transfers);
        self
    }

    /// A hard limit on the bytes of all slots, which are page-locked on CUDA. With [`devices`](Self::devices) it is for all devices
    /// together, and each gets an equal part. Otherwise it is for this loader, and again for each copy by `to_device` or `slice`:
    /// [`shared_limit`](Self::shared_limit) is one for all. `docs/memory.md` lists the memory that is not in slots.
    ///
    /// By default each device or copy has enough memory for these slots, but not for more than an epoch has batches:
    ///
    /// | batches | slots |
    /// | --- | --- |
    /// | on a CPU backend, or of a batcher | `prefetch + 2` |
    /// | on an accelerator | up to 16 that take up to 16 MiB together, and at least `prefetch + 2` |
    /// | with image fields, on an accelerator | up to 12 that take up to 512 MiB together, and at least as above |
    /// | larger ones without image fields, with several devices or processes on the host | two or three instead of four, if the slots of all devices then fit in half of the CPU's last cache; one more for each batch of `prefetch` above 2 |
    ///
    /// With a limit of your own, there are as many slots as it allows, up to the numbers in the first three rows. Set one if the
    /// process may lock less memory. A limit below one batch is an error of `build`, or of a batcher's batch ([`Error::OverLimit`]). So
    /// is a number of slots that the control group of the process can never hold.
    pub fn pinned_limit(mut self, bytes: usize) -> Self {
        self.options.pinned_limit = Some(bytes);
        self
    }

    /// A limit on slot memory that several loaders share, in addition to [`pinned_limit`](Self::pinned_limit). Default: none.
    ///
    /// A limit below one batch is an error. A loader that gets no memory returns [`Error::OutOfHostMemory`] in place of its batches.
    pub fn shared_limit(mut self, limit: &MemoryLimit) -> Self {
        self.options.shared_limit = Some(limit.clone());
        self
    }

    /// Whether to fail if there is no page-locked memory, instead of a warning and ordinary memory. Default: no.
    ///
    /// `build` checks this. Memory that is refused later is an [`Error::OutOfHostMemory`]. Setting it is an error
    /// with [`allocator`](Self::allocator), on a CPU backend, and without CUDA.
    pub fn require_pinned(mut self, require: bool) -> Self {
        self.options.require_pinned = require;
        self
    }

    /// How long `next()` may wait for a batch. After that it returns an [`Error::Timeout`], and the epoch ends:
    /// `docs/troubleshooting.md` says what happens then. Default: no limit. Zero is an error.
    ///
    /// It covers what the loader's threads run. It covers neither [`Collate::finish`] on an accelerator, which runs after the wait, on
    /// the thread that calls `next()`, nor the planning of the epoch in `iter()`. A loader that is dropped waits this long for a call
    /// that is running, and then leaves its thread.
    ///
    /// Choose a time that is much longer than the slowest sample takes. The loader cannot end a call that hangs. Its thread and the
    /// memory of its batch remain until it returns.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// What to do about a sample that fails to load: fail, skip it up to a quota, or replace it. Default: [`BadSamples::Fail`], an
    /// error in place of the batch. These are errors: a share outside of 0 to 1, a share of an endless epoch, and 0 tries.
    pub fn bad_samples(mut self, policy: BadSamples) -> Self {
        self.options.policy = policy;
        self
    }

    /// Sets a function that is called with every error: of each bad sample, also if it is skipped or replaced, and of whatever else
    /// makes a batch fail. Default: none.
    ///
    /// It runs on the thread that met the error, usually a worker, before the batch reaches the loop. It may run for several errors at
    /// once. That thread does nothing else meanwhile. A panic in it is logged and changes nothing. A bad sample is reported again in
    /// each epoch: `docs/troubleshooting.md` shows how to name each one once.
    ///
    /// Under [`BadSamples::Fail`], workers leave the rest of a bad batch, so not all of its errors are met.
    pub fn on_fault(mut self, on_fault: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.options.on_fault = Some(Arc::new(on_fault));
        self
    }

    /// Whether to leave out a last batch that is not full. Default: no. An epoch that then has no batch is an error. So is
    /// setting it with a [`BatchSampler`](crate::order::BatchSampler).
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.options.drop_last = drop_last;
        self
    }

    /// Where slots get their memory. Default: page-locked memory on CUDA, otherwise ordinary memory. It cannot be used with
    /// [`require_pinned`](Self::require_pinned).
    pub fn allocator(mut self, alloc: impl HostAlloc + 'static) -> Self {
        self.options.alloc = Some(Arc::new(alloc));
        self
    }

    /// The device that batches go to. Default: Burn's default device. Autodiff makes no difference, because batches are constants.
    /// `SupervisedTraining` moves the loader to its own device.
    pub fn set_device(mut self, device: Device) -> Self {
        self.options.device = Some(device);
        self
    }

    /// The CPU device on which a batcher runs if the loader's device is an accelerator. Default with the feature `cuda`: Flex. Without
    /// that feature, it must be set for an accelerator. A device that is no CPU is an error, and so is this option with
    /// [`new`](Self::new).
    pub fn host_device(mut self, device: Device) -> Self {
        self.options.host_device = Some(device);
        self
    }
}
