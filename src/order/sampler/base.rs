//! What a sampler is: it gives the order of an epoch.

use crate::fault::Error;
use auto_impl::auto_impl;
use std::{fmt, ops::Range, sync::Arc};

/// Says which samples an epoch has, and in which order.
///
/// The same sampler must always return the same indices for the same `dataset_len` and `epoch`. Resuming, slicing and
/// every promise of determinism depend on it. Its [`fingerprint`](Self::fingerprint) stands for it in a
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
    /// How many indices an epoch has.
    fn len(&self, dataset_len: usize) -> usize;

    /// Whether an epoch has no indices.
    fn is_empty(&self, dataset_len: usize) -> bool {
        self.len(dataset_len) == 0
    }

    /// Returns the indices of an epoch in order: `len` of them, each below `dataset_len`.
    ///
    /// It is called once per epoch, on the thread that calls `iter()`. If processes share the epoch, it is called once
    /// more on a worker, for the samples that come again at the end of the epoch. The iterator is advanced on workers.
    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send>;

    /// Whether an index may come more than once in an epoch. Then the random numbers of a sample also depend on its
    /// position in the epoch, so that the same sample is not augmented the same way twice.
    fn repeats(&self) -> bool {
        false
    }

    /// How many samples of the dataset an epoch does not have, at least: for the log and the statistics. Default: as many as
    /// it is shorter than the dataset.
    fn left_out(&self, dataset_len: usize) -> usize {
        dataset_len.saturating_sub(self.len(dataset_len))
    }

    /// Returns the text that stands for the sampler in a [`LoaderState`](crate::LoaderState). Default: its `Debug` text.
    ///
    /// Samplers that order differently must have different texts. The text must not change by itself, as that of a
    /// `HashMap` does, nor from one version of your program to the next. A sampler that wraps another one puts that one's
    /// fingerprint into its own. A state keeps 160 bytes of a long text, and a hash of all of it.
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
    /// [`Error::Config`] if it does not, e.g. if there is not one weight for each sample.
    fn check(&self, _dataset_len: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Returns a sampler of the samples `part` alone, which orders them as this one orders all. Their indices stay those
    /// of the dataset. Burn's `DataLoader::slice` asks for it, so that a slice has the same samples in every epoch.
    ///
    /// Default: `None`. Then a slice has some positions of this sampler's sequence, and its epochs are errors if these
    /// positions have other samples in other epochs.
    fn part(&self, _dataset_len: usize, _part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        None
    }
}
