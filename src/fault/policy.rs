//! Policies for bad samples, and who is notified.

use super::{UserValues, error::Error, panics::catch, watch::during};
use crate::{
    observe::Counters,
    vocabulary::{BatchKey, Place, Stage},
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// The most faults that an error lists: enough to see the problem with a dataset, few enough to read.
const LISTED_FAULTS: usize = 16;

/// The most batches that are read as one for a dataset that is kept on the device.
pub(crate) const READ_AS_ONE: usize = 16;

/// How many errors a batch keeps for its epoch's list. Each of the batches that are read as one may fill the list.
const LISTED_OF_BATCH: usize = LISTED_FAULTS * READ_AS_ONE;

/// An epoch with this many samples counts as endless.
const ENDLESS_ITEMS: usize = usize::MAX >> 20;

/// What happens to a sample that fails to load, because its `Dataset::get`, its augmentation or its `Collate::write`
/// failed or panicked. A sample that they leave out ([`LeftOut`](super::LeftOut)) is not bad.
///
/// ```
/// use burn_pinned::{fault::Quota, BadSamples};
///
/// let strict = BadSamples::Fail;
/// let lenient = BadSamples::Skip(Quota::Share(0.001)); // up to one in a thousand of an epoch
/// let steady = BadSamples::Replace { tries: 8 }; // batches keep their size
/// # let _ = (strict, lenient, steady);
/// ```
///
/// The result is the same for any number of workers. A fault of a whole batch (a Burn `Batcher`, `finish`, memory, the device), of the
/// sampler or of the program is an error under every policy. A field that is not in the layout, that gets another dtype, or that is not an
/// image field is a fault of the program. If the machine has too many open files, or has run out of memory or disk space, the batch fails
/// under every policy, and the loader continues with the next one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum BadSamples {
    /// The batch is replaced by an error, which names the first bad sample in the batch's order.
    #[default]
    Fail,
    /// The batch is delivered without the sample, so it has fewer rows. If all samples of a batch are skipped, `next()` returns the next
    /// batch instead. If all samples of an epoch are skipped, the epoch is a single error, [`Error::NoGoodSample`]. Processes or
    /// [`devices`](crate::PinnedDataLoaderBuilder::devices) that share the epoch must have the same number of batches, so there a batch
    /// without samples is an [`Error::AllSkipped`]. If the quota would allow all remaining samples of the epoch to be skipped, a batch is
    /// delivered only when the next one is ready. The first batch is delivered at once, and then `progress()` waits. Beyond the quota, each
    /// batch that skips samples is replaced by an [`Error::QuotaExceeded`].
    Skip(Quota),
    /// The next good sample of the dataset is delivered in its place, with the random numbers of that place. The search
    /// tries index + 1 and so on, and wraps around at the end of the dataset. After `tries` bad samples, the batch is
    /// replaced by an [`Error::NoReplacement`]. The search covers the whole dataset, so it may deliver a sample that
    /// the sampler leaves out, for example from the validation split. To prevent this, give the loader a dataset of its
    /// own split (Burn's `PartialDataset` or `SelectionDataset`), or skip instead.
    Replace {
        /// The number of samples to try, at least 1.
        tries: usize,
    },
}

/// How many samples an epoch may skip in this process. With [`devices`](crate::PinnedDataLoaderBuilder::devices), each
/// device counts separately. A resumed epoch continues the count.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Quota {
    /// This many samples.
    Count(usize),
    /// This share of the samples that the epoch has in this process, from 0 to 1. With a batch sampler the samples are counted when the
    /// epoch begins, which plans its batches a second time. With 1, all samples may be skipped.
    Share(f64),
}

impl BadSamples {
    /// Checks the option, for epochs of `items` samples.
    pub(crate) fn check(&self, items: usize) -> Result<(), Error> {
        let wrong = |problem: String, advice: &str| Err(Error::config("bad_samples", problem, advice));
        match self {
            Self::Replace { tries: 0 } => wrong("0 tries replace nothing".into(), "use at least 1"),
            Self::Skip(Quota::Share(share)) if !(0.0..=1.0).contains(share) => {
                wrong(format!("{share} is not a share"), "use 0 to 1, e.g. 0.01")
            }
            Self::Skip(Quota::Share(_)) if items >= ENDLESS_ITEMS => {
                wrong("an endless epoch has no total to take a share of".into(), "use `Quota::Count`")
            }
            _ => Ok(()),
        }
    }

    /// Whether a share of an epoch may be skipped, but not all of it.
    pub(crate) fn is_share(&self) -> bool {
        matches!(self, Self::Skip(Quota::Share(share)) if *share < 1.0)
    }

