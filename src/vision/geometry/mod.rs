//! Changes of shape.

mod affine;
mod crop;
mod flip;
mod rect;
mod resize;
mod resized_crop;
mod rotate;

pub(crate) use affine::{Inverse, warp};
pub(crate) use crop::cut;
pub use crop::{CenterCrop, CropBox, PaddingMode, RandomCrop};
pub(crate) use flip::mirror;
pub use flip::{RandomHorizontalFlip, RandomVerticalFlip};
pub(crate) use rect::{Mirror, Rect};
pub use resize::{Interpolation, Resize};
pub(crate) use resize::{resize_into, resized};
pub use resized_crop::RandomResizedCrop;
pub use rotate::RandomRotation;
