//! The dataset's own order.

use super::{base::Sampler, members::Members};
use std::{ops::Range, sync::Arc};

/// Every sample once, in the dataset's order.
#[derive(Debug, Clone, Copy, Default)]
pub struct SequentialSampler;

impl Sampler for SequentialSampler {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, dataset_len: usize, _epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(0..dataset_len)
    }

    fn part(&self, _dataset_len: usize, part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        Some(Members::of(*self, part))
    }
}
