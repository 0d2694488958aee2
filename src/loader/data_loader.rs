//! Burn's `DataLoader` over a pipeline.

use super::{
    batches::{Batches, PipelineEpoch},
    iter::EpochIter,
    plan::{Origin, Plan},
    state::{Epochs, LoaderState, SharedPosition},
};
use crate::{
    batch::Source,
    device::alloc_for,
    fault::{Error, aside, guard, keep_backtraces},
    memory::{LimitedAlloc, Pool},
    observe::{Stats, StepClock, Timeline},
    order::{EpochProgress, Feed, Guard, Position, ReadAhead},
    pipeline::{Growth, Pipeline, Settings, Threads},
    stream::{BatchMarks, OpenStream},
    sync::locks::Mutex,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::{
    data::dataloader::{DataLoader, DataLoaderIterator},
    tensor::Device,
};
use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long `next()` waits if its batch needs a slot and no slot is free.
const LEASE_TIMEOUT: Duration = Duration::from_secs(60);

/// A data loader that prepares device tensors before the training step needs them. Its workers write samples straight
/// into host memory (page-locked on CUDA), and its transfer threads copy them to the device.
/// [`PinnedDataLoaderBuilder`](crate::PinnedDataLoaderBuilder) builds it.
///
/// It implements Burn's [`DataLoader`]; `Arc<PinnedDataLoader<O>>` coerces to `Arc<dyn DataLoader<O>>`. The first `iter()` starts the
/// threads and allocates the slots. They remain until the loader is dropped, which joins the threads of this copy. Each thread first
/// completes its current call, copy or allocation. With a [`timeout`](crate::PinnedDataLoaderBuilder::timeout), a thread that hangs longer
/// is not joined. Each `iter()` is the loader's next epoch.
///
/// ```
/// # use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
/// # use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
/// # struct Squares;
/// # impl Collate<f32> for Squares {
/// #     type Batch = Tensor<1>;
/// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
/// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
/// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// # }
/// let dataset = InMemDataset::new(vec![1.0f32, 2.0, 3.0]);
/// let loader = PinnedDataLoaderBuilder::new(Squares).batch_size(2).shuffle(42).build(dataset)?;
/// assert_eq!((loader.num_items(), loader.num_batches()), (3, 2));
/// for epoch in 0..2 {
///     for batch in loader.iter() {
///         let _squares = batch?; // a training step
///     }
///     assert_eq!(loader.state().epoch(), epoch + 1); // save it with the model to resume here in another process
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `next()` blocks until its batch is ready. It waits without limit unless a `timeout` is set, or the batch gets no memory for 60 s
/// ([`Error::LeaseTimeout`]). Then it runs `Collate::finish` on the calling thread; on a CPU backend a worker has done that already. The
/// `timeout` covers what the loader's threads run. It covers neither that `finish` nor the planning of the epoch in `iter()`. A batch that
/// failed is replaced by an `Err`, and the iterator continues after it. [`Error::of`] returns the typed error.
///
/// The threads are named `bp-worker-0`, `bp-pin`, `bp-transfer-0` and so on, in errors, debuggers and profilers. With
/// [`devices`](crate::PinnedDataLoaderBuilder::devices), those of device 1 are `bp-1-worker-0`, `bp-1-pin` and so on. Each copy of a loader
/// (`to_device`, `slice`) has its own threads and slots.
#[derive(derive_more::Debug)]
#[debug(
    "PinnedDataLoader {{ schedule: {:?}, device: {:?}, epoch: {}, .. }}",
    plan.schedule, plan.options.device, epochs.next()
)]
pub struct PinnedDataLoader<O: Send + 'static> {
    origin: Origin<O>,
    plan: Plan,
    epochs: Arc<Epochs>,
    /// The number of this copy among those that share the counters.
    copy: usize,
    /// The last slice of this loader. Its number of batches is `None` if it is the share of a device.
    sliced: Mutex<Option<(Range<usize>, Option<usize>)>>,
    /// The threads at work. An iterator keeps the threads that its epoch began with.
    threads: Mutex<Option<Arc<Threads<O>>>>,
}

