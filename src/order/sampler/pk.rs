//! A batch sampler for metric learning: some labels, and some samples of each.

use super::{
    batch::{BatchSampler, EpochBatches},
    classes::by_class,
};
use crate::{
    fault::Error,
    order::draw::{Fingerprint, LazyMap, PackedList, Shuffle, check_count, reserved},
};
use burn_augment::{KeyedRng, for_loader::Purpose};
use std::sync::Arc;

/// Makes batches of `p` different labels with `k` samples of each, for losses that compare samples: triplet, contrastive, proxies.
///
/// ```
/// use burn_pinned::order::{BatchSampler, PKSampler};
///
/// let labels = ["ant", "ant", "ant", "bee", "bee", "cow", "cow", "cow"];
/// let sampler = PKSampler::new(labels, 2, 2, 42)?; // for the builder's option `order`
/// for batch in sampler.batches(8, 0).batches {
///     let [a, b, c, d] = batch[..] else { panic!("p * k samples") };
///     assert!(labels[a] == labels[b] && labels[c] == labels[d] && labels[a] != labels[c]);
///     assert!(a != b && c != d);
/// }
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// - The samples of a label are next to each other in the batch: sample `i` has the label of sample `i - i % k`.
/// - Labels come in rounds. A round has a new random order of all labels, cut into batches of `p`, so a label comes at most once in it. The
///   labels that are left over, fewer than `p`, have no batch in this round. All labels come equally often on average, however many
///   samples they have.
/// - The samples of a label come in random order too, cut into groups of `k`, with a new order after the last whole group. So a batch has no
///   sample twice, except of labels with fewer than `k` samples: their samples are repeated, each about equally often.
/// - An epoch has as many batches as all samples would fill, rounded down, and at least one. The next epoch continues with the rounds.
///   `steps_per_epoch(n)` sets another number.
///
/// The order depends on the seed and the number of the epoch. A batch is computed from its position, so skipping takes no time, and an epoch
/// needs no memory. The table takes 4 bytes per item (8 from 2^32 items) and about 32 per label. All epochs and clones share it.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "PKSampler {{ p: {p}, k: {k}, seed: {seed}, labels: {}, items_and_ends: {fingerprint:?} }}",
    labels.len()
)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct PKSampler {
    p: usize,
    k: usize,
    seed: u64,
    /// Of the items of all labels, and of the ends of the labels.
    fingerprint: Fingerprint,
    /// The items of each label.
    labels: Arc<[PackedList]>,
}

impl PKSampler {
    /// Takes the label of each item of the dataset, in the dataset's order: numbers, names, or any type with an order.
    ///
    /// # Errors
    /// [`Error::Config`] if `p` or `k` is 0, if there are fewer than `p` different labels, or if a batch has too many samples to count.
    pub fn new<L: Ord>(labels: impl IntoIterator<Item = L>, p: usize, k: usize, seed: u64) -> Result<Self, Error> {
        let option = "PKSampler::new";
        if p.checked_mul(k).is_none_or(|size| size == 0) {
            let problem = format!("{p} labels with {k} samples of each make no batch");
            return Err(Error::config(option, problem, "let both be at least 1, and few enough for the memory"));
        }
        let (labels, fingerprint) = by_class(option, labels)?;
        if labels.len() < p {
            let problem = format!("there are {} different labels for batches of {p}", labels.len());
            return Err(Error::config(option, problem, "lower `p`"));
        }
        Ok(Self { p, k, seed, fingerprint, labels })
    }

    fn items(&self) -> usize {
        self.fingerprint.len - self.labels.len()
    }

    /// A batch of an epoch of `len` batches.
    fn batch(&self, epoch: usize, len: usize, at: usize) -> Vec<usize> {
        let Self { p, k, labels, .. } = self;
        let (number, in_round) = (epoch as u128 * len as u128 + at as u128, labels.len() / p);
        let (round, first) = ((number / in_round as u128) as usize, (number % in_round as u128) as usize * p);
        let order = self.shuffle(labels.len(), round, 0);
        let mut batch = reserved(p * k);
        for label in (first..first + p).map(|place| order.at(place)) {
            let items = &labels[label];
            let groups = (items.len() / k).max(1);
            let order = self.shuffle(items.len(), round / groups, label + 1); // the rounds have the key of label 0
            let first = round % groups * k;
            batch.extend((first..first + k).map(|place| items.get(order.at(place % items.len()))));
        }
        batch
    }

    /// An order that is computed if it is long, since a batch has few places of it.
    fn shuffle(&self, len: usize, pass: usize, key: usize) -> Shuffle {
        Shuffle::up_to(64, len, &mut KeyedRng::new(Purpose::Order, self.seed, pass, key))
    }
}

impl BatchSampler for PKSampler {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        let (sampler, len) = (self.clone(), self.num_items(dataset_len) / self.max_batch_size(dataset_len));
        EpochBatches::new(len, LazyMap::new(len, move |at| Some(sampler.batch(epoch, len, at))))
    }

    fn max_batch_size(&self, _dataset_len: usize) -> usize {
        self.p * self.k
    }

    fn num_items(&self, dataset_len: usize) -> usize {
        let size = self.max_batch_size(dataset_len);
        (self.items() / size * size).max(size)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("PKSampler::new", "labels", self.items(), dataset_len)
    }
}
