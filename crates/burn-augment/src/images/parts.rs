//! The parts that move with an image: masks, boxes, points.

mod all;
mod boxes;
mod mask;
mod moves;
mod overlay;
mod part;
mod points;

pub use all::AllParts;
pub use boxes::{BoxFormat, Boxes};
pub use mask::Mask;
pub(crate) use overlay::{Overlay, unlike};
pub use part::Part;
pub(crate) use points::HIDDEN;
pub use points::Points;
