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
    /// Rotates the hue by this, -0.5 to 0.5 of the colour circle: 0 is no change.
    Hue(f32),
}

impl Adjust {
    /// Changes an image.
    pub fn apply(self, image: &mut RgbImage) {
        match self {
            Self::Brightness(factor) => bytes::map(image, &bytes::table(|byte| byte * factor)),
            Self::Contrast(factor) => bytes::contrast(image, factor),
            Self::Saturation(factor) => bytes::saturation(image, factor),
            Self::Hue(turn) => bytes::hue(image, turn),
        }
    }
}
