//! Independent draws by weight.

use super::{
    Sampler,
    alias::AliasTable,
    draws::Draws,
    fingerprint::Fingerprint,
    weights::{check_count, checked},
};
use crate::{error::Error, rng::KeyedRng};
use std::{fmt, sync::Arc};

/// Each sample of an epoch is item `i` with probability `weights[i]` over their sum, whatever came before.
///
/// ```
/// use burn_pinned::{Sampler, WeightedSampler};
///
/// let sampler = WeightedSampler::new([0.0, 1.0, 3.0], 42)?.with_size(4000);
/// let twos = sampler.indices(3, 0).filter(|index| *index == 2).count();
/// assert!((2800..3200).contains(&twos)); // 3 in 4
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// A table of 8 bytes a weight is made once and shared by all epochs and clones (16 while it is made): the alias method of A. J.
/// Walker (1977) and M. D. Vose (1991). A draw takes constant time, and so does skipping to any position. Up to 2^31 weights; a
/// probability is off by less than 2^-32 / n, the largest by less than 2^-32; items of weight 0 are never drawn.
#[derive(Clone)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct WeightedSampler {
    seed: u64,
    size: Option<usize>,
    weights: usize,
    fingerprint: Fingerprint,
    table: Arc<AliasTable>,
}

impl WeightedSampler {
    /// One weight for each item of the dataset; they need not sum to 1.
    ///
    /// # Errors
    /// [`Error::Config`] if a weight is NaN, infinite or negative, if all are 0, if there are none, or more than 2^31.
    pub fn new<W: Into<f64>>(weights: impl IntoIterator<Item = W>, seed: u64) -> Result<Self, Error> {
        let weights = checked("WeightedSampler::new", weights)?;
        if weights.len() > AliasTable::MAX_WEIGHTS {
            let problem = format!("{} weights are more than the 2^31 that a table holds", weights.len());
            return Err(Error::config(
                "WeightedSampler::new",
                problem,
                "weigh parts of the dataset with a `MixSampler`",
            ));
        }
        let fingerprint = Fingerprint::of(weights.iter().map(|weight| weight.to_bits()));
        Ok(Self { seed, size: None, weights: weights.len(), fingerprint, table: Arc::new(AliasTable::new(weights)) })
    }

    /// Samples of an epoch. Default: as many as the dataset has.
    pub fn with_size(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }
}

impl fmt::Debug for WeightedSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightedSampler")
            .field("seed", &self.seed)
            .field("size", &self.size)
            .field("weights", &self.fingerprint)
            .finish()
    }
}

impl Sampler for WeightedSampler {
    fn len(&self, dataset_len: usize) -> usize {
        self.size.unwrap_or(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let table = Arc::clone(&self.table);
        let rng = KeyedRng::for_order(self.seed, epoch);
        Box::new(Draws::new(rng, self.len(dataset_len), move |random| table.pick(random)))
    }

    fn repeats(&self) -> bool {
        true
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("WeightedSampler::new", "weights", self.weights, dataset_len)
    }
}
