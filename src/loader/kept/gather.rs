//! One epoch of a kept dataset: its batches are gathered on the device, in the sampler's order.

use super::{AT_ONCE, KeptData, KeptRows, lengths::batch_shapes, tables::Tables};
use crate::{
    batch::{Batch, BatchState, Content, RawBatch},
    device::{DeviceTensor, GatheredRows},
    fault::{Error, Skips, discard, guard},
    observe::Span,
    order::Feed,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use std::{collections::VecDeque, mem, ops::Range, sync::Arc};

/// The most batches that are gathered at once, because batches may be tiny.
const BATCHES: usize = 64;

/// The batches of one epoch.
pub(in crate::loader) struct Gather<O> {
    kept: Arc<KeptRows<O>>,
    tables: Arc<Tables>,
    device: Device,
    /// Dropped with care, because dropping the sampler's iterator is user code.
    feed: Option<Feed>,
    /// The numbers of the batches that are not planned yet.
    batches: Range<usize>,
    first: BatchKey,
    /// Consecutive batches, whose rows are gathered at once.
    planned: VecDeque<(BatchKey, Result<PlannedBatch, Error>)>,
    rows: Vec<i32>,
    /// The gathered fields of these batches, from the first of these batches until the last.
    gathered: Vec<GatheredRows>,
}

/// A batch that is not gathered yet.
struct PlannedBatch {
    /// The range of its rows among the planned rows.
    rows: Range<usize>,
    /// The indices that are delivered.
    indices: Arc<[usize]>,
    skips: Skips,
}

impl<O> KeptData<O> {
    /// Begins an epoch of the batches with these numbers, on the device of this copy.
    ///
    /// # Errors
    /// If this device is not the one that the rows were read to, and has no memory for them or fails.
    pub(in crate::loader) fn begin(
        &self,
        device: &Device,
        feed: Feed,
        batches: Range<usize>,
        first: BatchKey,
    ) -> Result<Gather<O>, Error> {
        Ok(Gather {
            kept: Arc::clone(&self.rows),
            tables: self.tables_on(device, first)?,
            device: device.clone(),
            feed: Some(feed),
            batches,
            first,
            planned: VecDeque::new(),
            rows: Vec::new(),
            gathered: Vec::new(),
        })
    }
}

impl<O> Gather<O> {
    /// Plans the next batches.
    fn plan(&mut self) {
        let Some(mut feed) = self.feed.take() else { return };
        let kept = Arc::clone(&self.kept);
        let most = AT_ONCE / (self.tables.bytes() / self.kept.len).max(1);
        self.rows.clear();
        self.gathered.clear(); // a panic may have left rows there
        let mut has_room = true;
        while has_room
            && self.planned.len() < BATCHES
            && let Some(number) = self.batches.next()
        {
            let key = BatchKey { number, position: feed.position(), ahead: self.planned.len(), ..self.first };
            let _span = Span::new(&kept.faults.counters, Stage::Sampler, key);
            let place = Place::batch(Stage::Sampler, key);
            let batch = feed.take(place).and_then(|indices| self.find_rows(indices, place));
            let batch = batch.inspect_err(|error| kept.faults.saw(error));
            // A batch sampler may give a larger batch next. An error is delivered before the sampler is called again.
            has_room = batch.as_ref().is_ok_and(|batch| self.rows.len() + batch.rows.len() <= most);
            self.planned.push_back((key, batch));
        }
        if self.batches.is_empty() {
            discard(Place::batch(Stage::Sampler, self.first), feed)
        } else {
            self.feed = Some(feed)
        }
    }

    /// Finds the rows of a batch.
    fn find_rows(&mut self, indices: Vec<usize>, place: Place) -> Result<PlannedBatch, Error> {
        let (first, len) = (self.rows.len(), self.kept.len);
        if let Some(index) = indices.iter().copied().find(|index| *index >= len) {
            let place = Place { index: Some(index), ..place };
            return Err(Error::IndexOutOfRange { place, index, len });
        }
        let (mut skips, mut delivered) = (Skips::default(), Vec::with_capacity(indices.len()));
        for (position, index) in indices.into_iter().enumerate() {
            if let Some((row, index)) = self.kept.fates.of(index, position, &mut skips) {
                self.rows.push(row as i32); // a dataset has at most `i32::MAX` rows
                delivered.push(index);
            }
        }
        Ok(PlannedBatch { rows: first..self.rows.len(), indices: delivered.into(), skips })
    }

    /// The numbers of some planned rows.
    fn numbers(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = usize> {
        self.rows[rows].iter().map(|row| *row as usize)
    }

    /// Gathers the rows of the planned batches. Their numbers go to the device as a tensor of host data. Burn's fusion
    /// does not fuse operations across such a tensor, so it starts the operations that it holds.
    fn gather(&self) -> Vec<GatheredRows> {
        let rows = TensorData::new(self.rows.clone(), [self.rows.len()]);
        let rows = Tensor::<1, Int>::from_data(rows, (&self.device, DType::I32));
        let shapes = batch_shapes(&self.kept.fields, &self.kept.sizes, self.numbers(0..self.rows.len()));
        self.tables.fields.iter().zip(shapes).map(|(table, shape)| table.gather(rows.clone(), &shape)).collect()
    }

    /// The plain tensors of a batch.
    fn raw(&mut self, key: BatchKey, batch: &PlannedBatch) -> RawBatch {
        let (kept, items) = (Arc::clone(&self.kept), batch.indices.len());
        if self.gathered.is_empty() {
            self.gathered = self.gather();
        }
        let mut raw = RawBatch::new(items, self.device.clone(), kept.seed, key);
        (raw.indices, raw.compared) = (Some(Arc::clone(&batch.indices)), kept.compared);
        let (names, columns) = &kept.columns;
        let rows = || self.numbers(batch.rows.clone());
        raw.set_columns(names, columns.iter().map(|column| column.select(&mut rows())));
        let shapes = batch_shapes(&kept.fields, &kept.sizes, rows());
        for ((field, gathered), shape) in kept.fields.iter().zip(&self.gathered).zip(shapes) {
            raw.push(field, &shape, DeviceTensor::from(gathered(batch.rows.start, &shape)));
        }
        if batch.rows.end == self.rows.len() {
            self.gathered.clear(); // the last batch does not keep the others' memory
        }
        raw
    }

    /// The next batch; `None` at the end of the epoch.
    pub(in crate::loader) fn next(&mut self) -> Option<Batch<O>> {
        if self.planned.is_empty() {
            self.plan();
        }
        let (key, batch) = self.planned.pop_front()?;
        let mut skips = Skips::default();
        let state = batch.and_then(|mut batch| {
            skips = mem::take(&mut batch.skips);
            if batch.indices.is_empty() {
                return Ok(BatchState::Empty);
            }
            let raw = guard(Place::batch(Stage::Transfer, key), || Ok(self.raw(key, &batch)));
            let raw = raw.inspect_err(|error| self.kept.faults.saw(error))?;
            Ok(BatchState::OnDevice(Box::new(Content::Tensors(raw, None))))
        });
        Some(Batch { key, state: state.unwrap_or_else(BatchState::Failed), skips })
    }

    /// Makes the user's batch from plain tensors.
    pub(in crate::loader) fn finish_rows(&self, content: Content<O>) -> Result<BatchState<O>, Error> {
        content.finish_rows(&self.kept.faults.counters, &self.kept.finish)
    }
}

impl<O> Drop for Gather<O> {
    fn drop(&mut self) {
        if let Some(feed) = self.feed.take() {
            discard(Place::batch(Stage::Sampler, self.first), feed);
        }
    }
}

#[cfg(test)]
mod tests;
