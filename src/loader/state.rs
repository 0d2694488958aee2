//! The position of a loader in its epochs, so that another loader can continue from there.

use crate::{
    fault::Error,
    order::{Position, Schedule, VERSION, part},
    stream::ShareMark,
    sync::locks::Mutex,
};
use fnv::FnvHasher;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt,
    hash::Hasher,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The position of a loader in its epochs: which batches it has returned, and from which dataset and order. It takes
/// some hundred bytes. Save it next to the model checkpoint, and pass it to
/// [`resume`](crate::PinnedDataLoaderBuilder::resume).
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn::{prelude::*, tensor::DType};
/// use burn_pinned::{BoxError, Collate, Field, LoaderState, PinnedDataLoaderBuilder, RawBatch, RowMut};
///
/// struct Numbers;
/// impl Collate<i32> for Numbers {
///     type Batch = Vec<i32>;
///     fn layout(&self) -> Vec<Field> {
///         vec![Field::new("n", DType::I32, [])]
///     }
///     fn write(&self, n: &i32, row: &mut RowMut<'_>) -> Result<(), BoxError> {
///         Ok(row.put("n", *n)?)
///     }
///     fn finish(&self, mut batch: RawBatch) -> Result<Vec<i32>, BoxError> {
///         Ok(batch.take::<1, Int>("n")?.into_data().try_to_vec()?)
///     }
/// }
/// let builder = || PinnedDataLoaderBuilder::new(Numbers).batch_size(2).shuffle(42);
/// let dataset = || InMemDataset::new(vec![1, 2, 3, 4, 5, 6]);
///
/// let whole: Vec<_> = builder().build(dataset())?.iter().map(Result::unwrap).collect();
/// let loader = builder().num_workers(1).build(dataset())?;
/// let first = loader.iter().next().unwrap()?;
/// let saved = serde_json::to_string(&loader.state())?; // the process may end here
///
/// let state: LoaderState = serde_json::from_str(&saved)?;
/// let rest: Vec<_> = builder().num_workers(2).resume(state).build(dataset())?.iter().map(Result::unwrap).collect();
/// assert_eq!([vec![first], rest].concat(), whole);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderState {
    pub(crate) version: u32,
    pub(crate) epoch: usize,
    /// The number of units of the epoch's global order that all processes together have returned.
    pub(crate) position: usize,
    /// The number of samples of the epoch that all devices of this process together have skipped.
    pub(crate) skipped: usize,
    pub(crate) seed: u64,
    pub(crate) dataset_len: usize,
    /// A description of how the order is cut into batches.
    pub(crate) batches: String,
    /// A description of how the epochs are ordered.
    pub(crate) sampler: String,
    /// Of a stream: a place for each rank of this process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) streams: BTreeMap<usize, ShareMark>,
}

impl LoaderState {
    /// The state at position `at` of a loader with this schedule and seed. `fingerprints` caches the sampler's texts, because they may be
    /// long.
    pub(crate) fn of(
        schedule: &Schedule,
        fingerprints: &OnceLock<(String, String)>,
        seed: u64,
        at: Position,
        streams: BTreeMap<usize, ShareMark>,
    ) -> Self {
        let Position { epoch, given: position, skipped } = at;
        let texts = || {
            let (batches, sampler) = schedule.fingerprint();
            (batches, in_short(&sampler))
        };
        let (batches, sampler) = fingerprints.get_or_init(texts).clone();
        let dataset_len = schedule.dataset_len;
        Self { version: VERSION, epoch, position, skipped, seed, dataset_len, batches, sampler, streams }
    }

    /// The epoch in progress, from 0.
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// The number of samples of the epoch that all processes together have returned; with a batch sampler, the number
    /// of batches.
    pub fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn at(&self) -> Position {
        Position { epoch: self.epoch, given: self.position, skipped: self.skipped }
    }

    /// Checks that a loader at `now` can continue where this one stopped.
    ///
    /// # Errors
    /// [`Error::Config`], which names every difference.
    pub(crate) fn check_against(&self, now: &Self) -> Result<(), Error> {
        let mut differs = Vec::new();
        let mut compare = |what: &str, then: &dyn fmt::Display, now: &dyn fmt::Display| {
            let (then, now) = (then.to_string(), now.to_string());
            if then != now {
                differs.push(format!("{what}: then {then}, now {now}"));
            }
        };
        if self.version != now.version {
            let problem =
                format!("the state has version {}, and this build reads version {}", self.version, now.version);
            return Err(Error::config(
                "resume",
                problem,
                "use the version of burn-pinned that saved it, or start over",
            ));
        }
        compare("samples of the dataset", &self.dataset_len, &now.dataset_len);
        compare("batches", &self.batches, &now.batches);
        compare("sampler", &self.sampler, &now.sampler);
        compare("seed", &self.seed, &now.seed);
        if differs.is_empty() {
            return Ok(());
        }
        let problem = format!("the state is from another loader ({})", differs.join("; "));
        Err(Error::config("resume", problem, "build the loader as it was then, or start over without `resume`"))
    }
}

/// The position of a loader and of the copies that are cut for its devices.
#[derive(Debug, Clone)]
pub(crate) struct SharedPosition(Arc<Mutex<Standing>>);

