//! A shuffle for data that is read in blocks: what the blocks are, and the order that reads each of them once.

mod blocks;
mod shuffle;
mod streams;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use shuffle::BlockShuffle;
