//! The sampler over blocks, and its limits.

use super::{
    blocks::Blocks,
    streams::{BlockOrder, Streams},
};
use crate::{
    fault::Error,
    order::{
        draw::{LazyMap, SharedPlan, check_count},
        sampler::{
            base::Sampler,
            members::{Members, seed_of},
        },
    },
};
use std::{fmt, ops::Range, sync::Arc};

/// The default numbers of streams and of blocks per group. The order depends on them, so they are the same on every
/// machine. `docs/samplers.md` explains the choice.
const STREAMS: usize = 8;
const WINDOW: usize = 4;

/// Every sample once, in a new order each epoch that depends only on (seed, epoch). Only a small number of blocks is in
/// use at a time.
///
/// It is for data that is read and decoded in whole blocks, such as compressed row groups of Parquet. A full shuffle
/// would decode a whole block for almost every sample. This sampler needs each block once per epoch, and a small number
/// of blocks twice. If single samples are cheap to read, [`RandomSampler`](crate::order::RandomSampler) mixes better.
///
/// ```
/// use burn_pinned::order::{BlockShuffle, Blocks, Sampler};
///
/// // 100 row groups of 1000 samples; each takes 60 MB while its samples are in use, and there are 2 GB of memory.
/// let blocks = Blocks::new((0..100).map(|_| (1000, 60_000_000))).with_limit(2_000_000_000);
/// let sampler = BlockShuffle::new(blocks, 42);
/// sampler.check(100_000)?;
/// let mut order: Vec<usize> = sampler.indices(100_000, 0).collect();
/// assert!(order != sampler.indices(100_000, 1).collect::<Vec<_>>());
/// order.sort();
/// assert!(order.into_iter().eq(0..100_000));
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// # The order
/// The blocks are laid end to end in random order. This sequence is cut into [`streams`](Self::streams) whose lengths
/// differ by at most one sample; a cut may be in the middle of a block. A stream is cut into groups of
/// [`window`](Self::window) blocks, and the samples of each group are shuffled. Position `p` of the epoch is the next
/// sample of stream `p mod streams`. The first group of a stream has fewer blocks, from 1 in the first stream up to a
/// whole window in the last one. So the streams do not all change groups at the same time.
///
/// The order is the same for any number of processes and devices. If their number divides the number of streams, each
/// has its own streams, and shares only cut blocks with the others.
///
/// # Memory
/// At every position of the epoch at most `streams * window` blocks are in use, including blocks that are cut at the
/// end of a stream. When a stream changes groups, unfinished batches may also use blocks of the previous group. At most
/// `streams - 1` blocks are cut. They are in use twice per epoch: at the end of one stream, and at the start of the
/// next one.
///
/// An epoch takes 12 bytes per block (16 from 2^32 blocks), and 4 bytes per sample of the groups in use (8 from 2^32
/// samples of the dataset). The worker that first needs a sample of a group shuffles the group. Skipping to any
/// position takes no longer than that.
///
/// `docs/samplers.md` shows how well it mixes.
#[derive(Clone)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct BlockShuffle {
    blocks: Blocks,
    seed: u64,
    streams: usize,
    window: usize,
    plan: Arc<SharedPlan<BlockOrder>>,
}

impl BlockShuffle {
    /// Takes the blocks of the dataset, in its order.
    ///
    /// [`check`](Sampler::check), which `build` calls, returns [`Error::Config`] if the blocks do not have as many samples as the dataset,
    /// or if the `streams * window` largest ones take more bytes than [`Blocks::with_limit`] allows. The check assumes that one process
    /// reads the whole order. If `w` processes share it, each needs only its part: set the limit to `w` times the memory of one process.
    pub fn new(blocks: impl Into<Blocks>, seed: u64) -> Self {
        Self { blocks: blocks.into(), seed, streams: STREAMS, window: WINDOW, plan: Arc::default() }
    }

    /// Sets the number of streams. Default: 8.
    ///
    /// More streams mix more blocks in each batch, take more memory, and cut more blocks. Use a multiple of the number
    /// of processes. 0 is an error of [`check`](Sampler::check).
    pub fn streams(self, streams: usize) -> Self {
        Self { streams, ..self }
    }

    /// Sets the number of blocks that each stream mixes. Default: 4.
    ///
    /// More blocks mix better and take more memory. 0 is an error of [`check`](Sampler::check).
    pub fn window(self, blocks: usize) -> Self {
        Self { window: blocks, ..self }
    }

    /// Checks that the blocks that are in use at once fit in the source's memory for them.
    fn check_memory(&self, limit: u64) -> Result<(), Error> {
        let largest = self.blocks.largest();
        let used = self.streams.saturating_mul(self.window).min(largest.len() - 1); // `largest[0]` is for no block
        let bytes = largest[used];
        if bytes <= limit {
            return Ok(());
        }
        let fit = largest.partition_point(|bytes| *bytes <= limit) - 1; // no block takes no bytes, which fits
        let (window, streams) = (fit / self.streams, fit / self.window);
        // Most numbers of processes divide a power of two.
        let options = [
            (window > 0).then(|| format!("`.window({window})`")),
            streams.checked_ilog2().map(|log| format!("`.streams({})`", 1usize << log)),
        ];
        let smaller = match options.into_iter().flatten().collect::<Vec<_>>().join(" or ") {
            _ if fit == 0 => String::new(),
            none if none.is_empty() => format!("write `.streams(1).window({fit})`, or "),
            some => format!("write {some}, or "),
        };
        let (needed, given) = ((bytes as f64 / 1e5).ceil() / 10.0, (limit as f64 / 1e5).floor() / 10.0);
        let problem = format!(
            "{used} blocks are in use at once ({} streams of {} blocks) and take up to {needed:.1} MB, but the source has \
             {given:.1} MB for them",
            self.streams, self.window,
        );
        let advice = format!("{smaller}give the source at least {needed:.1} MB");
        Err(Error::config("BlockShuffle::new", problem, advice))
    }
}

impl fmt::Debug for BlockShuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks: Blocks { fingerprint: blocks, .. }, seed, streams, window, .. } = self;
        write!(f, "BlockShuffle {{ seed: {seed}, streams: {streams}, window: {window}, blocks: {blocks:?} }}")
    }
}

impl Sampler for BlockShuffle {
    fn len(&self, _dataset_len: usize) -> usize {
        self.blocks.samples()
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let plan = self.plan.get_or_make(dataset_len, epoch, || BlockOrder::new(&self.blocks, self.seed, epoch));
        let mut streams = Streams::new(plan, self.seed, epoch, self.streams, self.window);
        Box::new(LazyMap::new(streams.len(), move |position| Some(streams.sample_at(position))))
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        check_count("Blocks::new", "samples in all blocks", self.blocks.samples(), dataset_len)?;
        let advice = "use at least 1";
        if self.streams == 0 {
            return Err(Error::config("BlockShuffle::streams", "0 streams have no samples", advice));
        }
        if self.window == 0 {
            return Err(Error::config("BlockShuffle::window", "0 blocks have no samples", advice));
        }
        self.blocks.limit.map_or(Ok(()), |limit| self.check_memory(limit))
    }

    fn part(&self, _dataset_len: usize, part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        let (blocks, seed) = (self.blocks.part(&part), seed_of(self.seed, part.start));
        let sampler = Self { blocks, seed, plan: Arc::default(), ..self.clone() };
        Some(Members::of(sampler, part))
    }
}
