//! The batcher that packs documents into rows.

use super::batch::PackedBatch;
use crate::{
    data::TokenRow,
    fault::Error,
    order::{BestFit, TooLong},
};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{DType, Device, Tensor, TensorData},
};
use std::{
    array,
    sync::{Arc, Once},
};

/// The largest vocabulary, and the longest row, for which integers are `u16`.
const NARROW_VOCABULARY: usize = 1 << 16;
const NARROW_ROW: u32 = u16::MAX as u32;
/// The largest token: most devices have 32-bit integers, in which a larger token would become negative.
const LARGEST: usize = i32::MAX as usize;

/// A Burn `Batcher` that packs documents into rows of a fixed number of tokens.
///
/// With a [`PackingSampler`](crate::order::PackingSampler) of the same `row_tokens`, each batch has the rows that the
/// sampler planned. With Burn's own loader, or with another order, a batch has as many rows as its documents need.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_pinned::order::{PackingSampler, RandomSampler};
/// use burn_pinned::{PinnedDataLoaderBuilder, data::TokenRow, text::PackTokens};
///
/// let documents: Vec<TokenRow> = (0..500).map(|n| TokenRow::from(vec![7; 1 + n * 31 % 60])).collect();
/// let lengths: Vec<u32> = documents.iter().map(|document| document.len() as u32).collect();
///
/// let order = PackingSampler::new(RandomSampler::new(42), lengths, 64, 8)?; // batches of 8 rows of 64 tokens
/// let pack = PackTokens::new(64)?.vocabulary(1000);
/// let loader = PinnedDataLoaderBuilder::from_batcher(pack).order(order).build(InMemDataset::new(documents))?;
/// let mut rows = Vec::new();
/// for batch in loader.iter() {
///     rows.push(batch?.tokens.dims()[0]); // the last batch of an epoch may have fewer
/// }
/// assert!(rows[..rows.len() - 1].iter().all(|rows| *rows == 8));
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
///
/// The documents are packed by best fit, the longest first. Documents without tokens are left out. If a bad sample of a
/// batch was skipped, the batch may have one row less, and in rare cases one row more.
#[derive(derive_more::Debug, Clone)]
#[must_use = "it packs nothing until a loader has it"]
pub struct PackTokens {
    row_tokens: u32,
    rows: usize,
    vocabulary: Option<usize>,
    too_long: TooLong,
    cumulative_lengths: bool,
    /// Whether a document that is left out has been logged. Clones share it.
    #[debug(skip)]
    said: Arc<Once>,
}

impl PackTokens {
    /// Packs rows of `row_tokens` tokens.
    ///
    /// # Errors
    /// [`Error::Config`] if `row_tokens` is 0 or more than 16,777,216.
    pub fn new(row_tokens: usize) -> Result<Self, Error> {
        let row_tokens = BestFit::check("PackTokens::new", row_tokens)?;
        let (too_long, said) = (TooLong::Error, Arc::new(Once::new()));
        Ok(Self { row_tokens, rows: 1, vocabulary: None, too_long, cumulative_lengths: false, said })
    }

    /// Sets the size of the vocabulary. A token that is not below it is an error. Without a vocabulary, a token above
    /// 2,147,483,647 is an error.
    ///
    /// If the vocabulary has at most 65,536 tokens and rows have at most 65,535, batches are copied to the device as
    /// `u16`. Otherwise, and without a vocabulary, they are copied as `u32`.
    pub fn vocabulary(self, tokens: usize) -> Self {
        Self { vocabulary: Some(tokens), ..self }
    }

    /// Adds rows of padding to a batch that has fewer rows than this, as the last batch of an epoch may have. It is for steps that need a
    /// fixed shape, such as a recorded graph or a compiled kernel.
    pub fn rows(self, rows: usize) -> Self {
        Self { rows: rows.max(1), ..self }
    }

    /// Sets what happens to a document with more tokens than a row. Default: [`TooLong::Error`].
    pub fn too_long(self, too_long: TooLong) -> Self {
        Self { too_long, ..self }
    }

    /// Also makes [`PackedBatch::cumulative_lengths`].
    pub fn cumulative_lengths(self) -> Self {
        Self { cumulative_lengths: true, ..self }
    }

