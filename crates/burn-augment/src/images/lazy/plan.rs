//! The steps from a file to pixels, for a device that decodes it.

use super::{file::PictureContent, image::Image, paint::Paint};
use crate::images::{
    colour::Adjust,
    decode::decode_stored,
    error::VisionError,
    geometry::{CropBox, Interpolation, Rect, Walk, resized},
    parameters::Size,
};
use bytes::Bytes;
use image::RgbImage;

/// The steps from a JPEG to pixels: a part of it, turned; resized; a part of that, mirrored; then changes of colour,
/// and an erased part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodePlan {
    /// Width and height as the file stores the image.
    pub stored: (u32, u32),
    /// The part of the stored image, and how it is turned.
    pub part: Walk,
    /// The size that the part is resized to. It may be its own.
    pub size: Size,
    /// The filter of the resize.
    pub by: Interpolation,
    /// The part of the resized image that is seen. It is mirrored, not turned.
    pub seen: Walk,
    /// Changes of colour in their order. `None` behind the last.
    pub changes: [Option<Adjust>; Paint::MOST],
    /// A part of what is seen, and its colour.
    pub erased: Option<(CropBox, [u8; 3])>,
}

impl DecodePlan {
    /// Decodes a file, and follows the plan.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    pub fn decode(&self, file: &[u8]) -> Result<RgbImage, VisionError> {
        let part = self.part.image(&decode_stored(file, self.stored)?);
        let resized = resized(&part, Rect::whole(part.dimensions()), self.size, self.by)?;
        let mut seen = self.seen.image(&resized);
        let erased = self.erased.and_then(|(part, colour)| Some((Rect::within(part, seen.dimensions())?, colour)));
        Paint { changes: self.changes, erased }.change_pixels(&mut seen);
        Ok(seen)
    }
}

impl Image {
    /// The file and its plan, if the decoder of a GPU can decode the file and it has at most `most` bytes.
    ///
    /// # Errors
    /// If the file is corrupt, and would fail on the host too.
    #[doc(hidden)]
    pub fn decode_plan(&self, most: usize) -> Result<Option<(&Bytes, DecodePlan)>, VisionError> {
        let PictureContent::File(file) = self.content() else { return Ok(None) };
        let (encoded, step) = (&file.encoded, file.view.resize_step());
        let jpeg = encoded.jpeg.as_ref().filter(|jpeg| jpeg.for_hardware() && encoded.bytes.len() <= most);
        // The kernels of a GPU write a resized image row by row, and do not turn it.
        let is_turned = file.view.resized.is_some() && step.part.across.0 == 0;
        let Some(jpeg) = jpeg.filter(|_| !is_turned) else { return Ok(None) };
        encoded.check_headers()?;
        let stored = (jpeg.width, jpeg.height);
        let part = Walk::new(jpeg.orientation, stored).then(file.view.part);
        let erased = file.paint.erased.map(|(part, colour)| (part.into(), colour));
        let plan = DecodePlan {
            stored,
            part,
            size: step.size,
            by: step.by,
            seen: step.part,
            changes: file.paint.changes,
            erased,
        };
        Ok(Some((&encoded.bytes, plan)))
    }
}
