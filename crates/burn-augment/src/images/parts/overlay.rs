//! Parts of two samples that become those of one.

use super::part::Part;
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

impl Overlay<'_> {
    /// Whether a pixel is that of the other image. `None` if it is of both.
    pub(super) fn is_theirs(&self, x: u32, y: u32) -> Option<bool> {
        match self {
            Self::Cell(columns, rows) => Some(columns.contains(&x) && rows.contains(&y)),
            Self::Picked(is_theirs) => Some(is_theirs(x, y)),
            Self::Mixed(_) => None,
        }
    }

    /// Joins a part of another sample to the same part of a sample.
    pub(crate) fn join(&self, to: Part<'_>, from: Part<'_>) -> Result<(), VisionError> {
        match (to, from) {
            (Part::Mask(to), Part::Mask(from)) => return to.join(Some(from), self),
            (Part::Masks(to), Part::Masks(from)) => {
                if matches!(self, Self::Picked(_)) {
                    to.iter_mut().try_for_each(|mask| mask.join(None, self))?;
                }
                to.append(from);
            }
            (Part::Boxes(to), Part::Boxes(from)) => to.append(from),
            (Part::Points(to), Part::Points(from)) => {
                to.cover(self, false);
                from.cover(self, true);
                to.append(from);
            }
            (Part::PointSets(to), Part::PointSets(from)) => {
                to.iter_mut().for_each(|points| points.cover(self, false));
                from.iter_mut().for_each(|points| points.cover(self, true));
                to.append(from);
            }
            (to, from) => {
                if let (Some(to), Some(from)) = (to.picture(), from.picture()) {
                    self.paint(to.pixels_mut()?, from.pixels_mut()?);
                }
            }
        }
        Ok(())
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
