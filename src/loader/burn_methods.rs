//! The methods of Burn's `DataLoader`, for programs that do not import that trait.

use super::data_loader::PinnedDataLoader;
use burn::{
    data::{
        dataloader::{DataLoader, DataLoaderIterator},
        dataset::DatasetError,
    },
    tensor::Device,
};
use std::sync::Arc;

/// The methods of Burn's trait [`DataLoader`], for programs that do not import the trait. They do the same as the
/// trait's methods.
impl<O: Send + 'static> PinnedDataLoader<O> {
    /// Starts the next epoch and returns its iterator. The sampler plans the epoch on this thread, and the first call
    /// starts the loader's threads. It never fails: errors come from `next()`. Several iterators may run at once; they
    /// share the slots. `for batch in &*loader` does the same.
    pub fn iter(&self) -> Box<dyn DataLoaderIterator<O> + '_> {
        DataLoader::iter(self)
    }

    /// The number of samples of an epoch, without those that `drop_last` leaves out. With
    /// [`devices`](crate::PinnedDataLoaderBuilder::devices), the number for all devices together, unless this is a slice.
    pub fn num_items(&self) -> usize {
        DataLoader::num_items(self)
    }

    /// Returns a copy of the loader for another device. The copy has its own threads and slots.
    pub fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        DataLoader::to_device(self, device)
    }

    /// Returns a loader of the samples `start..end`, the same in each epoch. A shuffle permutes only these samples. With `distributed`, the
    /// slice covers `world` times as many samples, and each process gets its share of them. An `end` equal to
    /// [`num_items`](Self::num_items) means the end of the dataset, even if `drop_last` leaves out some samples.
    ///
    /// If the sampler's [`part`](crate::order::Sampler::part) is `None`, the slice has these positions of the sampler's sequence. If the
    /// sequence changes from epoch to epoch, `next()` returns [`Error::Config`](crate::Error::Config): cut the dataset with Burn's
    /// `PartialDataset` instead. A slice of a batch sampler has whole batches.
    ///
    /// With [`devices`](crate::PinnedDataLoaderBuilder::devices), the slices that Burn makes for the devices are shares of each epoch's
    /// global order, so they are shuffled globally. Any other slice is a loader for the same number of devices.
    pub fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        DataLoader::slice(self, start, end)
    }
}

/// A `for` loop over a loader runs its next epoch. `build` returns an `Arc`, which is not iterable itself: write `&*`.
///
/// ```
/// use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
/// use burn_pinned::{Field, PinnedDataLoader, PinnedDataLoaderBuilder, collate};
///
/// let numbers = collate(
///     [Field::new("x", DType::F32, [])],
///     |x: &f32, row| Ok(row.put("x", *x)?),
///     |mut batch| Ok(batch.take::<1, Float>("x")?),
/// );
/// let loader = PinnedDataLoaderBuilder::new(numbers).batch_size(2).build(InMemDataset::new(vec![1.0f32, 2.0, 3.0]))?;
/// for batch in &*loader {
///     let _numbers = batch?; // a training step
/// }
///
/// fn train(loader: &PinnedDataLoader<Tensor<1>>) -> usize {
///     let mut steps = 0;
///     for _batch in loader {
///         steps += 1;
///     }
///     steps
/// }
/// assert_eq!((train(&loader), loader.state().epoch()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'a, O: Send + 'static> IntoIterator for &'a PinnedDataLoader<O> {
    type Item = Result<O, DatasetError>;
    type IntoIter = Box<dyn DataLoaderIterator<O> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