    /// Returns how many tokens of a document are packed. It may be 0.
    fn length(&self, number: usize, document: &TokenRow) -> u32 {
        let (length, row) = (document.len(), self.row_tokens);
        let largest = document.tokens.iter().max().map_or(0, |token| *token as usize);
        if let Some(vocabulary) = self.vocabulary.filter(|vocabulary| largest >= *vocabulary) {
            panic!(
                "document {number} of the batch has the token {largest}, but the vocabulary has {vocabulary} tokens"
            );
        }
        if largest > LARGEST {
            panic!(
                "document {number} of the batch has the token {largest}, and integers of 32 bits end at {LARGEST}: make the \
                 tokens smaller, and of a file without a header check the type that it is opened with"
            );
        }
        match self.too_long {
            _ if length <= row as usize => length as u32,
            TooLong::Cut => row,
            TooLong::Drop => {
                self.said.call_once(|| {
                    log::warn!(
                        "document {number} of a batch has {length} tokens, more than a row of {row}: `TooLong::Drop` of `PackTokens` \
                         leaves it out, and others that are too long, without another word. `PackingSampler` counts them"
                    );
                });
                0
            }
            TooLong::Error => panic!(
                "document {number} of the batch has {length} tokens, but a row has {row}: use longer rows, or \
                 `.too_long(TooLong::Cut)` for `PackTokens` too"
            ),
        }
    }

    /// Makes the tensors of rows with these documents. Each comes with its row, which has enough free space, and its number of tokens to
    /// write.
    fn rows_of<'a>(
        &self,
        placed: impl Iterator<Item = (usize, &'a TokenRow, usize)>,
        shape: [usize; 2],
        device: &Device,
    ) -> PackedBatch {
        let [rows, row_tokens] = shape;
        let [mut tokens, mut targets, mut positions, mut numbers] = array::from_fn(|_| vec![0u32; rows * row_tokens]);
        let mut loss_mask = vec![false; rows * row_tokens];
        // For each row, the number of tokens written and the number of documents.
        let mut filled = vec![(0, 0); rows];
        for (row, document, length) in placed {
            let (end, count) = &mut filled[row];
            let start = row * row_tokens + *end;
            (*end, *count) = (*end + length, *count + 1);
            numbers[start..start + length].fill(*count);
            tokens[start..start + length].copy_from_slice(&document.tokens[..length]);
            // A token is the target of the previous one.
            targets[start..start + length - 1].copy_from_slice(&document.tokens[1..length]);
            for at in 1..length {
                positions[start + at] = at as u32;
                loss_mask[start + at - 1] = document.is_learned(at);
            }
        }
        let narrow = self.vocabulary.is_some_and(|tokens| tokens <= NARROW_VOCABULARY) && self.row_tokens <= NARROW_ROW;
        let dtype = if narrow { DType::U16 } else { DType::U32 };
        let lengths = self.cumulative_lengths.then(|| cumulative_lengths(&numbers, row_tokens));
        let ints = |numbers| Tensor::from_data(TensorData::new::<u32, _>(numbers, shape), (device, dtype));
        PackedBatch {
            tokens: ints(tokens),
            targets: ints(targets),
            loss_mask: Tensor::from_data(TensorData::new(loss_mask, shape), device),
            positions: ints(positions),
            documents: ints(numbers),
            cumulative_lengths: lengths.map(|lengths| Tensor::from_data(lengths.as_slice(), (device, DType::I32))),
        }
    }
}

impl Batcher<TokenRow, PackedBatch> for PackTokens {
    /// # Panics
    /// If a document is too long, if it has a token that is not in the vocabulary or does not fit 32 bits, or if the
    /// [`cumulative_lengths`](Self::cumulative_lengths) do not fit 32 bits. This crate's loader turns the panic into an
    /// [`Error::Panicked`], which names the batch.
    fn batch(&self, documents: Vec<TokenRow>, device: &Device) -> PackedBatch {
        let each = documents.iter().enumerate();
        let lengths: Vec<u32> = each.map(|(number, document)| self.length(number, document)).collect();
        let (placed, free) = BestFit::new(self.row_tokens).pack(&lengths);
        let (count, row_tokens) = (free.len().max(self.rows), self.row_tokens as usize);
        if self.cumulative_lengths && count.saturating_mul(row_tokens) > LARGEST {
            panic!(
                "{count} rows of {row_tokens} tokens end beyond {LARGEST}, the largest of `cumulative_lengths`: give fewer \
                 documents to a batch, or leave `cumulative_lengths` out"
            );
        }
        let placed = placed.into_iter().map(|(place, row)| {
            let place = place as usize;
            (row as usize, &documents[place], lengths[place] as usize)
        });
        self.rows_of(placed, [count, row_tokens], device)
    }
}

/// Returns the start of each document and, last, the end of the rows, from the document number of each token. The padding of a row counts
/// as a document.
fn cumulative_lengths(numbers: &[u32], row_tokens: usize) -> Vec<i32> {
    let is_start = |at: &usize| at.is_multiple_of(row_tokens) || numbers[*at] != numbers[at - 1];
    let starts = (0..numbers.len()).filter(is_start).chain([numbers.len()]);
    starts.map(|start| start as i32).collect() // `batch` refuses more
}

#[cfg(test)]
mod tests;
