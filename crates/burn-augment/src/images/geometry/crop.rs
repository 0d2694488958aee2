//! Cuts parts of an image, without resizing them.

use super::{
    pixels::{PaddingMode, cut},
    rect::CropBox,
};
use crate::{
    augment::probability,
    error::Error,
    images::{
        error::VisionError,
        parameters::Size,
        parts::Mask,
        picture::{MaskNumbers, Picture, Transform},
    },
    rng::KeyedRng,
};
use image::RgbImage;
use rand::RngExt;

/// Cuts a part of fixed size at a uniformly random place.
///
/// ```
/// use burn_augment::images::{PaddingMode, RandomCrop};
///
/// let crop = RandomCrop::new(32)?.padding(4).padding_mode(PaddingMode::Reflect); // the usual one for CIFAR
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomCrop`, and with [`cat_max_ratio`](Self::cat_max_ratio) as mmsegmentation's. If the padding is larger than the image, mirroring repeats; torchvision
/// fails there.
#[derive(Debug, Clone)]
pub struct RandomCrop {
    size: Size,
    /// Left, top, right, bottom.
    padding: [u32; 4],
    pad_if_needed: bool,
    pub(crate) fill: [u8; 3],
    pub(crate) mode: PaddingMode,
    cat_max_ratio: f64,
}

impl RandomCrop {
    /// Makes crops of `size`, which is one side or `[height, width]`.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn new(size: impl Into<Size>) -> Result<Self, Error> {
        let size = size.into().checked("RandomCrop::new")?;
        let (fill, mode) = ([0; 3], PaddingMode::Constant);
        Ok(Self { size, padding: [0; 4], pad_if_needed: false, fill, mode, cat_max_ratio: 1.0 })
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

    /// Pads an image that is too small, on both sides by the number of missing pixels. Without this, such an image is
    /// an error. Default: false.
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

    /// Draws another part, up to ten times, while one number has this share or more of the part's pixels in the
    /// sample's [`Mask`](crate::images::Mask): mmsegmentation's `RandomCrop(cat_max_ratio=0.75)`. Pixels of the number
    /// 255 and padding do not count. Below 1, the mask is decoded, and a sample without a mask is an error. Changes of
    /// whole batches on the device ignore it. Default: 1.
    ///
    /// # Errors
    /// If the share is not from 0 to 1.
    pub fn cat_max_ratio(mut self, share: f64) -> Result<Self, Error> {
        self.cat_max_ratio = probability("RandomCrop::cat_max_ratio", share)?;
        Ok(self)
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
}

impl Transform for RandomCrop {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let mut part = self.draw(width, height, rng)?;
        if self.cat_max_ratio < 1.0 {
            let numbers = image.mask_numbers()?;
            let numbers = numbers.ok_or_else(|| {
                let cure = "name one `Mask` in `HasImage::parts_mut`; of `Coco` ask for `class_mask`";
                VisionError::of_part(
                    "mask",
                    "is missing, and `RandomCrop::cat_max_ratio` needs one of all classes",
                    cure,
                )
            })?;
            for _ in 0..10 {
                if is_below(self.cat_max_ratio, numbers, part) {
                    break;
                }
                part = self.draw(width, height, rng)?;
            }
        }
        image.crop(part, self.mode, self.fill)
    }
}

/// Whether each number has less than this share of the pixels of a part. Those with the number that losses ignore do
/// not count.
fn is_below(share: f64, numbers: &MaskNumbers, part: CropBox) -> bool {
    let within = |first: i64, length: u32, side: u32| {
        let [first, end] = [first, first + i64::from(length)].map(|at| at.clamp(0, side.into()) as usize);
        first..end
    };
    let columns = within(part.left, part.width, numbers.width());
    let rows = within(part.top, part.height, numbers.height());
    let mut counts = vec![0u32; 1 << 16];
    for row in numbers.chunks_exact(numbers.width() as usize).take(rows.end).skip(rows.start) {
        row[columns.clone()].iter().for_each(|number| counts[usize::from(*number)] += 1);
    }
    counts[usize::from(Mask::FILL)] = 0;
    let most = counts.iter().max().copied().unwrap_or_default();
    f64::from(most) < share * f64::from(counts.iter().sum::<u32>())
}

/// Cuts out the centre of an image. If the image is smaller than the crop, it gets a black border.
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

    /// Returns the centre of an image.
    ///
    /// # Errors
    /// If the image has no pixels.
    pub fn crop(&self, image: &RgbImage) -> Result<RgbImage, VisionError> {
        if image.is_empty() {
            return Err(VisionError::NoPixels);
        }
        Ok(cut(image, self.part(image.dimensions()), PaddingMode::Constant, [0; 3]))
    }

    /// The centre of an image of this size.
    fn part(&self, image: (u32, u32)) -> CropBox {
        let Size { height, width } = self.size;
        CropBox { left: middle(image.0, width), top: middle(image.1, height), width, height }
    }
}

impl Transform for CenterCrop {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
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
