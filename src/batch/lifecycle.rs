//! A batch from its first task until the consumer has it, and the trait of the ways to make it. `src/README.md` describes the whole path. A
//! new stage is a state and a queue here, a method of `Source`, and a file with its threads in `pipeline`, such as `pin.rs` or
//! `transfer.rs`.

use super::{raw::RawBatch, samples::BatchPlan};
use crate::{
    device::{DeviceTensor, FlatTensor, Target, TransferState, Transport, Uploader},
    fault::{BoxError, Error, Faults, Skips, discard, guard},
    image_rows::LongFiles,
    memory::{Chunk, Column, Permit, Pool, RowSize, Slot, Wait},
    observe::{Counters, Span, TaskClock},
    sync::locks::Mutex,
    vocabulary::{BatchKey, Place, Stage},
};
use std::{
    any::Any,
    mem,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// A batch that has left its tasks, or failed.
pub(crate) struct Batch<O> {
    pub(crate) key: BatchKey,
    pub(crate) state: BatchState<O>,
    /// Its skipped and replaced samples.
    pub(crate) skips: Skips,
}

/// The state of a batch. Before these states it is an [`OpenBatch`].
pub(crate) enum BatchState<O> {
    /// It has all its samples, and must be prepared for the copy to the device.
    Filled(Box<Content<O>>),
    /// It is ready to be copied to the device.
    Pinned(Box<Content<O>>),
    /// Its tensors are on the device. The user's batch is made from them on the consumer's thread; on a CPU backend, on a worker.
    OnDevice(Box<Content<O>>),
    /// The user's batch, and its number of samples. On a CPU backend it keeps its permit until it is delivered.
    Ready { batch: O, items: usize, permit: Option<Permit> },
    /// There is no batch: all its samples were skipped or left out.
    Empty,
    /// The error in its place, which has been reported.
    Failed(Error),
}

/// A queue of batches. Each has its own threads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Queue {
    Pin,
    Send,
}

impl Queue {
    /// The number of queues.
    pub(crate) const COUNT: usize = 2;
}

impl<O> Batch<O> {
    pub(crate) fn failed(key: BatchKey, error: Error) -> Self {
        Self { key, state: BatchState::Failed(error), skips: Skips::default() }
    }

    /// The queue for the batch. `None` means that it goes to the consumer.
    pub(crate) fn queue(&self) -> Option<Queue> {
        match self.state {
            BatchState::Filled(_) => Some(Queue::Pin),
            BatchState::Pinned(_) => Some(Queue::Send),
            _ => None,
        }
    }
}

/// The content of a batch until the user's batch is made.
pub(crate) enum Content<O> {
    /// Rows of a collate.
    Rows(SlotRows),
    /// The tensors of such rows, on the device. On a CPU backend also the batch's permit.
    Tensors(RawBatch, Option<Permit>),
    /// Samples for a batcher. Only its source knows their type.
    Samples(Box<dyn Any + Send>, Permit),
    /// The batch that a batcher has made on the host. Its permit allows a slot for the values of its tensors.
    Items { plan: Arc<BatchPlan>, batch: O, permit: Permit },
    /// Such a batch, whose tensors are empty: their values are in a slot, one part for each tensor.
    PackedItems { plan: Arc<BatchPlan>, batch: O, slot: Slot, parts: Vec<FlatTensor> },
    /// Such a batch, whose tensors are empty: those with values are on the device.
    SentItems { plan: Arc<BatchPlan>, batch: O, tensors: Vec<DeviceTensor> },
}

impl<O> Content<O> {
    /// # Errors
    /// If this is not `Rows`, which never happens with a source of rows.
    pub(crate) fn rows(&mut self) -> Result<&mut SlotRows, Error> {
        if let Self::Rows(rows) = self { Ok(rows) } else { Err(Error::Ended) }
    }

    /// Makes the user's batch from the tensors of rows.
    pub(crate) fn finish_rows(
        self,
        counters: &Counters,
        finish: impl FnOnce(RawBatch) -> Result<O, BoxError>,
    ) -> Result<BatchState<O>, Error> {
        let Self::Tensors(raw, permit) = self else { return Err(Error::Ended) };
        let (items, key) = (raw.len(), raw.key());
        let _span = Span::new(counters, Stage::Finish, key);
        let batch = guard(Place::batch(Stage::Finish, key), || finish(raw))?;
        Ok(BatchState::Ready { batch, items, permit })
    }
}

