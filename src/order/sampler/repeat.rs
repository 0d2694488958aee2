//! Several passes of a sampler in one epoch.

use super::base::Sampler;
use crate::fault::Error;
use std::sync::Arc;

/// Makes an epoch of several passes of another sampler, or of passes without end.
///
/// Every pass is an epoch of that sampler, so it is shuffled anew.
///
/// ```
/// use burn_pinned::order::{RandomSampler, RepeatSampler, Sampler};
///
/// let random = RandomSampler::new(42);
/// let twice = RepeatSampler::new(random.clone(), 2)?;
/// let order: Vec<_> = twice.indices(10, 3).collect();
/// assert!(random.indices(10, 6).eq(order[..10].to_vec())); // passes 6 and 7 of all
/// assert!(random.indices(10, 7).eq(order[10..].to_vec()));
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// Pass `k` of epoch `e` is the inner sampler's epoch `e * times + k`. It takes as much memory as one pass of the inner
/// sampler. A skip leaves out whole passes without planning them.
#[derive(derive_more::Debug)]
#[debug(bounds(S: Sampler))]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct RepeatSampler<S> {
    #[debug("{}", sampler.fingerprint())]
    sampler: Arc<S>,
    /// `None`: without end.
    times: Option<usize>,
}

impl<S: Sampler> RepeatSampler<S> {
    /// Makes epochs of `times` passes.
    ///
    /// # Errors
    /// [`Error::Config`] if `times` is 0.
    pub fn new(sampler: S, times: usize) -> Result<Self, Error> {
        if times == 0 {
            return Err(Error::config("RepeatSampler::new", "0 passes make no epoch", "use at least 1"));
        }
        Ok(Self { sampler: Arc::new(sampler), times: Some(times) })
    }

    /// Makes one epoch that does not end, for training that counts steps. Its `len` is `usize::MAX`.
    ///
    /// In the first epoch, pass `k` is the inner sampler's epoch `k`. A later epoch `e`, e.g. from a second `iter()` of
    /// a loader, starts with pass `e`.
    pub fn endless(sampler: S) -> Self {
        Self { sampler: Arc::new(sampler), times: None }
    }
}

impl<S> Clone for RepeatSampler<S> {
    fn clone(&self) -> Self {
        Self { sampler: Arc::clone(&self.sampler), times: self.times }
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

    /// The passes of a sampler may have different samples. So these are only the samples that all passes together cannot have.
    fn left_out(&self, dataset_len: usize) -> usize {
        let of_pass = dataset_len.saturating_sub(self.sampler.left_out(dataset_len));
        dataset_len.saturating_sub(of_pass.saturating_mul(self.times.unwrap_or(usize::MAX)))
    }

    fn repeats(&self) -> bool {
        self.times != Some(1) || self.sampler.repeats()
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        self.sampler.check(dataset_len)
    }
}

/// The indices of one pass after the other. Each pass is planned when its first index is asked for.
pub(super) struct Passes<S: ?Sized> {
    sampler: Arc<S>,
    dataset_len: usize,
    /// Indices of a pass.
    pass_len: usize,
    /// The sampler's epoch of the next pass.
    epoch: usize,
    /// Passes to come. `usize::MAX` passes practically never end.
    passes: usize,
    current: Box<dyn Iterator<Item = usize> + Send>,
    /// Indices to come in the current pass.
    left: usize,
}

impl<S: Sampler + ?Sized> Passes<S> {
    pub(super) fn new(sampler: Arc<S>, dataset_len: usize, first_epoch: usize, passes: usize) -> Self {
        let pass_len = sampler.len(dataset_len);
        let passes = if pass_len == 0 { 0 } else { passes };
        Self { sampler, dataset_len, pass_len, epoch: first_epoch, passes, current: Box::new([].into_iter()), left: 0 }
    }

    /// Leaves out the next `skipped` passes and starts the one after them.
    fn start_pass(&mut self, skipped: usize) {
        let epoch = self.epoch.wrapping_add(skipped);
        self.current = self.sampler.indices(self.dataset_len, epoch);
        self.left = self.pass_len;
        self.epoch = epoch.wrapping_add(1);
        self.passes -= skipped + 1;
    }
}

impl<S: Sampler + ?Sized> Iterator for Passes<S> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.nth(0)
    }

    /// Whole passes are skipped without being planned.
    fn nth(&mut self, mut n: usize) -> Option<usize> {
        if n >= self.left {
            n -= self.left;
            let skipped = n.checked_div(self.pass_len)?;
            if skipped >= self.passes {
                (self.left, self.passes) = (0, 0);
                return None;
            }
            self.start_pass(skipped);
            n %= self.pass_len;
        }
        self.left -= n + 1;
        self.current.nth(n)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.passes.saturating_mul(self.pass_len).saturating_add(self.left);
        (len, Some(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::sampler::random::RandomSampler;

    #[test]
    fn passes_are_epochs_of_their_own() {
        let random = RandomSampler::new(3);
        let passes = |epochs: &[usize]| epochs.iter().flat_map(|epoch| random.indices(20, *epoch)).collect::<Vec<_>>();
        let thrice = RepeatSampler::new(random.clone(), 3).unwrap();
        assert!(thrice.indices(20, 0).eq(passes(&[0, 1, 2])));
        assert!(thrice.indices(20, 5).eq(passes(&[15, 16, 17])));
        let endless = RepeatSampler::endless(random.clone());
        assert!(endless.indices(20, 0).take(80).eq(passes(&[0, 1, 2, 3])));
        assert!(endless.indices(20, 2).take(40).eq(passes(&[2, 3])));
        assert_eq!((thrice.len(20), endless.len(20), endless.len(0)), (60, usize::MAX, 0));
        assert_eq!(endless.indices(0, 0).next(), None);
    }

    /// An endless epoch can be entered anywhere, at the cost of one pass.
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
