//! Windows of tokens, or packed documents, as inputs and targets.

use burn::prelude::*;
use burn_pinned::{
    BoxError, Collate, Field, RawBatch, RowMut,
    data::{TokenType, TokenWindow},
    text::PackedBatch,
};

/// What a step trains on: for each input the token that follows it. Both are `[batch, length]`.
pub(crate) struct NextTokens {
    pub(crate) inputs: Tensor<2, Int>,
    pub(crate) targets: Tensor<2, Int>,
    /// `None` if each row is one text.
    pub(crate) documents: Option<Documents>,
}

/// What keeps the documents of a row apart.
pub(crate) struct Documents {
    /// `[batch, length]`: the place of each token in its document.
    pub(crate) positions: Tensor<2, Int>,
    /// `[batch, length, length]`: true where a token must not see another one.
    pub(crate) mask: Tensor<3, Bool>,
    /// `[batch, length]`: whether the loss counts the target.
    pub(crate) counted: Tensor<2, Bool>,
}

impl From<PackedBatch> for NextTokens {
    fn from(batch: PackedBatch) -> Self {
        let batch = batch.int(); // integers of two bytes crossed the link
        let mask = batch.attention_mask();
        let documents = Documents { positions: batch.positions, mask, counted: batch.loss_mask };
        Self { inputs: batch.tokens, targets: batch.targets, documents: Some(documents) }
    }
}

/// Windows of `length + 1` tokens.
pub(crate) struct NextToken {
    pub(crate) kind: TokenType,
    pub(crate) length: usize,
}

impl Collate<TokenWindow> for NextToken {
    type Batch = NextTokens;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("tokens", self.kind.dtype(), [self.length + 1])]
    }

    fn write(&self, window: &TokenWindow, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        match self.kind {
            TokenType::U8 => window.copy_to(row.slice_mut::<u8>("tokens")?)?,
            TokenType::U16 => window.copy_to(row.slice_mut::<u16>("tokens")?)?,
            TokenType::U32 => window.copy_to(row.slice_mut::<u32>("tokens")?)?,
            TokenType::I32 => window.copy_to(row.slice_mut::<i32>("tokens")?)?,
            other => return Err(format!("this example takes no tokens of {other}").into()),
        }
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<NextTokens, BoxError> {
        let tokens = batch.take_int::<2>("tokens")?; // as they are in the file until here
        let (rows, length) = (batch.len(), self.length);
        let inputs = tokens.clone().slice([0..rows, 0..length]);
        Ok(NextTokens { inputs, targets: tokens.slice([0..rows, 1..length + 1]), documents: None })
    }
}
