//! Changes of shape, of an image and its parts.

use crate::images::{
    error::VisionError,
    geometry::{CropBox, Interpolation, Mapping, Matrix, PaddingMode, Walk, forward},
    parameters::Size,
    picture::Picture,
};
use image::metadata::Orientation;

/// A change of an image's shape. Flips are none: they need no pixels, so they cannot fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Move<'a> {
    /// A part is cut out. What is seen beyond the image has this mode and colour.
    Crop(CropBox, PaddingMode, [u8; 3]),
    /// A part is resized.
    Resized(CropBox, Size, Interpolation),
    /// The image is drawn anew, in this size. What comes from outside has this colour.
    Warp(Mapping<'a>, Size, Interpolation, [u8; 3]),
}

impl Move<'_> {
    /// Changes a picture.
    pub(super) fn change(&self, picture: &mut dyn Picture) -> Result<(), VisionError> {
        match *self {
            Self::Crop(part, mode, fill) => picture.crop(part, mode, fill),
            Self::Resized(part, size, by) => picture.resized_crop(part, size, by),
            Self::Warp(from, size, by, fill) => picture.warp(size, from, by, fill),
        }
    }

    /// Maps a place of the image of the size `from` to its place in the changed image, of the size `to`.
    ///
    /// Pixel n lies from n to n + 1, as in the functions of `torchvision.transforms.v2.functional`:
    /// `crop_bounding_boxes`, `pad_bounding_boxes`, `resize_bounding_boxes`, `affine_bounding_boxes`,
    /// `perspective_bounding_boxes`, and of `elastic_bounding_boxes`, which takes the shift of the pixel at the place
    /// for that of the pixel that comes from it.
    pub(super) fn map_place(&self, place: [f32; 2], from: (u32, u32), to: (u32, u32)) -> [f32; 2] {
        let matrix = match *self {
            Self::Crop(part, ..) => Matrix::scale_shift([1.0; 2], [-part.left as f64, -part.top as f64]),
            Self::Resized(part, ..) => {
                let scale = [f64::from(to.0) / f64::from(part.width), f64::from(to.1) / f64::from(part.height)];
                Matrix::scale_shift(scale, [-part.left as f64 * scale[0], -part.top as f64 * scale[1]])
            }
            Self::Warp(Mapping::Matrix(inverse), ..) => forward(inverse, from, to),
            Self::Warp(Mapping::Shifts(shifts), ..) => {
                let pixel = |at: f32, side: u32| (at.max(0.0) as usize).min(side as usize - 1);
                let [right, below] = shifts[pixel(place[1], from.1) * from.0 as usize + pixel(place[0], from.0)];
                return [place[0] - right, place[1] - below];
            }
        };
        matrix.map_place(place)
    }
}

/// Maps places as a flip or the transposition of an image of this size maps the columns and rows of its pixels.
pub(super) fn turned(by: Orientation, size: (u32, u32)) -> Matrix {
    let Walk { start, across, down, .. } = Walk::new(by, size);
    Matrix::affine([[across.0, down.0, start.0], [across.1, down.1, start.1]].map(|row| row.map(f64::from)))
}

/// Checks that a part has the size of an image.
pub(super) fn check_size(
    part: &'static str,
    own: (u32, u32),
    image: &str,
    size: (u32, u32),
    cure: &'static str,
) -> Result<(), VisionError> {
    if own == size {
        return Ok(());
    }
    let problem = format!("is of {} x {} pixels, and {image} of {} x {}", own.0, own.1, size.0, size.1);
    Err(VisionError::of_part(part, problem, cure))
}
