//! Cuts parts of an image, without resizing them.

use super::rect::Rect;
use crate::{
    fault::Error,
    rng::KeyedRng,
    vision::{error::VisionError, parameters::Size, picture::Picture},
};
use image::RgbImage;
use rand::RngExt;

/// A rectangle of an image, in pixels from its top left corner. If it reaches beyond the image, it shows padding there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CropBox {
    /// The first column.
    pub left: i64,
    /// The first row.
    pub top: i64,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// Cuts a part of fixed size at a random place, each place as likely as any other.
///
/// ```
/// use burn_pinned::vision::{PaddingMode, RandomCrop};
///
/// let crop = RandomCrop::new(32)?.padding(4).padding_mode(PaddingMode::Reflect); // the usual one for CIFAR
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// It works as torchvision's `RandomCrop`, but mirroring goes on if the padding is larger than the image. torchvision
/// fails there.
#[derive(Debug, Clone)]
pub struct RandomCrop {
    size: Size,
    /// Left, top, right, bottom.
    padding: [u32; 4],
    pad_if_needed: bool,
    fill: [u8; 3],
    mode: PaddingMode,
}

impl RandomCrop {
    /// Makes crops of `size`, which is one side or `[height, width]`.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn new(size: impl Into<Size>) -> Result<Self, Error> {
        let size = size.into().checked("RandomCrop::new")?;
        Ok(Self { size, padding: [0; 4], pad_if_needed: false, fill: [0; 3], mode: PaddingMode::Constant })
    }

    /// Pads each side of the image by this many pixels first. Default: 0.
    pub fn padding(mut self, pixels: u32) -> Self {
        self.padding = [pixels; 4];
        self
    }

    /// Pads left, top, right and bottom by different numbers of pixels.
    pub fn padding_each(mut self, left_top_right_bottom: [u32; 4]) -> Self {
        self.padding = left_top_right_bottom;
        self
    }

    /// Pads images that are too small, on both sides by what is missing. Without it they are an error. Default: false.
    pub fn pad_if_needed(mut self, yes: bool) -> Self {
        self.pad_if_needed = yes;
        self
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

    /// Draws the part to cut from an image of `width` x `height`.
    ///
    /// # Errors
    /// If the crop is larger than the image with its padding.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Result<CropBox, VisionError> {
        let [left, top, right, bottom] = self.padding;
        let (left, across) = self.interval(width, [left, right], self.size.width);
        let (top, down) = self.interval(height, [top, bottom], self.size.height);
        let (spare_x, spare_y) = (across - i64::from(self.size.width), down - i64::from(self.size.height));
        if spare_x < 0 || spare_y < 0 {
            let (crop_width, crop_height) = (self.size.width, self.size.height);
            return Err(VisionError::CropTooLarge { crop_width, crop_height, width: across, height: down });
        }
        let (down, right) = (rng.random_range(0..=spare_y), rng.random_range(0..=spare_x));
        Ok(CropBox { left: left + right, top: top + down, width: self.size.width, height: self.size.height })
    }

    /// Returns where the padded image begins along one axis, and how long it is.
    fn interval(&self, side: u32, padding: [u32; 2], crop: u32) -> (i64, i64) {
        let [before, after] = padding.map(i64::from);
        let padded = i64::from(side) + before + after;
        let lacks = i64::from(crop) - padded;
        if self.pad_if_needed && lacks > 0 { (-before - lacks, padded + 2 * lacks) } else { (-before, padded) }
    }

    pub(crate) fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        image.crop(self.draw(width, height, rng)?, self.mode, self.fill)
    }
}

/// Cuts out the middle of an image. If the image is smaller than the crop, there is black around it.
///
/// It works as torchvision's `CenterCrop`. Nothing is random.
#[derive(Debug, Clone, Copy)]
pub struct CenterCrop {
    size: Size,
}

