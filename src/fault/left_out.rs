//! The error with which user code leaves out a sample.

/// Leaves out a sample that is not bad. A dataset or an augmentation returns it as its error, or as a source of its error.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_pinned::{Augment, BoxError, KeyedRng, PinnedDataLoaderBuilder, fault::LeftOut};
/// # use burn::{prelude::*, tensor::DType};
/// # use burn_pinned::{Field, collate};
/// # let collate = collate(
/// #     [Field::new("x", DType::F32, [])],
/// #     |x: &f32, row| Ok(row.put("x", *x)?),
/// #     |mut batch| Ok(batch.take::<1, Float>("x")?),
/// # );
///
/// struct Small;
/// impl Augment<f32> for Small {
///     fn apply(&self, x: f32, _: &mut KeyedRng) -> Result<f32, BoxError> {
///         if x < 3.0 { Ok(x) } else { Err(LeftOut.into()) }
///     }
/// }
/// let numbers = InMemDataset::new(vec![1.0, 2.0, 3.0, 1.0, 9.0, 9.0]);
/// let loader = PinnedDataLoaderBuilder::new(collate).batch_size(2).augment(Small).build(numbers)?; // any collate
/// let sizes = loader.iter().map(|batch| Ok(batch?.dims()[0])).collect::<Result<Vec<_>, BoxError>>()?;
/// assert_eq!((sizes, loader.stats().filtered), (vec![2, 1], 3));
/// # Ok::<(), BoxError>(())
/// ```
///
/// The batch is delivered without the sample, so it has fewer rows. If all samples of a batch are left out, `next()` returns the next batch
/// instead. The result is the same for any number of workers. This holds under every [`BadSamples`](super::BadSamples) policy: no quota
/// counts the sample, nothing replaces it, and `on_fault` is not called. [`Stats::filtered`](crate::Stats::filtered) counts it. The numbers
/// of samples that the loader and Burn's progress show include it.
///
/// If all samples of an epoch are left out, the epoch is an [`Error::NoGoodSample`](crate::Error::NoGoodSample). If processes or devices
/// share the epoch, a batch without samples is an [`Error::AllSkipped`](crate::Error::AllSkipped). Once a loader has left out a sample, it
/// delivers a batch only when the next one is ready, because the batch may be the last. So that this holds from the start, use
/// [`DatasetExt::filter`](crate::DatasetExt::filter).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sample is left out, as the program asked")]
pub struct LeftOut;
