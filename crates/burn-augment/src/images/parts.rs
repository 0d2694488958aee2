//! The parts that move with an image: masks, boxes, points.

mod all;
mod boxes;
mod joined;
mod mask;
mod moves;
mod part;
mod points;

pub use all::AllParts;
pub use boxes::{BoxFormat, Boxes};
pub(crate) use joined::Joined;
pub use mask::Mask;
pub use part::Part;
pub use points::Points;
