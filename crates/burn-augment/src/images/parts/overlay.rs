//! Parts of two samples that become those of one.

use crate::images::error::VisionError;
use image::RgbImage;
use std::ops::Range;

/// Which pixels a joined image has.
pub(crate) enum Overlay<'a> {
    /// In these columns and rows those of the other image, which shows nothing elsewhere.
    Cell(Range<u32>, Range<u32>),
    /// Those of the other image, for which this is true.
    Picked(&'a dyn Fn(u32, u32) -> bool),
    /// The sum of both, with this weight of the first.
    Mixed(f32),
}

/// The error of two samples that cannot be combined.
pub(crate) fn unlike(problem: impl Into<String>) -> VisionError {
    let cure = "give all samples the same parts, and of a list of masks or points one for each box";
    VisionError::of_part("parts of samples that are combined", problem, cure)
}

impl Overlay<'_> {
    /// Whether a pixel is that of the other image. `None` if it is of both. It may lie outside.
    pub(super) fn is_theirs(&self, x: u32, y: u32) -> Option<bool> {
        match self {
            Self::Cell(columns, rows) => Some(columns.contains(&x) && rows.contains(&y)),
            Self::Picked(is_theirs) => Some(is_theirs(x, y)),
            Self::Mixed(_) => None,
        }
    }

    /// Joins images of one size.
    pub(crate) fn paint(&self, to: &mut RgbImage, from: &RgbImage) {
        match self {
            Self::Mixed(share) => to.iter_mut().zip(from.iter()).for_each(|(value, theirs)| {
                *value = (f32::from(*value) * share + f32::from(*theirs) * (1.0 - share)).round() as u8;
            }),
            _ => {
                let pairs = to.enumerate_pixels_mut().zip(from.pixels());
                let theirs = pairs.filter(|((x, y, _), _)| self.is_theirs(*x, *y) == Some(true));
                theirs.for_each(|((.., pixel), theirs)| *pixel = *theirs);
            }
        }
    }
}
