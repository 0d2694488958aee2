//! The random changes of training images.

use burn_pinned::{
    Augment, Error,
    vision::{ColorJitter, HasImage, RandomHorizontalFlip, RandomResizedCrop, TrivialAugmentWide},
};
use clap::ValueEnum;
use std::sync::Arc;

/// What changes a training image after a random crop and a flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Changes {
    /// Brightness and contrast change a little
    Light,
    /// One change of any kind, weak or strong: TrivialAugment. Most of them need pixels, so workers decode
    Trivial,
    /// Nothing
    None,
}

/// Cuts out a random part at `side` x `side` pixels, mirrors half of the images, and makes the chosen changes.
pub(crate) fn training<T: HasImage + 'static>(side: u32, changes: Changes) -> Result<Arc<dyn Augment<T>>, Error> {
    let shape = (RandomResizedCrop::new(side)?.scale(0.6, 1.0)?, RandomHorizontalFlip::default());
    let light = ColorJitter::new().brightness(0.2)?.contrast(0.2)?;
    // The choices have different types. Behind `Arc<dyn ..>` they are one.
    let chosen: Arc<dyn Augment<T>> = match changes {
        Changes::Light => Arc::new((shape, light)),
        Changes::Trivial => Arc::new((shape, TrivialAugmentWide::default())),
        Changes::None => Arc::new(shape),
    };
    Ok(chosen)
}
