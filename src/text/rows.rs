//! Rows of tokens on the host, to which documents are added.

use super::batch::PackedBatch;
use crate::data::TokenRow;
use burn::{prelude::*, tensor::DType};

/// The rows of a batch, laid end to end.
pub(super) struct TokenRows {
    row_tokens: usize,
    tokens: Vec<u32>,
    targets: Vec<u32>,
    loss_mask: Vec<bool>,
    positions: Vec<u32>,
    documents: Vec<u32>,
    /// For each row the tokens that are filled, and the number of documents.
    filled: Vec<(usize, u32)>,
}

impl TokenRows {
    /// Rows of padding.
    pub(super) fn new(rows: usize, row_tokens: usize) -> Self {
        let [tokens, targets, positions, documents] = std::array::from_fn(|_| vec![0; rows * row_tokens]);
        let (loss_mask, filled) = (vec![false; rows * row_tokens], vec![(0, 0); rows]);
        Self { row_tokens, tokens, targets, loss_mask, positions, documents, filled }
    }

    /// Adds the first `length` tokens of a document to a row, which has room for them.
    pub(super) fn add(&mut self, row: usize, document: &TokenRow, length: usize) {
        let (filled, count) = &mut self.filled[row];
        let start = row * self.row_tokens + *filled;
        (*filled, *count) = (*filled + length, *count + 1);
        self.documents[start..start + length].fill(*count);
        self.tokens[start..start + length].copy_from_slice(&document.tokens[..length]);
        // A token is the target of the one before.
        self.targets[start..start + length - 1].copy_from_slice(&document.tokens[1..length]);
        for at in 1..length {
            self.positions[start + at] = at as u32;
            self.loss_mask[start + at - 1] = document.is_learned(at);
        }
    }

    /// Returns where documents begin and, last, where the rows end. The padding of a row is as a document.
    fn cumulative_lengths(&self) -> Vec<i32> {
        let numbers = &self.documents;
        let is_start = |at: &usize| at.is_multiple_of(self.row_tokens) || numbers[*at] != numbers[at - 1];
        let starts = (0..numbers.len()).filter(is_start).chain([numbers.len()]);
        starts.map(|start| start as i32).collect() // `PackTokens` refuses more
    }

    /// Makes the tensors. `dtype` is that of the integers, `U16` or `U32`.
    pub(super) fn batch(self, dtype: DType, cumulative_lengths: bool, device: &Device) -> PackedBatch {
        let (shape, lengths) =
            ([self.filled.len(), self.row_tokens], cumulative_lengths.then(|| self.cumulative_lengths()));
        let ints = |numbers| Tensor::from_data(TensorData::new::<u32, _>(numbers, shape), (device, dtype));
        PackedBatch {
            tokens: ints(self.tokens),
            targets: ints(self.targets),
            loss_mask: Tensor::from_data(TensorData::new(self.loss_mask, shape), device),
            positions: ints(self.positions),
            documents: ints(self.documents),
            cumulative_lengths: lengths.map(|lengths| Tensor::from_data(lengths.as_slice(), (device, DType::I32))),
        }
    }
}
