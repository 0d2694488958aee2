//! What is made of rows to measure how fast they come.

use crate::row::Row;
use burn::{prelude::*, tensor::DType};
use burn_pinned::{
    BoxError, Collate, Field, RawBatch, RowMut,
    data::{TokenType, TokenWindow},
    vision::Image,
};

/// What a batch brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub rows: u64,
    pub bytes: u64,
    /// The sum of all rows. It does not depend on their order.
    pub sum: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Counts the bytes of rows. So the source and the loader are measured, and nothing else.
pub struct Count;

impl Collate<Row> for Count {
    type Batch = Tally;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("bytes", DType::I64, []), Field::new("sum", DType::I64, [])]
    }

    fn write(&self, row: &Row, to: &mut RowMut<'_>) -> Result<(), BoxError> {
        to.put("bytes", i64::try_from(row.bytes())?)?;
        Ok(to.put("sum", row.sum().cast_signed())?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Tally, BoxError> {
        let mut sum = |field: &str| -> Result<u64, BoxError> {
            let values = batch.take::<1, Int>(field)?.into_data();
            Ok(values.iter::<i64>().fold(0, |sum: u64, value| sum.wrapping_add(value.cast_unsigned())))
        };
        let (bytes, sum) = (sum("bytes")?, sum("sum")?);
        Ok(Tally { rows: batch.len() as u64, bytes, sum })
    }
}

/// Copies windows of tokens into batches.
pub struct Windows {
    pub len: usize,
    pub kind: TokenType,
}

impl Collate<TokenWindow> for Windows {
    type Batch = Tally;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("tokens", self.kind.dtype(), [self.len])]
    }

    fn write(&self, window: &TokenWindow, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        match self.kind {
            TokenType::U8 => window.copy_to(row.slice_mut::<u8>("tokens")?)?,
            TokenType::U16 => window.copy_to(row.slice_mut::<u16>("tokens")?)?,
            TokenType::U32 => window.copy_to(row.slice_mut::<u32>("tokens")?)?,
            TokenType::I32 => window.copy_to(row.slice_mut::<i32>("tokens")?)?,
            other => return Err(format!("tokens of {other} are not measured").into()),
        }
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Tally, BoxError> {
        let _tokens = batch.take::<2, Int>("tokens")?;
        let rows = batch.len() as u64;
        Ok(Tally { rows, bytes: rows * (self.len * self.kind.size()) as u64, sum: 0 })
    }
}

/// Decodes images to planes of bytes.
pub struct Pixels(pub usize);

impl Collate<Image> for Pixels {
    type Batch = Tally;

    fn layout(&self) -> Vec<Field> {
        vec![Field::image("image", self.0)]
    }

    fn write(&self, image: &Image, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.image("image", image)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Tally, BoxError> {
        let _pixels = batch.take::<4, Int>("image")?;
        let rows = batch.len() as u64;
        Ok(Tally { rows, bytes: rows * (3 * self.0 * self.0) as u64, sum: 0 })
    }
}
