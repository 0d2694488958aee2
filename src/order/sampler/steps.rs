//! Epochs of a fixed number of steps, from passes that follow each other.

use super::{
    base::Sampler,
    batch::{BatchSampler, EpochBatches},
    repeat::passes,
};
use crate::{
    fault::{Error, catch},
    sync::locks::Mutex,
};
use std::sync::Arc;

/// Cuts the passes of another sampler, laid end to end, into epochs of the same number of units: samples, or batches of a
/// batch sampler.
#[derive(Debug)]
pub(crate) struct StepsSampler<S: ?Sized> {
    size: usize,
    /// For each pass of a batch sampler so far, the number of batches up to its end.
    ends: Arc<Mutex<Vec<usize>>>,
    sampler: Arc<S>,
}

impl<S: ?Sized> StepsSampler<S> {
    /// Makes epochs of `size` units.
    pub(crate) fn new(sampler: Arc<S>, size: usize) -> Self {
        Self { size, ends: Arc::default(), sampler }
    }
}

impl Sampler for StepsSampler<dyn Sampler> {
    fn len(&self, dataset_len: usize) -> usize {
        if self.sampler.is_empty(dataset_len) { 0 } else { self.size }
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let pass = self.sampler.len(dataset_len).max(1) as u128;
        let start = epoch as u128 * self.size as u128;
        let (before, first) = ((start / pass) as usize, (start % pass) as usize);
        let places = first..first.saturating_add(self.size);
        Box::new(passes(Arc::clone(&self.sampler), dataset_len, places, move |pass| before + pass))
    }

    /// An epoch may have the end of a pass and the begin of the next.
    fn repeats(&self) -> bool {
        true
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        self.sampler.left_out(dataset_len)
    }

    fn fingerprint(&self) -> String {
        format!("epochs of {} of {}", self.size, self.sampler.fingerprint())
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        self.sampler.check(dataset_len)
    }
}

impl StepsSampler<dyn BatchSampler> {
    /// The pass in which the batch at `start` of all passes is, and its position in that pass. Plans the passes whose number of batches is
    /// not known yet. `None` if a pass has no batches.
    fn find(&self, dataset_len: usize, start: usize) -> Option<(usize, usize)> {
        loop {
            let pass = {
                let ends = self.ends.lock();
                let pass = ends.partition_point(|end| *end <= start);
                if pass < ends.len() {
                    return Some((pass, start - if pass == 0 { 0 } else { ends[pass - 1] }));
                }
                pass
            };
            drop(plan(&*self.sampler, &self.ends, dataset_len, pass)?); // only its number of batches counts
        }
    }
}

/// The batches of a pass, whose number is noted. `None` if it has none.
fn plan(
    sampler: &dyn BatchSampler,
    ends: &Mutex<Vec<usize>>,
    dataset_len: usize,
    pass: usize,
) -> Option<impl Iterator<Item = Vec<usize>> + Send + use<>> {
    let EpochBatches { len, batches } = sampler.batches(dataset_len, pass);
    let mut ends = ends.lock();
    if ends.len() == pass && len > 0 {
        let end = ends.last().copied().unwrap_or(0).saturating_add(len);
        ends.push(end);
    }
    (len > 0).then(|| batches.take(len))
}

impl BatchSampler for StepsSampler<dyn BatchSampler> {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        let found = epoch.checked_mul(self.size).and_then(|start| self.find(dataset_len, start));
        let Some((pass, place)) = found else { return EpochBatches::new(0, [].into_iter()) };
        let (sampler, ends) = (Arc::clone(&self.sampler), Arc::clone(&self.ends));
        let of = move |pass| plan(&*sampler, &ends, dataset_len, pass);
        let mut first = of(pass).into_iter().flatten();
        if let Some(before) = place.checked_sub(1) {
            first.nth(before);
        }
        EpochBatches::new(self.size, first.chain((pass + 1..).map_while(of).flatten()).take(self.size))
    }

    fn max_batch_size(&self, dataset_len: usize) -> usize {
        self.sampler.max_batch_size(dataset_len)
    }

    fn num_items(&self, dataset_len: usize) -> usize {
        // A sampler that panics here will panic again in the epoch.
        let found = catch(|| self.find(dataset_len, 0)).ok().flatten();
        let batches = found.map_or(1, |_| self.ends.lock()[0]);
        let items = self.sampler.num_items(dataset_len) as u128 * self.size as u128 / batches as u128;
        usize::try_from(items).unwrap_or(usize::MAX)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        self.sampler.left_out(dataset_len)
    }

    fn fingerprint(&self) -> String {
        format!("epochs of {} of {}", self.size, self.sampler.fingerprint())
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        self.sampler.check(dataset_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::sampler::{FixedBatchSampler, RandomSampler};
    use proptest::prelude::*;

    proptest! {
        /// Epochs laid end to end are the passes laid end to end, for both kinds.
        #[test]
        fn epochs_are_cut_from_the_passes(len in 1usize..40, size in 1usize..50, batch in 1usize..9, seed: u64, skip in 0usize..60) {
            let random = RandomSampler::new(seed);
            let all: Vec<usize> = (0..).flat_map(|pass| random.indices(len, pass)).take(5 * size).collect();
            let steps = StepsSampler::new(Arc::new(random) as Arc<dyn Sampler>, size);
            let epochs: Vec<usize> = (0..5).flat_map(|epoch| steps.indices(len, epoch)).collect();
            prop_assert_eq!(&epochs, &all);
            prop_assert_eq!(steps.indices(len, 1).nth(skip), all[size..2 * size].get(skip).copied());

            let batches = FixedBatchSampler::new(random, batch).unwrap();
            let all: Vec<_> = (0..).flat_map(|pass| batches.batches(len, pass).batches).take(3 * size).collect();
            let steps = StepsSampler::new(Arc::new(batches) as Arc<dyn BatchSampler>, size);
            let later: Vec<_> = steps.batches(len, 2).batches.collect(); // asked for first, as after a resume
            prop_assert_eq!(&later, &all[2 * size..]);
            let epochs: Vec<_> = (0..2).flat_map(|epoch| steps.batches(len, epoch).batches).collect();
            prop_assert_eq!(&epochs, &all[..2 * size]);
            prop_assert_eq!((steps.batches(len, 7).len, steps.max_batch_size(len)), (size, batch.min(len)));
        }
    }
}
