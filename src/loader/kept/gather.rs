//! One epoch of a kept data set: its batches are gathered on the device, in the sampler's order.

use super::{OfAll, tables::Tables};
use crate::{
    batch::{BatchPlace, Finished, RawBatch, Ready, ToFinish},
    device::Uploaded,
    fault::{Error, Skips, discard, guard},
    loader::batches::{Batches, Given},
    observe::Span,
    order::{BatchIndices, Feed},
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

/// The numbers of so many rows go to the device at once, or those of one batch.
const AT_ONCE: usize = 1 << 20;
/// So many batches are planned at once, as they may have few rows.
const BATCHES: usize = 4096;

/// The batches of one epoch.
pub(super) struct Gather<O> {
    of_all: Arc<OfAll<O>>,
    tables: Arc<Tables>,
    device: Device,
    /// Dropped with care: what the sampler has made is user code.
    feed: Option<Feed>,
    /// The numbers of the batches that are not planned yet.
    batches: Range<usize>,
    first: BatchKey,
    planned: VecDeque<Planned>,
    /// The rows of the batches that were planned last, and the same on the device once the first of them is taken.
    rows: Vec<i32>,
    on_device: Option<Tensor<1, Int>>,
}

/// A batch that is still to be gathered.
struct Planned {
    at: BatchPlace,
    samples: Result<Samples, Error>,
}

struct Samples {
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
        let (planned, rows) = (VecDeque::new(), Vec::new());
        Self { of_all, tables, device, feed: Some(feed), batches, first, planned, rows, on_device: None }
    }

    /// Plans the next batches.
    fn plan(&mut self) {
        let Some(mut feed) = self.feed.take() else { return };
        let of_all = Arc::clone(&self.of_all);
        (self.rows, self.on_device) = (Vec::new(), None);
        // An error has its turn before anything else is asked of the sampler.
        while self.rows.len() < AT_ONCE
            && self.planned.len() < BATCHES
            && self.planned.back().is_none_or(|last| last.samples.is_ok())
            && let Some(number) = self.batches.next()
        {
            let key = BatchKey { number, ..self.first };
            let at = BatchPlace { key, position: feed.position() };
            let _span = Span::new(&of_all.faults.counters, Stage::Sampler, key);
            let place = Place::batch(Stage::Sampler, key);
            let samples = feed.take(place).and_then(|BatchIndices { indices, .. }| self.samples(&indices, place));
            let samples = samples.inspect_err(|error| of_all.faults.saw(error));
            self.planned.push_back(Planned { at, samples });
        }
        if self.batches.is_empty() {
            discard(Place::batch(Stage::Sampler, self.first), feed)
        } else {
            self.feed = Some(feed)
        }
    }

    /// Finds the rows of a batch.
    fn samples(&mut self, asked: &[usize], place: Place) -> Result<Samples, Error> {
        let (first, len) = (self.rows.len(), self.of_all.len);
        if let Some(index) = asked.iter().copied().find(|index| *index >= len) {
            let place = Place { index: Some(index), ..place };
            return Err(Error::IndexOutOfRange { place, index, len });
        }
        let (mut skips, mut indices) = (Skips::default(), Vec::with_capacity(asked.len()));
        for (position, index) in asked.iter().enumerate() {
            if let Some((row, index)) = self.of_all.fates.of(*index, position, &mut skips) {
                self.rows.push(row as i32); // there are no more rows than that
                indices.push(index);
            }
        }
        Ok(Samples { rows: first..self.rows.len(), indices: indices.into(), skips })
    }

    /// The rows of a batch on the device.
    fn rows_of(&mut self, rows: Range<usize>, key: BatchKey) -> Result<Tensor<1, Int>, Error> {
        guard(Place::batch(Stage::Transfer, key), || {
            let all = self.on_device.get_or_insert_with(|| {
                let data = TensorData::new(self.rows.clone(), [self.rows.len()]);
                Tensor::from_data(data, (&self.device, DType::I32))
            });
            Ok(all.clone().slice([rows]))
        })
    }
}

impl<O: 'static> Batches<O> for Gather<O> {
    fn next(&mut self) -> Option<Given<O>> {
        if self.planned.is_empty() {
            self.plan();
        }
        let Planned { at, samples } = self.planned.pop_front()?;
        let (mut skips, waited) = (Skips::default(), Duration::ZERO);
        let ready = samples.and_then(|samples| {
            skips = samples.skips;
            if samples.indices.is_empty() {
                return Ok(Ready::Empty);
            }
            let longest = |field| {
                let rows = self.rows[samples.rows.clone()].iter().map(|row| *row as usize);
                self.of_all.lengths.longest(field, rows)
            };
            let longest = (0..self.of_all.fields.len()).map(longest).collect();
            let rows = self.rows_of(samples.rows, at.key).inspect_err(|error| self.of_all.faults.saw(error))?;
            let (of_all, tables) = (Arc::clone(&self.of_all), Arc::clone(&self.tables));
            let (device, indices) = (self.device.clone(), samples.indices);
            Ok(Ready::Raw(Box::new(ToGather { of_all, tables, device, at, indices, longest, rows }) as _))
        });
        Some(Given { key: at.key, ready, skips, waited })
    }

    fn handed(&self, _: Duration, _: Option<Duration>) {} // there are no workers
}

impl<O> Drop for Gather<O> {
    fn drop(&mut self) {
        if let Some(feed) = self.feed.take() {
            discard(Place::batch(Stage::Sampler, self.first), feed);
        }
    }
}

/// A batch whose rows are known.
struct ToGather<O> {
    of_all: Arc<OfAll<O>>,
    tables: Arc<Tables>,
    device: Device,
    at: BatchPlace,
    indices: Arc<[usize]>,
    /// The longest row of each padded field.
    longest: Vec<usize>,
    rows: Tensor<1, Int>,
}

impl<O> ToGather<O> {
    fn gather(&self) -> RawBatch {
        let items = self.indices.len();
        let mut raw = RawBatch::new(items, self.device.clone(), self.of_all.seed, self.at);
        raw.set_indices(Arc::clone(&self.indices));
        for ((field, table), longest) in self.of_all.fields.iter().zip(&self.tables.fields).zip(&self.longest) {
            let shape = field.batch_shape(items, *longest);
            raw.push(field, &shape, Uploaded::Tensor(table.gather(&self.rows, &shape)));
        }
        raw
    }
}

impl<O> ToFinish<O> for ToGather<O> {
    fn finish(self: Box<Self>) -> Result<Finished<O>, Error> {
        let key = self.at.key;
        let _span = Span::new(&self.of_all.faults.counters, Stage::Finish, key);
        let raw = guard(Place::batch(Stage::Transfer, key), || Ok(self.gather()))?;
        let (items, permit) = (raw.len(), None);
        let batch = guard(Place::batch(Stage::Finish, key), || (self.of_all.finish)(raw))?;
        Ok(Finished { batch, items, permit })
    }
}
