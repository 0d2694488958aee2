//! Gives an epoch's batches the items of a stream.

use super::{
    lanes::Lanes,
    reader::{LOOK, Lot, Reader},
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
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
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
    /// The items of an epoch of a process or device, after the first `position` samples of all of them. The stream is opened with the first.
    fn open(
        self: Arc<Self>,
        epoch: usize,
        position: usize,
        of: Distributed,
        mark: Option<ShareMark>,
    ) -> (Box<dyn ItemFeed>, Arc<BatchMarks>);
}

/// The stream of a loader.
pub(crate) struct StreamOrigin<I: Send + 'static> {
    pub(crate) stream: Arc<Stream<I>>,
    pub(crate) seed: u64,
    /// The samples of all processes and devices in an epoch, if the user has set it.
    pub(crate) epoch_samples: Option<usize>,
    pub(crate) drop_last: bool,
    pub(crate) counters: Arc<Counters>,
    /// The readers of an endless stream, by world and rank. One epoch after the other uses them.
    pub(crate) readers: Mutex<HashMap<(usize, usize), SharedReader<I>>>,
}

pub(crate) type SharedReader<I> = Arc<Mutex<Option<ReaderPlace<I>>>>;

/// A reader, and how many samples it has given.
pub(crate) struct ReaderPlace<I: Send + 'static> {
    reader: Reader<Share<I>>,
    given: usize,
    /// Whether a batch was asked for that was not taken.
    asked: bool,
}

/// The items of an epoch.
struct StreamFeed<I: Send + 'static> {
    origin: Arc<StreamOrigin<I>>,
    reader: SharedReader<I>,
    /// The epoch in which the stream is opened: 0 if it is endless.
    epoch: usize,
    of: Distributed,
    mark: Option<ShareMark>,
    /// The number of the next sample that is wanted, of the epoch's first one, and of the first one in the order of all processes.
    from: usize,
    before: usize,
    shift: usize,
    ended: bool,
    /// Whether the epoch began with its first sample, and has no batch yet.
    is_bare: bool,
    marks: Arc<BatchMarks>,
}

impl<I: Send + 'static> OpenStream for StreamOrigin<I> {
    fn open(
        self: Arc<Self>,
        epoch: usize,
        position: usize,
        of: Distributed,
        mark: Option<ShareMark>,
    ) -> (Box<dyn ItemFeed>, Arc<BatchMarks>) {
        let (given, marks, endless) = (position / of.world(), Arc::<BatchMarks>::default(), self.stream.endless);
        let before = if endless { epoch.saturating_mul(self.epoch_samples.unwrap_or(0) / of.world()) } else { 0 };
        let feed = StreamFeed {
            reader: if endless {
                Arc::clone(self.readers.lock().entry((of.world(), of.rank())).or_default())
            } else {
                Arc::default()
            },
            origin: self,
            epoch: if endless { 0 } else { epoch },
            of,
            mark,
            from: before.saturating_add(given),
            before,
            shift: position % of.world(),
            ended: false,
            is_bare: position == 0,
            marks: Arc::clone(&marks),
        };
        (Box::new(feed), marks)
    }
}

