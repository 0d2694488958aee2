//! A batch made by a batcher: its way to the consumer.

use super::{
    items_source::ItemsSource,
    next::{Filled, Finished, Ready},
    samples::BatchPlan,
};
use crate::{
    device::{FlatTensor, Uploader},
    fault::{Error, discard, during, guard},
    memory::{Permit, Pool, Slot, Wait},
    observe::Span,
    vocabulary::{Place, Stage},
};
use burn::tensor::TensorData;
use std::sync::Arc;

/// The user's batch, made by the batcher on the host.
pub(super) struct FilledItems<I, O> {
    pub(super) source: Arc<ItemsSource<I, O>>,
    pub(super) batch: O,
    pub(super) plan: Arc<BatchPlan>,
    pub(super) memory: Memory,
}

/// Where the values of a batch's tensors are.
pub(super) enum Memory {
    /// In the tensors of the batch. The batch may have a slot for them.
    Permit(Permit),
    /// In a slot, one part for each tensor. The tensors in the batch are empty.
    Slot(Slot, Vec<FlatTensor>),
}

/// The parts of a packed batch start at multiples of this number of bytes.
const ALIGN: usize = 64;

impl<I: Send + 'static, O: Send + 'static> Filled<O> for FilledItems<I, O> {
    /// Packs the values of the tensors into a slot.
    fn pin(self: Box<Self>, pool: &Arc<Pool>, wait: &Wait<'_>) -> Result<Box<dyn Filled<O>>, Error> {
        let Self { source, batch, plan, memory } = *self;
        let Memory::Permit(permit) = memory else { return Ok(Box::new(Self { source, batch, plan, memory })) };
        let values = || Ok(source.batcher.take_values(batch, &source.host_device));
        let (batch, values) = guard(plan.place(Stage::Pin), values)?;
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
        Ok(Box::new(Self { source, batch, plan, memory: Memory::Slot(slot, parts) }))
    }

    /// On a CPU backend the tensors stay where they are.
    fn send(self: Box<Self>, _: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error> {
        let Self { source, batch, plan, memory } = *self;
        let (place, items) = (plan.place(Stage::Transfer), plan.indices.len());
        let (slot, parts) = match memory {
            Memory::Slot(slot, parts) => (slot, parts),
            Memory::Permit(permit) => {
                let batch = guard(place, || Ok(source.batcher.leave_tensors(batch)))?;
                return Ok(Ready::Finished(Finished { batch, items, permit: Some(permit) }));
            }
        };
        source.samples.counters.sent(parts.iter().map(|part| part.range.len()).sum());
        let (batch, tensors) = unless_failed(place, batch, uploader.upload(slot, &parts, place))?;
        Ok(Ready::Raw(Box::new(move || {
            let _span = Span::new(&source.samples.counters, Stage::Finish, plan.key);
            let batch = guard(plan.place(Stage::Finish), || source.batcher.put_tensors(batch, tensors))?;
            Ok(Finished { batch, items, permit: None })
        })))
    }
}

/// Returns the batch with what `made` holds. If that is an error, the batch is dropped as user code is run, because its
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
    use burn::{
        data::dataloader::batcher::Batcher,
        tensor::{Device, Tensor},
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
        let samples = crate::batch::Samples {
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
        let (samples, target) = (Arc::new(samples), Target::of(device.clone()));
        let source = Arc::new(ItemsSource { samples, batcher, asked: None, host_device, target });
        let pool = Pool::new(Arc::new(HeapAlloc), PoolLimits { slots: 1, bytes: 1 }, counters);
        let permit = pool.permit(Duration::ZERO).unwrap();
        let key = BatchKey::new(0, 0);
        let plan = BatchPlan {
            key,
            indices: vec![0; 4].into(),
            positions: None,
            occurrences: None,
            abandoned: Arc::default(),
        };
        let batch = Fragile(Tensor::ones([4], &device));
        let filled = Box::new(FilledItems { source, batch, plan: Arc::new(plan), memory: Memory::Permit(permit) });
        assert!(filled.pin(&pool, &Wait::at_most(Duration::ZERO)).is_err());
    }
}