impl CenterCrop {
    /// Makes crops of `size`, which is one side or `[height, width]`.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn new(size: impl Into<Size>) -> Result<Self, Error> {
        Ok(Self { size: size.into().checked("CenterCrop::new")? })
    }

    /// Returns the middle of an image.
    ///
    /// # Errors
    /// If the image has no pixels.
    pub fn crop(&self, image: &RgbImage) -> Result<RgbImage, VisionError> {
        if image.is_empty() {
            return Err(VisionError::NoPixels);
        }
        Ok(cut(image, self.part(image.dimensions()), PaddingMode::Constant, [0; 3]))
    }

    /// The middle of an image of this size.
    fn part(&self, image: (u32, u32)) -> CropBox {
        let Size { height, width } = self.size;
        CropBox { left: middle(image.0, width), top: middle(image.1, height), width, height }
    }

    pub(crate) fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        image.crop(self.part(image.dimensions()), PaddingMode::Constant, [0; 3])
    }
}

/// Returns where a crop of length `crop` begins in a side of length `side`.
///
/// As in torchvision, a half within the image is rounded to the even number, and there is less padding before than
/// after.
fn middle(side: u32, crop: u32) -> i64 {
    let spare = i64::from(side) - i64::from(crop);
    if spare < 0 { -(-spare / 2) } else { (spare as f64 / 2.0).round_ties_even() as i64 }
}

/// Returns a part of an image of at least one pixel, with padding where the part lies outside.
pub(crate) fn cut(image: &RgbImage, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> RgbImage {
    let (pixels, pitch) = (image.as_raw(), 3 * image.width() as usize);
    let mut out = RgbImage::new(part.width, part.height);
    let out_pitch = 3 * part.width as usize;
    if let Some(part) = Rect::within(part, image.dimensions()) {
        let start = part.top as usize * pitch + 3 * part.left as usize;
        for (row, out) in out.chunks_exact_mut(out_pitch).enumerate() {
            out.copy_from_slice(&pixels[start + row * pitch..][..out_pitch]);
        }
        return out;
    }
    let columns: Vec<Option<usize>> =
        (0..i64::from(part.width)).map(|x| mode.source(part.left + x, image.width()).map(|x| 3 * x as usize)).collect();
    for (row, out) in out.chunks_exact_mut(out_pitch).enumerate() {
        let row = mode.source(part.top + row as i64, image.height()).map(|y| &pixels[y as usize * pitch..][..pitch]);
        for (column, out) in columns.iter().zip(out.chunks_exact_mut(3)) {
            match (row, column) {
                (Some(row), &Some(x)) => out.copy_from_slice(&row[x..x + 3]),
                _ => out.copy_from_slice(&fill),
            }
        }
    }
    out
}

/// What a crop shows where it reaches beyond the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PaddingMode {
    /// The fill colour.
    #[default]
    Constant,
    /// The nearest pixel of the border: `aaa|abc|ccc`.
    Edge,
    /// The image mirrored at the border pixel, which is not repeated: `cb|abc|ba`.
    Reflect,
    /// The image mirrored beyond the border pixel, which is repeated: `cba|abc|cba`.
    Symmetric,
}

impl PaddingMode {
    /// Returns the row or column that is seen at `at` of an image of side `side` (at least 1). `None` is the fill
    /// colour.
    pub(crate) fn source(self, at: i64, side: u32) -> Option<u32> {
        let side = i64::from(side);
        if (0..side).contains(&at) {
            return Some(at as u32);
        }
        let seen = match self {
            Self::Constant => return None,
            Self::Edge => at.clamp(0, side - 1),
            Self::Reflect if side == 1 => 0,
            Self::Reflect => {
                let at = at.rem_euclid(2 * (side - 1));
                at.min(2 * (side - 1) - at)
            }
            Self::Symmetric => {
                let at = at.rem_euclid(2 * side);
                at.min(2 * side - 1 - at)
            }
        };
        Some(seen as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::PaddingMode::{self, *};

    #[test]
    fn modes_are_numpys() {
        let seen = |mode: PaddingMode| -> String {
            let letter = |at| mode.source(at, 3).map_or('-', |at| char::from(b'a' + at as u8));
            (-7..10).map(letter).collect()
        };
        // numpy.pad([a, b, c], 7, mode)
        assert_eq!(seen(Constant), "-------abc-------");
        assert_eq!(seen(Edge), "aaaaaaaabcccccccc");
        assert_eq!(seen(Reflect), "bcbabcbabcbabcbab");
        assert_eq!(seen(Symmetric), "aabccbaabccbaabcc");
        for mode in [Edge, Reflect, Symmetric] {
            assert!((-9..9).all(|at| mode.source(at, 1) == Some(0)));
        }
    }
}
