//! Stages between reading a sample and writing it, for every dataset.

use super::any_dataset::AnyDataset;
use crate::fault::{BoxError, LeftOut};
use burn::data::dataset::Dataset;
use std::error::Error as StdError;

/// Stages between reading a sample and writing it, for every Burn `Dataset`. Each stage is a dataset again.
///
/// ```
/// use burn::data::dataset::{Dataset, InMemDataset};
/// use burn_pinned::{DatasetExt, PinnedDataLoaderBuilder};
/// # use burn::{prelude::*, tensor::DType};
/// # use burn_pinned::{BoxError, Field, collate};
/// # let collate = collate(
/// #     [Field::new("mean", DType::F32, [])],
/// #     |mean: &f32, row| Ok(row.put("mean", *mean)?),
/// #     |mut batch| Ok(batch.take::<1, Float>("mean")?),
/// # );
///
/// let texts = InMemDataset::new(["1", "-7", "3", "5", "2", "4"].map(String::from).to_vec());
/// let pairs = texts.map(|text| Ok(text.parse::<f32>()?)).filter(|number| *number > 0.0).chunks(2);
/// let means = pairs.map(|pair| Ok(pair.iter().sum::<f32>() / pair.len() as f32));
/// assert_eq!((means.len(), means.get(0)?, means.get(1)?), (3, 1.0, 4.0)); // of 1, of 3 and 5, of 2 and 4
/// let loader = PinnedDataLoaderBuilder::new(collate).batch_size(2).build(means)?; // a collate of `f32`
/// # let all = loader.iter().collect::<Result<Vec<_>, _>>()?;
/// # assert_eq!(Tensor::cat(all, 0).into_data().try_to_vec::<f32>()?, [1.0, 4.0, 3.0]);
/// # Ok::<(), BoxError>(())
/// ```
///
/// The closures run in `Dataset::get`, so the loader runs them on its workers, and anew in each epoch. They may run for several samples at
/// once. Clones of a stage share its dataset and its closure. An error of a closure becomes the error of its sample, with the sample's
/// index, and a policy for bad samples applies to it. A panic does too. Changes at random belong in
/// [`augment`](crate::PinnedDataLoaderBuilder::augment), which has random numbers for each epoch.
///
/// A stage passes [`get_many`](Dataset::get_many) on to its dataset, so [`read_many`](crate::PinnedDataLoaderBuilder::read_many) reads as
/// many samples at once as without the stage. Rows of a store behind a network are read ahead through `map` and `filter`, but not through
/// `flat_map` and `chunks`.
///
/// [`Rows`](crate::data::Rows) have methods `map` and `filter` of their own, which take precedence. That `map` does the same, and its
/// errors also name the file. That `filter` reads the columns it needs once, so its result has only the rows that remain: prefer it.
///
/// # Panics
/// `get` and `get_many` panic if an index is beyond the dataset, as those of every dataset.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no dataset",
    label = "it does not implement Burn's `Dataset`",
    note = "implement `Dataset`, or make a dataset with `burn_pinned::dataset`"
)]
pub trait DatasetExt<I: 'static, E: StdError + Send + Sync + 'static>: Dataset<I, E> + Sized + 'static {
    /// Makes another sample of each. The closure may fail, and may leave out the sample with [`LeftOut`].
    fn map<T: 'static>(
        self,
        make: impl Fn(I) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> impl Dataset<T> + Clone + 'static {
        AnyDataset::of(self).each(1, move |sample, _| make(sample))
    }

    /// Leaves out the samples for which the closure returns `false`.
    ///
    /// The length and the indices remain, so the loader's batches have fewer rows: see [`LeftOut`], which `get` returns as the error of
    /// such a sample. Other loaders take it as any error. If the samples to leave out are known before the training,
    /// [`SubsetSampler`](crate::order::SubsetSampler) keeps batches full.
    fn filter(self, keep: impl Fn(&I) -> bool + Send + Sync + 'static) -> impl Dataset<I> + Clone + 'static {
        let make = move |sample, _| if keep(&sample) { Ok(sample) } else { Err(LeftOut.into()) };
        AnyDataset { filters: true, ..AnyDataset::of(self).each(1, make) }
    }

    /// Makes `parts` samples of each: the closure gets a sample, and the number of the part, from 0.
    ///
    /// ```
    /// use burn::data::dataset::{Dataset, InMemDataset};
    /// use burn_pinned::DatasetExt;
    ///
    /// let rows = InMemDataset::new(vec!["ab".to_string(), "cd".to_string()]);
    /// let letters = rows.flat_map(2, |row, part| Ok(row.as_bytes()[part] as char));
    /// assert_eq!((letters.len(), letters.get_many(vec![0, 1, 2, 3])?), (4, vec!['a', 'b', 'c', 'd']));
    /// # Ok::<(), burn::data::dataset::DatasetError>(())
    /// ```
    ///
    /// Part `p` of sample `i` has the index `parts * i + p`. Each part reads its sample anew, because a shuffled epoch has the parts at
    /// different times. If all parts belong in one sample, `map` it to a `Vec`. With 0 parts the dataset is empty.
    fn flat_map<T: 'static>(
        self,
        parts: usize,
        make: impl Fn(I, usize) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> impl Dataset<T> + Clone + 'static {
        AnyDataset::of(self).each(parts, make)
    }

    /// Joins `size` samples that follow each other into one `Vec`. `map` then makes something of it, such as a mosaic or a row of text.
    ///
    /// They are read at once, by [`get_many`](Dataset::get_many). The last chunk may have fewer samples. Samples that are left out are
    /// missing in their chunk, and a chunk without samples is left out. A chunk with a bad sample is bad. With a `size` of 0 the dataset
    /// is empty.
    fn chunks(self, size: usize) -> impl Dataset<Vec<I>> + Clone + 'static {
        AnyDataset::of(self).chunks(size)
    }
}

impl<D: Dataset<I, E> + 'static, I: 'static, E: StdError + Send + Sync + 'static> DatasetExt<I, E> for D {}
