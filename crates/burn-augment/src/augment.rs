//! Random changes of single samples. [`Augment`] is the trait of all such changes. A closure `Fn(I, &mut KeyedRng) ->
//! Result<I, BoxError>` implements it. A tuple makes several changes in order, [`RandomApply`] makes one with a probability, [`OneOf`]
//! makes one of several, and [`RandomOrder`] makes all in random order. [`Views`] makes several samples from one, and [`WithOthers`] one
//! from several. The
//! changes of images are in the module `images`, which burn-pinned calls `vision`.

mod others;

pub use others::{Combine, OtherError, WithOthers};

use crate::{
    error::{BoxError, Error},
    rng::KeyedRng,
};
use auto_impl::auto_impl;
use burn::data::dataset::Dataset;
use rand::{RngExt, seq::SliceRandom};
use std::{error, iter, sync::Arc};

/// Changes a sample at random.
///
/// Take all randomness from the generator. Then the result does not depend on the thread or the time. The loader
/// burn-pinned calls augmentations on its workers, between `Dataset::get` and the collate, with a generator keyed by
/// seed, epoch and index of the sample. Closures `Fn(I, &mut KeyedRng) -> Result<I, BoxError>` are augmentations:
///
/// ```
/// use burn_augment::{Augment, KeyedRng};
/// use rand::RngExt;
///
/// let flip = |mut row: Vec<u8>, rng: &mut KeyedRng| {
///     if rng.random_bool(0.5) {
///         row.reverse();
///     }
///     Ok(row)
/// };
/// let shift = |row: Vec<u8>, _: &mut KeyedRng| Ok(row.iter().map(|x| x.wrapping_add(1)).collect::<Vec<u8>>());
/// let both = Augment::then(flip, shift);
/// # fn takes(_: impl Augment<Vec<u8>>) {}
/// # takes(both);
/// ```
///
/// A tuple runs several augmentations in order, and so does [`then`](Self::then). [`RandomApply`] runs one with a
/// probability. [`OneOf`] runs one of several. An `Option` runs one or none.
#[auto_impl(Arc)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not augment samples of the type `{I}`",
    label = "this must change such a sample",
    note = "a closure names the types of its parameters and returns a `Result` of such a sample: `|sample: Sample, rng: &mut KeyedRng| Ok(sample)`",
    note = "the transforms of images change samples that implement `HasImage`, and pairs `(image, label)`; those of sounds `AsMut<Audio>`, those of spectrograms `AsMut<Array<f32>>`",
    note = "what makes another type of the sample is a stage of the data set: `dataset.map(..)`"
)]
pub trait Augment<I>: Send + Sync + 'static {
    /// Changes one sample.
    ///
    /// # Errors
    /// Any error. The iterator of burn-pinned returns it in place of the batch, with the index of the sample.
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError>;

    /// Runs this augmentation and then another, with one generator for both.
    #[auto_impl(keep_default_for(Arc))]
    fn then<A: Augment<I>>(self, next: A) -> (Self, A)
    where
        Self: Sized,
    {
        (self, next)
    }
}

impl<I, F> Augment<I> for F
where
    F: Fn(I, &mut KeyedRng) -> Result<I, BoxError> + Send + Sync + 'static,
{
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        self(sample, rng)
    }
}

/// `None` leaves the sample unchanged. The choice is made once, not for each sample.
impl<I, A: Augment<I>> Augment<I> for Option<A> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        match self {
            Some(augment) => augment.apply(sample, rng),
            None => Ok(sample),
        }
    }
}

/// A tuple of up to eight augmentations runs them one after the other.
macro_rules! tuples {
    ($($name:ident)+) => {
        impl<I, $($name: Augment<I>),+> Augment<I> for ($($name,)+) {
            fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
                #[expect(non_snake_case, reason = "the types name the values")]
                let ($($name,)+) = self;
                $(let sample = $name.apply(sample, rng)?;)+
                Ok(sample)
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);

/// Runs an augmentation with a probability, and otherwise leaves the sample unchanged.
///
/// ```
/// use burn_augment::{augment::RandomApply, Augment, KeyedRng};
///
/// let negate = |x: f32, _: &mut KeyedRng| Ok(-x);
/// let half_the_time = RandomApply::new(0.5, negate)?;
/// assert_eq!(half_the_time.apply(3.0, &mut KeyedRng::for_order(7, 0))?.abs(), 3.0);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RandomApply<A> {
    p: f64,
    augment: A,
}

impl<A> RandomApply<A> {
    /// Runs `augment` with probability `p`, from 0 to 1.
    ///
    /// # Errors
    /// If `p` is not a probability.
    pub fn new(p: f64, augment: A) -> Result<Self, Error> {
        Ok(Self { p: probability("RandomApply::new", p)?, augment })
    }
}

impl<I, A: Augment<I>> Augment<I> for RandomApply<A> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        if rng.random_bool(self.p) { self.augment.apply(sample, rng) } else { Ok(sample) }
    }
}

