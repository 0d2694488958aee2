//! Resizing into a frame that keeps the proportions.

use super::{
    pixels::{Interpolation, PaddingMode},
    rect::CropBox,
};
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{GREY, Size},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};

/// Resizes every image so that it fits a frame, keeps its proportions, and fills the rest of the frame with a colour.
/// Nothing is random.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::{BoxFormat, Boxes, LetterBox}};
///
/// let frame = LetterBox::new(640)?;
/// let boxes = Boxes::new([[100.0, 75.0, 200.0, 150.0]], [0], BoxFormat::Xyxy)?;
/// let sample = (image::RgbImage::new(320, 240), boxes);
/// let (image, boxes) = frame.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!((image.dimensions(), boxes.xyxy()), ((640, 640), &[[200.0, 230.0, 400.0, 380.0]][..]));
///
/// // What a network finds in the frame, in pixels of the image:
/// assert_eq!(frame.to_image([200.0, 230.0, 400.0, 380.0], (320, 240)), [100.0, 75.0, 200.0, 150.0]);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// It works as Ultralytics' `LetterBox` (with `auto=False`), with the antialiasing of [`Resize`](super::Resize). Masks
/// have their own fill.
#[derive(Debug, Clone, Copy)]
pub struct LetterBox {
    size: Size,
    fill: [u8; 3],
    scale_up: bool,
    center: bool,
    interpolation: Interpolation,
}

impl LetterBox {
    /// Makes frames of `size`, which is one side or `[height, width]`.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn new(size: impl Into<Size>) -> Result<Self, Error> {
        let size = size.into().checked("LetterBox::new")?;
        Ok(Self { size, fill: GREY, scale_up: true, center: true, interpolation: Interpolation::default() })
    }

    /// Sets the colour around the image. Default: a grey of 114, as for YOLO.
    pub fn fill(mut self, colour: [u8; 3]) -> Self {
        self.fill = colour;
        self
    }

    /// Whether an image that is smaller than the frame grows. Default: true.
    pub fn scale_up(mut self, yes: bool) -> Self {
        self.scale_up = yes;
        self
    }

    /// Whether the image is in the middle. Otherwise it is at the top left, as for YOLOX. Default: true.
    pub fn center(mut self, yes: bool) -> Self {
        self.center = yes;
        self
    }

    /// Sets the interpolation. Default: bilinear.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Self {
        self.interpolation = interpolation;
        self
    }

    /// Where an image of this width and height, both above 0, is in the frame, in pixels of the frame.
    pub fn place(&self, size: (u32, u32)) -> CropBox {
        let Size { height, width } = self.size.fitted(size, if self.scale_up { f64::INFINITY } else { 1.0 });
        let spare = [self.size.width - width, self.size.height - height];
        let [left, top] = spare.map(|spare| if self.center { i64::from(spare / 2) } else { 0 });
        CropBox { left, top, width, height }
    }

    /// Returns left, top, right and bottom in pixels of an image of this width and height, both above 0, for those in
    /// pixels of its frame. The box is clipped at the border of the image, as by Ultralytics' `scale_boxes`. It is the exact way back;
    /// `scale_boxes` takes one factor for both sides, which the frame's whole pixels do not have, and is up to some pixels off.
    pub fn to_image(&self, xyxy: [f32; 4], (width, height): (u32, u32)) -> [f32; 4] {
        let place = self.place((width, height));
        let x = |x: f32| ((x - place.left as f32) * width as f32 / place.width as f32).clamp(0.0, width as f32);
        let y = |y: f32| ((y - place.top as f32) * height as f32 / place.height as f32).clamp(0.0, height as f32);
        let [left, top, right, bottom] = xyxy;
        [x(left), y(top), x(right), y(bottom)]
    }
}

impl Transform for LetterBox {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        let CropBox { left, top, width, height } = self.place(image.dimensions());
        image.resized_crop(CropBox::whole(image.dimensions()), Size { height, width }, self.interpolation)?;
        if (width, height) == (self.size.width, self.size.height) {
            return Ok(()); // no padding, so an image that is not decoded stays so
        }
        let frame = CropBox { left: -left, top: -top, width: self.size.width, height: self.size.height };
        image.crop(frame, PaddingMode::Constant, self.fill)
    }
}