/// Rows in a slot. Rows of padded fields have their maximum length until the batch is pinned.
pub(crate) struct SlotRows {
    pub(crate) plan: Arc<BatchPlan>,
    /// `None` while tasks write its chunks.
    pub(super) slot: Option<Slot>,
    /// The largest row of each field, if any field is padded.
    pub(super) largest: Vec<RowSize>,
    /// The sizes of padded fields, by row and then by field; empty without such fields.
    pub(super) sizes: Vec<RowSize>,
    /// Files for the device that are longer than their rows.
    pub(super) long: LongFiles,
    /// The columns of each task, with the task's first row; empty without columns.
    pub(super) of_tasks: Vec<(usize, Vec<Box<dyn Column>>)>,
    /// The columns of all rows, once all tasks have ended.
    pub(super) columns: Vec<Box<dyn Column>>,
    /// A bit for each field with a value that does not fit the device's integers.
    pub(super) beyond: u64,
    /// The tensors of images that the device has already decoded, in the order of the fields.
    pub(super) decoded: Vec<DeviceTensor>,
}

/// A batch while workers fill it. Each task adds its part, and the last one makes the batch.
pub(crate) struct OpenBatch<O> {
    pub(crate) plan: Arc<BatchPlan>,
    filling: Mutex<Filling<O>>,
}

/// The progress of the tasks of a batch.
struct Filling<O> {
    /// The tasks that have not ended.
    tasks: usize,
    /// The failure that comes first in the order of the batch, regardless of which worker met it and when.
    failed: Option<(usize, Error)>,
    skips: Skips,
    /// `None` once the last task has taken it.
    content: Option<Box<Content<O>>>,
}

/// Work on some rows of a batch, for one worker.
pub(crate) struct Task<O> {
    pub(crate) batch: Arc<OpenBatch<O>>,
    pub(crate) rows: Range<usize>,
    /// The memory of these rows; `None` if a batcher makes the batch.
    pub(crate) chunk: Option<Chunk>,
}

impl<O> OpenBatch<O> {
    pub(crate) fn new(plan: Arc<BatchPlan>, tasks: usize, content: Content<O>) -> Arc<Self> {
        let (failed, skips, content) = (None, Skips::default(), Some(Box::new(content)));
        Arc::new(Self { plan, filling: Mutex::new(Filling { tasks, failed, skips, content }) })
    }

    /// Ends a task: notes its failure and its bad samples, and lets it `add` its part. The last task makes the batch
    /// from all parts, unless a task has failed or no sample is left. An abandoned batch is not made: rows may
    /// be missing, and user code gets only complete batches.
    pub(crate) fn end(
        &self,
        filled: Result<(), (usize, Error)>,
        skips: Skips,
        add: impl FnOnce(&mut Content<O>),
        make: impl FnOnce(Box<Content<O>>, &Skips) -> Result<BatchState<O>, Error>,
    ) -> Option<Batch<O>> {
        // Errors to drop after the lock is released, because dropping them is user code: those beyond the listed ones, and the later of two
        // failures.
        let mut later = filled.err();
        let place = self.plan.place(Stage::Finish);
        let _too_many;
        let mut filling = self.filling.lock();
        if let Some(content) = &mut filling.content {
            add(content);
        }
        _too_many = filling.skips.merge(skips);
        if let Some((position, _)) = &later
            && filling.failed.as_ref().is_none_or(|(earlier, _)| position < earlier)
        {
            mem::swap(&mut filling.failed, &mut later);
        }
        filling.tasks -= 1;
        let is_last = filling.tasks == 0;
        let (failed, skips, content) = match is_last {
            true => (filling.failed.take(), mem::take(&mut filling.skips), filling.content.take()),
            false => (None, Skips::default(), None),
        };
        drop(filling);
        discard(place, later);
        let content = content?;
        if self.plan.abandoned.load(Relaxed) {
            discard(place, failed);
            return None;
        }
        let state = match failed {
            Some((_, error)) => Err(error),
            None if skips.skipped.len() == self.plan.indices.len() => Ok(BatchState::Empty),
            None => make(content, &skips),
        };
        Some(Batch { key: self.plan.key, state: state.unwrap_or_else(BatchState::Failed), skips })
    }
}

