//! Writes documents into rows of tokens.

use super::batch::PackedBatch;
use crate::data::TokenRow;
use burn::{
    prelude::*,
    tensor::{DType, Element},
};

/// The rows of a batch on the host. Their integers have one type.
pub(super) struct Rows<T> {
    row_tokens: usize,
    tokens: Vec<T>,
    targets: Vec<T>,
    loss_mask: Vec<bool>,
    positions: Vec<T>,
    documents: Vec<T>,
    /// For each row the tokens that are filled, and the number of documents.
    filled: Vec<(usize, u32)>,
    /// Where each document begins in the rows laid end to end.
    starts: Vec<usize>,
}

/// Returns a number in a type that is known to have it.
fn number<T: TryFrom<u32> + Default>(number: u32) -> T {
    T::try_from(number).unwrap_or_default()
}

impl<T: Element + TryFrom<u32> + Default> Rows<T> {
    /// Rows of padding.
    pub(super) fn new(rows: usize, row_tokens: usize) -> Self {
        let zeros = || vec![T::default(); rows * row_tokens];
        Self {
            row_tokens,
            tokens: zeros(),
            targets: zeros(),
            loss_mask: vec![false; rows * row_tokens],
            positions: zeros(),
            documents: zeros(),
            filled: vec![(0, 0); rows],
            starts: Vec::new(),
        }
    }

    /// Adds the first `length` tokens of a document to a row, which has room for them.
    pub(super) fn add(&mut self, row: usize, document: &TokenRow, length: usize) {
        let (filled, count) = &mut self.filled[row];
        let start = row * self.row_tokens + *filled;
        (*filled, *count) = (*filled + length, *count + 1);
        self.documents[start..start + length].fill(number(*count));
        self.starts.push(start);
        for (at, &token) in document.tokens.iter().take(length).enumerate() {
            self.tokens[start + at] = number(token);
            self.positions[start + at] = number(at as u32);
            // A token is the target of the one before.
            if at > 0 {
                self.targets[start + at - 1] = number(token);
                self.loss_mask[start + at - 1] = document.is_learned(at);
            }
        }
    }

    /// Returns where documents begin and, last, where the rows end. The padding of a row is as a document.
    fn cumulative_lengths(&self) -> Vec<i32> {
        let padding = self.filled.iter().enumerate().filter(|(_, (filled, _))| *filled < self.row_tokens);
        let padding = padding.map(|(row, (filled, _))| row * self.row_tokens + filled);
        let mut starts: Vec<usize> = self.starts.iter().copied().chain(padding).chain([self.tokens.len()]).collect();
        starts.sort_unstable();
        starts.into_iter().map(|start| i32::try_from(start).unwrap_or(i32::MAX)).collect()
    }

    /// Makes the tensors.
    pub(super) fn batch(self, cumulative_lengths: bool, device: &Device) -> PackedBatch {
        let shape = [self.filled.len(), self.row_tokens];
        let lengths = cumulative_lengths.then(|| self.cumulative_lengths());
        let lengths = lengths.map(|lengths| {
            let count = lengths.len();
            Tensor::from_data(TensorData::new(lengths, [count]), (device, DType::I32))
        });
        let ints = |numbers: Vec<T>| Tensor::from_data(TensorData::new(numbers, shape), (device, T::dtype()));
        PackedBatch {
            tokens: ints(self.tokens),
            targets: ints(self.targets),
            loss_mask: Tensor::from_data(TensorData::new(self.loss_mask, shape), device),
            positions: ints(self.positions),
            documents: ints(self.documents),
            cumulative_lengths: lengths,
        }
    }
}
