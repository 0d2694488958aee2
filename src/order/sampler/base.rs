//! What a sampler is: it gives the order of an epoch.

use crate::fault::Error;
use auto_impl::auto_impl;
use std::{fmt, ops::Range, sync::Arc};

/// Decides which samples an epoch has, and in which order.
///
/// The same sampler must always return the same indices for the same `dataset_len` and `epoch`. Resume, slices and
/// every promise of determinism depend on it. Its [`fingerprint`](Self::fingerprint) identifies it in a
/// [`LoaderState`](crate::LoaderState).
///
/// ```
/// use burn_pinned::order::Sampler;
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
#[auto_impl(Arc)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `Sampler`",
    label = "this must give the order of an epoch",
    note = "implement `Sampler`, or use one of `burn_pinned::order`, such as `RandomSampler::new(seed)` or `SubsetSampler::new(indices)`"
)]
pub trait Sampler: Send + Sync + fmt::Debug + 'static {
    /// Returns the number of indices of an epoch.
    fn len(&self, dataset_len: usize) -> usize;

    /// Whether an epoch has no indices.
    fn is_empty(&self, dataset_len: usize) -> bool {
        self.len(dataset_len) == 0
    }

    /// Returns the indices of an epoch in order: `len` of them, each below `dataset_len`.
    ///
    /// It is called once per epoch, on the thread that calls `iter()`. If processes share the epoch, it is called again
    /// on a worker, for the samples that are repeated at the end of the epoch. Workers advance the iterator.
    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send>;

    /// Whether an index may occur more than once in an epoch. Then the random numbers of a sample also depend on its
    /// position in the epoch, so that the same sample is augmented differently each time.
    fn repeats(&self) -> bool {
        false
    }

    /// Returns how many samples of the dataset an epoch leaves out, at least, for the log and the statistics. Default: the difference
    /// between the length of the dataset and of the epoch.
    fn left_out(&self, dataset_len: usize) -> usize {
        dataset_len.saturating_sub(self.len(dataset_len))
    }

    /// Returns the text that identifies the sampler in a [`LoaderState`](crate::LoaderState). Default: its `Debug`
    /// text.
    ///
    /// Samplers with different orders must have different texts. The text must be stable: it must not change between calls, as the text of
    /// a `HashMap` does, nor between versions of your program. A sampler that wraps another includes that sampler's fingerprint. A state
    /// keeps the first 160 bytes of a long text, and a hash of the whole text.
    ///
    /// ```
    /// # use burn_pinned::order::Sampler;
    /// /// The samples that a query found.
    /// #[derive(Debug)]
    /// struct Found {
    ///     query: String,
    ///     rows: Vec<usize>,
    /// }
    ///
    /// impl Sampler for Found {
    ///     fn len(&self, _dataset_len: usize) -> usize {
    ///         self.rows.len()
    ///     }
    ///     fn indices(&self, _dataset_len: usize, _epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
    ///         Box::new(self.rows.clone().into_iter())
    ///     }
    ///     fn fingerprint(&self) -> String {
    ///         format!("found by {}", self.query)
    ///     }
    /// }
    /// # assert_eq!(Found { query: "cats".into(), rows: vec![1] }.fingerprint(), "found by cats");
    /// ```
    fn fingerprint(&self) -> String {
        format!("{self:?}")
    }

    /// Checks that the sampler fits a dataset of this length. `build` calls it.
    ///
    /// # Errors
    /// [`Error::Config`] if it does not, for example if the number of weights differs from the number of samples.
    fn check(&self, _dataset_len: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Returns a sampler of the samples `part` only, which orders them as this one orders all samples. Indices still
    /// refer to the whole dataset. Burn's `DataLoader::slice` uses it, so that a slice has the same samples in every
    /// epoch.
    ///
    /// Default: `None`. Then a slice has some positions of this sampler's sequence. If these positions have different
    /// samples in different epochs, the slice's epochs are errors.
    fn part(&self, _dataset_len: usize, _part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        None
    }
}
