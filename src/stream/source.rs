//! A stream as the user describes it: how it is opened, and how its items are dealt, mixed and changed.

use crate::fault::{BoxError, LeftOut, is_left_out};
use burn_shards::{DataError, ShardStream};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Where a stream is to be opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamPlace {
    /// The epoch of the loader, from 0. Of an [`endless`](Stream::endless) stream it is always 0.
    pub epoch: usize,
    /// The number of the shard, from 0. Without [`shards`](Stream::shards) it is 0.
    pub shard: usize,
    /// How many items of the epoch (of the shard, if there are shards) are not wanted, because they were given before. It is 0 unless the
    /// stream was made by [`Stream::seeking`].
    pub skip: usize,
    /// What [`SaveState::save`] gave. `None` to begin at the first item, and unless the stream was made by [`Stream::saving`].
    pub state: Option<String>,
}

/// An iterator that can say where it is, for [`Stream::saving`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot save its place",
    label = "this iterator does not implement `SaveState`",
    note = "use `Stream::new`, which reads over what was given before, or `Stream::seeking`"
)]
pub trait SaveState: Iterator {
    /// Returns a text from which the stream can be opened so that its next item is the one that this iterator gives next. It is called after
    /// each batch, on the thread that reads.
    ///
    /// # Errors
    /// Any error ends the stream in place of the next batch.
    fn save(&mut self) -> Result<String, BoxError>;
}

