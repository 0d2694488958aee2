//! Batches made by an ordinary Burn `Batcher`: workers share the samples of a batch, and the last one calls the batcher.

use super::{
    fill::{Fill, SampleSink},
    lifecycle::{Batch, BatchState, Content, OpenBatch, Source, Task},
    samples::{BatchPlan, Samples},
    visit::{TensorVisit, UNSTEADY},
};
use crate::{
    device::{FlatTensor, Target, Uploader},
    fault::{Activity, BoxError, Error, Faults, Panic, Skips, UserValues, discard, during, guard},
    memory::{Permit, Pool, Wait},
    observe::{Span, TaskClock},
    vocabulary::{Place, Stage},
};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{Device, TensorData},
};
use std::sync::Arc;

/// A Burn `Batcher` over a dataset.
pub(crate) struct ItemsSource<I, O> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) batcher: Arc<dyn Batcher<I, O>>,
    /// Visits the tensors of a batch, in the batch's order.
    pub(crate) visit_tensors: fn(O, TensorVisit<'_>) -> O,
    /// The device for the batcher that the user has set.
    pub(crate) asked: Option<Device>,
    /// Where the batcher runs: the target itself if that is a CPU backend.
    pub(crate) host_device: Device,
    pub(crate) target: Target,
}

/// The parts of a packed batch start at multiples of this many bytes.
const ALIGN: usize = 64;

/// Samples with their positions, for the batcher.
impl<I> SampleSink<I> for UserValues<(usize, I)> {
    fn write(&mut self, _: usize, _: &[I], _: &mut TaskClock<'_>) -> Result<(), (usize, Error)> {
        Ok(())
    }

    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error> {
        self.push((position, sample));
        Ok(())
    }

    fn keep(&mut self, first: usize, samples: &mut Vec<I>) -> Result<(), Panic> {
        self.extend((first..).zip(samples.drain(..)));
        Ok(())
    }
}

impl<I: Send + 'static, O: Send + 'static> Source<O> for ItemsSource<I, O> {
    fn target(&self) -> &Target {
        &self.target
    }

    fn on(&self, target: Target) -> Result<Arc<dyn Source<O>>, Error> {
        let host_device = match &self.asked {
            _ if target.host => target.device.clone(),
            Some(device) if !Target::of(device.clone()).host => {
                let problem = format!("{device:?} does not compute in host memory");
                return Err(Error::config("host_device", problem, "use a CPU device, e.g. `Device::flex()`"));
            }
            Some(device) => device.clone(),
            #[cfg(feature = "cuda")]
            None => Device::flex(),
            #[cfg(not(feature = "cuda"))]
            None => {
                let device = &target.device;
                let problem =
                    format!("a batcher needs a CPU device to make its batches on, before they go to {device:?}");
                return Err(Error::config("host_device", problem, "add e.g. `.host_device(Device::flex())`"));
            }
        };
        let (samples, batcher, asked) = (Arc::clone(&self.samples), Arc::clone(&self.batcher), self.asked.clone());
        Ok(Arc::new(Self { samples, batcher, visit_tensors: self.visit_tensors, asked, host_device, target }))
    }

    fn faults(&self) -> &Faults {
        &self.samples.faults
    }

