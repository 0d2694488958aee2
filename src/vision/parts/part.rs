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
    /// Returns the parts that a value is, or that it has as a list or an option.
    pub(crate) fn of<T: 'static>(value: &'a mut T) -> Vec<Self> {
        let any: &mut dyn Any = value;
        macro_rules! find {
            ($($kind:ident),+) => {$(
                if any.is::<$kind>() {
                    return any.downcast_mut().into_iter().map(Self::$kind).collect();
                }
                if any.is::<Option<$kind>>() {
                    return any.downcast_mut::<Option<$kind>>().into_iter().flatten().map(Self::$kind).collect();
                }
                if any.is::<Vec<$kind>>() {
                    return any.downcast_mut::<Vec<$kind>>().into_iter().flatten().map(Self::$kind).collect();
                }
            )+};
        }
        find!(Mask, Boxes, Points);
        Vec::new()
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
