//! What happened to an image, for what belongs to it.

use crate::vision::geometry::{CropBox, Inverse, Matrix, Mirror, PaddingMode};

/// A change of an image's shape. Flips are none: they need no pixels, so they cannot fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Move {
    /// A part was cut out. What is seen beyond the image has this mode.
    Crop(CropBox, PaddingMode),
    /// A part was resized to the new size.
    Resized(CropBox),
    /// It was drawn anew.
    Warp(Inverse),
}

impl Move {
    /// Maps places of the image, which had the size `from`, to its places now.
    ///
    /// Pixel n lies from n to n + 1, as in the functions of `torchvision.transforms.v2.functional`:
    /// `crop_bounding_boxes`, `pad_bounding_boxes`, `resize_bounding_boxes`, `affine_bounding_boxes`,
    /// `perspective_bounding_boxes`.
    pub(super) fn matrix(&self, from: (u32, u32), to: (u32, u32)) -> Matrix {
        match *self {
            Self::Crop(part, _) => Matrix::scale_shift([1.0; 2], [-part.left as f64, -part.top as f64]),
            Self::Resized(part) => {
                let scale = [f64::from(to.0) / f64::from(part.width), f64::from(to.1) / f64::from(part.height)];
                Matrix::scale_shift(scale, [-part.left as f64 * scale[0], -part.top as f64 * scale[1]])
            }
            Self::Warp(inverse) => inverse.forward(from, to),
        }
    }
}

/// Mirrors places between 0 and these ends.
pub(super) fn mirror(by: Mirror, [right, below]: [f64; 2]) -> Matrix {
    let axis = |mirrored: bool, end: f64| if mirrored { (-1.0, end) } else { (1.0, 0.0) };
    let ((across, left), (down, top)) = (axis(by.across, right), axis(by.down, below));
    Matrix::scale_shift([across, down], [left, top])
}
