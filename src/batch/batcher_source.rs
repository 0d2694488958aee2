//! Batches made by an ordinary Burn `Batcher`: workers share the samples of a batch, and the last one calls the batcher.

use super::{
    fill::{Fill, Places},
    next::{Finished, Next, Ready, ToFinish, ToPin, ToSend},
    samples::{BatchPlan, FirstFailure, Samples},
    source::{Done, Outcome, Source, Task},
};
use crate::{
    device::{MapTensors, Part, Target, TensorMapper, Uploaded, Uploader},
    fault::{BoxError, Doing, Error, Faults, Skips, discard, during, guard},
    memory::{Permit, Pool, Slot, Wait},
    observe::{Span, TaskClock},
    vocabulary::{Place, Stage},
};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{DType, Device, Tensor, TensorData, kind::Basic},
};
use parking_lot::Mutex;
use std::{
    mem,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// A Burn `Batcher` over a dataset.
pub(crate) struct ItemsSource<I, O> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) batcher: Arc<dyn Batcher<I, O>>,
    /// Where the batcher runs: the target itself if that is a CPU backend.
    pub(crate) host_device: Device,
    pub(crate) target: Target,
}

struct ItemsJob<I, O> {
    source: Arc<ItemsSource<I, O>>,
    plan: Arc<BatchPlan>,
    gathered: Mutex<Gathered<I>>,
}

struct Gathered<I> {
    /// In the batch's order.
    items: Vec<Option<I>>,
    /// The number of tasks still to come.
    tasks: usize,
    failed: FirstFailure,
    skips: Skips,
    permit: Option<Permit>,
}

struct ItemsTask<I, O> {
    job: Arc<ItemsJob<I, O>>,
    rows: Range<usize>,
}

/// Samples with their positions, for the batcher.
impl<I> Places<I> for &mut Vec<(usize, I)> {
    fn write(&mut self, _: usize, _: &[I], _: &mut TaskClock<'_>) -> Result<(), (usize, Error)> {
        Ok(())
    }

    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error> {
        self.push((position, sample));
        Ok(())
    }

    fn keep(&mut self, first: usize, samples: &mut Vec<I>) {
        self.extend((first..).zip(samples.drain(..)));
    }
}

impl<I: Send + 'static, O: MapTensors + Send + 'static> Task<O> for ItemsTask<I, O> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn run(self: Box<Self>, worker: usize) -> Done<O> {
        let ItemsJob { source, plan, .. } = &*self.job;
        let mut clock = TaskClock::start(&source.samples.counters, worker, plan.at.key);
        let (mut items, mut skips) = (Vec::with_capacity(self.rows.len()), Skips::default());
        let (samples, places) = (&source.samples, &mut items);
        let fill = Fill { samples, plan, worker, skips: &mut skips, clock: &mut clock, places };
        let failed = fill.run(self.rows.clone(), samples.group(self.rows.len())).err();
        let rows_took = clock.end(self.rows.len());
        Doing::here().whole(Place { worker: Some(worker), ..plan.place(Stage::Collate) });
        let (outcome, skips) = self.end(worker, items, failed, skips);
        Done { outcome, rows_took, skips }
    }
}

impl<I: Send + 'static, O: MapTensors + Send + 'static> ItemsTask<I, O> {
    /// Adds the samples to those of the batch's other tasks; the last task lets the batcher make the batch.
    fn end(
        &self,
        worker: usize,
        items: Vec<(usize, I)>,
        failed: Option<(usize, Error)>,
        skips: Skips,
    ) -> (Option<Outcome<O>>, Skips) {
        let ItemsJob { source, plan, gathered } = &*self.job;
        let _too_many; // dropped after the lock
        let mut all = gathered.lock();
        items.into_iter().for_each(|(position, item)| all.items[position] = Some(item));
        _too_many = all.skips.merge(skips);
        if let Some(failure) = failed {
            all.failed.note(failure);
        }
        all.tasks -= 1;
        if all.tasks > 0 {
            return (None, Skips::default());
        }
        let permit = all.permit.take();
        let Some(permit) = permit.filter(|_| !plan.abandoned.load(Relaxed)) else {
            return (None, Skips::default()); // a batcher sees whole batches only
        };
        let skips = mem::take(&mut all.skips);
        if let Some(error) = all.failed.take() {
            return (Some(Err(error)), skips);
        }
        let items: Vec<I> = all.items.drain(..).flatten().collect();
        drop(all);
        if items.is_empty() {
            return (Some(Ok(Next::Ready(Ready::Empty))), skips);
        }
        let plan = plan.without(&skips);
        let place = Place { worker: Some(worker), ..plan.place(Stage::Batcher) };
        let span = Span::new(&source.samples.counters, Stage::Batcher, plan.at.key);
        let batch = guard(place, || Ok::<_, BoxError>(source.batcher.batch(items, &source.host_device)));
        drop(span);
        let outcome = batch.inspect_err(|error| source.samples.faults.saw(error)).map(|batch| {
            let host = source.target.host;
            let made = Made { source: Arc::clone(source), batch, plan, permit };
            if host { Next::Send(Box::new(made)) } else { Next::Pin(Box::new(made)) }
        });
        (Some(outcome), skips)
    }
}

