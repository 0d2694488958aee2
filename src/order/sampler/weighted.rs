//! Draws by weight, with and without replacement.

use super::base::Sampler;
use crate::{
    fault::Error,
    order::draw::{AliasTable, Fingerprint, PackedList, SharedPlan, check_count, checked, draws, reserved},
};
use burn_augment::KeyedRng;
use burn_shards::for_loader::Permutation;
use rand::Rng;
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
        let table = Arc::new(AliasTable::new("WeightedSampler::new", weights)?);
        Ok(Self { seed, size: None, zeros, fingerprint, table })
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
/// The weights take 8 bytes per item, and all epochs and clones share them. An epoch takes 4 bytes per sample, and while it starts 8 per
/// item of the dataset. Devices that share an epoch share this memory.
#[derive(Clone, derive_more::Debug)]
#[debug("WeightedWithoutReplacementSampler {{ seed: {seed}, size: {size}, weights: {fingerprint:?} }}")]
pub struct WeightedWithoutReplacementSampler {
    seed: u64,
    size: usize,
    positive: usize,
    #[expect(dead_code, reason = "it is in the `Debug` text, which stands for the sampler")]
    fingerprint: Fingerprint,
    weights: Arc<Vec<f64>>,
    /// The least arrival, except for a few, and how many bits too long the largest one is for 32 bits.
    least: u64,
    shift: u32,
    plan: Arc<SharedPlan<PackedList>>,
}

impl WeightedWithoutReplacementSampler {
    /// Takes one weight for each item of the dataset. The weights need not sum to 1. An epoch has all items of positive
    /// weight.
    ///
    /// # Errors
    /// [`Error::Config`] if a weight is NaN, infinite or negative, if all are 0, if there are none, or if there are 2^32 or more.
    pub fn new<W: Into<f64>>(weights: impl IntoIterator<Item = W>, seed: u64) -> Result<Self, Error> {
        let weights = checked("WeightedWithoutReplacementSampler::new", weights)?;
        if u32::try_from(weights.len()).is_err() {
            let problem = format!("{} weights are more than an order may have", weights.len());
            let advice = "give weights to parts of the dataset, with a `MixSampler`";
            return Err(Error::config("WeightedWithoutReplacementSampler::new", problem, advice));
        }
        let positive = weights.iter().filter(|weight| **weight > 0.0);
        let (positive, lightest) = (positive.clone().count(), positive.copied().fold(f64::MAX, f64::min));
        let heaviest = weights.iter().copied().fold(0.0, f64::max);
        let least = arrival(SHORT_WAIT, heaviest);
        let shift = (u64::BITS - (arrival(LONGEST_WAIT, lightest) - least).leading_zeros()).saturating_sub(u32::BITS);
        let fingerprint = Fingerprint::of(weights.iter().map(|weight| weight.to_bits()));
        let (weights, plan) = (Arc::new(weights), Arc::default());
        Ok(Self { seed, size: positive, positive, fingerprint, weights, least, shift, plan })
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
        // The random number of any item, in any order.
        let randoms = Permutation::new(1 << 53, || rng.next_u64());
        let arrival_of = |item: u32| {
            // libm's logarithm is used: the system's may differ in the last bit, and then the order would differ
            // between machines.
            let uniform = randoms.at(u64::from(item)) as f64 / (1u64 << 53) as f64;
            arrival(-libm::log(1.0 - uniform), self.weights[item as usize])
        };
        // The upper bits of the arrivals, which leave few items to be compared further.
        let mut arrivals: Vec<(u32, u32)> = reserved(self.positive);
        let items = self.weights.iter().zip(0..).filter(|(weight, _)| **weight > 0.0);
        arrivals.extend(items.map(|(_, item)| {
            let upper = arrival_of(item).saturating_sub(self.least) >> self.shift;
            (upper as u32, item)
        }));
        let both = |&(upper, item): &(u32, u32)| u64::from(upper) << 32 | u64::from(item);
        if self.size < arrivals.len() {
            let (_, &mut (last, _), _) = arrivals.select_nth_unstable_by_key(self.size, both);
            arrivals.retain(|(upper, _)| *upper <= last);
        }
        arrivals.sort_unstable_by_key(both);
        for alike in arrivals.chunk_by_mut(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1) {
            alike.sort_by_key(|(_, item)| arrival_of(*item));
        }
        arrivals.truncate(self.size);
        let mut order: Vec<u32> = arrivals.into_iter().map(|(_, item)| item).collect(); // reuses the memory of the arrivals
        order.shrink_to_fit();
        PackedList::Narrow(order)
    }
}

/// Few waits are shorter.
const SHORT_WAIT: f64 = 1.0 / (1u64 << 27) as f64;
/// No wait is longer: the logarithm of 2^53.
const LONGEST_WAIT: f64 = 37.0;

/// A number that grows with `wait / weight`, and has all bits of this quotient. The quotient itself may be beyond all numbers.
fn arrival(wait: f64, weight: f64) -> u64 {
    let (mantissa, exponent) = libm::frexp(weight); // from 0.5 to 1, and from -1073 to 1024
    let quotient = wait.max(1.0 / (1u64 << 54) as f64) / mantissa;
    quotient.to_bits() + (((1024 - exponent) as u64) << (f64::MANTISSA_DIGITS - 1))
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

    /// Arrivals are compared as quotients are, also where the upper bits are equal.
    #[test]
    fn arrivals_grow_with_the_wait() {
        let waits = [0.0, 1e-15, 1e-9, 0.3, 0.5, 0.5 + 1e-15, 1.0, 3.0, 36.7];
        for weights in [[3.0, 1.0], [1.0, 0.99], [f64::MAX, f64::MIN_POSITIVE], [1e-320, 5e-324]] {
            for pair in waits.windows(2) {
                assert!(weights.iter().all(|weight| arrival(pair[0], *weight) < arrival(pair[1], *weight)));
            }
            assert!(waits.iter().all(|wait| arrival(*wait, weights[0]) < arrival(*wait, weights[1])));
        }
        assert_eq!(arrival(3.0, 1.5), arrival(2.0, 1.0));
        // All weights are alike, and so many that two arrivals with the same upper bits are likely.
        let order = order(&[1.0; 100_000], 3);
        assert_eq!(order.iter().collect::<HashSet<_>>().len(), 100_000);
    }

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
    fn the_unit_of_the_weights_changes_nothing() {
        let weights = |unit: f64| (0..1000).map(|item| f64::from(item % 7) * unit).collect::<Vec<_>>();
        for epoch in 0..10 {
            assert_eq!(order(&weights(f64::MIN_POSITIVE / 256.0), epoch), order(&weights(1.0), epoch));
        }
    }
}
