//! Text for language models: documents of tokens, packed into rows.
//!
//! [`PackingSampler`](crate::order::PackingSampler) chooses documents that fill the rows of a batch. [`PackTokens`] makes the
//! tensors: tokens, targets, a mask for the loss, positions, and the number of each token's document for an attention mask.
//! `docs/text.md` has whole programs.

mod batch;
mod pack;

pub use batch::PackedBatch;
pub use pack::PackTokens;