impl<I, O> Source<O> for ItemsSource<I, O>
where
    I: Send + 'static,
    O: MapTensors + Send + 'static,
{
    fn target(&self) -> &Target {
        &self.target
    }

    fn faults(&self) -> &Faults {
        &self.samples.faults
    }

    fn slot_bytes(&self) -> Option<usize> {
        None
    }

    fn is_uneven(&self) -> bool {
        false
    }

    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        _: &Arc<Pool>,
        _: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let (rows, chunk) = (plan.indices.len(), self.samples.chunk(chunk));
        let tasks = rows.div_ceil(chunk);
        let items = (0..rows).map(|_| None).collect();
        let gathered = Mutex::new(Gathered {
            items,
            tasks,
            failed: FirstFailure::default(),
            skips: Skips::default(),
            permit: Some(permit),
        });
        let job = Arc::new(ItemsJob { source: self, plan, gathered });
        let task = |first| {
            let rows = first..rows.min(first + chunk);
            Box::new(ItemsTask { job: Arc::clone(&job), rows }) as Box<dyn Task<O>>
        };
        Ok((0..rows).step_by(chunk).map(task).collect())
    }
}

/// The user's batch, made by the batcher on the host.
struct Made<I, O> {
    source: Arc<ItemsSource<I, O>>,
    batch: O,
    plan: Arc<BatchPlan>,
    permit: Permit,
}

impl<I, O> ToPin<O> for Made<I, O>
where
    I: Send + 'static,
    O: MapTensors + Send + 'static,
{
    fn pin(self: Box<Self>, pool: &Arc<Pool>, wait: &Wait<'_>) -> Result<Next<O>, Error> {
        let Self { source, batch, plan, permit } = *self;
        let mut unpack = Unpack { host: source.host_device.clone(), parts: Vec::new() };
        let batch = guard(plan.place(Stage::Pin), || Ok(batch.map_tensors(&mut unpack)))?;
        let bytes = unpack.parts.iter().map(|data| data.bytes().len().next_multiple_of(ALIGN)).sum();
        let slot = during(plan.place(Stage::SlotWait), || pool.slot(permit, usize::max(bytes, 1), wait));
        let (batch, mut slot) = unless_failed(plan.place(Stage::Pin), batch, slot)?;
        let mut start = 0;
        let pack = |data: TensorData| {
            let (bytes, shape, dtype) = data.into_parts();
            let part = Part { range: start..start + bytes.len(), dtype, shape, images: None };
            slot.as_mut_slice()[start..start + bytes.len()].copy_from_slice(&bytes);
            start += bytes.len().next_multiple_of(ALIGN);
            part
        };
        let parts = unpack.parts.into_iter().map(pack).collect();
        Ok(Next::Send(Box::new(Packed { source, batch, plan, slot, parts })))
    }
}

/// On a CPU backend the tensors stay where they are.
impl<I, O> ToSend<O> for Made<I, O>
where
    I: Send + 'static,
    O: MapTensors + Send + 'static,
{
    fn send(self: Box<Self>, _: &Arc<Pool>, _: &mut Uploader) -> Result<Next<O>, Error> {
        let Self { batch, plan, permit, .. } = *self;
        // A mapper that computes must make the same batch here as on an accelerator.
        let batch = guard(plan.place(Stage::Transfer), || Ok(batch.map_tensors(&mut Unmoved)))?;
        let finished = Finished { batch, items: plan.indices.len(), permit: Some(permit) };
        Ok(Next::Ready(Ready::Finished(finished)))
    }
}

/// The same batch, with its tensors taken out and packed into a slot.
struct Packed<I, O> {
    source: Arc<ItemsSource<I, O>>,
    batch: O,
    plan: Arc<BatchPlan>,
    slot: Slot,
    parts: Vec<Part>,
}

impl<I, O> ToSend<O> for Packed<I, O>
where
    I: Send + 'static,
    O: MapTensors + Send + 'static,
{
    fn send(self: Box<Self>, _: &Arc<Pool>, uploader: &mut Uploader) -> Result<Next<O>, Error> {
        let Self { source, batch, plan, slot, parts } = *self;
        source.samples.counters.sent(parts.iter().map(|part| part.range.len()).sum());
        let place = plan.place(Stage::Transfer);
        let (batch, tensors) = unless_failed(place, batch, uploader.upload(slot, &parts, place))?;
        Ok(Next::Finish(Box::new(Mapped { source, batch, plan, tensors })))
    }
}

