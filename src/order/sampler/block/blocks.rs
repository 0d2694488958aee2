//! The runs of neighbouring samples that are cheap to read together.

use crate::order::draw::Fingerprint;
use std::{ops::Range, sync::Arc};

/// The runs of neighbouring samples of a dataset that are cheap to read together: shards, row groups, or pieces of some
/// megabytes.
///
/// ```
/// use burn_pinned::order::Blocks;
///
/// // Three row groups of 400, 400 and 200 samples. While its samples are in use, a group takes 50 MB, the last one 25 MB.
/// let blocks = Blocks::new([(400, 50_000_000), (400, 50_000_000), (200, 25_000_000)]);
/// assert_eq!((blocks.len(), blocks.samples()), (3, 1000));
/// assert!(blocks.ranges().eq([0..400, 400..800, 800..1000]));
/// ```
///
/// A data source makes them for a [`BlockShuffle`](super::BlockShuffle). They take 16 bytes per block, which clones
/// share.
#[derive(Clone, derive_more::Debug)]
#[debug("Blocks {{ blocks: {:?}, samples: {}, limit: {limit:?} }}", fingerprint, self.samples())]
pub struct Blocks {
    /// Where each block starts in the dataset, and where the last one ends.
    starts: Arc<[usize]>,
    bytes: Arc<[u64]>,
    /// The fingerprint of the blocks' numbers of samples.
    pub(super) fingerprint: Fingerprint,
    pub(super) limit: Option<u64>,
}

impl Blocks {
    /// Takes for each block, in the dataset's order, its number of samples and the bytes of memory that it takes while
    /// they are in use. The bytes are 0 if samples are read one by one. Blocks may be empty.
    ///
    /// All blocks together have at most `usize::MAX` samples. Further samples are left out.
    pub fn new(blocks: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let (samples, bytes): (Vec<usize>, Vec<u64>) = blocks.into_iter().unzip();
        let fingerprint = Fingerprint::of(samples.iter().map(|samples| *samples as u64));
        let ends = samples.into_iter().scan(0usize, |end, samples| {
            *end = end.saturating_add(samples);
            Some(*end)
        });
        let starts = [0].into_iter().chain(ends).collect();
        Self { starts, bytes: bytes.into(), fingerprint, limit: None }
    }

    /// Sets how many bytes of memory the source has for blocks in use. Default: enough for all blocks.
    ///
    /// [`BlockShuffle`](super::BlockShuffle) returns an error if it would use more blocks at once than fit.
    pub fn with_limit(self, bytes: u64) -> Self {
        Self { limit: Some(bytes), ..self }
    }

