//! Text for language models: packs tokenized documents into rows.
//!
//! [`PackingSampler`](crate::order::PackingSampler) chooses documents that fill the rows of a batch. [`PackTokens`] makes the tensors:
//! tokens, targets, a loss mask, positions, and the document number of each token for an attention mask. `docs/text.md` has complete
//! programs.

mod batch;
mod pack;

pub use batch::PackedBatch;
pub use pack::PackTokens;