    /// Returns how many of an epoch's samples may be skipped.
    pub(crate) fn quota(&self, items: usize) -> usize {
        match self {
            Self::Skip(Quota::Count(count)) => *count,
            Self::Skip(Quota::Share(1.0)) => usize::MAX, // all of them
            // Truncates: a share of 0.1 of 5 samples allows none. The product may be slightly too small (0.29 of 100 is
            // 28.999999999999996), so a tiny amount is added. It is too small to allow one more sample, even in the
            // longest epoch.
            Self::Skip(Quota::Share(share)) => (items as f64 * share * (1.0 + 4.0 * f64::EPSILON)) as usize,
            _ => 0,
        }
    }
}

/// Called with every fault.
pub(crate) type OnFault = Arc<dyn Fn(&Error) + Send + Sync>;

/// The policy, and the callback for faults.
#[derive(Clone, derive_more::Debug, Default)]
pub(crate) struct Faults {
    pub(crate) policy: BadSamples,
    #[debug(skip)]
    pub(crate) on_fault: Option<OnFault>,
    #[debug(skip)]
    pub(crate) counters: Arc<Counters>,
}

impl Faults {
    /// Reports a fault, on the thread that met it.
    pub(crate) fn saw(&self, error: &Error) {
        if matches!(error, Error::Ended) {
            return; // a batch of an ended epoch is not a fault
        }
        self.counters.fault();
        let Some(on_fault) = &self.on_fault else { return };
        // The callback is user code. If it hangs, the watchdog names its thread, and the loader can still be dropped.
        let place = error.place().copied().unwrap_or_else(|| Place::batch(Stage::SlotWait, BatchKey::NONE));
        if let Err(caught) = during(place, || catch(|| on_fault(error))) {
            log::error!("burn-pinned: the `on_fault` callback panicked: {}", caught.message);
        }
    }

    /// Decides about the sample at a position of a batch that is bad or left out, and notes it. `instead` tries the n-th of
    /// `others` samples after it.
    ///
    /// # Errors
    /// The position and the error that the batch fails with.
    pub(crate) fn decide(
        &self,
        (position, error): (usize, Error),
        bad: &mut Skips,
        others: usize,
        mut instead: impl FnMut(usize) -> Result<usize, Error>,
    ) -> Result<(), (usize, Error)> {
        if error.leaves_out() {
            self.counters.leaves_out.store(true, Relaxed);
            bad.skipped.push(position);
            bad.left_out.push(position);
            drop(UserValues(vec![error]));
            return Ok(());
        }
        self.saw(&error);
        match self.policy {
            _ if !error.is_of_a_sample() => Err((position, error)),
            BadSamples::Fail => Err((position, error)),
            BadSamples::Skip(_) => {
                bad.skip(position, Some(Arc::new(error)));
                Ok(())
            }
            BadSamples::Replace { tries } => {
                let tries = tries.min(others);
                for nth in 1..=tries {
                    match instead(nth) {
                        Ok(index) => {
                            bad.replaced.push((position, index));
                            return Ok(());
                        }
                        Err(error @ Error::Ended) => return Err((position, error)),
                        Err(error) if error.leaves_out() => {} // it is no replacement
                        Err(error) => {
                            self.saw(&error);
                            if !error.is_of_a_sample() {
                                return Err((position, error));
                            }
                        }
                    }
                }
                Err((position, Error::NoReplacement { tries, source: Box::new(error) }))
            }
        }
    }
}

/// The samples of a batch that are bad, but did not make it fail, or are left out.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    /// Positions without a row, because their samples are skipped or left out.
    pub(crate) skipped: Vec<usize>,
    /// Those of them that are left out.
    pub(crate) left_out: Vec<usize>,
    /// Replaced positions, and the indices that were delivered there.
    pub(crate) replaced: Vec<(usize, usize)>,
    /// The errors of the first skipped samples, in the batch's order.
    errors: UserValues<(usize, Arc<Error>)>,
}

impl Skips {
    pub(crate) fn is_empty(&self) -> bool {
        self.skipped.is_empty() && self.replaced.is_empty()
    }

    /// Skips the next bad position of the batch. `error` is `None` if it was not kept.
    pub(crate) fn skip(&mut self, position: usize, error: Option<Arc<Error>>) {
        self.skipped.push(position);
        if self.errors.len() < LISTED_OF_BATCH {
            self.errors.extend(error.map(|error| (position, error))); // a task processes its rows in order
        }
    }

    /// The error of a skipped position, if the error is listed.
    pub(crate) fn error(&self, position: usize) -> Option<&Arc<Error>> {
        self.errors.iter().find(|(at, _)| *at == position).map(|(_, error)| error)
    }

