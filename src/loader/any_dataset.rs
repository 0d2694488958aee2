//! A dataset of any type, for samples of one type: what the loader reads, and what the stages of a dataset are made of.

use super::scattered;
use crate::{
    batch::{GetMany, GetOne},
    data::{DataError, Rows},
    fault::{BoxError, LeftOut, UserValues, is_left_out},
};
use burn::data::dataset::{Dataset, DatasetError};
use burn_shards::for_loader::{PartedRows, Picks, SampleError};
use std::{error::Error as StdError, sync::Arc};

/// A dataset of any type: the type of a part of a dataset, such as [`DatasetExt::split`](crate::DatasetExt::split) returns. A clone shares
/// what it reads from.
#[derive(derive_more::Debug)]
#[debug("AnyDataset({} samples)", len())]
pub struct AnyDataset<I> {
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
            many: Arc::new(move |indices| match many.get_many(indices.clone()).map(UserValues) {
                Ok(mut samples) if samples.len() == indices.len() => Ok(samples.drain(..).map(Some).collect()),
                Err(error) if !is_left_out(&error) => Err(error.into()),
                _ => each_of(indices, |index| Ok(many.get(index)?)),
            }),
            rows,
            filters: false,
        }
    }

    /// A dataset of `parts` samples of each sample.
    pub(super) fn each<T: 'static>(
        self,
        parts: usize,
        make: impl Fn(I, usize) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> AnyDataset<T> {
        let Self { len, get, many, rows, filters } = self;
        let make = Arc::new(make);
        let one = Arc::clone(&make);
        AnyDataset {
            len: Arc::new(move || len().saturating_mul(parts)),
            get: Arc::new(move |index| one(get(index / parts)?, index % parts)),
            many: Arc::new(move |indices| {
                let samples = many(indices.iter().map(|index| index / parts).collect())?.into_iter().zip(indices);
                each_of(samples.collect(), |(sample, index)| make(sample.ok_or(LeftOut)?, index % parts))
            }),
            rows: rows.filter(|_| parts == 1),
            filters,
        }
    }

    /// All samples, to be parted.
    pub(super) fn parted(&self) -> PartedRows<'static> {
        PartedRows { of: None, rows: (self.len)() }
    }

    /// Returns a key of each sample, or `None` for one that is left out.
    pub(super) fn keys<K>(&self, key: impl Fn(&I) -> K) -> Result<Vec<Option<K>>, DatasetError> {
        let of = |index| move |source| SampleError { index, source };
        each_of((0..(self.len)()).collect(), |index| Ok(key(&(self.get)(index).map_err(of(index))?))).map_err(boxed)
    }

    /// A dataset of some samples.
    pub(super) fn picked(&self, picks: Picks) -> Self {
        let Self { get, many, rows, filters, .. } = self.clone();
        let numbers = || (0..picks.len()).filter_map(|index| picks.nth(index));
        let rows = rows.and_then(|rows| rows.select(numbers()).ok());
        let count = picks.len();
        let place = move |index| picks.nth(index).unwrap_or_else(|| panic!("there is no sample {index} of {count}"));
        let one = place.clone();
        Self {
            len: Arc::new(move || count),
            get: Arc::new(move |index| get(one(index))),
            many: Arc::new(move |indices| many(indices.into_iter().map(&place).collect())),
            rows,
            filters,
        }
    }

    /// The datasets of two parts.
    pub(super) fn both(&self, parts: Result<(Picks, Picks), DataError>) -> Result<(Self, Self), DatasetError> {
        parts.map(|(rest, part)| (self.picked(rest), self.picked(part))).map_err(DatasetError::new)
    }

    /// A dataset of `size` samples at a time.
    pub(super) fn chunks(self, size: usize) -> AnyDataset<Vec<I>> {
        let Self { len, many, filters, .. } = self;
        let all = Arc::clone(&len);
        let samples_of = move |index: usize| {
            let (first, all) = (index.saturating_mul(size), all());
            assert!(size > 0 && first < all, "chunk {index} of {all} samples in chunks of {size}");
            first..all.min(first.saturating_add(size))
        };
        let many: GetMany<Vec<I>> = Arc::new(move |indices| {
            let chunks: Vec<_> = indices.into_iter().map(&samples_of).collect();
            let mut samples = many(chunks.iter().cloned().flatten().collect())?.into_iter();
            let chunks = chunks.into_iter().map(|chunk| samples.by_ref().take(chunk.len()).flatten().collect());
            Ok(chunks.map(|chunk: Vec<I>| (!chunk.is_empty()).then_some(chunk)).collect())
        });
        let one = Arc::clone(&many);
        AnyDataset {
            len: Arc::new(move || if size == 0 { 0 } else { len().div_ceil(size) }),
            get: Arc::new(move |index| one(vec![index])?.pop().flatten().ok_or_else(|| LeftOut.into())),
            many,
            rows: None,
            filters,
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

/// Makes a sample of each input, up to the first error. A sample that is left out is `None`.
fn each_of<A, T>(all: Vec<A>, make: impl Fn(A) -> Result<T, BoxError>) -> Result<Vec<Option<T>>, BoxError> {
    let (mut inputs, mut samples) = (UserValues(all), UserValues::default());
    inputs.reverse();
    while let Some(input) = inputs.pop() {
        match make(input) {
            Err(error) if is_left_out(&*error) => samples.push(None),
            made => samples.push(Some(made?)),
        }
    }
    Ok(samples.drain(..).collect())
}

/// An error of any type.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct MakeError(#[source] BoxError);

/// Makes Burn's error from any error.
pub(super) fn boxed(error: BoxError) -> DatasetError {
    error.downcast().map_or_else(|error| DatasetError::new(MakeError(error)), |error| *error)
}