impl<I: Send + 'static> StreamFeed<I> {
    /// The number of a sample of this process in the order of all processes.
    fn unit(&self, number: usize) -> usize {
        self.of.unit(number).saturating_add(self.shift)
    }

    /// Opens the stream at the next sample.
    fn open(&self) -> Result<ReaderPlace<I>, Error> {
        let StreamOrigin { stream, seed, epoch_samples, counters, .. } = &*self.origin;
        let (of, epoch, given, mixes) = (self.of, self.epoch, self.from, stream.buffer > 1);
        let all = stream.shards.unwrap_or(1);
        let shards: Vec<usize> =
            if mixes { RandomSampler::new(*seed).indices(all, epoch).collect() } else { (0..all).collect() };
        let (shards, rank, world) = match stream.shards {
            Some(_) => (shards.into_iter().skip(of.rank()).step_by(of.world()).collect(), 0, 1),
            None => (shards, of.rank(), of.world()),
        };
        // Without a buffer nothing before the next sample is wanted. An older place is as good, but takes longer.
        let start = given.saturating_mul(world).saturating_add(if world > 1 { self.shift } else { 0 });
        let fits = |mark: &ShareMark| {
            let is_own = mark.world == of.world() || (stream.shards.is_none() && !mixes);
            mark.epoch == epoch && mark.read <= start && is_own
        };
        let (read, lanes, end) = match self.mark.clone().filter(fits) {
            Some(mark) => (mark.read, Some(mark.lanes), mark.end.filter(|_| mark.world == of.world())),
            None => (0, None, None),
        };
        let (over, taken) = if mixes { (0, read / world) } else { (start - read, given) };
        let name = format!("bp-stream-{}", of.rank());
        let lanes = Lanes::new(Arc::clone(stream), epoch, name.clone(), shards, lanes)?;
        let (fills, repeats) = (!of.drops_uneven() && !stream.endless, epoch_samples.is_some() && !stream.endless);
        let items = Dealt { lanes, read, over, world, rank, fills, repeats, taken, ended: false };
        let share = Share::new(items, (*seed, epoch), of, stream.buffer, given, end, Arc::clone(counters));
        Ok(ReaderPlace { reader: Reader::start(name, share)?, given, asked: false })
    }
}

impl<I: Send + 'static> ItemFeed for StreamFeed<I> {
    fn take(&mut self, count: usize, place: Place, unwanted: &AtomicBool) -> Result<Option<FeedBatch>, Error> {
        if self.ended {
            return Ok(None);
        }
        let shared = Arc::clone(&self.reader);
        let mut reader = loop {
            match shared.try_lock() {
                Some(reader) => break reader,
                None if unwanted.load(Relaxed) => return Err(Error::Ended),
                None => thread::sleep(LOOK), // an epoch that was left waits for its last batch
            }
        };
        if reader.as_ref().is_none_or(|reader| reader.given > self.from) {
            *reader = None; // before the source is opened again
            *reader = Some(self.open().inspect_err(|_| self.ended = true)?);
        }
        let lot = loop {
            let Some(ReaderPlace { reader, given, asked }) = &mut *reader else { return Err(Error::Ended) };
            if !mem::replace(asked, true) {
                reader.desk.ask(count);
            }
            let waits = Place { index: Some(self.unit(*given)), ..place };
            let Some(lot) = during(waits, || reader.desk.take(unwanted)) else { return Err(Error::Ended) };
            *asked = false;
            *given += lot.items.len(); // each lot is a batch
            let is_wanted = *given > self.from;
            self.from = self.from.max(*given);
            if is_wanted || lot.ended {
                break if is_wanted { lot } else { Lot { items: UserValues::default(), ..lot } };
            }
        };
        self.ended = lot.ended;
        if lot.ended {
            *reader = None;
        }
        drop(reader);
        let is_bare = mem::take(&mut self.is_bare);
        if let Some(error) = lot.failed {
            return Err(error.of_place(place));
        }
        if lot.items.is_empty() || (self.origin.drop_last && lot.items.len() < count) {
            return if is_bare { Err(Error::Failed { place, source: Box::new(EmptyStream) }) } else { Ok(None) };
        }
        self.marks.lock().extend(lot.mark.map(|mark| (self.from - self.before, mark)));
        let indices = lot.items.iter().map(|(number, _)| self.unit(*number)).collect();
        Ok(Some(FeedBatch { indices, items: Some(Arc::new(BatchItems(lot.items))) }))
    }
}

/// A stream without samples, or with too few for a batch: the training would continue without data.
#[derive(Debug, thiserror::Error)]
#[error("the stream has ended before the first batch of the epoch")]
pub struct EmptyStream;
