//! Batches of samples of similar length.

use super::batch::{BatchSampler, EpochBatches};
use crate::{
    fault::Error,
    order::draw::{Fingerprint, LazyMap, PackedList, SharedPlan, Shuffle, check_count},
};
use burn_augment::KeyedRng;
use std::{ops::Range, sync::Arc};

/// Makes batches of sequences of similar length, each with as many sequences as a token budget allows.
///
/// It is for text and audio, where rows are padded to the longest row of their batch.
///
/// ```
/// use burn_pinned::order::{BatchSampler, LengthBucketSampler};
///
/// let lengths = [10, 90, 12, 95, 11, 100];
/// let sampler = LengthBucketSampler::new(lengths, 200, 8)?.shuffle(42); // at most 200 tokens, at most 8 rows
/// for batch in sampler.batches(6, 0).batches {
///     let longest = batch.iter().map(|item| lengths[*item]).max().unwrap_or(0);
///     assert!(batch.len() * longest <= 200); // the padding counts
/// }
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// The dataset's order is cut into pools of many batches. Each pool is sorted by length and cut into batches, as full
/// as the budget allows. With [`shuffle`](Self::shuffle), the dataset is shuffled anew for each epoch before it is cut
/// into pools, and the batches of all pools come in random order. Large pools need less padding, small pools mix more.
/// Every item occurs once per epoch.
///
/// Machine translation systems make batches in the same way: torchtext has pools of 100 batches; tensor2tensor (A.
/// Vaswani et al., 2018, arXiv:1803.07416) and fairseq (M. Ott et al., 2019, arXiv:1904.01038) have batches of a token
/// budget.
///
/// The lengths take 4 bytes per item, and all epochs and clones share them. An epoch takes 4 bytes per item and up to 8
/// bytes per batch. It is planned as a whole when it starts. Devices that share an epoch share the plan. From 2^32 items or tokens, the 4
/// bytes become 8.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "LengthBucketSampler {{ max_tokens: {max_tokens}, max_batch_size: {max_batch_size}, pool: {pool}, seed: {seed:?}, lengths: {fingerprint:?} }}"
)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct LengthBucketSampler {
    max_tokens: usize,
    max_batch_size: usize,
    pool: usize,
    seed: Option<u64>,
    shortest: usize,
    #[expect(dead_code, reason = "it is in the `Debug` text, which stands for the sampler")]
    fingerprint: Fingerprint,
    lengths: Arc<PackedList>,
    plan: Arc<SharedPlan<BucketPlan>>,
}

/// The batches of an epoch.
struct BucketPlan {
    order: PackedList,
    /// Where each batch ends in this order. It begins where the one before ends.
    ends: PackedList,
    /// The order of the batches, if they are shuffled.
    turns: Option<Shuffle>,
}

impl LengthBucketSampler {
    /// Takes the length of each item of the dataset, in the dataset's order, and the limits of a batch.
    ///
    /// Lengths are in tokens (frames, steps). A batch has at most `max_tokens` tokens including padding, which is its
    /// number of rows times its longest row. It has at most `max_batch_size` rows.
    ///
    /// # Errors
    /// [`Error::Config`] if there are no lengths, if `max_batch_size` is 0, or if an item is longer than `max_tokens`.
    pub fn new(
        lengths: impl IntoIterator<Item = usize>,
        max_tokens: usize,
        max_batch_size: usize,
    ) -> Result<Self, Error> {
        let refuse = |problem: String, advice| Err(Error::config("LengthBucketSampler::new", problem, advice));
        let lengths = PackedList::given("LengthBucketSampler::new", lengths)?;
        if max_batch_size == 0 {
            return refuse("0 rows make no batch".into(), "let `max_batch_size` be at least 1");
        }
        if let Some((item, length)) = lengths.iter().enumerate().find(|(_, length)| *length > max_tokens) {
            let problem = format!("item {item} has {length} tokens, but a batch has at most {max_tokens}");
            return refuse(problem, "raise `max_tokens`, or cut or leave out such items");
        }
        let Some(shortest) = lengths.iter().min() else {
            return refuse("there are no lengths".into(), "give one for each item");
        };
        let fingerprint = Fingerprint::of(lengths.iter().map(|length| length as u64));
        let tokens: u128 = lengths.iter().map(|length| length as u128).sum();
        let rows = (max_tokens as u128 * lengths.len() as u128).checked_div(tokens).unwrap_or(u128::MAX);
        let pool = usize::try_from(rows).unwrap_or(usize::MAX).min(max_batch_size).saturating_mul(100);
        let (lengths, plan) = (Arc::new(lengths), Arc::default());
        Ok(Self { max_tokens, max_batch_size, pool, seed: None, shortest, fingerprint, lengths, plan })
    }

    /// Makes new batches in a new order each epoch, depending only on (seed, epoch). Default: the same batches every
    /// epoch, pool by pool in the dataset's order.
    pub fn shuffle(self, seed: u64) -> Self {
        Self { seed: Some(seed), plan: Arc::default(), ..self }
    }

    /// Sets the number of items of a pool. Default: enough for 100 batches of average length.
    ///
    /// # Errors
    /// [`Error::Config`] if `items` is 0.
    pub fn with_pool_size(self, items: usize) -> Result<Self, Error> {
        if items == 0 {
            let advice = "use a multiple of a batch's rows, e.g. 100 batches";
            return Err(Error::config("LengthBucketSampler::with_pool_size", "0 items make no pool", advice));
        }
        Ok(Self { pool: items, plan: Arc::default(), ..self })
    }

