//! Stages between reading a sample and writing it, and parts, for every dataset.

use super::any_dataset::AnyDataset;
use crate::fault::{BoxError, LeftOut};
use burn::data::dataset::{Dataset, DatasetError};
use std::error::Error as StdError;

/// The rest, and a part.
type Parts<I> = (AnyDataset<I>, AnyDataset<I>);

/// Stages between reading a sample and writing it, and parts for validation, for every Burn `Dataset`. Each is a dataset again.
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
/// [`Rows`](crate::data::Rows) have methods of these names, which take precedence. Errors of that `map` also name the file. Their `filter`
/// reads the columns that it needs once, so its result has only the rows that remain.
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

    /// Splits the samples at random into `(rest, part)`, where `part` has the given share. Both keep the order of the samples.
    ///
    /// ```
    /// use burn::data::dataset::{Dataset, InMemDataset};
    /// use burn_pinned::DatasetExt;
    /// use std::sync::Arc;
    ///
    /// // Parts share their dataset, so it must be `Clone`. An `Arc` is.
    /// let people = Arc::new(InMemDataset::new((0..100).map(|n| (n / 5, n % 4 == 0)).collect::<Vec<(u8, bool)>>()));
    /// let (train, valid) = people.split(0.1, 42)?;
    /// assert_eq!((train.len(), valid.len()), (90, 10));
    /// // The same share of each label: 25 of 100 are true.
    /// let (_, valid) = people.split_by(|(_, label)| *label, 0.2, 42)?;
    /// assert_eq!(valid.iter().filter(|person| person.as_ref().is_ok_and(|(_, label)| *label)).count(), 5);
    /// // All samples of a group are in the same part.
    /// let (train, valid) = people.split_groups(|(group, _)| *group, 0.2, 42)?;
    /// assert_eq!((train.len(), valid.len()), (80, 20)); // 16 groups of five, and 4
    /// # Ok::<(), burn::data::dataset::DatasetError>(())
    /// ```
    ///
    /// The split depends only on `seed` and the number of samples. [`Rows::split`](crate::data::Rows::split) parts as many rows in the same
    /// way. A part reads the samples of this dataset when they are needed, and keeps a bit for each sample.
    ///
    /// # Errors
    /// If the share is not between 0 and 1, or if one of the two would be empty.
    fn split(&self, share: f64, seed: u64) -> Result<Parts<I>, DatasetError>
    where
        Self: Clone,
    {
        let all = AnyDataset::of(self.clone());
        all.both(all.parted().split(share, seed))
    }

    /// As [`split`](Self::split), but stratified: `part` has the same share of the samples of each key, such as a label. All samples are
    /// read once, on the calling thread.
    ///
    /// # Errors
    /// As for `split`; or if a sample cannot be read.
    #[doc(alias = "stratify")]
    fn split_by<K: Ord>(&self, key: impl Fn(&I) -> K, share: f64, seed: u64) -> Result<Parts<I>, DatasetError>
    where
        Self: Clone,
    {
        let all = AnyDataset::of(self.clone());
        all.both(all.parted().split_by(&all.keys(key)?, share, seed))
    }

    /// As [`split`](Self::split), but all samples with the same key, such as a user, are in the same part. `part` has about the given share
    /// of the samples. All samples are read once, on the calling thread.
    ///
    /// # Errors
    /// As for [`split_by`](Self::split_by).
    #[doc(alias = "GroupShuffleSplit")]
    fn split_groups<K: Ord>(&self, key: impl Fn(&I) -> K, share: f64, seed: u64) -> Result<Parts<I>, DatasetError>
    where
        Self: Clone,
    {
        let all = AnyDataset::of(self.clone());
        // Each sample that is left out is a group of its own.
        let keys: Vec<_> = all.keys(key)?.into_iter().enumerate().map(|(index, key)| key.ok_or(index)).collect();
        all.both(all.parted().split_groups(&keys, share, seed))
    }

    /// The pairs `(rest, part)` for `k`-fold cross-validation: each sample is in `part` of one pair, and in `rest` of all others. The parts
    /// differ in size by at most one sample.
    ///
    /// # Errors
    /// If `k` is less than 2, or more than the number of samples.
    #[doc(alias = "KFold")]
    fn folds(&self, k: usize, seed: u64) -> Result<Vec<Parts<I>>, DatasetError>
    where
        Self: Clone,
    {
        let all = AnyDataset::of(self.clone());
        let folds = all.parted().folds(k, seed).map_err(DatasetError::new)?;
        folds.into_iter().map(|parts| all.both(Ok(parts))).collect()
    }

    /// The samples with these numbers, each once and in the order of this dataset.
    ///
    /// # Errors
    /// If there is no such sample.
    #[doc(alias = "Subset")]
    fn select(&self, numbers: impl IntoIterator<Item = usize>) -> Result<AnyDataset<I>, DatasetError>
    where
        Self: Clone,
    {
        let all = AnyDataset::of(self.clone());
        all.parted().select(numbers).map(|picks| all.picked(picks)).map_err(DatasetError::new)
    }
}

impl<D: Dataset<I, E> + 'static, I: 'static, E: StdError + Send + Sync + 'static> DatasetExt<I, E> for D {}
