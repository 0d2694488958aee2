//! One part of a sample, whichever it is.

use super::{boxes::Boxes, mask::Mask, moves::Move, points::Points};
use crate::vision::{error::VisionError, geometry::Mirror};
use std::any::Any;

/// A part of a sample that moves with its image. [`HasImage::parts_mut`](crate::vision::HasImage::parts_mut) names
/// them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Numbers of pixels.
    Mask(&'a mut Mask),
    /// Boxes, with their labels.
    Boxes(&'a mut Boxes),
    /// Points.
    Points(&'a mut Points),
}

impl<'a> Part<'a> {
    /// Returns the value if it is a part.
    pub(crate) fn of<T: 'static>(value: &'a mut T) -> Option<Self> {
        let any: &mut dyn Any = value;
        if any.is::<Mask>() {
            any.downcast_mut().map(Self::Mask)
        } else if any.is::<Boxes>() {
            any.downcast_mut().map(Self::Boxes)
        } else {
            any.downcast_mut().map(Self::Points)
        }
    }

    /// Checks that it belongs to an image of this size.
    pub(super) fn check(&self, size: (u32, u32)) -> Result<(), VisionError> {
        match self {
            Self::Mask(mask) => mask.check(size),
            Self::Boxes(boxes) => boxes.check(size),
            Self::Points(_) => Ok(()),
        }
    }

    /// Moves as the image did, which had the size `from` and has the size `to`.
    pub(super) fn follow(self, by: &Move, from: (u32, u32), to: (u32, u32)) -> Result<(), VisionError> {
        match self {
            Self::Mask(mask) => mask.follow(by, from, to)?,
            Self::Boxes(boxes) => boxes.follow(by.matrix(from, to), to),
            Self::Points(points) => points.map(by.matrix(from, to)),
        }
        Ok(())
    }

    /// Is mirrored as its image, which has this size.
    pub(super) fn mirror(self, by: Mirror, size: (u32, u32)) {
        match self {
            Self::Mask(mask) => mask.mirror(by),
            Self::Boxes(boxes) => boxes.mirror(by, size),
            Self::Points(points) => points.mirror(by, size),
        }
    }
}
