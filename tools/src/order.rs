//! The orders that samples are read in.

use burn_pinned::{
    BoxError, PinnedDataLoaderBuilder,
    order::{BlockShuffle, Blocks, SequentialSampler},
};
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// A full shuffle
    Full,
    /// A shuffle of blocks (`BlockShuffle`), for Parquet that must be decoded
    Blocks,
    /// In the order of the files
    Sequential,
}

impl Order {
    /// The builder with this order, and the order in words.
    pub fn set<I, B>(
        self,
        builder: PinnedDataLoaderBuilder<I, B>,
        blocks: Option<Blocks>,
        seed: u64,
    ) -> Result<(PinnedDataLoaderBuilder<I, B>, String), BoxError>
    where
        I: Send + Sync + Clone + 'static,
        B: Send + 'static,
    {
        Ok(match self {
            Self::Full => (builder.shuffle(seed), "full shuffle".into()),
            Self::Sequential => (builder.order(SequentialSampler), "in order".into()),
            Self::Blocks => {
                let blocks = blocks.ok_or("this format has no blocks: use `--order full`")?;
                let order = format!("shuffle of {} blocks", blocks.len());
                (builder.order(BlockShuffle::new(blocks, seed)), order)
            }
        })
    }
}
