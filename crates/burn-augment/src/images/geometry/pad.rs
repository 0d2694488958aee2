//! Padding.

use super::{pixels::PaddingMode, rect::CropBox};
use crate::{
    images::{
        error::VisionError,
        parameters::MAX_SIDE,
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};

/// Adds pixels around every image. Nothing is random.
///
/// ```
/// use burn_augment::images::{Pad, PaddingMode};
///
/// let frame = Pad::new(4).fill([127; 3]);
/// let left = Pad::each([8, 0, 0, 0]).padding_mode(PaddingMode::Edge);
/// ```
///
/// It works as torchvision's `Pad`. If the padding is larger than the image, mirroring repeats. Masks use the same
/// mode, with their own fill. Boxes only move: mirrored objects get no boxes. torchvision refuses boxes there.
#[derive(Debug, Clone, Copy)]
pub struct Pad {
    /// Left, top, right, bottom.
    padding: [u32; 4],
    fill: [u8; 3],
    mode: PaddingMode,
}

impl Pad {
    /// Adds this many pixels on each side.
    pub fn new(pixels: u32) -> Self {
        Self::each([pixels; 4])
    }

    /// Adds these numbers of pixels at the left, top, right and bottom.
    pub fn each(left_top_right_bottom: [u32; 4]) -> Self {
        Self { padding: left_top_right_bottom, fill: [0; 3], mode: PaddingMode::Constant }
    }

    /// Sets the colour of [`PaddingMode::Constant`]. Default: black.
    pub fn fill(mut self, colour: [u8; 3]) -> Self {
        self.fill = colour;
        self
    }

    /// Sets what the padding shows. Default: the fill colour.
    pub fn padding_mode(mut self, mode: PaddingMode) -> Self {
        self.mode = mode;
        self
    }
}

impl Transform for Pad {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        let ((width, height), [left, top, right, bottom]) = (image.dimensions(), self.padding);
        let across = width.saturating_add(left).saturating_add(right);
        let down = height.saturating_add(top).saturating_add(bottom);
        if across > MAX_SIDE || down > MAX_SIDE {
            return Err(VisionError::ResultTooLarge { width, height, limit: MAX_SIDE });
        }
        let part = CropBox { left: -i64::from(left), top: -i64::from(top), width: across, height: down };
        image.crop(part, self.mode, self.fill)
    }
}