#[derive(Debug)]
struct Standing {
    /// The position of the newest epoch.
    at: Position,
    /// How many epochs were begun.
    begun: u64,
    /// For each device, its epoch, and how many samples of that epoch it has skipped.
    skipped: Vec<(usize, usize)>,
    /// Of a stream: a place for each rank.
    streams: BTreeMap<usize, ShareMark>,
}

impl SharedPosition {
    /// Makes the position `at` of a loader for `devices` devices.
    pub(crate) fn new(at: Position, devices: usize) -> Self {
        let skipped = (0..devices).map(|device| (at.epoch, part(at.skipped, device, devices))).collect();
        Self(Arc::new(Mutex::new(Standing { at, begun: 0, skipped, streams: BTreeMap::new() })))
    }

    /// The places of a stream, by rank.
    pub(crate) fn streams(&self) -> BTreeMap<usize, ShareMark> {
        self.0.lock().streams.clone()
    }

    pub(crate) fn set_streams(&self, streams: &BTreeMap<usize, ShareMark>) {
        self.0.lock().streams.clone_from(streams);
    }

    pub(crate) fn get(&self) -> Position {
        let standing = self.0.lock();
        let of_epoch = standing.skipped.iter().filter(|(epoch, _)| *epoch == standing.at.epoch);
        Position { skipped: of_epoch.map(|(_, skipped)| skipped).sum(), ..standing.at }
    }

    /// Sets the position between two epochs.
    #[cfg(feature = "metrics")]
    pub(crate) fn set(&self, at: Position) {
        let mut standing = self.0.lock();
        standing.begun += 1; // no epoch from before changes it
        standing.set(at, None);
        standing.at = at;
    }

    /// Begins an epoch at this position, for one device or for all together. From now on it is the newest epoch.
    pub(crate) fn begin_epoch(&self, at: Position, rank: usize, device: Option<u16>) -> EpochPosition {
        let mut standing = self.0.lock();
        standing.begun += 1;
        let epoch = EpochPosition { epoch: standing.begun, rank, device: device.map(usize::from), of: self.clone() };
        standing.set(at, epoch.device);
        standing.at = at;
        epoch
    }
}

impl Standing {
    fn set(&mut self, at: Position, device: Option<usize>) {
        if device.is_none() {
            self.skipped.fill((at.epoch, 0));
        }
        if let Some(skipped) = self.skipped.get_mut(device.unwrap_or(0)) {
            *skipped = (at.epoch, at.skipped);
        }
    }
}

/// Lets one epoch change the loader's position, as long as it is the newest epoch.
#[derive(Debug)]
pub(crate) struct EpochPosition {
    epoch: u64,
    rank: usize,
    device: Option<usize>,
    of: SharedPosition,
}

impl EpochPosition {
    pub(crate) fn set(&self, at: Position, mark: Option<ShareMark>) {
        let mut standing = self.of.0.lock();
        let newest = standing.begun == self.epoch;
        if newest || self.device.is_some() {
            standing.streams.extend(mark.map(|mark| (self.rank, mark)));
            standing.set(at, self.device); // the other devices' epochs continue beside the newest
        }
        if newest {
            standing.at = at;
        }
    }
}

/// Counts the epochs of a loader. An epoch of a copy also counts for the loader that the copy was made from.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    next: AtomicUsize,
    /// The epoch counter of the loader that this copy was made from.
    of: Option<Arc<Epochs>>,
}

impl Epochs {
    pub(crate) fn new(first: usize) -> Self {
        Self { next: AtomicUsize::new(first), of: None }
    }

    /// The epoch counter of a copy, which continues at this loader's epoch.
    pub(crate) fn copy(self: &Arc<Self>) -> Self {
        Self { of: Some(Arc::clone(self)), ..Self::new(self.next()) }
    }

    /// The number of the next epoch.
    pub(crate) fn next(&self) -> usize {
        self.next.load(Relaxed)
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn set(&self, next: usize) {
        self.next.store(next, Relaxed);
    }

    /// Begins an epoch; returns its number. The loader that this copy was made from continues after it.
    pub(crate) fn begin(&self) -> usize {
        let epoch = self.next.fetch_add(1, Relaxed);
        let mut of = &self.of;
        while let Some(epochs) = of {
            epochs.next.fetch_max(epoch.saturating_add(1), Relaxed);
            of = &epochs.of;
        }
        epoch
    }
}

/// Truncates a text and appends a hash of all of it.
fn in_short(text: &str) -> String {
    const LONGEST: usize = 160;
    let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= LONGEST) else { return text.into() };
    let mut hash = FnvHasher::default(); // this hash is the same in each version and on each machine, unlike std's
    hash.write(text.as_bytes());
    format!("{}... ({:016x})", &text[..end], hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_told_apart() {
        let (a, b) = ("a".repeat(1000), "a".repeat(999) + "b");
        assert_eq!(in_short(&a), in_short(&a.clone()));
        assert_ne!(in_short(&a), in_short(&b));
        assert!(in_short(&a).len() < 200);
        assert_eq!(in_short(&a[..160]), a[..160]);
        // No character is cut in two: 'é' takes two bytes, the second of which is the 161st.
        assert!(in_short(&("a".repeat(159) + "éa")).starts_with(&("a".repeat(159) + "é... (")));
        assert_eq!(in_short("[1, 1, 1]"), "[1, 1, 1]");
    }
}
