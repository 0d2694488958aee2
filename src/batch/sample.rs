//! Samples that define how they become a batch.

use super::{collate::Collate, raw::RawBatch, row::RowMut};
use crate::{fault::BoxError, memory::Field};
use std::marker::PhantomData;

/// A sample that defines its own layout. With the feature `derive`, `#[derive(Sample)]` implements it for a struct of
/// plain fields.
///
/// A handwritten collate can call these three functions and add fields of its own:
///
#[cfg_attr(feature = "derive", doc = "```")]
#[cfg_attr(not(feature = "derive"), doc = "```ignore")]
/// use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
/// use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut, Sample};
///
/// #[derive(Clone, Sample)]
/// struct House {
///     rooms: [f32; 4],
///     price: f32,
/// }
///
/// /// The derived fields, and the sum of the rooms.
/// struct WithSum;
/// impl Collate<House> for WithSum {
///     type Batch = (HouseBatch, Tensor<1>);
///     fn layout(&self) -> Vec<Field> {
///         let mut fields = House::fields();
///         fields.push(Field::new("sum", DType::F32, []));
///         fields
///     }
///     fn write(&self, house: &House, row: &mut RowMut<'_>) -> Result<(), BoxError> {
///         house.write(row)?;
///         Ok(row.put("sum", house.rooms.iter().sum::<f32>())?)
///     }
///     fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
///         Ok((House::finish(&mut batch)?, batch.take("sum")?))
///     }
/// }
///
/// let dataset = InMemDataset::new(vec![House { rooms: [3.0, 2.0, 1.0, 1.0], price: 0.4 }; 10]);
/// let loader = PinnedDataLoaderBuilder::new(WithSum).batch_size(5).build(dataset)?;
/// let (houses, sum) = loader.iter().next().unwrap()?;
/// assert_eq!((houses.rooms.dims(), houses.price.dims()), ([5, 4], [5]));
/// assert_eq!(sum.into_data().try_to_vec::<f32>()?, [7.0; 5]);
/// # Ok::<(), BoxError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no layout of its own",
    label = "this sample does not implement `Sample`",
    note = "for a struct of plain fields add `#[derive(burn_pinned::Sample)]` (feature `derive`), or write a `Collate`"
)]
pub trait Sample: Sized + 'static {
    /// What the training loop gets.
    type Batch: Send + 'static;

    /// The fields of a row.
    fn fields() -> Vec<Field>;

    /// Writes the sample into its row.
    ///
    /// # Errors
    /// Any error. The consumer gets it in place of the batch, with the sample's index.
    fn write(&self, row: &mut RowMut<'_>) -> Result<(), BoxError>;

    /// Takes the fields out of a batch. Other fields remain in the batch.
    ///
    /// # Errors
    /// Any error. The consumer gets it in place of the batch.
    fn finish(batch: &mut RawBatch) -> Result<Self::Batch, BoxError>;

    /// The collate of these samples, for [`PinnedDataLoaderBuilder::new`](crate::PinnedDataLoaderBuilder::new).
    fn collate() -> SampleCollate<Self> {
        SampleCollate(PhantomData)
    }
}

/// The collate of a [`Sample`]: [`Sample::collate`] makes it.
#[derive(derive_more::Debug)]
#[debug("SampleCollate")]
pub struct SampleCollate<S>(PhantomData<fn(S)>);

impl<S: Sample> Collate<S> for SampleCollate<S> {
    type Batch = S::Batch;

    fn layout(&self) -> Vec<Field> {
        S::fields()
    }

    #[inline]
    fn write(&self, sample: &S, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        sample.write(row)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<S::Batch, BoxError> {
        S::finish(&mut batch)
    }
}
