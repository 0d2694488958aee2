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

/// Builds a [`PinnedDataLoader`](crate::PinnedDataLoader). The options have the names of Burn's `DataLoaderBuilder`
/// where they mean the same.
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
#[derive(derive_more::Debug)]
#[debug("PinnedDataLoaderBuilder {{ options: {options:?}, .. }}")]
#[must_use = "nothing happens before `build`"]
pub struct PinnedDataLoaderBuilder<I, O> {
    pub(crate) way: Way<I, O>,
    pub(crate) options: Options,
    pub(crate) augment: Option<Arc<dyn Augment<I>>>,
}

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// A loader whose batches are made by a [`Collate`], row by row, in the memory that crosses the link.
    pub fn new<C: Collate<I, Batch = O>>(collate: C) -> Self {
        Self { way: Way::Rows(Arc::new(collate)), options: Options::default(), augment: None }
    }

    /// A loader whose batches are made by an ordinary Burn `Batcher`, unchanged. The batcher runs on the workers. It
    /// uses the loader's device if that is a CPU backend. Otherwise it uses [`host_device`](Self::host_device), and the
    /// tensors of its batches are then copied to page-locked memory and to the device. That is one copy more than with
    /// a [`Collate`], and the values cross the link in the batcher's dtype.
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

    /// Samples per batch; the last batch of an epoch may have fewer. Must be set.
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.options.batch_size = Some(batch_size);
        self
    }

    /// Shuffles globally, in a new order each epoch, with a [`RandomSampler`](crate::order::RandomSampler) of this
    /// seed. Default: the dataset's order.
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.options.shuffle = Some(seed);
        self
    }

    /// Orders epochs by a [`Sampler`](crate::order::Sampler) or a [`BatchSampler`](crate::order::BatchSampler) instead
    /// of [`shuffle`](Self::shuffle). A batch sampler also decides which samples share a batch: it replaces
    /// [`batch_size`](Self::batch_size) and [`drop_last`](Self::drop_last).
    pub fn order<Kind: ?Sized>(mut self, order: impl IntoOrder<Kind>) -> Self {
        self.options.order = Some(order.into_order());
        self
    }

    /// Delivers only the share of one process among several, whatever order the sampler makes. Default: everything.
    pub fn distributed(mut self, share: Distributed) -> Self {
        self.options.distributed = Some(share);
        self
    }

    /// The number of devices that Burn is going to cut the loader for, as `ExecutionStrategy::multi` and `ddp` do.
    /// Default: 1.
    ///
    /// Each device then has an equal share of every epoch, as each process has with
    /// [`Distributed`](crate::Distributed): the batches that the devices have at the same time are together what one
    /// device with a batch that many times as large would have. All have the same number of batches; where an epoch does
    /// not divide evenly, its first samples come once more at its end. `num_items()` is the sum for all devices. The
    /// devices share one [`state`](crate::PinnedDataLoader::state): take it when all have done the same number of steps.
    /// The workers and [`pinned_limit`](Self::pinned_limit) are divided among them.
    ///
    /// Without it Burn's slices follow each other in the order, and may have different numbers of batches. Devices that
    /// train together then wait for each other for ever; the loader warns of that.
    pub fn devices(mut self, devices: usize) -> Self {
        self.options.devices = Some(devices);
        self
    }

    /// The number of the first epoch. Order and augmentation depend on it. A training that goes on after Burn's
    /// checkpoint of epoch `n` starts at `n`, because Burn counts from 1. Default: 0. With [`resume`](Self::resume) the state
    /// knows the epoch, so leave this at 0.
    pub fn start_epoch(mut self, epoch: usize) -> Self {
        self.options.start_epoch = Some(epoch);
        self
    }

    /// Goes on where another loader stood when its [`state`](crate::PinnedDataLoader::state) was taken. The first
    /// `iter()` returns exactly the batches of that epoch that the other loader had not returned, byte for byte. The
    /// number of workers, the device and the world of [`distributed`](Self::distributed) may have changed. Dataset,
    /// sampler, batch size, `drop_last` and seed must be the same.
    pub fn resume(mut self, state: LoaderState) -> Self {
        self.options.resume = Some(state);
        self
    }

    /// The seed of [`augment`](Self::augment) and of [`RawBatch::rng`](crate::RawBatch::rng). Default: that of
    /// `shuffle`, else 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Changes each sample at random, on the workers. The changes are the same for any number of workers. A second call
    /// adds to the first. A closure must name the types of its parameters: `|sample: Sample, rng: &mut KeyedRng| ..`.
    pub fn augment(mut self, augment: impl Augment<I>) -> Self {
        self.augment = Some(match self.augment.take() {
            None => Arc::new(augment),
            Some(first) => Arc::new(first.then(augment)),
        });
        self
    }

    /// The number of threads that read and write samples, for each copy of the loader (`to_device`, `slice`). Those for
    /// [`devices`](Self::devices) share it: each has an equal part, but at least one.
    ///
    /// By default it is half of the CPU's threads, all of them below eight, and all but one for fields of images. While the
    /// training waits for more than 1 % of its time and the workers are busy, the number doubles, up to all threads but
    /// one, or where the workers sleep while they read up to four times the threads, and 16 at least. A doubling that
    /// gains less than 2 % is taken back, and nothing is tried for 30 s. Each change goes to the log (level info). Of several
    /// processes on a host, each takes its part of the threads: see
    /// [`Distributed::with_local_world`](crate::Distributed::with_local_world).
    ///
    /// On CUDA under Linux, workers lower their own priority (nice 10). Threads that your code starts on a worker inherit
    /// this priority.
    pub fn num_workers(mut self, num_workers: usize) -> Self {
        self.options.workers = Some(num_workers);
        self
    }

    /// Lets workers read `samples` samples at once, by [`Dataset::get_many`](burn::data::dataset::Dataset::get_many).
    /// Default: one by one.
    ///
    /// It helps datasets for which one question costs as much as many: Burn's `SqliteDataset`, servers. A worker then
    /// has this number of samples in memory at once, and a batch is cut into tasks of this number of samples. Where
    /// `get_many` fails, panics or gives another number of samples, they are read one by one, so that errors still name
    /// their sample. A [`timeout`](Self::timeout) names the first sample of the group.
    pub fn read_many(mut self, samples: usize) -> Self {
        self.options.read_many = Some(samples);
        self
    }

    /// Tells a dataset the order of each epoch, so that it can fetch samples before workers read them.
    ///
    /// `data::Rows` on a store behind a network are told without it, if they are the loader's dataset as they are. It is for
    /// rows inside another dataset, for example a mapped one. Each epoch is then planned twice.
    pub fn reads_ahead<R: ReadAhead + Clone + 'static>(self, dataset: &R) -> Self {
        self.reads_ahead_at(0, dataset)
    }

    /// As [`reads_ahead`](Self::reads_ahead), for a dataset whose samples are a part of the loader's, as Burn's
    /// `ComposedDataset` makes it. `offset` is the index of its first sample.
    pub fn reads_ahead_at<R: ReadAhead + Clone + 'static>(mut self, offset: usize, dataset: &R) -> Self {
        self.options.ahead.push((offset, Arc::new(dataset.clone())));
        self
    }

    /// The number of batches ready ahead of the step, on each device. Default: 2.
    ///
    /// On CUDA an epoch in progress takes the device memory of `prefetch + 3` batches: `prefetch` are ready, two are on
    /// their way (or ready too), and one is in the step. It takes more if the loop keeps batches, or if steps take less
    /// than about 10 ms.
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.options.prefetch = Some(prefetch);
        self
    }

    /// The number of threads that copy to the device, for each device. On CUDA each has a copy stream of its own.
    /// Default: 3. A CPU backend has no such threads.
    pub fn transfer_threads(mut self, transfers: usize) -> Self {
        self.options.transfers = Some(transfers);
        self
    }

    /// The most bytes of page-locked memory. With [`devices`](Self::devices) it is for all devices together, and each has
    /// an equal part. Otherwise it is for this loader, and again for each copy by `to_device` or `slice`.
    /// [`shared_limit`](Self::shared_limit) is one for all.
    ///
    /// The default is, for each device or copy, `prefetch + 2` batches, or up to 16 batches that take 16 MiB together, or
    /// with images up to 12 that take 512 MiB together. With a batcher, it is `prefetch + 2` batches of whatever size they
    /// have. With several [`devices`](Self::devices), or several processes that know of each other, large batches without
    /// images get two or three slots instead of four, if that makes all slots fit in half of the CPU's last cache. With a
    /// limit of your own there are as many slots as it allows, up to the numbers before.
    pub fn pinned_limit(mut self, bytes: usize) -> Self {
        self.options.pinned_limit = Some(bytes);
        self
    }

    /// A limit on slot memory that this loader shares with other loaders, besides [`pinned_limit`](Self::pinned_limit).
    /// Default: none.
    pub fn shared_limit(mut self, limit: &MemoryLimit) -> Self {
        self.options.shared_limit = Some(limit.clone());
        self
    }

    /// Whether to fail if there is no page-locked memory, instead of going on with ordinary memory. Default: no.
    /// `build` checks this. Memory that is refused later is an [`Error::OutOfHostMemory`].
    pub fn require_pinned(mut self, require: bool) -> Self {
        self.options.require_pinned = require;
        self
    }

    /// How long `next()` may wait for a batch. After that it returns an [`Error::Timeout`], which names the thread, the
    /// stage and the sample that hold it up, and how many batches are lost: the epoch is over. The next `iter()` starts
    /// new threads. Batches that were delivered stay valid. Default: for ever.
    ///
    /// It covers what the loader's threads run. It does not cover [`Collate::finish`] on an accelerator, which runs
    /// after the wait, on the thread that calls `next()`. It does not cover the planning of the epoch in `iter()`
    /// either.
    ///
    /// A call that hangs cannot be ended from outside. Its thread and its batch's memory stay until it returns, and
    /// that memory comes on top of `pinned_limit`. So do the old slots, while other iterators go on with them. A loader
    /// that is dropped waits for a running call for as long as this timeout, then leaves the thread. So data that hangs in every epoch takes one more thread in every epoch. Use a
    /// timeout much longer than the slowest sample takes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// What to do about a sample that fails to load. Default: an error takes its batch's place.
    pub fn bad_samples(mut self, policy: BadSamples) -> Self {
        self.options.policy = policy;
        self
    }

    /// Sets a function that is called with every fault: each bad sample, skipped and replaced ones too, and whatever
    /// else makes a batch fail. It runs on the thread that met the fault, mostly a worker, and ahead of the consumer.
    /// It hears of a sample that is bad in each epoch anew: to name each one once, keep a set of their indices, as
    /// `docs/faults.md` does. It may run for several faults at once. A panic in it is logged and changes nothing. While
    /// it runs, that thread does nothing else.
    ///
    /// Under [`BadSamples::Fail`] workers do not go on with a bad batch, so that not all of its faults are met.
    pub fn on_fault(mut self, on_fault: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.options.on_fault = Some(Arc::new(on_fault));
        self
    }

    /// Whether to leave out a last batch that is not full. Default: no.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.options.drop_last = drop_last;
        self
    }

    /// Where slots get their memory; cannot be used with [`require_pinned`](Self::require_pinned). Default: what suits
    /// the device.
    pub fn allocator(mut self, alloc: impl HostAlloc + 'static) -> Self {
        self.options.alloc = Some(Arc::new(alloc));
        self
    }

    /// The device that batches go to. It may have autodiff or not, because batches are constants. Default: Burn's
    /// default device. `SupervisedTraining` moves the loader to its own device.
    pub fn set_device(mut self, device: Device) -> Self {
        self.options.device = Some(device);
        self
    }

    /// The CPU device that a batcher uses when the loader's device is an accelerator. Default with the feature `cuda`:
    /// Flex. Without that feature, this must be set for an accelerator.
    pub fn host_device(mut self, device: Device) -> Self {
        self.options.host_device = Some(device);
        self
    }
}
