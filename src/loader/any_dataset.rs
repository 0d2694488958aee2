//! A dataset of any type, for samples of one type: what the loader reads, and what the stages of a dataset are made of.

use super::scattered;
use crate::{
    batch::{GetMany, GetOne},
    data::Rows,
    fault::{BoxError, LeftOut, is_left_out},
};
use burn::data::dataset::{Dataset, DatasetError};
use std::{error::Error as StdError, sync::Arc};

/// A dataset of any type.
pub(super) struct AnyDataset<I> {
    pub(super) len: Arc<dyn Fn() -> usize + Send + Sync>,
    pub(super) get: GetOne<I>,
    pub(super) many: GetMany<I>,
    /// The rows that its samples are made from one by one, in the same order.
    pub(super) rows: Option<Rows<()>>,
    /// Whether a filter may leave out samples.
    pub(super) filters: bool,
}

/// Not derived: `I` need not be `Clone`.
impl<I> Clone for AnyDataset<I> {
    fn clone(&self) -> Self {
        let (len, get, many) = (Arc::clone(&self.len), Arc::clone(&self.get), Arc::clone(&self.many));
        Self { len, get, many, rows: self.rows.clone(), ..*self }
    }
}

impl<I: 'static> AnyDataset<I> {
    /// If the dataset has this type already, it is not wrapped again.
    pub(super) fn of<E: StdError + Send + Sync + 'static>(dataset: impl Dataset<I, E> + 'static) -> Self {
        if let Some(any) = scattered::plain_or_shared::<Self>(&dataset) {
            return any.clone();
        }
        let (rows, dataset) = (scattered::rows::<I>(&dataset), Arc::new(dataset));
        let (one, many, len) = (Arc::clone(&dataset), Arc::clone(&dataset), dataset);
        Self {
            len: Arc::new(move || len.len()),
            get: Arc::new(move |index| Ok(one.get(index)?)),
            many: Arc::new(move |indices| match many.get_many(indices.clone()) {
                Ok(samples) if samples.len() == indices.len() => Ok(samples.into_iter().map(Some).collect()),
                Err(error) if !is_left_out(&error) => Err(error.into()),
                _ => indices.into_iter().map(|index| unless_left_out(many.get(index).map_err(Into::into))).collect(),
            }),
            rows,
            filters: false,
        }
    }
}

impl<I> Dataset<I> for AnyDataset<I> {
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        (self.get)(index).map_err(boxed)
    }

    /// An error if one of the samples is left out.
    fn get_many(&self, indices: Vec<usize>) -> Result<Vec<I>, DatasetError> {
        let samples = (self.many)(indices).map_err(boxed)?.into_iter();
        samples.map(|sample| sample.ok_or_else(|| DatasetError::new(LeftOut))).collect()
    }

    fn len(&self) -> usize {
        (self.len)()
    }
}

/// Returns `None` for a sample that is left out.
pub(super) fn unless_left_out<T>(made: Result<T, BoxError>) -> Result<Option<T>, BoxError> {
    match made {
        Err(error) if is_left_out(&*error) => Ok(None),
        made => made.map(Some),
    }
}

/// An error of any type.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct MakeError(#[source] BoxError);

/// Makes Burn's error from any error.
pub(super) fn boxed(error: BoxError) -> DatasetError {
    error.downcast().map_or_else(|error| DatasetError::new(MakeError(error)), |error| *error)
}