    /// Returns the number of blocks, including empty ones.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of samples of all blocks together.
    pub fn samples(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the samples of each block, in order. An empty block has an empty range.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.starts.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// The blocks of some of the samples. The first and the last block may be cut.
    pub(super) fn part(&self, samples: &Range<usize>) -> Self {
        let within = |block: Range<usize>| block.end.min(samples.end).saturating_sub(block.start.max(samples.start));
        let blocks = self.ranges().map(within).zip(self.bytes.iter().copied()).filter(|(samples, _)| *samples > 0);
        Self { limit: self.limit, ..Self::new(blocks) }
    }

    /// Whether all blocks fit in the source's memory for them.
    pub(crate) fn fit(&self) -> bool {
        let all = self.bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        self.limit.is_none_or(|limit| all <= limit)
    }

    /// Returns how many decoded samples the source's memory evicts for each sample that is read in this order. It is at most one if all
    /// samples of a block are read before the next block.
    pub(crate) fn decoded_for_each(&self, samples: impl Iterator<Item = usize>) -> f64 {
        let (Self { starts, bytes, .. }, limit) = (self, self.limit.unwrap_or(u64::MAX));
        // `kept` has the blocks in memory, the most recently used one last.
        let (mut kept, mut held, mut left, mut count) = (Vec::<usize>::new(), 0_u64, 0, 0);
        for sample in samples {
            let block = starts.partition_point(|start| *start <= sample).saturating_sub(1).min(bytes.len() - 1);
            count += 1;
            match kept.iter().rposition(|other| *other == block) {
                Some(place) => drop(kept.remove(place)),
                None => held = held.saturating_add(bytes[block]),
            }
            kept.push(block);
            while held > limit && kept.len() > 1 {
                let first = kept.remove(0);
                held -= bytes[first];
                left += self.range(first).len();
            }
        }
        left as f64 / f64::max(f64::from(count), 1.0)
    }

    /// Returns the samples of one of the blocks.
    ///
    /// # Panics
    /// If there is no such block.
    pub(super) fn range(&self, block: usize) -> Range<usize> {
        self.starts[block]..self.starts[block + 1]
    }

    /// Returns the total bytes of the largest blocks: of none, of the largest one, of the two largest, and so on up to
    /// all blocks with samples.
    pub(super) fn largest(&self) -> Vec<u64> {
        let used = self.ranges().zip(&*self.bytes).filter(|(range, _)| !range.is_empty());
        let mut bytes: Vec<u64> = used.map(|(_, bytes)| *bytes).collect();
        bytes.sort_unstable_by(|a, b| b.cmp(a));
        let sums = bytes.into_iter().scan(0u64, |sum, bytes| {
            *sum = sum.saturating_add(bytes);
            Some(*sum)
        });
        [0].into_iter().chain(sums).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_and_may_be_empty() {
        let blocks = Blocks::new([(0, 7), (3, 1), (0, 0), (2, 5), (0, 9)]);
        assert_eq!((blocks.len(), blocks.samples(), blocks.is_empty()), (5, 5, false));
        assert_eq!(blocks.ranges().collect::<Vec<_>>(), [0..0, 0..3, 3..3, 3..5, 5..5]);
        assert!((0..5).map(|block| blocks.range(block)).eq(blocks.ranges()));
        assert_eq!(blocks.largest(), [0, 5, 6], "what has no samples is never in use");
        let none = Blocks::new([]);
        assert_eq!((none.len(), none.samples(), none.is_empty(), none.largest()), (0, 0, true, vec![0]));
    }

    #[test]
    fn numbers_beyond_all_memory_are_cut() {
        let blocks = Blocks::new([(usize::MAX, u64::MAX), (5, 1), (usize::MAX, 2)]);
        assert_eq!(blocks.samples(), usize::MAX);
        assert_eq!(blocks.ranges().map(|range| range.len()).collect::<Vec<_>>(), [usize::MAX, 0, 0]);
        assert_eq!(Blocks::new([(1, u64::MAX), (1, 1)]).largest(), [0, u64::MAX, u64::MAX]);
    }

    #[test]
    fn samples_that_drive_blocks_out_are_told() {
        let blocks = Blocks::new((0..10).map(|_| (100, 10))).with_limit(50);
        assert!(!blocks.fit());
        assert_eq!(blocks.decoded_for_each(0..1000), 0.5, "of ten blocks five have left");
        let back_and_forth = (0..100).flat_map(|at| (0..10).map(move |block| block * 100 + at));
        assert_eq!(blocks.decoded_for_each(back_and_forth.clone()), 99.5, "each sample drives a block out");
        let roomy = blocks.with_limit(100);
        assert!(roomy.fit() && roomy.decoded_for_each(back_and_forth) == 0.0);
        assert!(Blocks::new([(1000, 10)]).fit());
    }

    /// The memory depends on the machine, so the fingerprint covers only the samples.
    #[test]
    fn the_fingerprint_is_that_of_the_samples_alone() {
        let of = |blocks: Blocks| format!("{:?}", blocks.fingerprint);
        let text = of(Blocks::new([(3, 1), (2, 5)]));
        assert_eq!(text, of(Blocks::new([(3, 9), (2, 0)]).with_limit(7)));
        assert_ne!(text, of(Blocks::new([(2, 1), (3, 5)])));
        assert_ne!(text, of(Blocks::new([(5, 6)])));
    }
}
