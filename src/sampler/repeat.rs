//! A sampler several times over.

use super::{Sampler, passes::Passes};
use crate::error::Error;
use std::{fmt, sync::Arc};

/// An epoch of several passes of another sampler, or one without end. Every pass is an epoch of that sampler: shuffled anew.
///
/// ```
/// use burn_pinned::{RandomSampler, RepeatSampler, Sampler};
///
/// let random = RandomSampler::new(42);
/// let twice = RepeatSampler::new(random, 2)?;
/// let order: Vec<_> = twice.indices(10, 3).collect();
/// assert!(random.indices(10, 6).eq(order[..10].to_vec())); // passes 6 and 7 of all
/// assert!(random.indices(10, 7).eq(order[10..].to_vec()));
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// Pass `k` of epoch `e` is the inner sampler's epoch `e * times + k`. Takes what one pass of the inner sampler takes; skipping
/// passes over whole passes without planning them.
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct RepeatSampler<S> {
    sampler: Arc<S>,
    /// `None`: without end.
    times: Option<usize>,
}

impl<S: Sampler> RepeatSampler<S> {
    /// Epochs of `times` passes.
    ///
    /// # Errors
    /// [`Error::Config`] if that is 0.
    pub fn new(sampler: S, times: usize) -> Result<Self, Error> {
        if times == 0 {
            return Err(Error::config("RepeatSampler::new", "0 passes make no epoch", "use at least 1"));
        }
        Ok(Self { sampler: Arc::new(sampler), times: Some(times) })
    }

    /// One epoch that does not end, for training that counts steps: its `len` is `usize::MAX`. Pass `k` is the inner sampler's
    /// epoch `k`, of the first epoch; a later epoch `e`, e.g. from a second `iter()` of a loader, starts with pass `e`.
    pub fn endless(sampler: S) -> Self {
        Self { sampler: Arc::new(sampler), times: None }
    }
}

impl<S> Clone for RepeatSampler<S> {
    fn clone(&self) -> Self {
        Self { sampler: Arc::clone(&self.sampler), times: self.times }
    }
}

impl<S: fmt::Debug> fmt::Debug for RepeatSampler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepeatSampler").field("sampler", &self.sampler).field("times", &self.times).finish()
    }
}

impl<S: Sampler> Sampler for RepeatSampler<S> {
    fn len(&self, dataset_len: usize) -> usize {
        self.sampler.len(dataset_len).saturating_mul(self.times.unwrap_or(usize::MAX))
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let (first, passes) = match self.times {
            Some(times) => (epoch.wrapping_mul(times), times),
            None => (epoch, usize::MAX),
        };
        Box::new(Passes::new(Arc::clone(&self.sampler), dataset_len, first, passes))
    }

    fn repeats(&self) -> bool {
        self.times != Some(1) || self.sampler.repeats()
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        self.sampler.check(dataset_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::RandomSampler;

    #[test]
    fn passes_are_epochs_of_their_own() {
        let random = RandomSampler::new(3);
        let passes = |epochs: &[usize]| epochs.iter().flat_map(|epoch| random.indices(20, *epoch)).collect::<Vec<_>>();
        let thrice = RepeatSampler::new(random, 3).unwrap();
        assert!(thrice.indices(20, 0).eq(passes(&[0, 1, 2])));
        assert!(thrice.indices(20, 5).eq(passes(&[15, 16, 17])));
        let endless = RepeatSampler::endless(random);
        assert!(endless.indices(20, 0).take(80).eq(passes(&[0, 1, 2, 3])));
        assert!(endless.indices(20, 2).take(40).eq(passes(&[2, 3])));
        assert_eq!((thrice.len(20), endless.len(20), endless.len(0)), (60, usize::MAX, 0));
        assert_eq!(endless.indices(0, 0).next(), None);
    }

    /// An endless epoch is entered anywhere, at the cost of one pass.
    #[test]
    fn passes_are_skipped_unplanned() {
        let endless = RepeatSampler::endless(RandomSampler::new(3));
        let far = 1_000_000_007;
        assert_eq!(endless.indices(20, 0).nth(20 * far + 4), RandomSampler::new(3).indices(20, far).nth(4));
    }

    #[test]
    fn no_pass_is_refused() {
        assert!(RepeatSampler::new(RandomSampler::new(3), 0).is_err());
    }
}
