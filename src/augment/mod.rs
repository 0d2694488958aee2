//! Random changes to single samples, on the workers.

pub(crate) mod choose;

pub use choose::{OneOf, RandomApply};

use crate::{error::BoxError, rng::KeyedRng};
use std::sync::Arc;

/// Changes a sample at random, on a worker, between `Dataset::get` and the collate.
///
/// Its generator is keyed by (seed, epoch, index of the sample): the result is the same whichever worker runs it and whenever.
/// Take all randomness from it. Closures `Fn(I, &mut KeyedRng) -> I` are augmentations:
///
/// ```
/// use burn_pinned::{Augment, KeyedRng};
/// use rand::RngExt;
///
/// let flip = |mut row: Vec<u8>, rng: &mut KeyedRng| {
///     if rng.random_bool(0.5) {
///         row.reverse();
///     }
///     row
/// };
/// let shift = |row: Vec<u8>, _: &mut KeyedRng| row.iter().map(|x| x.wrapping_add(1)).collect::<Vec<u8>>();
/// let both = Augment::then(flip, shift);
/// # fn takes(_: impl Augment<Vec<u8>>) {}
/// # takes(both);
/// ```
///
/// A tuple runs several in order, and so does [`then`](Self::then); [`RandomApply`] runs one at times, [`OneOf`] one of several,
/// an `Option` one or none. Those for images are in the module `vision`.
pub trait Augment<I>: Send + Sync + 'static {
    /// Changes one sample.
    ///
    /// # Errors
    /// Any error; it reaches the consumer at the batch's place, with the sample's index.
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError>;

    /// This augmentation, then another, sharing one generator.
    fn then<A: Augment<I>>(self, next: A) -> Then<Self, A>
    where
        Self: Sized,
    {
        Then { first: self, next }
    }
}

impl<I, F> Augment<I> for F
where
    F: Fn(I, &mut KeyedRng) -> I + Send + Sync + 'static,
{
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        Ok(self(sample, rng))
    }
}

/// `None` leaves the sample as it is: a choice made when the loader is built.
impl<I, A: Augment<I>> Augment<I> for Option<A> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        match self {
            Some(augment) => augment.apply(sample, rng),
            None => Ok(sample),
        }
    }
}

/// An augmentation that is shared, or chosen at run time.
impl<I, A: Augment<I> + ?Sized> Augment<I> for Arc<A> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        (**self).apply(sample, rng)
    }
}

/// A tuple of up to eight runs one after the other.
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

/// Two augmentations, one after the other; made by [`Augment::then`].
#[derive(Debug, Clone)]
pub struct Then<A, B> {
    first: A,
    next: B,
}

impl<I, A: Augment<I>, B: Augment<I>> Augment<I> for Then<A, B> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        self.next.apply(self.first.apply(sample, rng)?, rng)
    }
}

/// An augmentation after another whose type is not known.
pub(crate) struct Chain<I, A> {
    pub(crate) first: Arc<dyn Augment<I>>,
    pub(crate) next: A,
}

impl<I: 'static, A: Augment<I>> Augment<I> for Chain<I, A> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        self.next.apply(self.first.apply(sample, rng)?, rng)
    }
}
