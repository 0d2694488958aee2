//! Draws by weight, with and without replacement.

use super::base::Sampler;
use crate::{
    fault::Error,
    order::draw::{AliasTable, Fingerprint, PackedList, SharedPlan, check_count, checked, draws, reserved},
};
use burn_augment::KeyedRng;
use rand::RngExt;
use std::sync::Arc;

/// Draws item `i` with probability `weights[i]` divided by the sum of all weights, independently of earlier draws.
///
/// ```
/// use burn_pinned::order::{Sampler, WeightedSampler};
///
/// let sampler = WeightedSampler::new([0.0, 1.0, 3.0], 42)?.with_size(4000);
/// let twos = sampler.indices(3, 0).filter(|index| *index == 2).count();
/// assert!((2800..3200).contains(&twos)); // 3 in 4
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// It uses the alias method of A. J. Walker (1977) and M. D. Vose (1991). The table takes 8 bytes per weight (16 while
/// it is built). It is built once, and all epochs and clones share it. A draw takes constant time, and so does skipping
/// to any position. There may be up to 2^31 weights. With n weights, each probability is off by less than `2^-32 / n`,
/// the largest by less than 2^-32. Items of weight 0 are never drawn.
#[derive(Clone, derive_more::Debug)]
#[debug("WeightedSampler {{ seed: {seed}, size: {size:?}, weights: {fingerprint:?} }}")]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct WeightedSampler {
    seed: u64,
    size: Option<usize>,
    /// The number of weights that are 0.
    zeros: usize,
    fingerprint: Fingerprint,
    table: Arc<AliasTable>,
}

impl WeightedSampler {
    /// Takes one weight for each item of the dataset. The weights need not sum to 1.
    ///
    /// # Errors
    /// [`Error::Config`] if a weight is NaN, infinite or negative, if all are 0, if there are none, or if there are
    /// more than 2^31.
    pub fn new<W: Into<f64>>(weights: impl IntoIterator<Item = W>, seed: u64) -> Result<Self, Error> {
        let weights = checked("WeightedSampler::new", weights)?;
        if weights.len() > AliasTable::MAX_WEIGHTS {
            let problem = format!("{} weights are more than the 2^31 that a table holds", weights.len());
            let advice = "give weights to parts of the dataset, with a `MixSampler`";
            return Err(Error::config("WeightedSampler::new", problem, advice));
        }
        let fingerprint = Fingerprint::of(weights.iter().map(|weight| weight.to_bits()));
        let zeros = weights.iter().filter(|weight| **weight == 0.0).count();
        Ok(Self { seed, size: None, zeros, fingerprint, table: Arc::new(AliasTable::new(weights)) })
    }

    /// Sets the number of samples of an epoch. Default: as many as the dataset has.
    pub fn with_size(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }
}

impl Sampler for WeightedSampler {
    fn len(&self, dataset_len: usize) -> usize {
        self.size.unwrap_or(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let table = Arc::clone(&self.table);
        let rng = KeyedRng::for_order(self.seed, epoch);
        Box::new(draws(rng, self.len(dataset_len), move |random| table.pick(random)))
    }

    fn repeats(&self) -> bool {
        true
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        self.zeros.max(dataset_len.saturating_sub(self.len(dataset_len)))
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("WeightedSampler::new", "weights", self.fingerprint.len, dataset_len)
    }
}

/// Draws each sample from the items that were not drawn yet, with probability proportional to their weights.
///
/// Items of large weight tend to come early, no item occurs twice, and items of weight 0 never occur.
///
/// ```
/// use burn_pinned::order::{Sampler, WeightedWithoutReplacementSampler};
///
/// let sampler = WeightedWithoutReplacementSampler::new([1.0, 0.0, 5.0, 1.0], 42)?;
/// let mut all: Vec<_> = sampler.indices(4, 0).collect();
/// all.sort();
/// assert_eq!(all, [0, 2, 3]);
/// assert!(sampler.with_size(4).is_err()); // only three can be drawn
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// The probabilities are exact: items come in the order of exponential waiting times, whose rates are the weights (P.
/// S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir", Information Processing Letters 97(5),
/// 2006). An epoch is planned as a whole when it starts.
///
/// The weights take 8 bytes per item (16 while `new` runs), and all epochs and clones share them. An epoch takes 4 bytes per sample (8 from
/// 2^32 items), and while it starts 16 more per item of the dataset. Devices that share an epoch share this memory.
#[derive(Clone, derive_more::Debug)]
#[debug("WeightedWithoutReplacementSampler {{ seed: {seed}, size: {size}, weights: {fingerprint:?} }}")]
pub struct WeightedWithoutReplacementSampler {
    seed: u64,
    size: usize,
    positive: usize,
    #[expect(dead_code, reason = "it is in the `Debug` text, which stands for the sampler")]
    fingerprint: Fingerprint,
    weights: Arc<[f64]>,
    /// Whether waiting times may overflow. Then their logarithms are compared.
    logarithms: bool,
    plan: Arc<SharedPlan<PackedList>>,
}

/// The smallest rate whose waiting times are always finite: the longest wait at rate 1 is below 37, and 37 divided by
/// this rate is finite.
const LEAST_RATE: f64 = 64.0 / f64::MAX;

impl WeightedWithoutReplacementSampler {
    /// Takes one weight for each item of the dataset. The weights need not sum to 1. An epoch has all items of positive
    /// weight.
    ///
    /// # Errors
    /// [`Error::Config`] if a weight is NaN, infinite or negative, if all are 0, or if there are none.
    pub fn new<W: Into<f64>>(weights: impl IntoIterator<Item = W>, seed: u64) -> Result<Self, Error> {
        let weights = checked("WeightedWithoutReplacementSampler::new", weights)?;
        let positive = weights.iter().filter(|weight| **weight > 0.0).count();
        let logarithms = weights.iter().any(|weight| *weight > 0.0 && *weight < LEAST_RATE);
        let fingerprint = Fingerprint::of(weights.iter().map(|weight| weight.to_bits()));
        let (weights, plan) = (weights.into(), Arc::default());
        Ok(Self { seed, size: positive, positive, fingerprint, weights, logarithms, plan })
    }

