//! A collate that sends what stands for the bytes of a row.

use burn::tensor::{DType, Int, Tensor};
use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut};
use burn_pinned_made::formats::{Row, sum};

/// Sends the label and what stands for all bytes of a row.
#[derive(Debug, Clone)]
pub(crate) struct Sums;

impl Collate<Row> for Sums {
    type Batch = Vec<(i64, i64)>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("label", DType::I64, []), Field::new("sum", DType::I64, [])]
    }

    fn write(&self, Row { bytes, label }: &Row, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("label", *label)?;
        Ok(row.put("sum", sum(bytes))?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let (labels, sums): (Tensor<1, Int>, Tensor<1, Int>) = (batch.take("label")?, batch.take("sum")?);
        let (labels, sums) = (labels.into_data().try_to_vec::<i64>()?, sums.into_data().try_to_vec::<i64>()?);
        Ok(labels.into_iter().zip(sums).collect())
    }
}