    /// Adds the bad samples of another task of the batch. Returns the errors beyond those that are listed: dropping
    /// them is user code, which must not run under a lock.
    #[must_use]
    pub(crate) fn merge(&mut self, mut other: Self) -> Option<Self> {
        if other.is_empty() {
            return None;
        }
        self.skipped.extend(other.skipped);
        self.left_out.extend(other.left_out);
        self.replaced.extend(other.replaced);
        self.errors.append(&mut other.errors);
        self.skipped.sort_unstable();
        self.left_out.sort_unstable();
        self.errors.sort_by_key(|(position, _)| *position);
        let listed = self.errors.len().min(LISTED_OF_BATCH);
        let errors = UserValues(self.errors.split_off(listed));
        (!errors.is_empty()).then(|| Self { errors, ..Self::default() })
    }
}

/// What an epoch has skipped so far. Batches count in the order of delivery, so the quota is exceeded at the same batch
/// regardless of timing.
#[derive(Debug)]
pub(crate) struct Tally {
    quota: usize,
    skipped: usize,
    left_out: usize,
    first: UserValues<Arc<Error>>,
}

impl Tally {
    /// Makes the tally of an epoch that had skipped `skipped` samples before it was resumed.
    pub(crate) fn new(quota: usize, skipped: usize) -> Self {
        Self { quota, skipped, left_out: 0, first: UserValues::default() }
    }

    pub(crate) fn skipped(&self) -> usize {
        self.skipped
    }

    /// How many more samples may be skipped.
    pub(crate) fn left(&self) -> usize {
        self.quota.saturating_sub(self.skipped)
    }

    /// The error of an epoch without batches, if its samples were skipped or left out.
    pub(crate) fn none_good(&self, epoch: usize) -> Option<Error> {
        let Self { skipped, left_out, .. } = *self;
        (skipped + left_out > 0).then(|| Error::NoGoodSample { epoch, skipped, left_out, first: self.first.to_vec() })
    }

    /// Counts what the next batch, the one at this place, has skipped and left out.
    ///
    /// # Errors
    /// [`Error::QuotaExceeded`] instead of the batch.
    pub(crate) fn add(&mut self, place: Place, mut bad: Skips) -> Result<(), Error> {
        let skipped = bad.skipped.len() - bad.left_out.len();
        self.left_out = self.left_out.saturating_add(bad.left_out.len());
        if skipped == 0 {
            return Ok(());
        }
        self.skipped = self.skipped.saturating_add(skipped);
        let room = bad.errors.len().min(LISTED_FAULTS - self.first.len());
        self.first.extend(bad.errors.drain(..room).map(|(_, error)| error));
        if self.skipped > self.quota {
            return Err(Error::QuotaExceeded {
                place,
                skipped: self.skipped,
                quota: self.quota,
                first: self.first.to_vec(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_allows_as_many_as_it_says() {
        let quota = |share, items| BadSamples::Skip(Quota::Share(share)).quota(items);
        assert_eq!((quota(0.29, 100), quota(0.57, 100), quota(0.07, 100)), (29, 57, 7));
        assert_eq!((quota(0.1, 5), quota(0.29, 99), quota(0.999, 1000), quota(0.0, 100)), (0, 28, 999, 0));
        assert_eq!(quota(1.0, 7), usize::MAX, "all, also where 7 is an estimate");
        let hundredths = (0..100).map(|percent| quota(f64::from(percent) / 100.0, 100));
        assert!(hundredths.eq(0..100));
    }

    /// All positions count. The first errors of the batch are listed, and the others are returned.
    #[test]
    fn errors_that_are_too_many_to_list_come_back() {
        let bad = |positions: std::ops::Range<usize>| {
            let mut skips = Skips::default();
            positions.for_each(|position| skips.skip(position, Some(Arc::new(Error::Ended))));
            skips
        };
        let mut skips = bad(100..110);
        assert!(skips.merge(bad(50..50 + LISTED_OF_BATCH - 10)).is_none(), "there is room for {LISTED_OF_BATCH}");
        let beyond = skips.merge(bad(0..3)).unwrap();
        let positions = |skips: &Skips| skips.errors.iter().map(|(position, _)| *position).collect::<Vec<_>>();
        let last = 50 + LISTED_OF_BATCH - 10;
        assert_eq!(positions(&beyond), [last - 3, last - 2, last - 1]);
        assert_eq!((positions(&skips).len(), skips.skipped.len()), (LISTED_OF_BATCH, LISTED_OF_BATCH + 3));
        assert!(skips.merge(Skips::default()).is_none());
    }
}