/// A way to make batches, for one device: `rows.rs` and `items.rs` have one each. All batches of a loader share it. A call with the content
/// of the other way returns [`Error::Ended`].
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// Returns this source for a particular device.
    ///
    /// # Errors
    /// If the device does not support an option.
    fn on(&self, target: Target) -> Result<Arc<dyn Source<O>>, Error>;

    /// Opens a way to copy batches to the device, for the calling transfer thread.
    fn transport(&self, state: &TransferState) -> Result<Box<dyn Transport>, BoxError> {
        self.target().transport(state)
    }

    /// The policy for faults.
    fn faults(&self) -> &Faults;

    /// The size of a batch's slot in bytes, if it is known in advance.
    fn slot_bytes(&self) -> Option<usize> {
        None
    }

    /// Whether the times of a batch's samples may differ much, as those of images do.
    fn is_uneven(&self) -> bool {
        false
    }

    /// Cuts a batch into tasks of at most `chunk` rows. Runs on a worker.
    fn open(
        &self,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wait: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Task<O>>, Error>;

    /// Runs a task. Stops the clock when the rows are done, before the work on the batch as a whole. The last task of a
    /// batch to end returns the batch. Errors are reported where they occur.
    fn run(&self, task: Task<O>, clock: &mut TaskClock<'_>) -> Option<Batch<O>>;

    /// Closes the gaps of padded rows, or packs pageable tensors. Runs on the pin thread; on a CPU backend, on a
    /// worker.
    fn pin(&self, content: Box<Content<O>>, pool: &Arc<Pool>, wait: &Wait<'_>) -> Result<Box<Content<O>>, Error>;

    /// Lets the device decode images, if it is the decoder. Returns the samples that are skipped. Runs on a transfer
    /// thread.
    fn decode(&self, _: &mut Content<O>, _: &mut Uploader) -> Result<Skips, Error> {
        Ok(Skips::default())
    }

    /// Hands the batch to the device. Runs on a transfer thread; on a CPU backend, on a worker.
    fn send(&self, content: Box<Content<O>>, pool: &Arc<Pool>, uploader: &mut Uploader)
    -> Result<BatchState<O>, Error>;

    /// Makes the user's batch. Runs on the consumer's thread; on a CPU backend, on a worker.
    fn finish(&self, content: Content<O>) -> Result<BatchState<O>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{HeapAlloc, PoolLimits};
    use std::time::Duration;

    #[derive(Debug, thiserror::Error)]
    #[error("a mine")]
    struct MinedError;

    impl Drop for MinedError {
        fn drop(&mut self) {
            panic!("a bad end");
        }
    }

    /// The drop of an error is user code, and two panics in one drop would end the process.
    #[test]
    fn the_errors_of_two_tasks_are_dropped_one_by_one() {
        for first in [0, 1] {
            let pool = Pool::new(Arc::new(HeapAlloc), PoolLimits { slots: 1, bytes: 1 }, Arc::default());
            let (key, abandoned) = (BatchKey::new(0, 0), Arc::default());
            let plan =
                BatchPlan { key, indices: [5, 6].into(), items: None, positions: None, occurrences: None, abandoned };
            let place = plan.place(Stage::Read);
            let content = Content::<()>::Samples(Box::new(()), pool.permit(Duration::ZERO).expect("a permit"));
            let batch = OpenBatch::new(Arc::new(plan), 2, content);
            let end = |row: usize| {
                let place = Place { index: Some(5 + row), ..place };
                let failed = (row, Error::Failed { place, source: Box::new(MinedError) });
                batch.end(Err(failed), Skips::default(), |_| (), |_, _| Err(Error::Ended))
            };
            assert!(end(first).is_none());
            let ended = end(1 - first).expect("it was the last task");
            let BatchState::Failed(error) = ended.state else { panic!("the batch has failed") };
            assert_eq!(error.place().and_then(|place| place.index), Some(5), "the failure that comes first");
            mem::forget(error);
        }
    }
}