    fn open(
        &self,
        plan: Arc<BatchPlan>,
        permit: Permit,
        _: &Arc<Pool>,
        _: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Task<O>>, Error> {
        let (rows, chunk) = (plan.indices.len(), self.samples.chunk(chunk));
        let items: UserValues<Option<I>> = UserValues((0..rows).map(|_| None).collect());
        let batch = OpenBatch::new(plan, rows.div_ceil(chunk), Content::Samples(Box::new(items), permit));
        let task = |first| Task { batch: Arc::clone(&batch), rows: first..rows.min(first + chunk), chunk: None };
        Ok((0..rows).step_by(chunk).map(task).collect())
    }

    fn run(&self, task: Task<O>, clock: &mut TaskClock<'_>) -> Option<Batch<O>> {
        let Task { batch, rows, .. } = task;
        let (samples, plan, worker) = (&self.samples, &batch.plan, clock.worker());
        let (mut items, mut skips) = (UserValues(Vec::with_capacity(rows.len())), Skips::default());
        let fill = Fill { samples, plan, skips: &mut skips, clock, sink: &mut items };
        let filled = fill.run(rows.clone(), samples.group(rows.len()));
        clock.end(rows.len());
        Activity::here().note_batch(Place { worker: Some(worker), ..plan.place(Stage::Collate) }, None);
        let add = |content: &mut Content<O>| {
            let Content::Samples(all, _) = content else { return };
            let Some(all) = all.downcast_mut::<UserValues<Option<I>>>() else { return };
            items.drain(..).for_each(|(position, item)| all[position] = Some(item));
        };
        batch.end(filled, skips, add, |content, skips| {
            let Content::Samples(all, permit) = *content else { return Err(Error::Ended) };
            let mut all = all.downcast::<UserValues<Option<I>>>().map_err(|_| Error::Ended)?;
            let items: Vec<I> = all.drain(..).flatten().collect();
            let plan = plan.without(skips);
            let place = Place { worker: Some(worker), ..plan.place(Stage::Batcher) };
            let span = Span::new(&samples.faults.counters, Stage::Batcher, plan.key);
            let batch = guard(place, || Ok::<_, BoxError>(self.batcher.batch(items, &self.host_device)));
            drop(span);
            let batch = batch.inspect_err(|error| samples.faults.saw(error))?;
            let content = Box::new(Content::Items { plan, batch, permit });
            Ok(if self.target.host { BatchState::Pinned(content) } else { BatchState::Filled(content) })
        })
    }

    /// Packs the values of the tensors into a slot.
    fn pin(&self, content: Box<Content<O>>, pool: &Arc<Pool>, wait: &Wait<'_>) -> Result<Box<Content<O>>, Error> {
        let Content::Items { plan, batch, permit } = *content else { return Err(Error::Ended) };
        let mut values = Vec::new();
        let take = TensorVisit::Take(&self.host_device, &mut values);
        let batch = guard(plan.place(Stage::Pin), || Ok((self.visit_tensors)(batch, take)))?;
        let bytes = values.iter().map(|data| data.bytes().len().next_multiple_of(ALIGN)).sum();
        let slot = during(plan.place(Stage::SlotWait), || pool.slot(permit, usize::max(bytes, 1), wait));
        let (batch, mut slot) = unless_failed(plan.place(Stage::Pin), batch, slot)?;
        let mut start = 0;
        let pack = |data: TensorData| {
            let (bytes, shape, dtype) = data.into_parts();
            let part = FlatTensor { range: start..start + bytes.len(), dtype, shape, images: None };
            slot.as_mut_slice()[start..start + bytes.len()].copy_from_slice(&bytes);
            start += bytes.len().next_multiple_of(ALIGN);
            part
        };
        let parts = values.into_iter().map(pack).collect();
        Ok(Box::new(Content::PackedItems { plan, batch, slot, parts }))
    }

    /// On a CPU backend the tensors remain in place.
    fn send(&self, content: Box<Content<O>>, _: &Arc<Pool>, uploader: &mut Uploader) -> Result<BatchState<O>, Error> {
        let (plan, batch, slot, parts) = match *content {
            Content::PackedItems { plan, batch, slot, parts } => (plan, batch, slot, parts),
            Content::Items { plan, batch, permit } => {
                let leave = || Ok((self.visit_tensors)(batch, TensorVisit::Leave));
                let batch = guard(plan.place(Stage::Transfer), leave)?;
                return Ok(BatchState::Ready { batch, items: plan.indices.len(), permit: Some(permit) });
            }
            _ => return Err(Error::Ended),
        };
        let bytes: usize = parts.iter().map(|part| part.range.len()).sum();
        self.samples.faults.counters.note_transfer(|stats| stats.sent_bytes += bytes as u64);
        let place = plan.place(Stage::Transfer);
        let (batch, tensors) = unless_failed(place, batch, uploader.upload(slot, &parts, place))?;
        Ok(BatchState::OnDevice(Box::new(Content::SentItems { plan, batch, tensors })))
    }

    fn finish(&self, content: Content<O>) -> Result<BatchState<O>, Error> {
        let Content::SentItems { plan, batch, tensors } = content else { return Err(Error::Ended) };
        let _span = Span::new(&self.samples.faults.counters, Stage::Finish, plan.key);
        let mut tensors = tensors.into_iter();
        let batch = guard(plan.place(Stage::Finish), || {
            let batch = (self.visit_tensors)(batch, TensorVisit::Put(&mut tensors));
            if tensors.len() > 0 { Err(UNSTEADY.into()) } else { Ok(batch) }
        })?;
        Ok(BatchState::Ready { batch, items: plan.indices.len(), permit: None })
    }
}

/// Returns the batch with the value in `made`. If `made` is an error, drops the batch with the same care as a call of
/// user code, because its `drop` is user code.
fn unless_failed<O, T>(place: Place, batch: O, made: Result<T, Error>) -> Result<(O, T), Error> {
    match made {
        Ok(made) => Ok((batch, made)),
        Err(error) => {
            discard(place, batch);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::{MapTensors, Target, TensorMapper},
        fault::Faults,
        memory::{HeapAlloc, PoolLimits},
        observe::Counters,
        vocabulary::BatchKey,
    };
    use burn::tensor::{Device, Tensor};
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
        let samples =
            crate::batch::Samples { get: Arc::new(|_| Ok(1u8)), many: None, len: 4, augment: None, seed: 0, faults };
        let device = Device::flex();
        let (batcher, host_device) = (Arc::new(Ones), device.clone());
        let (samples, target) = (Arc::new(samples), Target::of(device.clone()));
        let visit_tensors = |batch: Fragile, mut visit: TensorVisit<'_>| batch.map_tensors(&mut visit);
        let source = ItemsSource { samples, batcher, visit_tensors, asked: None, host_device, target };
        let pool = Pool::new(Arc::new(HeapAlloc), PoolLimits { slots: 1, bytes: 1 }, counters);
        let permit = pool.permit(Duration::ZERO).unwrap();
        let key = BatchKey::new(0, 0);
        let plan = BatchPlan {
            key,
            indices: vec![0; 4].into(),
            items: None,
            positions: None,
            occurrences: None,
            abandoned: Arc::default(),
        };
        let batch = Fragile(Tensor::ones([4], &device));
        let content = Content::Items { plan: Arc::new(plan), batch, permit };
        assert!(source.pin(Box::new(content), &pool, &Wait::at_most(Duration::ZERO)).is_err());
    }
}
