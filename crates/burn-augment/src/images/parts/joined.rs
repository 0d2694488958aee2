//! Parts of two samples that become those of one.

use super::part::Part;
use crate::images::error::VisionError;
use image::RgbImage;

/// Which pixels a joined image has.
pub(crate) enum Joined<'a> {
    /// Those of the other image, for which this is true.
    Picked(&'a dyn Fn(u32, u32) -> bool),
    /// The sum of both, with this weight of the first.
    Mixed(f32),
}

impl Joined<'_> {
    /// Joins a part of another sample to the same part of a sample.
    pub(crate) fn join(&self, to: Part<'_>, from: Part<'_>) -> Result<(), VisionError> {
        match (to, from) {
            (Part::Mask(to), Part::Mask(from)) => return to.join(from, self),
            (Part::Boxes(to), Part::Boxes(from)) => to.append(from),
            (Part::Points(to), Part::Points(from)) => to.append(from, self),
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
        match *self {
            Joined::Picked(is_theirs) => {
                let pairs = to.enumerate_pixels_mut().zip(from.pixels());
                pairs.filter(|((x, y, _), _)| is_theirs(*x, *y)).for_each(|((.., pixel), theirs)| *pixel = *theirs);
            }
            Joined::Mixed(share) => to.iter_mut().zip(from.iter()).for_each(|(value, theirs)| {
                *value = (f32::from(*value) * share + f32::from(*theirs) * (1.0 - share)).round() as u8;
            }),
        }
    }
}
