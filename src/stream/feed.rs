//! Gives an epoch's batches the items of a stream.

use super::{
    lanes::Lanes,
    reader::Reader,
    share::{Dealt, NumberedItem, Share, ShareMark},
    source::Stream,
};
use crate::{
    fault::{BoxError, Error, UserValues, during},
    observe::Counters,
    order::{Distributed, FeedBatch, ItemFeed, RandomSampler, Sampler},
    sync::locks::Mutex,
    vocabulary::Place,
};
use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::{Arc, atomic::AtomicBool},
};

/// The items of a batch. Each is taken once, by the worker that writes it.
pub(crate) struct BatchItems<I>(UserValues<NumberedItem<I>>);

impl<I> BatchItems<I> {
    /// Takes the item at a position of the batch as it was opened. Work that makes the item is done here.
    pub(crate) fn take(&self, position: usize) -> Result<I, BoxError> {
        let item = self.0.get(position).and_then(|(_, item)| item.lock().take());
        item.ok_or(EmptyStream)??.make() // each is there once
    }
}

/// Places of a stream after the batches of an epoch, by the number of samples up to there.
pub(crate) type BatchMarks = Mutex<VecDeque<(usize, ShareMark)>>;

/// A stream of any type, opened for a process.
pub(crate) trait OpenStream: Send + Sync {
    /// Opens the stream for an epoch of a process or device, after its first `given` samples. Up to `ahead` batches are
    /// read together; if more than one, before they have memory.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    fn open(
        &self,
        epoch: usize,
        given: usize,
        of: Distributed,
        mark: Option<ShareMark>,
        ahead: usize,
    ) -> Result<(Box<dyn ItemFeed>, Arc<BatchMarks>), Error>;
}

/// The stream of a loader.
pub(crate) struct StreamOrigin<I: Send + 'static> {
    stream: Arc<Stream<I>>,
    seed: u64,
    /// The samples of each process in an epoch, if the user has set it.
    epoch_samples: Option<usize>,
    drop_last: bool,
    counters: Arc<Counters>,
    /// The readers of an endless stream between two epochs, by rank.
    between: Arc<Mutex<HashMap<usize, ReaderPlace<I>>>>,
}

impl<I: Send + 'static> StreamOrigin<I> {
    pub(crate) fn new(
        stream: Stream<I>,
        seed: u64,
        epoch_samples: Option<usize>,
        drop_last: bool,
        counters: Arc<Counters>,
    ) -> Self {
        Self { stream: Arc::new(stream), seed, epoch_samples, drop_last, counters, between: Arc::default() }
    }

    fn reader(
        &self,
        epoch: usize,
        given: usize,
        of: Distributed,
        mark: Option<ShareMark>,
    ) -> Result<ReaderPlace<I>, Error> {
        let stream = &self.stream;
        // An older mark is as good, but takes longer. A shuffle buffer needs the items that it holds.
        let mark = mark.filter(|mark| mark.epoch == epoch && mark.taken <= given);
        let (end, taken) = (mark.as_ref().and_then(|mark| mark.end), mark.as_ref().map_or(0, |mark| mark.taken));
        let all = stream.shards.unwrap_or(1);
        let shards: Vec<usize> = match stream.buffer {
            0 | 1 => (0..all).collect(),
            _ => RandomSampler::new(self.seed).indices(all, epoch).collect(),
        };
        let (shards, (rank, world)) = match stream.shards {
            Some(_) => (shards.into_iter().skip(of.rank()).step_by(of.world()).collect(), (0, 1)),
            None => (shards, (of.rank(), of.world())),
        };
        let name = format!("bp-stream-{}", of.rank());
        let lanes = Lanes::new(Arc::clone(stream), epoch, name.clone(), shards, mark.map(|mark| mark.lanes))?;
        let (fills, repeats) = (!of.drops_uneven() && !stream.endless, self.epoch_samples.is_some() && !stream.endless);
        let items = Dealt { lanes, world, rank, fills, repeats, taken, last: false, ended: false };
        let key = (self.seed, epoch, of.rank());
        let share = Share::new(items, key, stream.buffer, given, end, Arc::clone(&self.counters));
        Ok(ReaderPlace { reader: Reader::start(name, share)?, given, asked: 0 })
    }
}

