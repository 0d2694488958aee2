//! Loaders of streams: what they deliver, where they end, and what a resume, other processes and faults change.

mod ends;
mod faults;
mod killed;
mod refused;
mod rest;
mod shares;
mod shuffled;

use crate::common::{self, Shown, numbers};
use burn_pinned::{
    BoxError, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder,
    stream::{SaveState, Stream, StreamPlace},
};
use rand::RngExt;
use std::{
    convert::Infallible,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

type Builder = PinnedDataLoaderBuilder<usize, Shown>;

/// Changes the number in a way that shows whether its random numbers are the same.
fn jitter(number: usize, rng: &mut KeyedRng) -> Result<usize, BoxError> {
    Ok(number * 1000 + rng.random_range(0..1000))
}

fn builder() -> Builder {
    common::sized(7).augment(jitter).seed(3)
}

fn good(numbers: Range<usize>) -> impl Iterator<Item = Result<usize, Infallible>> + Send {
    numbers.map(Ok)
}

/// The numbers below `len`.
fn plain(len: usize) -> Stream<usize> {
    Stream::new(move |_| Ok(good(0..len)))
}

/// Shards of different lengths: the items of shard `s` are `100 * s` and following.
fn shard(place: &StreamPlace) -> Range<usize> {
    100 * place.shard..100 * place.shard + [13, 0, 40, 5, 21][place.shard % 5]
}

fn shards(count: usize) -> Stream<usize> {
    Stream::new(|place| Ok(good(shard(place)))).shards(count)
}

/// A range that saves its place, and counts how many of its items are read.
struct Saved(Range<usize>, Arc<AtomicUsize>);

impl Iterator for Saved {
    type Item = Result<usize, Infallible>;
    fn next(&mut self) -> Option<Self::Item> {
        self.1.fetch_add(1, Relaxed);
        self.0.next().map(Ok)
    }
}

impl SaveState for Saved {
    fn save(&mut self) -> Result<String, BoxError> {
        Ok(self.0.start.to_string())
    }
}

fn saving(of: impl Fn(&StreamPlace) -> Range<usize> + Send + Sync + 'static, read: &Arc<AtomicUsize>) -> Stream<usize> {
    let read = Arc::clone(read);
    Stream::saving(move |place| {
        let Range { start, end } = of(place);
        let start = place.state.as_ref().map_or(Ok(start), |state| state.parse())?;
        Ok(Saved(start..end, Arc::clone(&read)))
    })
}

fn shown(loader: &PinnedDataLoader<Shown>) -> Vec<Shown> {
    common::epoch(loader)
}

/// The numbers of the next epoch, before they were changed.
fn items(loader: &PinnedDataLoader<Shown>) -> Vec<usize> {
    numbers(&shown(loader)).into_iter().map(|number| number as usize / 1000).collect()
}

/// A stream with its options, by name.
type Kind = (&'static str, fn() -> Stream<usize>, Option<usize>);

fn kinds() -> Vec<Kind> {
    fn endless() -> Stream<usize> {
        plain(usize::MAX).endless()
    }
    fn saved(count: usize) -> Stream<usize> {
        saving(shard, &Arc::default()).shards(count)
    }
    vec![
        ("plain", || plain(101), None),
        ("of full batches", || plain(70), None),
        ("seeking", || Stream::seeking(|place| Ok(good(place.skip..101))), None),
        ("saving", || saving(|_| 0..101, &Arc::default()), None),
        ("mapped", || plain(101).map(|number| Ok(number + 5)), None),
        (
            "grouped",
            || Stream::seeking(|place| Ok(good(place.skip..101))).chunks(2).map(|two| Ok(two.into_iter().product())),
            None,
        ),
        ("of shards", || shards(7), None),
        ("interleaved", || shards(7).interleave(3), None),
        ("interleaved, saving", || saved(7).interleave(4), None),
        ("shuffled", || plain(101).shuffle_buffer(20), None),
        ("shuffled, shorter than the buffer", || plain(101).shuffle_buffer(200), None),
        ("shuffled, saving", || saving(|_| 0..101, &Arc::default()).shuffle_buffer(20), None),
        ("shuffled shards", || saved(7).interleave(3).shuffle_buffer(20), None),
        ("in steps", || plain(30), Some(3)),
        ("in steps that begin again", || plain(30), Some(11)),
        ("shards in steps that begin again", || shards(7).interleave(2).shuffle_buffer(9), Some(40)),
        ("endless", endless, Some(9)),
        ("endless, shuffled", || endless().shuffle_buffer(20), Some(9)),
    ]
}

fn build((_, stream, steps): Kind, builder: Builder) -> Arc<PinnedDataLoader<Shown>> {
    steps.into_iter().fold(builder, Builder::steps_per_epoch).build_stream(stream()).unwrap()
}
