//! What happens to an image, and to what belongs to it.

use crate::vision::{
    error::VisionError,
    geometry::{CropBox, Interpolation, Inverse, Matrix, Mirror, PaddingMode},
    parameters::Size,
    picture::Picture,
};

/// A change of an image's shape. Flips are none: they need no pixels, so they cannot fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Move {
    /// A part is cut out. What is seen beyond the image has this mode and colour.
    Crop(CropBox, PaddingMode, [u8; 3]),
    /// A part is resized.
    Resized(CropBox, Size, Interpolation),
    /// The image is drawn anew, in this size. What comes from outside has this colour.
    Warp(Inverse, Size, Interpolation, [u8; 3]),
}

impl Move {
    /// Changes a picture.
    pub(super) fn change(&self, picture: &mut dyn Picture) -> Result<(), VisionError> {
        match *self {
            Self::Crop(part, mode, fill) => picture.crop(part, mode, fill),
            Self::Resized(part, size, by) => picture.resized_crop(part, size, by),
            Self::Warp(inverse, size, by, fill) => picture.warp(size, inverse, by, fill),
        }
    }

    /// Maps places of the image of the size `from` to places of the changed image, of the size `to`.
    ///
    /// Pixel n lies from n to n + 1, as in the functions of `torchvision.transforms.v2.functional`:
    /// `crop_bounding_boxes`, `pad_bounding_boxes`, `resize_bounding_boxes`, `affine_bounding_boxes`,
    /// `perspective_bounding_boxes`.
    pub(super) fn matrix(&self, from: (u32, u32), to: (u32, u32)) -> Matrix {
        match *self {
            Self::Crop(part, ..) => Matrix::scale_shift([1.0; 2], [-part.left as f64, -part.top as f64]),
            Self::Resized(part, ..) => {
                let scale = [f64::from(to.0) / f64::from(part.width), f64::from(to.1) / f64::from(part.height)];
                Matrix::scale_shift(scale, [-part.left as f64 * scale[0], -part.top as f64 * scale[1]])
            }
            Self::Warp(inverse, ..) => inverse.forward(from, to),
        }
    }
}

/// Mirrors places between 0 and these ends.
pub(super) fn mirror(by: Mirror, [right, below]: [f64; 2]) -> Matrix {
    let axis = |mirrored: bool, end: f64| if mirrored { (-1.0, end) } else { (1.0, 0.0) };
    let ((across, left), (down, top)) = (axis(by.across, right), axis(by.down, below));
    Matrix::scale_shift([across, down], [left, top])
}