/// Runs one of several augmentations, drawn for each sample: all equally likely, or by weights. It is torchvision's
/// `RandomChoice`.
///
/// ```
/// use burn_augment::{augment::OneOf, Augment, KeyedRng};
///
/// let up = |x: i32, _: &mut KeyedRng| Ok(x + 1);
/// let down = |x: i32, _: &mut KeyedRng| Ok(x - 1);
/// let step = OneOf::new(up).or(down).weights(&[3.0, 1.0])?; // up three times in four
/// assert_eq!(step.apply(0, &mut KeyedRng::for_order(7, 0))?.abs(), 1);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
#[derive(derive_more::Debug)]
pub struct OneOf<I> {
    #[debug("{}", choices.len())]
    choices: Vec<Arc<dyn Augment<I>>>,
    /// The sums of the weights up to each choice. `None` if all weigh the same.
    sums: Option<Vec<f64>>,
}

impl<I> OneOf<I> {
    /// Starts with the first choice.
    pub fn new(augment: impl Augment<I>) -> Self {
        Self { choices: vec![Arc::new(augment)], sums: None }
    }

    /// Adds a choice. This removes the weights, so set them last.
    pub fn or(mut self, augment: impl Augment<I>) -> Self {
        self.choices.push(Arc::new(augment));
        self.sums = None;
        self
    }

    /// Sets the weight of each choice, in the order of the choices. The weights need not sum to 1.
    ///
    /// # Errors
    /// If there are more or fewer weights than choices, if one is negative or not finite, or if all are 0.
    pub fn weights(mut self, weights: &[f64]) -> Result<Self, Error> {
        let bad = |problem: String| {
            let advice = format!("give {} weights from 0 up, one of them above 0", self.choices.len());
            Err(Error::config("OneOf::weights", problem, advice))
        };
        if weights.len() != self.choices.len() {
            return bad(format!("there are {} weights for {} choices", weights.len(), self.choices.len()));
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            return bad(format!("{weight} is not a weight"));
        }
        let sums: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        match sums.last() {
            Some(&sum) if sum > 0.0 && sum.is_finite() => self.sums = Some(sums),
            sum => return bad(format!("the weights sum to {}", sum.copied().unwrap_or_default())),
        }
        Ok(self)
    }

    fn choose(&self, rng: &mut KeyedRng) -> usize {
        let last = self.choices.len() - 1;
        match &self.sums {
            None => rng.random_range(0..=last),
            // The first choice whose sum is above the point is taken. A weight of 0 adds nothing to the sum, so it is
            // never taken.
            Some(sums) => {
                let point = rng.random_range(0.0..sums[last]);
                sums.partition_point(|&sum| sum <= point)
            }
        }
    }
}

impl<I: 'static> Augment<I> for OneOf<I> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        self.choices[self.choose(rng)].apply(sample, rng)
    }
}

impl<I> Clone for OneOf<I> {
    fn clone(&self) -> Self {
        Self { choices: self.choices.clone(), sums: self.sums.clone() }
    }
}

/// Runs all of several augmentations, in an order that is drawn for each sample: torchvision's `RandomOrder`.
///
/// ```
/// use burn_augment::{augment::RandomOrder, Augment, KeyedRng};
///
/// let both = RandomOrder::new(|x: i32, _: &mut KeyedRng| Ok(x + 3)).and(|x: i32, _: &mut KeyedRng| Ok(x * 2));
/// let changed = both.apply(1, &mut KeyedRng::for_order(7, 0))?;
/// assert!(changed == 8 || changed == 5);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
#[derive(derive_more::Debug)]
pub struct RandomOrder<I> {
    #[debug("{}", all.len())]
    all: Vec<Arc<dyn Augment<I>>>,
}

