//! Changes of shape.

mod affine;
mod crop;
mod flip;
mod resize;
mod resized_crop;
mod rotate;

pub(crate) use affine::{Inverse, warp};
pub use crop::{CenterCrop, CropBox, PaddingMode, RandomCrop};
pub use flip::{RandomHorizontalFlip, RandomVerticalFlip};
pub use resize::{Interpolation, Resize};
pub use resized_crop::RandomResizedCrop;
pub use rotate::RandomRotation;