impl<I: Send + 'static> OpenStream for StreamOrigin<I> {
    fn open(
        &self,
        epoch: usize,
        given: usize,
        of: Distributed,
        mark: Option<ShareMark>,
        ahead: usize,
    ) -> Result<(Box<dyn ItemFeed>, Arc<BatchMarks>), Error> {
        let before = if self.stream.endless { epoch.saturating_mul(self.epoch_samples.unwrap_or(0)) } else { 0 };
        let from = before.saturating_add(given);
        let between = self.between.lock().remove(&of.rank()).filter(|reader| reader.given <= from);
        let reader = match between {
            Some(reader) => reader,
            None => self.reader(if self.stream.endless { 0 } else { epoch }, from, of, mark)?,
        };
        let marks = Arc::<BatchMarks>::default();
        let feed = StreamFeed {
            reader: Some(reader),
            from,
            before,
            failed: None,
            of,
            drop_last: self.drop_last,
            is_endless: self.stream.endless,
            ahead,
            is_bare: given == 0,
            marks: Arc::clone(&marks),
            between: Arc::clone(&self.between),
        };
        Ok((Box::new(feed), marks))
    }
}

/// A reader, and how many samples it has given.
struct ReaderPlace<I: Send + 'static> {
    reader: Reader<Share<I>>,
    given: usize,
    /// How many batches were asked for that were not taken.
    asked: usize,
}

/// The items of an epoch.
struct StreamFeed<I: Send + 'static> {
    /// `None` once the stream has ended.
    reader: Option<ReaderPlace<I>>,
    /// The number of the next sample that is wanted, and of the epoch's first one.
    from: usize,
    before: usize,
    /// The error that is in place of the next batch.
    failed: Option<Box<Error>>,
    of: Distributed,
    drop_last: bool,
    is_endless: bool,
    /// How many batches are asked for at once.
    ahead: usize,
    /// Whether the epoch began with its first sample, and has no batch yet.
    is_bare: bool,
    marks: Arc<BatchMarks>,
    between: Arc<Mutex<HashMap<usize, ReaderPlace<I>>>>,
}

impl<I: Send + 'static> ItemFeed for StreamFeed<I> {
    fn take(&mut self, count: usize, place: Place, unwanted: &AtomicBool) -> Result<Option<FeedBatch>, Error> {
        let mut items = UserValues::default();
        while items.is_empty()
            && self.failed.is_none()
            && let Some(reader) = &mut self.reader
        {
            if reader.asked <= self.ahead / 2 {
                reader.reader.desk.ask(count, self.ahead - reader.asked); // many at once, as each time may wake the thread
                reader.asked = self.ahead;
            }
            let waits = Place { index: Some(self.of.unit(reader.given)), ..place };
            let Some(lot) = during(waits, || reader.reader.desk.take(unwanted)) else { return Err(Error::Ended) };
            reader.asked -= 1;
            reader.given += lot.items.len();
            if reader.given > self.from {
                self.from = reader.given; // a lot is a batch
                items = lot.items;
            }
            self.failed = lot.failed;
            if let Some(mark) = lot.mark {
                self.marks.lock().push_back((self.from - self.before, mark));
            }
            if lot.ended {
                self.reader = None;
            }
        }
        if !(items.is_empty() || self.drop_last && items.len() < count) {
            self.is_bare = false;
            let indices = items.iter().map(|(number, _)| self.of.unit(*number)).collect();
            return Ok(Some(FeedBatch { indices, items: Some(Arc::new(BatchItems(items))) }));
        }
        let is_bare = mem::take(&mut self.is_bare);
        match self.failed.take() {
            Some(error) => Err(in_batch(*error, place)),
            None if is_bare => Err(Error::Failed { place, source: Box::new(EmptyStream) }),
            None => Ok(None),
        }
    }
}

/// The error of a stream, with the place of its batch.
fn in_batch(error: Error, place: Place) -> Error {
    match error {
        Error::Failed { source, .. } => Error::Failed { place, source },
        Error::Panicked { message, trace, .. } => Error::Panicked { place, message, trace },
        error => error,
    }
}

/// The reader of an endless stream waits for the next epoch.
impl<I: Send + 'static> Drop for StreamFeed<I> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take().filter(|_| self.is_endless) {
            let _old = self.between.lock().insert(self.of.rank(), reader);
        }
    }
}

/// A stream without samples, or with too few for a batch: the training would continue without data.
#[derive(Debug, thiserror::Error)]
#[error("the stream has ended before the first batch of the epoch")]
pub struct EmptyStream;
