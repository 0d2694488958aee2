//! One epoch of a kept data set: its batches are gathered on the device, in the sampler's order.

use super::{AT_ONCE, OfAll, tables::Tables};
use crate::{
    batch::{Batch, BatchState, Content, RawBatch},
    device::{DeviceTensor, GatheredRows},
    fault::{Error, Skips, discard, guard},
    memory::RowSize,
    observe::Span,
    order::Feed,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use std::{collections::VecDeque, mem, ops::Range, sync::Arc};

/// The most batches that are gathered at once, as they may have few bytes.
const BATCHES: usize = 64;

/// The batches of one epoch.
pub(in crate::loader) struct Gather<O> {
    of_all: Arc<OfAll<O>>,
    tables: Arc<Tables>,
    device: Device,
    /// Dropped with care, since the drop of what the sampler has made is user code.
    feed: Option<Feed>,
    /// The numbers of the batches that are not planned yet.
    batches: Range<usize>,
    first: BatchKey,
    /// Neighbouring batches, whose rows are gathered at once.
    planned: VecDeque<PlannedBatch>,
    rows: Vec<i32>,
    /// The gathered fields of these batches. They are there from the first of these batches until the last.
    gathered: Vec<GatheredRows>,
}

/// A batch that is still to be gathered.
struct PlannedBatch {
    key: BatchKey,
    samples: Result<GatheredSamples, Error>,
}

impl PlannedBatch {
    /// True if a batch of the same number of samples still fits behind this one, which ends after `rows` rows. A batch
    /// sampler may then give a larger batch, so the rows of one batch may be beyond the limit.
    fn is_followed(&self, rows: usize, most: usize) -> bool {
        self.samples.as_ref().is_ok_and(|samples| rows + samples.rows.len() <= most)
    }
}

struct GatheredSamples {
    /// Where its rows are among those that were planned.
    rows: Range<usize>,
    /// The indices that are delivered.
    indices: Arc<[usize]>,
    skips: Skips,
}

impl<O> Gather<O> {
    pub(super) fn new(
        of_all: Arc<OfAll<O>>,
        tables: Arc<Tables>,
        device: Device,
        feed: Feed,
        batches: Range<usize>,
        first: BatchKey,
    ) -> Self {
        let (planned, rows, gathered, feed) = (VecDeque::new(), Vec::new(), Vec::new(), Some(feed));
        Self { of_all, tables, device, feed, batches, first, planned, rows, gathered }
    }

    /// Plans the next batches.
    fn plan(&mut self) {
        let Some(mut feed) = self.feed.take() else { return };
        let of_all = Arc::clone(&self.of_all);
        let most = AT_ONCE / self.tables.row_bytes().max(1);
        self.rows.clear();
        self.gathered.clear(); // a panic may have left rows there
        // An error has its turn before anything else is asked of the sampler.
        while self.planned.len() < BATCHES
            && self.planned.back().is_none_or(|last| last.is_followed(self.rows.len(), most))
            && let Some(number) = self.batches.next()
        {
            let key = BatchKey { number, position: feed.position(), ..self.first };
            let _span = Span::new(&of_all.faults.counters, Stage::Sampler, key);
            let place = Place::batch(Stage::Sampler, key);
            let samples = feed.take(place).and_then(|indices| self.samples(indices, place));
            let samples = samples.inspect_err(|error| of_all.faults.saw(error));
            self.planned.push_back(PlannedBatch { key, samples });
        }
        if self.batches.is_empty() {
            discard(Place::batch(Stage::Sampler, self.first), feed)
        } else {
            self.feed = Some(feed)
        }
    }

    /// Finds the rows of a batch.
    fn samples(&mut self, mut indices: Vec<usize>, place: Place) -> Result<GatheredSamples, Error> {
        let (first, len) = (self.rows.len(), self.of_all.len);
        if let Some(index) = indices.iter().copied().find(|index| *index >= len) {
            let place = Place { index: Some(index), ..place };
            return Err(Error::IndexOutOfRange { place, index, len });
        }
        let mut skips = Skips::default();
        if self.of_all.fates.are_good() {
            self.rows.extend(indices.iter().map(|row| *row as i32)); // a data set has at most `i32::MAX` rows
        } else {
            let asked = mem::take(&mut indices).into_iter().enumerate();
            for (position, index) in asked {
                if let Some((row, index)) = self.of_all.fates.of(index, position, &mut skips) {
                    self.rows.push(row as i32);
                    indices.push(index);
                }
            }
        }
        Ok(GatheredSamples { rows: first..self.rows.len(), indices: indices.into(), skips })
    }

    /// The longest of some rows that were planned, for each field.
    fn longest(&self, rows: &Range<usize>) -> Vec<RowSize> {
        let longest = |field| {
            let rows = self.rows[rows.clone()].iter().map(|row| *row as usize);
            self.of_all.lengths.longest(field, rows)
        };
        (0..self.of_all.fields.len()).map(longest).collect()
    }

    /// Gathers the rows of the batches that are planned. Their numbers go to the device as a tensor of memory. Burn's
    /// fusion gathers no operations across such a tensor, so it begins the operations that it has.
    fn gather(&self) -> Vec<GatheredRows> {
        let rows = TensorData::new(self.rows.clone(), [self.rows.len()]);
        let rows = Tensor::<1, Int>::from_data(rows, (&self.device, DType::I32));
        let longest = self.longest(&(0..self.rows.len()));
        let each = self.of_all.fields.iter().zip(&self.tables.fields).zip(longest);
        let gathered = each.map(|((field, table), longest)| {
            let shape = field.batch_shape(self.rows.len(), longest);
            table.gather(rows.clone(), &shape)
        });
        gathered.collect()
    }

    /// The plain tensors of a batch.
    fn raw(&mut self, key: BatchKey, samples: &GatheredSamples) -> RawBatch {
        let (of_all, items) = (Arc::clone(&self.of_all), samples.indices.len());
        if self.gathered.is_empty() {
            self.gathered = self.gather();
        }
        let mut raw = RawBatch::new(items, self.device.clone(), of_all.seed, key);
        (raw.indices, raw.compared) = (Some(Arc::clone(&samples.indices)), of_all.compared);
        let (names, columns) = &of_all.columns;
        let rows = || self.rows[samples.rows.clone()].iter().map(|row| *row as usize);
        raw.set_columns(names, columns.iter().map(|column| column.select(&mut rows())));
        let longest = self.longest(&samples.rows);
        for ((field, gathered), longest) in of_all.fields.iter().zip(&self.gathered).zip(longest) {
            let shape = field.batch_shape(items, longest);
            raw.push(field, &shape, DeviceTensor::from(gathered(samples.rows.start, &shape)));
        }
        if samples.rows.end == self.rows.len() {
            self.gathered.clear(); // the last batch does not keep the others' memory
        }
        raw
    }
}

impl<O> Gather<O> {
    /// The next batch; `None` at the epoch's end.
    pub(in crate::loader) fn next(&mut self) -> Option<Batch<O>> {
        if self.planned.is_empty() {
            self.plan();
        }
        let PlannedBatch { key, samples } = self.planned.pop_front()?;
        let mut skips = Skips::default();
        let state = samples.and_then(|mut samples| {
            skips = mem::take(&mut samples.skips);
            if samples.indices.is_empty() {
                return Ok(BatchState::Empty);
            }
            let raw = guard(Place::batch(Stage::Transfer, key), || Ok(self.raw(key, &samples)));
            let raw = raw.inspect_err(|error| self.of_all.faults.saw(error))?;
            Ok(BatchState::OnDevice(Box::new(Content::Tensors(raw, None))))
        });
        Some(Batch { key, state: state.unwrap_or_else(BatchState::Failed), skips })
    }

    /// Makes the user's batch of plain tensors.
    pub(in crate::loader) fn finish_rows(&self, content: Content<O>) -> Result<BatchState<O>, Error> {
        let Content::Tensors(raw, permit) = content else { return Err(Error::Ended) };
        let (items, key) = (raw.len(), raw.key());
        let _span = Span::new(&self.of_all.faults.counters, Stage::Finish, key);
        let batch = guard(Place::batch(Stage::Finish, key), || (self.of_all.finish)(raw))?;
        Ok(BatchState::Ready { batch, items, permit })
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