/// An error of a stream as a whole, such as a lost connection. Returned by the iterator, or held by its error, it is in place of a batch and
/// ends the epoch, while any other error is that of one item. Errors of `data` that are of no single row do the same.
#[derive(Debug, thiserror::Error)]
#[error("the stream has failed: {0}")]
pub struct StreamError(#[source] pub BoxError);

/// Whether an error is of the stream and not of an item.
pub(super) fn is_of_stream(error: &BoxError) -> bool {
    let of_rows = error.downcast_ref::<DataError>();
    error.is::<StreamError>()
        || of_rows.is_some_and(|error| !matches!(error, DataError::Row { .. } | DataError::TooLarge { .. }))
}

/// An item, or the work that makes it.
pub(super) struct StreamItem<I> {
    item: ItemWork<I>,
    /// Its size, as far as the user says it.
    pub(super) bytes: usize,
}

enum ItemWork<I> {
    Already(I),
    ByWorker(Box<dyn FnOnce() -> Result<I, BoxError> + Send>),
}

impl<I> StreamItem<I> {
    fn later(bytes: usize, work: impl FnOnce() -> Result<I, BoxError> + Send + 'static) -> Self {
        Self { item: ItemWork::ByWorker(Box::new(work)), bytes }
    }

    /// Does the work, on a worker.
    pub(super) fn make(self) -> Result<I, BoxError> {
        match self.item {
            ItemWork::Already(item) => Ok(item),
            ItemWork::ByWorker(work) => work(),
        }
    }
}

/// The items of an open stream.
pub(super) trait OpenItems<I>: Send {
    fn next(&mut self) -> Option<Result<StreamItem<I>, BoxError>>;

    /// The state of the source, if it saves one.
    fn save(&mut self) -> Option<Result<String, BoxError>>;
}

/// Saves the state of an iterator.
type Save<T> = fn(&mut T) -> Result<String, BoxError>;

/// The items of an iterator.
struct Items<T> {
    iter: T,
    save: Option<Save<T>>,
    ended: bool,
}

impl<I, E: Into<BoxError>, T: Iterator<Item = Result<I, E>> + Send> OpenItems<I> for Items<T> {
    fn next(&mut self) -> Option<Result<StreamItem<I>, BoxError>> {
        if self.ended {
            return None; // the iterator may block if it is called again
        }
        let item = self.iter.next();
        self.ended = item.is_none();
        Some(item?.map_err(Into::into).map(|item| StreamItem { item: ItemWork::Already(item), bytes: 0 }))
    }

    fn save(&mut self) -> Option<Result<String, BoxError>> {
        self.save.map(|save| save(&mut self.iter))
    }
}

/// The items of a stream, changed: `next` makes each from items of the stream.
struct ChangedItems<J, N> {
    items: Box<dyn OpenItems<J>>,
    next: N,
}

impl<J, I, N> OpenItems<I> for ChangedItems<J, N>
where
    N: FnMut(&mut dyn OpenItems<J>) -> Option<Result<StreamItem<I>, BoxError>> + Send,
{
    fn next(&mut self) -> Option<Result<StreamItem<I>, BoxError>> {
        (self.next)(&mut *self.items)
    }

    fn save(&mut self) -> Option<Result<String, BoxError>> {
        self.items.save()
    }
}

type Open<I> = Arc<dyn Fn(&StreamPlace) -> Result<Box<dyn OpenItems<I>>, BoxError> + Send + Sync>;

/// Samples without an index: they are read one after the other, as from a pipe, a server or a message queue.
/// [`build_stream`](crate::PinnedDataLoaderBuilder::build_stream) makes a loader of it.
///
/// ```
/// use burn::{prelude::*, tensor::DType};
/// use burn_pinned::{Field, PinnedDataLoaderBuilder, collate, stream::Stream};
/// use std::io::{BufRead, Cursor};
///
/// let lines = || Cursor::new("1\n2\n3\n"); // or `std::io::stdin().lock()`, a file, a socket
/// let stream = Stream::new(move |_| Ok(lines().lines())).map(|line| Ok(line.parse::<f32>()?)); // `map` runs on the workers
///
/// let numbers = collate(
///     [Field::new("x", DType::F32, [])],
///     |x: &f32, row| Ok(row.put("x", *x)?),
///     |mut batch| Ok(batch.take::<1, Float>("x")?),
/// );
/// let loader = PinnedDataLoaderBuilder::new(numbers).batch_size(2).build_stream(stream)?;
/// let batches: Vec<Tensor<1>> = loader.iter().collect::<Result<_, _>>()?;
/// assert_eq!([batches[0].dims(), batches[1].dims()], [[2], [1]]); // the last batch ends with the stream
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **Epochs.** An epoch opens the stream and ends with it. With [`steps_per_epoch`](crate::PinnedDataLoaderBuilder::steps_per_epoch) each epoch
/// has this number of batches: a shorter stream begins again, and what a longer one has left is not given. A stream that never ends is
/// [`endless`](Self::endless).
///
/// **Threads.** A thread of its own, `bp-stream-0`, opens the stream and calls its iterator. It reads a batch when the batch has a permit
/// for memory. Batches that it reads in a fraction of a millisecond are read up to 16 ahead. Workers do the rest, so batches are the same for any number of workers. If a loader is dropped while
/// the iterator blocks, the thread is left behind, and ends when the call returns. While a worker waits for items it does nothing else, so several
/// iterators at once need as many workers.
///
/// **Processes and devices.** Each opens the stream for itself, and of every `world` items takes the one of its rank. At the end they all
/// stop at the same step: the first items come again to fill up, or the rest is left out with
/// [`drop_uneven`](crate::Distributed::drop_uneven). With [`shards`](Self::shards) each process reads only its own shards.
///
/// **Faults.** An `Err` of the iterator is a bad sample, for [`bad_samples`](crate::PinnedDataLoaderBuilder::bad_samples), and the next item
/// follows it. If opening fails, the iterator panics or its error is a [`StreamError`], that error is in place of the batch, and the epoch ends.
///
/// **Resume.** A [`LoaderState`](crate::LoaderState) continues at the same item, by counting: the items before it are read over. A
/// [`seeking`](Self::seeking) stream is opened there, a [`saving`](Self::saving) one from its own state, and of shards only the current ones
/// are read over. The number of workers may differ. The number of processes may differ too, but not with shards, a shuffle buffer or
/// `steps_per_epoch`. The state of any process will do, but only its own has the places that save time.
#[derive(derive_more::Debug)]
#[debug(
    "Stream {{ shards: {shards:?}, endless: {endless}, interleave: {interleave}, buffer: {buffer}, group: {group}, .. }}"
)]
pub struct Stream<I> {
    pub(super) open: Open<I>,
    pub(super) seeks: bool,
    pub(super) saves: bool,
    /// Whether it leaves out items.
    pub(crate) filters: bool,
    /// How many items of the source an item is made from.
    pub(super) group: usize,
    pub(crate) endless: bool,
    pub(crate) shards: Option<usize>,
    pub(crate) interleave: usize,
    pub(crate) buffer: usize,
}

