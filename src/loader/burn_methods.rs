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

/// The methods of Burn's trait [`DataLoader`], without an import of it. The trait's methods do the same.
impl<O: Send + 'static> PinnedDataLoader<O> {
    /// Starts the next epoch and returns its iterator. The sampler plans the epoch on this thread, and the first call
    /// starts the loader's threads. Nothing fails here: errors come from `next()`. Several iterators may run at once;
    /// they share the slots. `for batch in &*loader` does the same.
    pub fn iter(&self) -> Box<dyn DataLoaderIterator<O> + '_> {
        DataLoader::iter(self)
    }

    /// The samples of an epoch, without those that `drop_last` drops. With
    /// [`devices`](crate::PinnedDataLoaderBuilder::devices), those that all devices get together, unless this is a slice.
    pub fn num_items(&self) -> usize {
        DataLoader::num_items(self)
    }

    /// A copy of the loader for another device, with threads and slots of its own.
    pub fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        DataLoader::to_device(self, device)
    }

    /// Returns a loader of the samples `start..end`, the same in each epoch. A shuffle shuffles them among themselves. With
    /// `distributed`, all processes have their shares of `world` times as many. An `end` that is
    /// [`num_items`](Self::num_items) is the end of the dataset, also if `drop_last` drops some of it.
    ///
    /// Samplers that are no plain shuffle ([`Sampler::part`](crate::order::Sampler::part)) give these positions of their
    /// sequence. If that changes from epoch to epoch, `next()` returns [`Error::Config`](crate::Error::Config): cut the data set with Burn's
    /// `PartialDataset` then. A slice of a batch sampler has whole batches.
    ///
    /// With [`devices`](crate::PinnedDataLoaderBuilder::devices), the slices that Burn makes for as many devices are shares
    /// of each epoch's global order instead: they are shuffled globally. Any other slice is a loader for as many devices.
    pub fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        DataLoader::slice(self, start, end)
    }
}

/// A `for` loop over a loader is its next epoch. `build` gives an `Arc`, which has no loop of its own: write `&*`.
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
