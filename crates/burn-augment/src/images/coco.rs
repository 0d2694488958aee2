//! COCO's files of annotations: boxes, masks and keypoints of images.

mod dataset;
mod error;
mod sample;
mod shape;

pub use dataset::Coco;
pub use error::CocoError;
pub use sample::{CocoClass, CocoObject, CocoSample};