impl<I> RandomOrder<I> {
    /// Starts with the first augmentation.
    pub fn new(augment: impl Augment<I>) -> Self {
        Self { all: vec![Arc::new(augment)] }
    }

    /// Adds an augmentation.
    pub fn and(mut self, augment: impl Augment<I>) -> Self {
        self.all.push(Arc::new(augment));
        self
    }
}

impl<I: 'static> Augment<I> for RandomOrder<I> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        let mut order: Vec<_> = self.all.iter().collect();
        order.shuffle(rng);
        order.into_iter().try_fold(sample, |sample, augment| augment.apply(sample, rng))
    }
}

impl<I> Clone for RandomOrder<I> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone() }
    }
}

/// Makes several samples from one, each changed on its own, such as two crops of an image for contrastive learning. It
/// takes a list of one sample: [`Single`] turns each sample of a data set into such a list.
///
/// ```
/// use burn_augment::{augment::Views, Augment, KeyedRng};
/// use rand::RngExt;
///
/// let noise = |x: f32, rng: &mut KeyedRng| Ok(x + rng.random_range(0.0..1.0));
/// let strong = |x: f32, rng: &mut KeyedRng| Ok(x + rng.random_range(10.0..20.0));
/// let views = Views::new(2, noise)?.and(3, strong)?.apply(vec![1.0], &mut KeyedRng::for_order(7, 0))?;
/// assert!(views.len() == 5 && views[0] != views[1] && views[1] < 2.0 && views[2] >= 11.0);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// A copy of an image that is not decoded shares the bytes of its file.
#[derive(derive_more::Debug)]
pub struct Views<I> {
    /// How many samples each augmentation makes.
    #[debug("{:?}", views.iter().map(|(n, _)| n).collect::<Vec<_>>())]
    views: Vec<(usize, Arc<dyn Augment<I>>)>,
}

impl<I> Views<I> {
    /// Makes `n` samples, each changed by `augment`.
    ///
    /// # Errors
    /// If `n` is 0.
    pub fn new(n: usize, augment: impl Augment<I>) -> Result<Self, Error> {
        Self { views: Vec::new() }.and(n, augment)
    }

    /// Makes `n` more samples, each changed by `augment`. They come after the others.
    ///
    /// # Errors
    /// If `n` is 0.
    pub fn and(mut self, n: usize, augment: impl Augment<I>) -> Result<Self, Error> {
        if n == 0 {
            return Err(Error::config("Views", "0 views are no sample", "give 1 or more"));
        }
        self.views.push((n, Arc::new(augment)));
        Ok(self)
    }
}

impl<S: Clone + 'static> Augment<Vec<S>> for Views<S> {
    fn apply(&self, sample: Vec<S>, rng: &mut KeyedRng) -> Result<Vec<S>, BoxError> {
        let given = sample.len();
        let (Some(first), 1) = (sample.into_iter().next(), given) else {
            return Err(format!("`Views` takes a list of 1 sample, not of {given}: make it by `Single`").into());
        };
        let each = self.views.iter().flat_map(|(n, augment)| iter::repeat_n(augment, *n));
        each.map(|augment| augment.apply(first.clone(), rng)).collect()
    }
}

impl<I> Clone for Views<I> {
    fn clone(&self) -> Self {
        Self { views: self.views.clone() }
    }
}

/// A data set whose samples are lists of one sample, for [`Views`].
///
/// ```
/// use burn::data::dataset::{Dataset, InMemDataset};
/// use burn_augment::augment::Single;
///
/// assert_eq!(Single(InMemDataset::new(vec![7, 8])).get(1)?, [8]);
/// # Ok::<(), burn::data::dataset::DatasetError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Single<D>(
    /// The data set of the samples.
    pub D,
);

impl<S, E: error::Error + Send + Sync + 'static, D: Dataset<S, E>> Dataset<Vec<S>, E> for Single<D> {
    fn get(&self, index: usize) -> Result<Vec<S>, E> {
        Ok(vec![self.0.get(index)?])
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<Vec<S>>, E> {
        Ok(self.0.get_many(indexes)?.into_iter().map(|sample| vec![sample]).collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Returns `p` if it is a probability.
pub(crate) fn probability(option: &'static str, p: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&p) {
        return Ok(p);
    }
    Err(Error::config(option, format!("{p} is not a probability"), "give a number from 0 to 1"))
}