impl<I> Stream<I> {
    /// The text that identifies the order of the samples, for this many processes and devices.
    pub(crate) fn fingerprint(&self, ranks: usize, steps: Option<usize>) -> String {
        let ranks = if self.shards.is_some() || self.buffer > 1 || steps.is_some() { ranks } else { 0 };
        format!("{self:?} for {ranks} processes, {steps:?} steps")
    }
}

impl<I: Send + 'static> Stream<I> {
    /// A stream of the iterator that `open` returns. It is opened for each epoch, at its first item. An `Err` of `open` ends the epoch.
    pub fn new<E, T>(open: impl Fn(&StreamPlace) -> Result<T, BoxError> + Send + Sync + 'static) -> Self
    where
        E: Into<BoxError> + 'static,
        T: Iterator<Item = Result<I, E>> + Send + 'static,
    {
        Self::of(move |place| Ok(Box::new(Items { iter: open(place)?, save: None, ended: false })))
    }

    /// Like [`new`](Self::new), for a source that can be opened anywhere: the first item is that of number [`StreamPlace::skip`].
    pub fn seeking<E, T>(open: impl Fn(&StreamPlace) -> Result<T, BoxError> + Send + Sync + 'static) -> Self
    where
        E: Into<BoxError> + 'static,
        T: Iterator<Item = Result<I, E>> + Send + 'static,
    {
        Self { seeks: true, ..Self::new(open) }
    }

    /// Like [`new`](Self::new), for a source that saves its own position: it is opened from [`StreamPlace::state`].
    pub fn saving<E, T>(open: impl Fn(&StreamPlace) -> Result<T, BoxError> + Send + Sync + 'static) -> Self
    where
        E: Into<BoxError> + 'static,
        T: SaveState<Item = Result<I, E>> + Send + 'static,
    {
        let saving =
            Self::of(move |place| Ok(Box::new(Items { iter: open(place)?, save: Some(T::save), ended: false })));
        Self { saves: true, ..saving }
    }

    fn of(open: impl Fn(&StreamPlace) -> Result<Box<dyn OpenItems<I>>, BoxError> + Send + Sync + 'static) -> Self {
        let open = Arc::new(open);
        let (seeks, saves, filters, endless) = (false, false, false, false);
        Self { open, seeks, saves, filters, group: 1, endless, shards: None, interleave: 1, buffer: 0 }
    }

    /// Says that the stream never ends. An epoch goes on after the one before it, and
    /// [`steps_per_epoch`](crate::PinnedDataLoaderBuilder::steps_per_epoch) must say how long it is. What an epoch that is left early has not
    /// given is read over. If the stream ends all the same, the epoch ends too. Use one iterator at a time: two would open
    /// the source again and again.
    pub fn endless(self) -> Self {
        Self { endless: true, ..self }
    }

    /// Says that the stream has this many parts, which are opened one by one, with [`StreamPlace::shard`]. Each process or device reads every
    /// `world`-th of them. Several need [`steps_per_epoch`](crate::PinnedDataLoaderBuilder::steps_per_epoch), since their shares end at
    /// different steps.
    pub fn shards(self, shards: usize) -> Self {
        Self { shards: Some(shards), ..self }
    }

    /// Reads this many shards at once, each on a thread `bp-stream-0-N`, and takes an item of each in turn. When one ends, the next shard
    /// takes its place. It is opened as soon as the end of the other is known. The order depends on this number. Default: 1.
    pub fn interleave(self, shards: usize) -> Self {
        Self { interleave: shards, ..self }
    }

    /// Shuffles through a buffer of this many samples of each process, and deals the shards in a random order. The seed is that of the loader
    /// ([`seed`](crate::PinnedDataLoaderBuilder::seed)). An epoch begins when the buffer is full. `docs/samplers.md` says how far the order is
    /// from a full shuffle. The buffer holds what the stream's iterator gives, before [`map`](Self::map): let that be small.
    pub fn shuffle_buffer(self, samples: usize) -> Self {
        Self { buffer: samples, ..self }
    }

    /// Says how many bytes an item of the iterator takes, for the statistics of the shuffle buffer
    /// ([`Stats::buffer_bytes`](crate::Stats::buffer_bytes)). Call it before [`map`](Self::map), since a mapped item is not made yet.
    pub fn measured(self, bytes: impl Fn(&I) -> usize + Clone + Send + Sync + 'static) -> Self {
        self.changed(1, move || {
            let bytes = bytes.clone();
            move |items| {
                Some(items.next()?.map(|StreamItem { item, .. }| {
                    let bytes = if let ItemWork::Already(item) = &item { bytes(item) } else { 0 };
                    StreamItem { item, bytes }
                }))
            }
        })
    }

    /// Changes each item, on the workers. An `Err` is a bad sample.
    pub fn map<O: Send + 'static>(
        self,
        with: impl Fn(I) -> Result<O, BoxError> + Clone + Send + Sync + 'static,
    ) -> Stream<O> {
        self.changed(1, move || {
            let with = with.clone();
            move |items| {
                let with = with.clone();
                Some(items.next()?.map(|item| StreamItem::later(item.bytes, move || with(item.make()?))))
            }
        })
    }

    /// Leaves out items, on the workers. Their batches are smaller. For full batches filter the iterator itself: that runs on its thread.
    pub fn filter(self, keeps: impl Fn(&I) -> bool + Clone + Send + Sync + 'static) -> Self {
        let kept = self.map(move |item| if keeps(&item) { Ok(item) } else { Err(LeftOut.into()) });
        Self { filters: true, ..kept }
    }

    /// Joins `size` items that follow each other into a `Vec`. The last one may have fewer, and items that are left out are missing. `map`
    /// then makes something of it, such as a mosaic.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn chunks(self, size: usize) -> Stream<Vec<I>> {
        assert!(size > 0, "a chunk has at least one item");
        self.changed(size, move || {
            move |items| {
                let mut of = Vec::with_capacity(size.min(1024));
                while of.len() < size
                    && let Some(item) = items.next()
                {
                    match item {
                        Err(error) if is_of_stream(&error) => return Some(Err(error)),
                        item => of.push(item),
                    }
                }
                let bytes = of.iter().flatten().map(|item: &StreamItem<I>| item.bytes).sum();
                let is_end = of.is_empty();
                let make = move || {
                    let made = of.into_iter().map(|item| item?.make());
                    let some: Vec<_> = made
                        .filter(|item| !matches!(item, Err(error) if is_left_out(&**error)))
                        .collect::<Result<_, _>>()?;
                    if some.is_empty() { Err(LeftOut.into()) } else { Ok(some) }
                };
                (!is_end).then(|| Ok(StreamItem::later(bytes, make)))
            }
        })
    }

    fn changed<O, N>(self, group: usize, next: impl Fn() -> N + Send + Sync + 'static) -> Stream<O>
    where
        O: Send + 'static,
        N: FnMut(&mut dyn OpenItems<I>) -> Option<Result<StreamItem<O>, BoxError>> + Send + 'static,
    {
        let Self { open, seeks, saves, filters, endless, shards, interleave, buffer, .. } = self;
        let group = self.group.saturating_mul(group);
        let changed = move |place: &StreamPlace| Ok(Box::new(ChangedItems { items: open(place)?, next: next() }) as _);
        Stream { seeks, saves, filters, group, endless, shards, interleave, buffer, ..Stream::of(changed) }
    }
}

/// The rows of shards, each of which is read once.
impl<T: DeserializeOwned + Send + 'static> From<ShardStream<T>> for Stream<T> {
    fn from(shards: ShardStream<T>) -> Self {
        let count = shards.shards();
        Self::new(move |place| Ok(shards.open(place.shard)?)).shards(count)
    }
}
