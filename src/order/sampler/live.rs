//! A sampler whose weights change while a training runs.

use super::base::Sampler;
use crate::{
    fault::Error,
    order::draw::{SumTree, check_count, draws, listed},
    sync::locks::Mutex,
};
use burn_augment::KeyedRng;
use std::sync::Arc;

/// Draws with replacement by weights that the training changes: for prioritised replay, hard examples, or a curriculum.
///
/// ```
/// use burn_pinned::order::{LiveWeights, Sampler};
///
/// let weights = LiveWeights::new([1.0, 1.0, 0.0], 42)?.with_size(1000);
/// let mut order = weights.indices(3, 0); // a loader takes `.order(weights.clone())`
/// assert!(order.by_ref().take(500).all(|index| index < 2));
/// weights.set(2, 8.0)?;
/// let twos = order.filter(|index| *index == 2).count(); // of the same epoch
/// assert!((360..440).contains(&twos)); // 8 in 10
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// All clones share the weights: give one to the builder's `order`, and keep one for the training loop. Any thread may change them. A
/// change or a draw takes a time in proportion to the logarithm of the number of items, under a lock that is held for one draw, or for all
/// changes of a call. The weights take 16 bytes per item. Items of weight 0 are never drawn. A draw uses 53 random bits, and no
/// probability is off by more than 2^-46 if the sum is at least 1e-290.
///
/// # The age of the weights
///
/// A worker draws the samples of a batch when it opens the batch, by the weights of that moment. It opens batches ahead of the loop: fewer
/// than `prefetch` plus the number of slots. [`RawBatch::ahead`](crate::RawBatch::ahead) says how many. `prefetch(0)` and a small
/// `pinned_limit` make them fewer. A dataset that is [kept on the device](crate::PinnedDataLoaderBuilder::build_kept) has up to 64 batches
/// drawn at once. Leave out [`reads_ahead`](crate::PinnedDataLoaderBuilder::reads_ahead): it would draw for itself, and fetch other samples.
///
/// # Resume and several processes
///
/// The random number of a draw depends only on the seed, the epoch and its position in the epoch. So while nobody changes the weights, the
/// order is the same for any number of workers. A resumed loader continues with the next draw. But a [`LoaderState`](crate::LoaderState)
/// does not have the weights. Save [`to_vec`](Self::to_vec) with the model, and give it to [`new`](Self::new) again. Batches that were
/// drawn but not delivered are drawn again, by the newer weights. Each process has its own weights: set the same ones in all of them, or
/// each draws its share of the positions by its own.
///
/// # Panics
/// A draw panics while all weights are 0. In a loader this is an error in place of the batch, and of the rest of the epoch. So set a weight
/// before `iter()`.
#[derive(Clone, derive_more::Debug)]
#[debug("LiveWeights {{ seed: {seed}, size: {size:?}, weights: {len} }}")]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct LiveWeights {
    seed: u64,
    size: Option<usize>,
    len: usize,
    tree: Arc<Mutex<SumTree>>,
}

impl LiveWeights {
    /// Takes one weight for each item of the dataset. The weights need not sum to 1, and all may be 0 at first.
    ///
    /// # Errors
    /// [`Error::Config`] if there are no weights, or if one is NaN, negative, or more than `f64::MAX / 2` divided by their number.
    pub fn new<W: Into<f64>>(weights: impl IntoIterator<Item = W>, seed: u64) -> Result<Self, Error> {
        let (option, weights) = ("LiveWeights::new", weights.into_iter());
        let weights: Vec<f64> = listed(option, weights.size_hint().0, weights.map(Into::into))?;
        let len = weights.len();
        if len == 0 {
            return Err(Error::config(option, "there are no weights", "give one for each item"));
        }
        weights.iter().enumerate().try_for_each(|(item, weight)| check_weight(option, len, item, *weight))?;
        Ok(Self { seed, size: None, len, tree: Arc::new(Mutex::new(SumTree::new(option, weights)?)) })
    }

    /// Sets the number of samples of an epoch. Default: as many as the dataset has. `usize::MAX` makes one endless epoch.
    pub fn with_size(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }

    /// Sets the weight of an item, for all draws from now on.
    ///
    /// # Errors
    /// As [`set_many`](Self::set_many).
    pub fn set(&self, item: usize, weight: impl Into<f64>) -> Result<(), Error> {
        self.set_many([(item, weight)])
    }

    /// Sets the weights of several items at once: no draw comes between. If an item occurs twice, its last weight counts.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such item, or if a weight is wrong, as in [`new`](Self::new). Then no weight has changed.
    pub fn set_many<W: Into<f64>>(&self, weights: impl IntoIterator<Item = (usize, W)>) -> Result<(), Error> {
        let weights: Vec<_> = weights.into_iter().map(|(item, weight)| (item, weight.into())).collect();
        weights
            .iter()
            .try_for_each(|(item, weight)| check_weight("LiveWeights::set_many", self.len, *item, *weight))?;
        let mut tree = self.tree.lock();
        weights.into_iter().for_each(|(item, weight)| tree.set(item, weight));
        Ok(())
    }

    /// Returns the weight of an item. `None` if there is no such item.
    pub fn get(&self, item: usize) -> Option<f64> {
        self.tree.lock().weights().get(item).copied()
    }

    /// Returns the sum of all weights: an item is drawn with the probability `get(item) / sum()`.
    pub fn sum(&self) -> f64 {
        self.tree.lock().sum()
    }

    /// Returns all weights, to save them.
    pub fn to_vec(&self) -> Vec<f64> {
        self.tree.lock().weights().to_vec()
    }
}

/// Checks the weight of an item among `len`. With the largest weights, the sum is still finite.
fn check_weight(option: &'static str, len: usize, item: usize, weight: f64) -> Result<(), Error> {
    let most = f64::MAX / 2.0 / len as f64;
    if item >= len {
        let problem = format!("there is no item {item} among {len}");
        return Err(Error::config(option, problem, "items are numbered as in the dataset, from 0"));
    }
    if !(0.0..=most).contains(&weight) {
        let advice = format!("weights must be from 0 to {most:e}; use 0 for what must not be drawn");
        return Err(Error::config(option, format!("weight {item} is {weight}"), advice));
    }
    Ok(())
}

impl Sampler for LiveWeights {
    fn len(&self, dataset_len: usize) -> usize {
        self.size.unwrap_or(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let (tree, rng) = (Arc::clone(&self.tree), KeyedRng::for_order(self.seed, epoch));
        let pick = move |random| {
            let picked = tree.lock().pick(random);
            picked.unwrap_or_else(|| panic!("all weights of `LiveWeights` are 0: set one before its samples are drawn"))
        };
        Box::new(draws(rng, self.len(dataset_len), pick))
    }

    fn repeats(&self) -> bool {
        true
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("LiveWeights::new", "weights", self.len, dataset_len)
    }
}
