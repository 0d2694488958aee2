//! A shuffle for data that is read in blocks: the blocks, and an order that reads each block once.

mod blocks;
mod shuffle;
mod streams;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use shuffle::BlockShuffle;