    /// Keeps only the first `size` items of each epoch's order.
    ///
    /// # Errors
    /// [`Error::Config`] if `size` is more than the number of positive weights.
    pub fn with_size(self, size: usize) -> Result<Self, Error> {
        if size > self.positive {
            let problem = format!(
                "{size} items are more than the {} with a positive weight, and none is drawn twice",
                self.positive
            );
            let advice = "lower it, or use `WeightedSampler`, which draws with replacement";
            return Err(Error::config("WeightedWithoutReplacementSampler::with_size", problem, advice));
        }
        Ok(Self { size, plan: Arc::default(), ..self })
    }
}

impl WeightedWithoutReplacementSampler {
    /// The order of an epoch.
    fn order(&self, epoch: usize) -> PackedList {
        let mut rng = KeyedRng::for_order(self.seed, epoch);
        let mut arrivals = reserved(self.positive);
        arrivals.extend(self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0).map(|(item, weight)| {
            // libm's logarithm is used: the system's may differ in the last bit, and then the order would differ
            // between machines.
            let wait = -libm::log(1.0 - rng.random::<f64>());
            (if self.logarithms { libm::log(wait) - libm::log(*weight) } else { wait / weight }, item)
        }));
        let before = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if self.size < arrivals.len() {
            arrivals.select_nth_unstable_by(self.size, before);
            arrivals.truncate(self.size);
        }
        arrivals.sort_unstable_by(before);
        PackedList::collect(self.weights.len(), arrivals.into_iter().map(|(_, item)| item))
    }
}

impl Sampler for WeightedWithoutReplacementSampler {
    fn len(&self, _dataset_len: usize) -> usize {
        self.size
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        self.plan.get_or_make(dataset_len, epoch, || self.order(epoch)).indices()
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("WeightedWithoutReplacementSampler::new", "weights", self.weights.len(), dataset_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn order(weights: &[f64], epoch: usize) -> Vec<usize> {
        let sampler = WeightedWithoutReplacementSampler::new(weights.iter().copied(), 1).unwrap();
        sampler.indices(weights.len(), epoch).collect()
    }

    #[test]
    fn weights_of_any_size_are_followed() {
        let least = 5e-324;
        for weights in [[least; 4], [f64::MAX; 4], [1.0; 4]] {
            let orders: HashSet<_> = (0..200).map(|epoch| order(&weights, epoch)).collect();
            assert!(orders.len() > 15, "{} of 24 orders of {weights:?}", orders.len());
        }
        let first = (0..4000).filter(|epoch| order(&[3.0 * least, least], *epoch)[0] == 0).count();
        assert!((2850..3150).contains(&first), "{first} of 4000, 3000 are expected");
        assert!((0..100).all(|epoch| order(&[least, f64::MAX, 1.0], epoch) == [1, 2, 0]));
    }

    #[test]
    fn logarithms_give_the_same_order() {
        let weights = |unit: f64| (0..1000).map(|item| f64::from(item % 7) * unit).collect::<Vec<_>>();
        for epoch in 0..10 {
            assert_eq!(order(&weights(f64::MIN_POSITIVE / 256.0), epoch), order(&weights(1.0), epoch));
        }
    }
}
