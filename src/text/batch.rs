//! A batch of packed rows.

use crate::device::{MapTensors, TensorMapper};
use burn::{
    prelude::*,
    tensor::{Bool, DType},
};

/// A batch of rows of `L` tokens, packed by [`PackTokens`](crate::text::PackTokens). Padding is at the end of a row.
///
/// The integers have the type in which they crossed the link: all `u16` or all `u32`, see
/// [`vocabulary`](crate::text::PackTokens::vocabulary). [`int`](Self::int) makes them those of the device.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PackedBatch {
    /// The tokens, `[rows, L]`. Padding is 0.
    pub tokens: Tensor<2, Int>,
    /// The token that comes next in the document, `[rows, L]`. 0 at the last token of a document, and in padding.
    pub targets: Tensor<2, Int>,
    /// Where the loss counts, `[rows, L]`: there is a next token, and it is to be learned.
    pub loss_mask: Tensor<2, Bool>,
    /// The position in the document, from 0, `[rows, L]`. Padding is 0.
    pub positions: Tensor<2, Int>,
    /// The number of the document in its row, from 1, `[rows, L]`. Padding is 0.
    pub documents: Tensor<2, Int>,
    /// Where each document begins in the rows laid end to end, `i32`, `[documents + 1]`: what attention kernels for
    /// sequences of many lengths take. The padding of a row counts as a document. The last number is `rows * L`. It is
    /// there if [`cumulative_lengths`](crate::text::PackTokens::cumulative_lengths) asks for it.
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
    /// Casts `tokens`, `targets`, `positions` and `documents` to the device's own integer type, on the device. Integers of
    /// two types cannot be compared, and not every operation takes `u16`. All that [`PackTokens`](crate::text::PackTokens)
    /// makes fits 32 bits; a device that was configured to have fewer is not for this.
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

    /// Returns a mask for causal attention within documents, `[rows, L, L]`: true where a token must not see another one,
    /// because that is later or in another document. Burn's `TransformerEncoderInput::mask_attn` takes it.
    ///
    /// The padding of a row is as one document more. So each position sees itself at least, and no softmax is of nothing.
    pub fn attention_mask(&self) -> Tensor<3, Bool> {
        let [_, length] = self.documents.dims();
        let of_row = self.documents.clone().unsqueeze_dim::<3>(2);
        let others = of_row.not_equal(self.documents.clone().unsqueeze_dim(1));
        let later = Tensor::<2, Bool>::tril_mask([length; 2], 0, &self.documents.device());
        others.bool_or(later.unsqueeze::<3>())
    }
}
