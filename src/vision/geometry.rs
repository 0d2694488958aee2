//! Changes of shape.

mod affine;
mod crop;
mod flip;
mod pixels;
mod rect;
mod resize;
mod resized_crop;
mod rotate;

pub(crate) use affine::{Inverse, warp};
pub use crop::{CenterCrop, RandomCrop};
pub use flip::{RandomHorizontalFlip, RandomVerticalFlip};
pub use pixels::{Interpolation, PaddingMode};
pub(crate) use pixels::{cut, fill, mirror, resize_into, resized, rows_of};
pub use rect::CropBox;
pub(crate) use rect::{Mirror, Rect};
pub use resize::Resize;
pub use resized_crop::RandomResizedCrop;
pub use rotate::RandomRotation;
