//! Where the bytes of the samples are.

use burn_pinned::{
    BoxError,
    data::{Rows, for_tools::RowLayout},
    order::Blocks,
};
use std::sync::Arc;

/// The bytes of a tar before each sample of one file.
const HEADER: u64 = 512;
/// About how many bytes a block has, as in the formats that read samples one by one.
const BLOCK: u64 = 4 << 20;

pub(super) struct SimulatedData {
    pub(super) rows: usize,
    pub(super) blocks: Blocks,
    pub(super) layout: RowLayout,
}

impl SimulatedData {
    pub(super) fn of<T>(rows: &Rows<T>) -> Result<Self, BoxError> {
        let blocks = Blocks::from(rows.blocks()?);
        Ok(Self { rows: blocks.samples(), blocks, layout: RowLayout::new(rows) })
    }

    /// Tars with samples of one file and of the same size.
    pub(super) fn made_up(shards: usize, samples: usize, bytes: u64) -> Self {
        let (in_shard, stride) = (samples.div_ceil(shards), HEADER + bytes.next_multiple_of(HEADER));
        let of_shard = |shard: usize| in_shard.min(samples.saturating_sub(shard * in_shard));
        let in_block = BLOCK.div_ceil(bytes) as usize;
        let blocks = (0..shards).flat_map(|shard| {
            let samples = of_shard(shard);
            (0..samples).step_by(in_block).map(move |first| (in_block.min(samples - first), 0))
        });
        let layout = RowLayout {
            objects: (0..shards).map(|shard| of_shard(shard) as u64 * stride).collect(),
            again: true,
            parts: Arc::new(move |row| {
                let start = (row % in_shard) as u64 * stride + HEADER;
                vec![(row / in_shard, start..start + bytes)]
            }),
        };
        Self { rows: samples, blocks: Blocks::new(blocks), layout }
    }
}
