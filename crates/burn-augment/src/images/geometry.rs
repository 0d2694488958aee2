//! Changes of shape.

mod affine;
mod crop;
mod flip;
mod letter_box;
mod matrix;
mod pad;
mod pixels;
mod random_affine;
mod random_perspective;
mod random_resize;
mod rect;
mod resize;
mod resized_crop;
mod rotate;
mod turn;
mod walk;
mod zoom_out;

pub(crate) use affine::{Mapping, forward, warp, warp_nearest, warp_options};
pub use crop::{CenterCrop, RandomCrop};
pub use flip::{RandomHorizontalFlip, RandomVerticalFlip};
pub use letter_box::LetterBox;
pub(crate) use matrix::Matrix;
pub use pad::Pad;
pub use pixels::{Interpolation, PaddingMode};
pub(crate) use pixels::{cut, cut_into, fill, mirror, resize_into, resized, rows_of};
pub use random_affine::{Affine, RandomAffine};
pub use random_perspective::RandomPerspective;
pub use random_resize::RandomResize;
pub use rect::CropBox;
pub(crate) use rect::Rect;
pub use resize::Resize;
pub use resized_crop::RandomResizedCrop;
pub use rotate::RandomRotation;
pub use turn::{D4, RandomRotate90};
pub use walk::Walk;
pub use zoom_out::RandomZoomOut;
