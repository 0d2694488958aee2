//! The order of an epoch. A sampler knows no thread, no pool and no device.

use crate::fault::Error;
use std::{fmt, sync::Arc};

/// Says which samples an epoch has, and in which order.
///
/// The same sampler must give the same indices for the same `len` and `epoch`, always: resuming, slicing and every
/// promise of determinism rest on it. Its `Debug` text stands for it in a [`LoaderState`](crate::LoaderState): samplers that order
/// differently must differ there, and the text must not change by itself, as that of a `HashMap` does.
///
/// ```
/// use burn_pinned::Sampler;
///
/// /// Every sample twice, backwards.
/// #[derive(Debug)]
/// struct Twice;
///
/// impl Sampler for Twice {
///     fn len(&self, dataset_len: usize) -> usize {
///         2 * dataset_len
///     }
///     fn indices(&self, dataset_len: usize, _epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
///         Box::new((0..dataset_len).rev().flat_map(|index| [index, index]))
///     }
/// }
/// assert_eq!(Twice.indices(2, 0).collect::<Vec<_>>(), [1, 1, 0, 0]);
/// ```
pub trait Sampler: Send + Sync + fmt::Debug + 'static {
    /// How many indices an epoch has.
    fn len(&self, dataset_len: usize) -> usize;

    /// Whether an epoch has none.
    fn is_empty(&self, dataset_len: usize) -> bool {
        self.len(dataset_len) == 0
    }

    /// The indices of an epoch in order: `len` of them, each below `dataset_len`. Called on the thread that calls `iter()`,
    /// once an epoch (where processes share it, once more on a worker for what is given again at its end); the iterator is advanced
    /// on workers.
    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send>;

    /// Whether an index may come more than once in an epoch. Then the random numbers of a sample depend on its position in the
    /// epoch too, so that the same sample is not augmented the same way twice.
    fn repeats(&self) -> bool {
        false
    }

    /// Whether the sampler fits a dataset of this length; called by `build`.
    ///
    /// # Errors
    /// [`Error::Config`], e.g. where there is not one weight for each sample.
    fn check(&self, _dataset_len: usize) -> Result<(), Error> {
        Ok(())
    }
}

/// A sampler that is shared, or chosen at run time.
impl<S: Sampler + ?Sized> Sampler for Arc<S> {
    fn len(&self, dataset_len: usize) -> usize {
        (**self).len(dataset_len)
    }

    fn is_empty(&self, dataset_len: usize) -> bool {
        (**self).is_empty(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        (**self).indices(dataset_len, epoch)
    }

    fn repeats(&self) -> bool {
        (**self).repeats()
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        (**self).check(dataset_len)
    }
}

/// Every sample once, in the dataset's order.
#[derive(Debug, Clone, Copy, Default)]
pub struct SequentialSampler;

impl Sampler for SequentialSampler {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, dataset_len: usize, _epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(0..dataset_len)
    }
}
