//! Detects orders that scatter rows over so many pages that each page is decoded many times.

use crate::{
    data::{Rows, Tokenized},
    observe::Counters,
    order::{AnySampler, Blocks},
};
use std::{any::Any, sync::Arc};

/// The number of samples of an epoch that are checked.
const SAMPLES: usize = 4096;
/// How often each sample may be decoded, on average, before there is a warning. If blocks are read one after the other,
/// it is once.
const TOO_OFTEN: f64 = 2.0;

/// The dataset, if it has this type or is an `Arc` of it.
pub(super) fn plain_or_shared<D: 'static>(dataset: &dyn Any) -> Option<&D> {
    dataset.downcast_ref().or_else(|| dataset.downcast_ref::<Arc<D>>().map(|dataset| &**dataset))
}

/// The rows, if the dataset is `Rows` or an `Arc` of them, with or without a tokenizer, and not wrapped in another dataset.
pub(super) fn rows<I: 'static>(dataset: &dyn Any) -> Option<Rows<()>> {
    let tokenized = || (plain_or_shared::<Tokenized>(dataset)?.rows()? as &dyn Any).downcast_ref();
    plain_or_shared::<Rows<I>>(dataset).or_else(tokenized).map(|rows| rows.clone().map(|_| Ok(())))
}

/// Warns if the first samples of an epoch evict blocks from the memory for decoded pages before all their samples are
/// read.
pub(super) fn check(rows: &Rows<()>, sampler: &AnySampler, epoch: usize, counters: &Counters) {
    let (Some(blocks), AnySampler::Samples(sampler)) = (rows.decoded_blocks(), sampler) else { return };
    let blocks = Blocks::from(blocks);
    // Most data fit in the memory for pages. In that case no epoch is planned for this check.
    if !blocks.fit() {
        let times = blocks.decoded_for_each(sampler.indices(blocks.samples(), epoch).take(SAMPLES));
        if times > TOO_OFTEN {
            counters.warn(&format!(
                "in this order up to {times:.0} rows are decoded for each row that is used, since decoded pages do not stay in \
                 memory. Write `.order(BlockShuffle::new(rows.blocks()?, seed))` instead of `.shuffle(seed)`, or open the rows \
                 with more `memory`"));
            counters.note(|stats| stats.scattered = true);
        }
    }
}
