//! Changes of a sample with the help of others of its data set.

use super::Augment;
use crate::{
    error::{BoxError, Error},
    rng::KeyedRng,
};
use burn::data::dataset::Dataset;
use rand::RngExt;
use std::{error::Error as StdError, iter, sync::Arc};

/// The most other samples of a sample.
const MOST: usize = 64;

/// Makes one sample of several. Closures are such ways too: `(2, |sample: S, others: Vec<S>, rng: &mut KeyedRng| ..)` takes two other samples,
/// and returns a `Result`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine samples of the type `{S}`",
    label = "this must make one sample of several",
    note = "use `Mosaic`, `MixUpBoxes` or `CopyPaste` of the module `images`, or `(n, |sample: S, others: Vec<S>, rng: &mut KeyedRng| ..)`, which returns a `Result<S, BoxError>`"
)]
pub trait Combine<S>: Send + Sync + 'static {
    /// How many other samples it takes.
    fn others(&self) -> usize;

    /// Combines a sample with that many others.
    ///
    /// # Errors
    /// Any error.
    fn combine(&self, sample: S, others: Vec<S>, rng: &mut KeyedRng) -> Result<S, BoxError>;
}

impl<S, F> Combine<S> for (usize, F)
where
    F: Fn(S, Vec<S>, &mut KeyedRng) -> Result<S, BoxError> + Send + Sync + 'static,
{
    fn others(&self) -> usize {
        self.0
    }

    fn combine(&self, sample: S, others: Vec<S>, rng: &mut KeyedRng) -> Result<S, BoxError> {
        self.1(sample, others, rng)
    }
}

/// Combines each sample with others of a data set, which are drawn for it: a mosaic, a mix, pasted objects.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_augment::{Augment, KeyedRng, augment::WithOthers};
///
/// let dataset = InMemDataset::new(vec![10.0, 20.0, 30.0]);
/// let mean = |x: f32, others: Vec<f32>, _: &mut KeyedRng| Ok((x + others[0]) / 2.0);
/// let mixed = WithOthers::new(dataset, (1, mean))?.apply(10.0, &mut KeyedRng::for_sample(42, 0, 0))?;
/// assert!([10.0, 15.0, 20.0].contains(&mixed));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The others are read with `Dataset::get`, on the same thread. Their indices are uniform, and may be that of the sample itself. They come from
/// the sample's generator, so they do not depend on the number of workers, and a resumed training draws the same. At most 64 others are in
/// memory for each thread, and as many of each `WithOthers` in [`changed`](Self::changed). Each has as many bytes as the limits of the data
/// set allow; an image that is not decoded has those of its file. Reading ahead of a store does not know of them.
/// If one of them fails or is left out, so is the sample. Clones share the data set.
/// With a probability: `RandomApply::new(0.5, WithOthers::new(..)?)`.
#[derive(Clone, derive_more::Debug)]
#[debug("WithOthers {{ others: {} }}", combine.others())]
pub struct WithOthers<S: 'static> {
    len: Arc<dyn Fn() -> usize + Send + Sync>,
    get: Arc<dyn Fn(usize) -> Result<S, BoxError> + Send + Sync>,
    combine: Arc<dyn Combine<S>>,
    changes: Option<Arc<dyn Augment<S>>>,
}

/// Another sample could not be read or changed, or the sample could not be combined with the others.
#[derive(Debug, thiserror::Error)]
#[error("with the other samples {indices:?}: {source}")]
#[non_exhaustive]
pub struct OtherError {
    /// Their indices in the data set of the others.
    pub indices: Vec<usize>,
    /// What went wrong.
    pub source: BoxError,
}

impl<S: 'static> WithOthers<S> {
    /// Takes the data set that the others come from, usually the one that is trained on, and the way to combine: such as `Mosaic` of the
    /// module `images`.
    ///
    /// # Errors
    /// If more than 64 others are wanted.
    pub fn new<E: StdError + Send + Sync + 'static>(
        dataset: impl Dataset<S, E> + 'static,
        combine: impl Combine<S>,
    ) -> Result<Self, Error> {
        if combine.others() > MOST {
            let problem = format!("{} other samples are too many", combine.others());
            return Err(Error::config("WithOthers::new", problem, format!("take at most {MOST}")));
        }
        let dataset = Arc::new(dataset);
        let counted = Arc::clone(&dataset);
        Ok(Self {
            len: Arc::new(move || counted.len()),
            get: Arc::new(move |index| Ok(dataset.get(index)?)),
            combine: Arc::new(combine),
            changes: None,
        })
    }

    /// Changes each of the others first, as the sample itself was changed before: such as a mosaic that is mixed with other mosaics.
    pub fn changed(self, augment: impl Augment<S>) -> Self {
        Self { changes: Some(Arc::new(augment)), ..self }
    }
}

impl<S> Augment<S> for WithOthers<S> {
    fn apply(&self, sample: S, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let len = (self.len)();
        if len == 0 {
            return Err("`WithOthers` has a data set without samples".into());
        }
        let indices: Vec<_> = iter::repeat_with(|| rng.random_range(0..len)).take(self.combine.others()).collect();
        let of = |indices: &[usize]| {
            let indices = indices.to_vec();
            |source| OtherError { indices, source }
        };
        let others = indices.iter().map(|index| {
            let other = (self.get)(*index).and_then(|other| self.changes.apply(other, rng));
            other.map_err(of(&[*index]))
        });
        let others = others.collect::<Result<_, OtherError>>()?;
        Ok(self.combine.combine(sample, others, rng).map_err(of(&indices))?)
    }
}
