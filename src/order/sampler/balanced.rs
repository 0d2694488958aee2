//! A sampler that draws each class as often as the others.

use super::{base::Sampler, classes::by_class};
use crate::{
    fault::Error,
    order::draw::{Fingerprint, LazyMap, PackedList, Shuffle, below, check_count, draws},
};
use burn_augment::{KeyedRng, for_loader::Purpose};
use rand::seq::SliceRandom;
use std::sync::Arc;

/// Draws each class as often as every other class, however many items it has.
///
/// ```
/// use burn_pinned::order::{ClassBalancedSampler, Sampler};
///
/// let labels = ["cat", "cat", "cat", "dog"];
/// let sampler = ClassBalancedSampler::new(labels, 42)?.without_replacement().with_size(6);
/// let dogs = sampler.indices(4, 0).filter(|index| labels[*index] == "dog").count();
/// assert_eq!(dogs, 3);
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// The classes are all values among the labels. The table takes 4 bytes per item (8 from 2^32 items) and about 32 per class. All epochs and
/// clones share it.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "ClassBalancedSampler {{ seed: {seed}, size: {size:?}, replacement: {replacement}, classes: {}, items_and_ends: {fingerprint:?} }}",
    classes.len()
)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct ClassBalancedSampler {
    seed: u64,
    size: Option<usize>,
    replacement: bool,
    #[expect(dead_code, reason = "it is in the `Debug` text, which stands for the sampler")]
    fingerprint: Fingerprint,
    /// The items of each class.
    classes: Arc<[PackedList]>,
}

impl ClassBalancedSampler {
    /// Takes the label of each item of the dataset, in the dataset's order: numbers, names, or any type with an order.
    ///
    /// Each sample is a random item of a random class, independent of the earlier samples. Samples are drawn one at a
    /// time, and skipping to any position takes no time.
    ///
    /// # Errors
    /// [`Error::Config`] if there are no labels.
    pub fn new<L: Ord>(labels: impl IntoIterator<Item = L>, seed: u64) -> Result<Self, Error> {
        let (classes, fingerprint) = by_class("ClassBalancedSampler::new", labels)?;
        Ok(Self { seed, size: None, replacement: true, fingerprint, classes })
    }

    /// Draws without replacement: no item recurs before all others of its class have occurred.
    ///
    /// Classes come in rounds. Each class comes once per round, and each round has a new order. The items of a class come in random
    /// permutations, one after the other. An epoch continues where the previous one ended, so every item occurs, however short the epochs
    /// are.
    pub fn without_replacement(mut self) -> Self {
        self.replacement = false;
        self
    }

    /// Sets the number of samples of an epoch. Default: as many as the dataset has.
    pub fn with_size(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }
}

impl Sampler for ClassBalancedSampler {
    fn len(&self, dataset_len: usize) -> usize {
        self.size.unwrap_or(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let (classes, len) = (Arc::clone(&self.classes), self.len(dataset_len));
        if self.replacement {
            let rng = KeyedRng::for_order(self.seed, epoch);
            let pick = move |random| {
                let (class, place) = below(random, classes.len());
                classes[class].get(below(place, classes[class].len()).0)
            };
            return Box::new(draws(rng, len, pick));
        }
        Box::new(rounds(classes, self.seed, epoch as u128 * len as u128, len))
    }

    fn repeats(&self) -> bool {
        true
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("ClassBalancedSampler::new", "labels", self.classes.iter().map(PackedList::len).sum(), dataset_len)
    }
}

/// `len` draws without replacement, after the first `first` draws of all epochs.
fn rounds(classes: Arc<[PackedList]>, seed: u64, first: u128, len: usize) -> impl Iterator<Item = usize> + Send {
    // The number of the current round, and the order of its classes. For each class, the number of its current pass, and the order of its
    // items.
    let (mut in_round, mut in_pass) = ((None, Vec::new()), Vec::new());
    in_pass.resize_with(classes.len(), || None);
    LazyMap::new(len, move |at| {
        let (position, count) = (first + at as u128, classes.len() as u128);
        let (round, place) = ((position / count) as usize, (position % count) as usize);
        if in_round.0 != Some(round) {
            let mut order: Vec<usize> = (0..classes.len()).collect();
            order.shuffle(&mut KeyedRng::for_order(seed, round));
            in_round = (Some(round), order);
        }
        let class = in_round.1[place];
        let items = &classes[class];
        let (pass, item) = (round / items.len(), round % items.len()); // a class comes once in each round
        let drawn = in_pass[class].take().filter(|(drawn, _)| *drawn == pass);
        let (_, order) = in_pass[class].insert(drawn.unwrap_or_else(|| {
            // The rounds have the key of class 0.
            let mut rng = KeyedRng::new(Purpose::Order, seed, pass, class + 1);
            (pass, Shuffle::new(items.len(), &mut rng))
        }));
        Some(items.get(order.at(item)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn rounds_have_each_class_and_passes_each_item() {
        let labels: Vec<usize> = (0..60).map(|item| [0, 1, 1, 2, 2, 2][item % 6] * 1000).collect();
        let sampler = ClassBalancedSampler::new(labels.clone(), 5).unwrap().without_replacement().with_size(180);
        let order: Vec<usize> = sampler.indices(60, 0).collect();
        for round in order.chunks(3) {
            assert_eq!(round.iter().map(|item| labels[*item]).collect::<HashSet<_>>(), HashSet::from([0, 1000, 2000]));
        }
        for class in [0, 1000, 2000] {
            let items = labels.iter().filter(|label| **label == class).count();
            let drawn: Vec<_> = order.iter().copied().filter(|item| labels[*item] == class).collect();
            for pass in drawn.chunks_exact(items) {
                assert_eq!(pass.iter().collect::<HashSet<_>>().len(), items);
            }
            let passes: HashSet<_> = drawn.chunks_exact(items).collect();
            assert_eq!(passes.len(), 60 / items, "each pass has an order of its own");
        }
    }

    #[test]
    fn rounds_and_passes_go_on_from_epoch_to_epoch() {
        let labels: Vec<usize> = (0..60).map(|item| [0, 1, 1, 2, 2, 2][item % 6]).collect();
        let sampler = ClassBalancedSampler::new(labels.clone(), 5).unwrap().without_replacement();
        let whole: Vec<usize> = sampler.clone().with_size(180).indices(60, 0).collect();
        for size in [7, 60, 90] {
            let sampler = sampler.clone().with_size(size);
            assert!(
                (0..180_usize.div_ceil(size)).flat_map(|epoch| sampler.indices(60, epoch)).take(180).eq(whole.clone())
            );
            assert_eq!(sampler.indices(60, 1).nth(5), whole.get(size + 5).copied(), "skipped");
        }
    }

    #[test]
    fn labels_are_checked() {
        assert!(ClassBalancedSampler::new(Vec::<u8>::new(), 1).is_err());
        let sampler = ClassBalancedSampler::new([1, 2, 1], 1).unwrap();
        assert!(sampler.check(3).is_ok());
        assert!(sampler.check(4).unwrap_err().to_string().contains("3 labels for a dataset of 4"));
    }

    #[test]
    fn other_classes_look_otherwise() {
        let text = |labels: &[u8]| format!("{:?}", ClassBalancedSampler::new(labels.iter(), 1).unwrap());
        assert_eq!(text(&[1, 1, 2]), text(&[5, 5, 7]), "names do not matter");
        assert_ne!(text(&[1, 1, 2]), text(&[1, 2, 2]));
    }
}