/// The same batch, with its tensors on the device, but not yet in their places.
struct Mapped<I, O> {
    source: Arc<ItemsSource<I, O>>,
    batch: O,
    plan: Arc<BatchPlan>,
    tensors: Vec<Uploaded>,
}

impl<I, O> ToFinish<O> for Mapped<I, O>
where
    I: Send + 'static,
    O: MapTensors + Send + 'static,
{
    fn finish(self: Box<Self>) -> Result<Finished<O>, Error> {
        let Self { source, batch, plan, tensors } = *self;
        let _span = Span::new(&source.samples.counters, Stage::Finish, plan.at.key);
        let mut places = Placed { tensors: tensors.into_iter() };
        let batch = guard(plan.place(Stage::Finish), || {
            let batch = batch.map_tensors(&mut places);
            if places.tensors.len() > 0 { Err(UNSTEADY.into()) } else { Ok(batch) }
        })?;
        Ok(Finished { batch, items: plan.indices.len(), permit: None })
    }
}

/// Returns the batch with what was made for it. If that failed, the batch is dropped as user code is run, because its
/// `drop` is the user's.
fn unless_failed<O, T>(place: Place, batch: O, made: Result<T, Error>) -> Result<(O, T), Error> {
    match made {
        Ok(made) => Ok((batch, made)),
        Err(error) => {
            discard(place, batch);
            Err(error)
        }
    }
}

const UNSTEADY: &str = "MapTensors must visit the same tensors in the same order each time";

/// The parts of a packed batch start at multiples of this number of bytes.
const ALIGN: usize = 64;

/// Leaves tensors as they are.
struct Unmoved;

impl TensorMapper for Unmoved {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        tensor
    }
}

/// Takes the values out of a batch's tensors and leaves empty ones.
struct Unpack {
    host: Device,
    parts: Vec<TensorData>,
}

impl TensorMapper for Unpack {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        assert!(!matches!(tensor.dtype(), DType::QFloat(_)), "a quantised tensor cannot be moved: dequantise it first");
        self.parts.push(tensor.into_data());
        Tensor::empty([0; D], &self.host)
    }
}

/// Puts tensors on the device into the places of the empty ones, in the same order.
struct Placed {
    tensors: std::vec::IntoIter<Uploaded>,
}

impl TensorMapper for Placed {
    /// # Panics
    /// If the batch's `MapTensors` does not visit the same tensors as before; `finish` reports it.
    fn map<const D: usize, K: Basic + 'static>(&mut self, _: Tensor<D, K>) -> Tensor<D, K> {
        let tensor = self.tensors.next().and_then(|tensor| tensor.tensor().downcast().ok());
        *tensor.unwrap_or_else(|| panic!("{UNSTEADY}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::{HeapAlloc, PoolLimits},
        observe::Counters,
        vocabulary::BatchKey,
    };
    use std::time::Duration;

    /// A batch that panics when it is dropped.
    struct Fragile(Tensor<1>);

    impl MapTensors for Fragile {
        fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
            Self(mapper.map(self.0.clone()))
        }
    }

    impl Drop for Fragile {
        fn drop(&mut self) {
            assert!(self.0.dims() != [0], "a bad end"); // it is empty once its values are packed
        }
    }

    struct Ones;

    impl Batcher<u8, Fragile> for Ones {
        fn batch(&self, items: Vec<u8>, device: &Device) -> Fragile {
            Fragile(Tensor::ones([items.len()], device))
        }
    }

    /// If the pin thread gets no memory, it drops the user's batch. A panic in that drop must not end the thread.
    #[test]
    fn a_batch_that_cannot_be_pinned_is_dropped_with_care() {
        let counters = Arc::<Counters>::default();
        let faults = Faults { counters: Arc::clone(&counters), ..Faults::default() };
        let samples = Samples {
            get: Arc::new(|_| Ok(1u8)),
            many: None,
            len: 4,
            augment: None,
            seed: 0,
            counters: Arc::clone(&counters),
            faults,
        };
        let device = Device::flex();
        let (batcher, host_device) = (Arc::new(Ones), device.clone());
        let samples = Arc::new(samples);
        let source = Arc::new(ItemsSource { samples, batcher, host_device, target: Target::of(device.clone()) });
        let pool = Pool::new(Arc::new(HeapAlloc), PoolLimits { slots: 1, bytes: 1 }, counters);
        let permit = pool.permit(Duration::ZERO).unwrap();
        let at = crate::batch::raw::BatchPlace { key: BatchKey::new(0, 0), position: 0 };
        let plan =
            BatchPlan { at, indices: vec![0; 4].into(), positions: None, occurrences: None, abandoned: Arc::default() };
        let batch = Fragile(Tensor::ones([4], &device));
        let made = Box::new(Made { source, batch, plan: Arc::new(plan), permit });
        assert!(made.pin(&pool, &Wait::at_most(Duration::ZERO)).is_err());
    }
}