    fn plan_epoch(&self, epoch: usize) -> BucketPlan {
        let items = self.lengths.len();
        let mut rng = self.seed.map(|seed| KeyedRng::for_order(seed, epoch));
        let mut order = match &mut rng {
            Some(rng) => PackedList::collect(items, Shuffle::new(items, rng).indices()),
            None => PackedList::collect(items, 0..items),
        };
        let mut ends = PackedList::EMPTY;
        for start in (0..items).step_by(self.pool) {
            let pool = start..items.min(start.saturating_add(self.pool));
            order.sort_by_key(pool.clone(), |item| self.lengths.get(item));
            self.cut_pool(&order, pool, &mut ends);
        }
        let turns = rng.map(|mut rng| Shuffle::new(ends.len(), &mut rng));
        BucketPlan { order, ends, turns }
    }

    /// Cuts sorted items into batches, as full as the limits allow.
    fn cut_pool(&self, order: &PackedList, pool: Range<usize>, ends: &mut PackedList) {
        let mut start = pool.start;
        for at in pool.clone() {
            let rows = at + 1 - start; // including this item, which is the longest so far
            let tokens = rows.saturating_mul(self.lengths.get(order.get(at)));
            if rows > self.max_batch_size || tokens > self.max_tokens {
                ends.push(at);
                start = at;
            }
        }
        ends.push(pool.end);
    }
}

impl BatchSampler for LengthBucketSampler {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        let plan = self.plan.get_or_make(dataset_len, epoch, || self.plan_epoch(epoch));
        let count = plan.ends.len();
        let batch = move |turn| {
            let number = plan.turns.as_ref().map_or(turn, |turns| turns.at(turn));
            let start = number.checked_sub(1).map_or(0, |before| plan.ends.get(before));
            Some(plan.order.slice(start..plan.ends.get(number)))
        };
        EpochBatches::new(count, LazyMap::new(count, batch))
    }

    fn max_batch_size(&self, _dataset_len: usize) -> usize {
        let rows = self.max_tokens.checked_div(self.shortest).unwrap_or(usize::MAX);
        rows.min(self.max_batch_size).min(self.lengths.len())
    }

    fn num_items(&self, _dataset_len: usize) -> usize {
        self.lengths.len()
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("LengthBucketSampler::new", "lengths", self.lengths.len(), dataset_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_item_once_within_the_budget(
            lengths in prop::collection::vec(0usize..60, 1..300),
            max_tokens in 60usize..400,
            rows in 1usize..20,
            pool in prop::option::of(1usize..100),
            seed in prop::option::of(0u64..5),
            skip in 0usize..40,
        ) {
            let mut sampler = LengthBucketSampler::new(lengths.clone(), max_tokens, rows).unwrap();
            if let Some(pool) = pool { sampler = sampler.with_pool_size(pool).unwrap() }
            if let Some(seed) = seed { sampler = sampler.shuffle(seed) }
            let n = lengths.len();
            let planned = sampler.batches(n, 3);
            let batches: Vec<_> = planned.batches.collect();
            prop_assert_eq!(planned.len, batches.len());
            for batch in &batches {
                prop_assert!((1..=sampler.max_batch_size(n)).contains(&batch.len()));
                let longest = batch.iter().map(|item| lengths[*item]).max().unwrap();
                prop_assert!(batch.len() * longest <= max_tokens);
            }
            let mut items = batches.concat();
            items.sort_unstable();
            prop_assert!(items.into_iter().eq(0..n));
            let skipped = sampler.batches(n, 3).batches.nth(skip);
            prop_assert_eq!(skipped.as_ref(), batches.get(skip));
        }
    }

    /// Bucketing is there to avoid the waste of padding.
    #[test]
    fn like_lengths_share_a_batch() {
        let lengths: Vec<usize> = (0..5000).map(|item| 5 + item * 7919 % 200).collect();
        let sampler = LengthBucketSampler::new(lengths.clone(), 2000, 64).unwrap().shuffle(1);
        let padded: usize = sampler
            .batches(5000, 0)
            .batches
            .map(|batch| batch.len() * batch.iter().map(|item| lengths[*item]).max().unwrap())
            .sum();
        let tokens: usize = lengths.iter().sum();
        assert!(padded * 100 < tokens * 105, "{padded} tokens with padding, {tokens} without");
    }

    #[test]
    fn epochs_differ_only_if_shuffled() {
        let lengths: Vec<usize> = (1..200).collect();
        let sampler = LengthBucketSampler::new(lengths, 1000, 32).unwrap();
        let epoch = |sampler: &LengthBucketSampler, epoch| sampler.batches(199, epoch).batches.collect::<Vec<_>>();
        assert_eq!(epoch(&sampler, 0), epoch(&sampler, 1));
        let shuffled = sampler.shuffle(1);
        assert_ne!(epoch(&shuffled, 0), epoch(&shuffled, 1));
    }

    #[test]
    fn wrong_options_are_refused_with_advice() {
        let refused = |lengths: &[usize], tokens, rows| {
            LengthBucketSampler::new(lengths.iter().copied(), tokens, rows).unwrap_err().to_string()
        };
        let long = refused(&[3, 900], 512, 8);
        assert!(long.contains("item 1 has 900 tokens") && long.contains("raise `max_tokens`"), "{long}");
        assert!(refused(&[], 512, 8).contains("no lengths"));
        assert!(refused(&[3], 512, 0).contains("max_batch_size"));
        let sampler = LengthBucketSampler::new([0, 0], 0, 8).unwrap();
        assert_eq!(sampler.max_batch_size(2), 2);
        assert!(sampler.check(3).is_err());
        assert!(sampler.with_pool_size(0).is_err());
    }
}
