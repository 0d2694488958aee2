//! A sampler of chosen samples.

use super::{base::Sampler, members::seed_of};
use crate::{
    fault::Error,
    order::draw::{Fingerprint, LazyMap, PackedList, Shuffle},
};
use burn_augment::KeyedRng;
use std::{ops::Range, sync::Arc};

/// The given indices, in the given order or shuffled: for example a split of a dataset, or a selection.
///
/// ```
/// use burn_pinned::order::{Sampler, SubsetSampler};
///
/// let sampler = SubsetSampler::new([7, 1, 4]);
/// assert_eq!(sampler.indices(10, 0).collect::<Vec<_>>(), [7, 1, 4]);
///
/// let mut shuffled: Vec<_> = sampler.shuffle(42).indices(10, 0).collect();
/// shuffled.sort();
/// assert_eq!(shuffled, [1, 4, 7]);
/// ```
///
/// The indices take 4 bytes each (8 if one is 2^32 or more), and all epochs and clones share them. An index that is not in the dataset is
/// an error of [`check`](Sampler::check).
#[derive(Clone, derive_more::Debug)]
#[debug("SubsetSampler {{ seed: {seed:?}, indices: {fingerprint:?} }}")]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct SubsetSampler {
    seed: Option<u64>,
    repeats: bool,
    /// The number of different indices.
    different: usize,
    #[expect(dead_code, reason = "it is in the `Debug` text, which stands for the sampler")]
    fingerprint: Fingerprint,
    indices: Arc<PackedList>,
}

impl SubsetSampler {
    /// Takes the indices. They occur in this order in every epoch. An index may occur several times.
    ///
    /// # Panics
    /// If there is no memory for them.
    pub fn new(indices: impl IntoIterator<Item = usize>) -> Self {
        let indices = PackedList::given("SubsetSampler::new", indices).unwrap_or_else(|error| panic!("{error}"));
        let different = indices.different();
        let repeats = different < indices.len();
        let fingerprint = Fingerprint::of(indices.iter().map(|index| index as u64));
        Self { seed: None, repeats, different, fingerprint, indices: Arc::new(indices) }
    }

    /// Shuffles the indices: each epoch has a new order, which depends only on (seed, epoch).
    pub fn shuffle(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }
}

impl Sampler for SubsetSampler {
    fn len(&self, _dataset_len: usize) -> usize {
        self.indices.len()
    }

    fn indices(&self, _dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let indices = Arc::clone(&self.indices);
        let Some(seed) = self.seed else { return indices.indices() };
        let shuffle = Shuffle::new(indices.len(), &mut KeyedRng::for_order(seed, epoch));
        Box::new(LazyMap::new(indices.len(), move |place| Some(indices.get(shuffle.at(place)))))
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        dataset_len.saturating_sub(self.different)
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        let beyond = self.indices.iter().enumerate().find(|(_, index)| *index >= dataset_len);
        let Some((at, index)) = beyond else { return Ok(()) };
        let problem = format!("the index at {at} is {index}, but the dataset has {dataset_len} items");
        Err(Error::config("SubsetSampler::new", problem, "give indices below the dataset's length"))
    }

    fn part(&self, _dataset_len: usize, part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        let seed = self.seed.map(|seed| seed_of(seed, part.start));
        // An index may also occur in other parts.
        Some(Arc::new(Self { seed, repeats: self.repeats, ..Self::new(part.map(|at| self.indices.get(at))) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_beyond_the_dataset_are_refused() {
        let sampler = SubsetSampler::new([3, 9, 0]);
        assert!(sampler.check(10).is_ok());
        assert!(sampler.check(9).unwrap_err().to_string().contains("the index at 1 is 9"));
    }

    #[test]
    fn repeated_indices_are_noticed() {
        assert!(!SubsetSampler::new([3, 9, 0]).repeats());
        assert!(!SubsetSampler::new(0..5).repeats());
        assert!(SubsetSampler::new([3, 9, 3]).repeats());
    }
}
