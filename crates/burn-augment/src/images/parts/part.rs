//! One part of a sample, whichever it is.

use super::{
    boxes::Boxes,
    mask::Mask,
    moves::{Move, check_size},
    overlay::{Overlay, unlike},
    points::Points,
};
use crate::images::{
    error::VisionError,
    lazy::Image,
    picture::{Picture, sealed::Sealed},
};
use image::{DynamicImage, GrayImage, RgbImage, metadata::Orientation};
use std::any::{Any, type_name};

/// A part of a sample that moves with its image. [`HasImage::parts_mut`](crate::images::HasImage::parts_mut) returns
/// the parts.
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// A number for each pixel.
    Mask(&'a mut Mask),
    /// Masks, one for each object. Where samples are combined, those of other samples come after them.
    Masks(&'a mut Vec<Mask>),
    /// Boxes, with their labels.
    Boxes(&'a mut Boxes),
    /// Points.
    Points(&'a mut Points),
    /// Points of each object. Where samples are combined, those of other samples come after them.
    PointSets(&'a mut Vec<Points>),
    /// A second image of the same size. It gets every change of the first, including those of colour.
    Image(&'a mut Image),
    /// A second image of the same size, as pixels.
    RgbImage(&'a mut RgbImage),
    /// The name of a type with parts that transforms cannot reach: the next transform is an error.
    Hidden(&'static str),
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
        if any.is::<Vec<Mask>>() {
            return any.downcast_mut().into_iter().map(Self::Masks).collect();
        }
        if any.is::<Vec<Points>>() {
            return any.downcast_mut().into_iter().map(Self::PointSets).collect();
        }
        find!(Mask, Boxes, Points, Image, RgbImage);
        let name = type_name::<T>();
        if hides_parts(name) { vec![Self::Hidden(name)] } else { Vec::new() }
    }

    /// The parts of a list.
    pub(super) fn each(self) -> Vec<Self> {
        match self {
            Self::Masks(masks) => masks.iter_mut().map(Self::Mask).collect(),
            Self::PointSets(sets) => sets.iter_mut().map(Self::Points).collect(),
            part => vec![part],
        }
    }

    /// Joins the same part of another sample.
    pub(crate) fn join(self, from: Part<'_>, by: &Overlay<'_>) -> Result<(), VisionError> {
        match (self, from) {
            (Self::Mask(to), Part::Mask(from)) => return to.join(Some(from), by),
            (Self::Masks(to), Part::Masks(from)) => {
                if matches!(by, Overlay::Picked(_)) {
                    to.iter_mut().try_for_each(|mask| mask.join(None, by))?;
                }
                to.append(from);
            }
            (Self::Boxes(to), Part::Boxes(from)) => to.append(from),
            (Self::Points(to), Part::Points(from)) => {
                to.cover(by, false);
                from.cover(by, true);
                to.append(from);
            }
            (Self::PointSets(to), Part::PointSets(from)) => {
                to.iter_mut().for_each(|points| points.cover(by, false));
                from.iter_mut().for_each(|points| points.cover(by, true));
                to.append(from);
            }
            (to, from) => {
                let (Some(to), Some(from)) = (to.picture(), from.picture()) else {
                    return Err(unlike("are of other kinds"));
                };
                by.paint(to.pixels_mut()?, from.pixels_mut()?);
            }
        }
        Ok(())
    }

    /// Returns a second image.
    pub(super) fn picture(self) -> Option<&'a mut dyn Picture> {
        match self {
            Self::Image(image) => Some(image),
            Self::RgbImage(image) => Some(image),
            _ => None,
        }
    }

    /// Checks that the part belongs to an image of this size.
    pub(super) fn check(self, size: (u32, u32)) -> Result<(), VisionError> {
        match self {
            Self::Mask(mask) => mask.check(size),
            Self::Boxes(boxes) => boxes.check(size),
            Self::Masks(masks) => masks.iter().try_for_each(|mask| mask.check(size)),
            Self::Points(_) | Self::PointSets(_) => Ok(()),
            Self::Image(image) => check_second(image.dimensions(), size),
            Self::RgbImage(image) => check_second(image.dimensions(), size),
            Self::Hidden(name) => Err(VisionError::of_part(
                "parts",
                format!("are in a `{name}`, which no transform looks into, so they would stay behind"),
                "make the sample a struct, and name its parts in `impl HasImage` or `#[derive(HasImage)]`; in a \
                       pair or a triple, a `Mask`, `Boxes`, `Points`, an image, or an `Option` or a `Vec` of one of them \
                       moves with the first image",
            )),
        }
    }

    /// Moves the part as its image was moved, which had the size `from` and has the size `to`.
    pub(super) fn follow(self, by: &Move<'_>, from: (u32, u32), to: (u32, u32)) -> Result<(), VisionError> {
        match self {
            Self::Mask(mask) => mask.follow(by, from, to)?,
            Self::Boxes(boxes) => boxes.map_within(|place| by.map_place(place, from, to), to),
            Self::Points(points) => points.map(|place| by.map_place(place, from, to)),
            Self::Image(image) => by.change(image)?,
            Self::RgbImage(image) => by.change(image)?,
            list @ (Self::Masks(_) | Self::PointSets(_)) => {
                list.each().into_iter().try_for_each(|part| part.follow(by, from, to))?;
            }
            Self::Hidden(_) => {}
        }
        Ok(())
    }

    /// Turns the part with its image, which has this size before.
    pub(super) fn turn(self, by: Orientation, size: (u32, u32)) {
        match self {
            Self::Mask(mask) => mask.turn(by),
            Self::Boxes(boxes) => boxes.turn(by, size),
            Self::Points(points) => points.turn(by, size),
            Self::Image(image) => image.turn(by),
            Self::RgbImage(image) => image.turn(by),
            list @ (Self::Masks(_) | Self::PointSets(_)) => {
                list.each().into_iter().for_each(|part| part.turn(by, size))
            }
            Self::Hidden(_) => {}
        }
    }
}

fn check_second(own: (u32, u32), size: (u32, u32)) -> Result<(), VisionError> {
    let cure = "resize one of them first, or name the image that is to change alone in `impl HasImage`";
    check_size("second image", own, "the first", size, cure)
}

/// Whether the name of a type says that it is, or has, something that should move with an image. Rust has no other way to
/// ask a type for its parameters.
fn hides_parts(name: &str) -> bool {
    let of_pixels = type_name::<GrayImage>().split('<').next().unwrap_or_default();
    let parts = [type_name::<Mask>(), type_name::<Boxes>(), type_name::<Points>(), type_name::<Image>()];
    parts.into_iter().chain([of_pixels, type_name::<DynamicImage>()]).any(|part| name.contains(part))
}