impl<O: Send + 'static> PinnedDataLoader<O> {
    pub(crate) fn new(origin: Origin<O>, plan: Plan) -> Self {
        let (epochs, copy) = (Arc::new(Epochs::new(plan.standing.get().epoch)), plan.counters().copy());
        Self { origin, plan, epochs, copy, sliced: Mutex::new(None), threads: Mutex::new(None) }
    }

    /// The statistics of this loader and all its copies (`to_device`, `slice`, and so the copy that
    /// `SupervisedTraining` makes).
    ///
    /// If a loop stopped at an error of `next()` and nothing has called `stats` since, dropping the last copy of the loader reports the
    /// error: in the log, or on stderr if no logger takes errors.
    pub fn stats(&self) -> Stats {
        self.plan.unread_errors.forget_all();
        self.plan.counters().snapshot()
    }

    /// Starts to record what each thread does and when, for this loader and all its copies. Discards any earlier
    /// recording. It keeps the last `events` events, of about 90 bytes each. There are about ten events per batch and
    /// worker. 0 stops the recording and discards it, so take the [`timeline`](Self::timeline) first. Each event takes
    /// a lock.
    pub fn record(&self, events: usize) {
        self.plan.counters().timeline.start(events);
    }

    /// The recording so far; empty without [`record`](Self::record).
    pub fn timeline(&self) -> Timeline {
        Timeline::of(self.plan.counters().timeline.events())
    }

    /// The number of batches of the next epoch; of a resumed epoch, the number of the whole epoch. With
    /// [`devices`](crate::PinnedDataLoaderBuilder::devices) it is the number for each device. A
    /// [`BatchSampler`](crate::order::BatchSampler) has to plan an epoch to know it.
    pub fn num_batches(&self) -> usize {
        self.plan.schedule.steps(self.epochs.next())
    }

    /// The loader's position: after the last batch that its newest epoch has returned. Take it after a step and save it
    /// with the model. Then [`resume`](crate::PinnedDataLoaderBuilder::resume) continues with the very next batch. An
    /// `Err` counts as a returned batch: to try that batch again, resume from a state taken before it.
    ///
    /// It includes copies made by `to_device`, and so the copy that `SupervisedTraining` makes. It includes only those
    /// slices that Burn makes for [`devices`](crate::PinnedDataLoaderBuilder::devices).
    ///
    /// Several processes all have the same state after the same number of steps, so the state of any process will do.
    /// Only the number of skipped samples may differ: each process counts them for its own quota. The devices of a
    /// process also count separately. The state has their sum, and each resumed device continues with an equal part of
    /// it.
    pub fn state(&self) -> LoaderState {
        self.state_at(self.plan.standing.get())
    }

    pub(super) fn state_at(&self, at: Position) -> LoaderState {
        let Plan { schedule, fingerprints, options, standing, .. } = &self.plan;
        LoaderState::of(schedule, fingerprints, options.seed(), at, standing.streams())
    }

    /// The number of the next epoch.
    #[cfg(feature = "metrics")]
    pub(super) fn next_epoch(&self) -> usize {
        self.epochs.next()
    }

    /// Lets the next epoch be that of a state from the end of an epoch.
    ///
    /// # Errors
    /// If the state is of another loader, or from the middle of an epoch.
    #[cfg(feature = "metrics")]
    pub(super) fn continue_at(&self, state: &LoaderState) -> Result<(), Error> {
        state.check_against(&self.state())?;
        if state.position() > 0 {
            let problem = "the state is from the middle of an epoch";
            return Err(Error::config("checkpoint", problem, "build the loader with `resume(state)`"));
        }
        if self.plan.schedule.resumed.is_some_and(|at| at.given > 0 && at.epoch >= state.epoch()) {
            let problem =
                "the loader was built to continue in the middle of an epoch, and the checkpoint has a position too";
            return Err(Error::config("resume", problem, "leave it out"));
        }
        self.epochs.set(state.epoch());
        self.plan.standing.set(Position::begin(state.epoch()));
        self.plan.standing.set_streams(&state.streams);
        Ok(())
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A loader with the same options and its own threads and slots. It continues at the same epoch.
    fn copy(&self) -> Self {
        Self { epochs: Arc::new(self.epochs.copy()), ..Self::new(self.origin.clone(), self.plan.clone()) }
    }

    /// Warns about two consecutive slices that seem to be for devices but are not equal shares. Also warns if only one of them is the share
    /// of a device: then they have samples in common.
    fn compare(&self, slice: Range<usize>, batches: Option<usize>) {
        let devices = self.plan.schedule.devices;
        let Some((last, others)) = self.sliced.lock().replace((slice.clone(), batches)) else { return };
        let are_neighbours = last.end == slice.start || slice.end == last.start;
        if others.is_some() != batches.is_some() && are_neighbours {
            self.plan.counters().warn(&format!(
                "the slices {last:?} and {slice:?} have samples in common: one is exactly the share of one of \
                 {devices} devices, which is dealt from all samples, and the other has the same ones in each epoch. For \
                 training and validation, cut the data set with Burn's `PartialDataset`"));
        }
        let (true, Some(others), Some(batches)) = (last.end == slice.start, others, batches) else { return };
        let items = self.num_items();
        let cuts = items.checked_div(last.len()).unwrap_or(0);
        // Burn makes slices of equal length; the last one also has the remainder.
        let by_burn = cuts > 1 && items / cuts == last.len() && (slice.len() == last.len() || slice.end == items);
        if devices > 1 && by_burn {
            self.plan.counters().warn(&format!(
                "a loader that was built with `.devices({devices})` is cut for {cuts} devices, it seems. \
                 They have {others} and {batches} batches or more, and may wait for each other for ever: build it with \
                 `.devices({cuts})`"
            ));
        } else if devices == 1 && others != batches {
            self.plan.counters().warn(&format!(
                "two slices of a loader have {others} and {batches} batches. Devices that train together \
                 then wait for each other for ever: build the loader with `.devices(n)`"
            ));
        }
    }

    /// Begins an epoch.
    pub(super) fn begin_epoch(&self, epoch: usize, mut feed: Feed, batches: Range<usize>) -> Result<Batches<O>, Error> {
        let plan = &self.plan;
        let first = BatchKey { device: plan.device, ..BatchKey::new(epoch, batches.start) };
        match &self.origin {
            Origin::Samples { source, .. } => {
                if let Some(threads) = &*self.threads.lock() {
                    threads.are_here()?;
                }
                let guards = self.read_ahead(epoch)?; // before workers read
                let marks = plan
                    .stream
                    .as_ref()
                    .map(|stream| self.open_stream(Arc::clone(stream), epoch, &mut feed))
                    .transpose()?;
                // The epoch begins on the running threads, or on new ones if those hang or die meanwhile.
                loop {
                    let threads = self.threads(&**source)?;
                    match threads.pipeline().begin(epoch, feed, batches.clone()) {
                        Ok(iterator) => {
                            let next = BatchKey { iterator, ..first };
                            return Ok(Batches::Pipeline(PipelineEpoch {
                                threads,
                                guards,
                                next,
                                marks,
                                is_left: false,
                            }));
                        }
                        Err(back) => feed = back,
                    }
                }
            }
            Origin::KeptData(kept) => {
                let gather = kept.begin(&plan.target().device, feed, batches, first)?;
                Ok(Batches::KeptData(Box::new(gather)))
            }
        }
    }

    /// Opens the stream for an epoch, and gives its items to the feed.
    fn open_stream(
        &self,
        stream: Arc<dyn OpenStream>,
        epoch: usize,
        feed: &mut Feed,
    ) -> Result<Arc<BatchMarks>, Error> {
        let Plan { schedule, standing, .. } = &self.plan;
        if schedule.slice.is_some() {
            let advice = "use `devices` or `distributed`, or open a stream for each part";
            return Err(Error::config("slice", "a stream has no slices", advice));
        }
        let of = schedule.distributed;
        let position = feed.position().saturating_sub(of.rank());
        let (items, marks) = stream.open(epoch, position, of, standing.streams().remove(&of.rank()));
        feed.items = Some(items);
        Ok(marks)
    }

    /// Tells the datasets that fetch ahead what this copy will read in an epoch. Each gets the order separately.
    fn read_ahead(&self, epoch: usize) -> Result<Vec<Guard>, Error> {
        let begin = |(offset, dataset): &(usize, Arc<dyn ReadAhead>)| {
            let (feed, _) = self.plan.schedule.epoch(epoch)?;
            let offset = *offset;
            let order = Box::new(feed.samples().map(move |index| index.wrapping_sub(offset)));
            guard(Place::batch(Stage::Read, BatchKey::new(epoch, 0)), || Ok(dataset.begin(order)))
        };
        self.plan.options.ahead.iter().map(begin).collect()
    }

    /// Returns the running threads. Starts new ones if there are none, or if they hang.
    fn threads(&self, source: &dyn Source<O>) -> Result<Arc<Threads<O>>, Error> {
        let plan = &self.plan;
        let mut running = self.threads.lock();
        drop(running.take_if(|threads| threads.pipeline().is_dead()));
        if let Some(threads) = &*running {
            return Ok(Arc::clone(threads));
        }
        keep_backtraces();
        let target = plan.target();
        let alloc = match &plan.options.alloc {
            Some(alloc) => Arc::clone(alloc),
            None => alloc_for(&target.device, plan.options.require_pinned, plan.counters())?,
        };
        let alloc = match plan.options.shared_limit.clone() {
            Some(limit) => Arc::new(LimitedAlloc { upstream: alloc, limit }),
            None => alloc,
        };
        let source = plan.source_here(source)?;
        let pool = Pool::new(alloc, plan.limits(&*source)?, Arc::clone(plan.counters()));
        let bounds = plan.options.workers(plan.copies(), source.is_uneven());
        let settings = Settings {
            prefetch: plan.options.prefetch(),
            // Threads that copy in turn keep the link busy; see benches/README.md.
            transfers: if target.host { 0 } else { plan.options.transfers.unwrap_or(3) },
            timeout: plan.options.timeout,
            lease_timeout: LEASE_TIMEOUT,
            device: plan.device,
        };
        let cpu_threads = plan.options.machine().threads;
        plan.counters().note(|stats| {
            stats.cpu_threads = cpu_threads;
            stats.grows = plan.options.workers.is_none();
            (stats.transfer_threads, stats.slots) = (settings.transfers, pool.limits().slots);
        });
        let growth = Growth::new(bounds, plan.read_as_one);
        let threads = Arc::new(Threads::start(Pipeline::new(settings, source, pool), growth)?);
        *running = Some(Arc::clone(&threads));
        Ok(threads)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<O: Send + 'static> DataLoader<O> for PinnedDataLoader<O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let started = Instant::now();
        let epoch = self.epochs.begin();
        let (plan, sampler) = (&self.plan, Place::batch(Stage::Sampler, BatchKey::new(epoch, 0)));
        let (batches, progress) = aside(|| match plan.schedule.epoch(epoch) {
            Ok((feed, mut progress)) => {
                progress.is_open = plan.stream.is_some() && plan.options.steps.is_none();
                // The sampler gives the number of batches, and so the number of slots.
                let begun = guard(sampler, || Ok(self.begin_epoch(epoch, feed, progress.batches()))).flatten();
                (begun, progress)
            }
            Err(error) => {
                let at = plan.schedule.start_of(epoch);
                let items = guard(sampler, || Ok(plan.schedule.items())).unwrap_or(0);
                (Err(error), EpochProgress::never(at, items))
            }
        });
        let batch = BatchKey { device: plan.device, ..BatchKey::new(epoch, progress.number()) };
        let clock = StepClock::new(Arc::clone(plan.counters()), self.copy, batch, started);
        let standing = plan.standing.begin_epoch(progress.at(), plan.schedule.distributed.rank(), plan.device);
        Box::new(EpochIter::new(batches, progress, standing, clock, plan))
    }

    fn num_items(&self) -> usize {
        self.plan.schedule.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        let mut copy = self.copy();
        if let Origin::Samples { checked, .. } = &mut copy.origin
            && self.plan.options.device.as_ref() != Some(device)
        {
            *checked = None; // this is the decoder of another device
        }
        copy.plan.options.device = Some(device.clone());
        Arc::new(copy)
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        let mut copy = self.copy();
        let plan = &mut copy.plan;
        if let Some(device) = plan.schedule.cut_for_device(start, end) {
            plan.device = Some(device);
            self.compare(start..end, None);
        } else {
            plan.schedule.cut(start, end);
            plan.standing = SharedPosition::new(plan.standing.get(), plan.schedule.devices);
            let epoch = copy.epochs.next();
            copy.epochs = Arc::new(Epochs::new(epoch));
            self.compare(start..end, Some(plan.schedule.steps(epoch)));
        }
        Arc::new(copy)
    }
}
