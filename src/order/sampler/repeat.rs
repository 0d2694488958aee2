//! Several passes of a sampler in one epoch.

use super::base::Sampler;
use crate::{
    fault::Error,
    order::draw::{Cursor, LazyMap},
};
use std::{ops::Range, sync::Arc};

/// Makes an epoch from several passes of another sampler, or from endless passes.
///
/// Every pass is an epoch of that sampler, so it is shuffled anew.
///
/// ```
/// use burn_pinned::order::{RandomSampler, RepeatSampler, Sampler};
///
/// let random = RandomSampler::new(42);
/// let twice = RepeatSampler::new(random, 2)?;
/// let order: Vec<_> = twice.indices(10, 3).collect();
/// assert!(random.indices(10, 6).eq(order[..10].to_vec())); // passes 6 and 7 of all
/// assert!(random.indices(10, 7).eq(order[10..].to_vec()));
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// Pass `k` of epoch `e` is the inner sampler's epoch `e * times + k`. It takes as much memory as one pass of the inner
/// sampler, which is little for a shuffle. Skipping does not plan the passes that are skipped as a whole.
#[derive(derive_more::Debug)]
#[debug(bounds(S: Sampler))]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct RepeatSampler<S> {
    #[debug("{}", sampler.fingerprint())]
    sampler: Arc<S>,
    /// `None` means endless.
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

    /// Makes one endless epoch, for training that counts steps. Its `len` is `usize::MAX`.
    ///
    /// In the first epoch, pass `k` is the inner sampler's epoch `k`. A later epoch `e`, for example from a second
    /// `iter()` of a loader, starts with pass `e`.
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
        let first = epoch.wrapping_mul(self.times.unwrap_or(1));
        let places = 0..self.len(dataset_len);
        Box::new(passes(Arc::clone(&self.sampler), dataset_len, places, move |pass| first.wrapping_add(pass)))
    }

    /// Different passes may have different samples, so this counts only the samples that all passes together cannot have.
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

/// The indices at some places of passes that are laid end to end. `epoch_of` gives the sampler's epoch of a pass. Each pass is planned when
/// one of its indices is first needed.
pub(super) fn passes<S: Sampler + ?Sized>(
    sampler: Arc<S>,
    dataset_len: usize,
    places: Range<usize>,
    epoch_of: impl Fn(usize) -> usize + Send,
) -> impl Iterator<Item = usize> + Send {
    let pass_len = sampler.len(dataset_len);
    // The number of the current pass, and its indices.
    let mut current = None;
    LazyMap::new(if pass_len == 0 { 0 } else { places.len() }, move |at| {
        let place = places.start + at;
        let same = current.take().filter(|(pass, _)| *pass == place / pass_len);
        let plan = || (place / pass_len, Cursor::new(sampler.indices(dataset_len, epoch_of(place / pass_len))));
        current.insert(same.unwrap_or_else(plan)).1.item(place % pass_len)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::sampler::random::RandomSampler;

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
