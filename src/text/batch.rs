//! A batch of packed rows.

use crate::device::{MapTensors, TensorMapper};
use burn::{
    prelude::*,
    tensor::{Bool, DType},
};

/// A batch of rows of `L` tokens, packed by [`PackTokens`](crate::text::PackTokens). Padding is at the end of a row.
///
/// The integers have the dtype in which they were copied to the device: all `u16` or all `u32`, see
/// [`vocabulary`](crate::text::PackTokens::vocabulary). [`int`](Self::int) casts them to the device's own integer
/// dtype.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PackedBatch {
    /// The tokens, `[rows, L]`. Padding is 0.
    pub tokens: Tensor<2, Int>,
    /// The next token of the document, `[rows, L]`. 0 at the last token of a document and in padding.
    pub targets: Tensor<2, Int>,
    /// Where the loss counts, `[rows, L]`: there is a next token, and the model should learn it.
    pub loss_mask: Tensor<2, Bool>,
    /// The position in the document, from 0, `[rows, L]`. Padding is 0.
    pub positions: Tensor<2, Int>,
    /// The number of the document in its row, from 1, `[rows, L]`. Padding is 0.
    pub documents: Tensor<2, Int>,
    /// The start of each document when the rows are laid end to end, `i32`, `[documents + 1]`, for variable-length
    /// attention kernels. The padding of a row counts as a document. The last number is `rows * L`. `None` unless
    /// [`cumulative_lengths`](crate::text::PackTokens::cumulative_lengths) is set.
    pub cumulative_lengths: Option<Tensor<1, Int>>,
}

impl MapTensors for PackedBatch {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        Self {
            tokens: mapper.map(self.tokens),
            targets: mapper.map(self.targets),
            loss_mask: mapper.map(self.loss_mask),
            positions: mapper.map(self.positions),
            documents: mapper.map(self.documents),
            cumulative_lengths: self.cumulative_lengths.map_tensors(mapper),
        }
    }
}

impl PackedBatch {
    /// Casts `tokens`, `targets`, `positions` and `documents` to the device's own integer dtype, on the device. Integers of different
    /// dtypes cannot be compared, and not every operation accepts `u16`. All values of [`PackTokens`](crate::text::PackTokens) fit 32 bits.
    /// Do not use it if the device is configured for smaller integers.
    pub fn int(self) -> Self {
        let own = self.tokens.device().settings().int_dtype;
        let cast = |tensor: Tensor<2, Int>| if tensor.dtype() == DType::from(own) { tensor } else { tensor.cast(own) };
        Self {
            tokens: cast(self.tokens),
            targets: cast(self.targets),
            positions: cast(self.positions),
            documents: cast(self.documents),
            ..self
        }
    }

    /// Returns a mask for causal attention within documents, `[rows, L, L]`: true where a token must not attend to another, because that
    /// token is later or in another document. Pass it to Burn's `TransformerEncoderInput::mask_attn`.
    ///
    /// The padding of a row is treated as one more document. So each position attends at least to itself, and no softmax is empty.
    pub fn attention_mask(&self) -> Tensor<3, Bool> {
        let [_, length] = self.documents.dims();
        let of_row = self.documents.clone().unsqueeze_dim::<3>(2);
        let others = of_row.not_equal(self.documents.clone().unsqueeze_dim(1));
        let later = Tensor::<2, Bool>::tril_mask([length; 2], 0, &self.documents.device());
        others.bool_or(later.unsqueeze::<3>())
    }
}
