//! One change of colour.

use super::bytes;
use image::RgbImage;

/// One change of colour, with its strength.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Adjust {
    /// Multiplies the brightness by this: 0 is black, 1 is no change.
    Brightness(f32),
    /// Multiplies the distance from the image's mean grey by this: 0 is grey, 1 is no change.
    Contrast(f32),
    /// Multiplies the distance from each pixel's own grey by this: 0 is grey, 1 is no change.
    Saturation(f32),
    /// Turns the hue by this, -0.5 to 0.5 of the colour circle: 0 is no change.
    Hue(f32),
}

impl Adjust {
    /// Makes all three channels of a pixel its grey.
    pub(crate) const GREY: Self = Self::Saturation(0.0);

    /// Changes an image.
    pub fn apply(self, image: &mut RgbImage) {
        match self {
            Self::Brightness(factor) => bytes::brightness(image, factor),
            Self::Contrast(factor) => bytes::contrast(image, factor),
            Self::Saturation(factor) => bytes::saturation(image, factor),
            Self::Hue(turn) => bytes::hue(image, turn),
        }
    }
}
