//! From interleaved pixels to planes.

use crate::vision::error::VisionError;
use image::RgbImage;

/// Writes an image as `[3, height, width]`: all red, then all green, then all blue. It is for `Collate::write`:
///
/// ```
/// # use burn_pinned::{BoxError, RowMut, vision::write_chw};
/// # use image::RgbImage;
/// fn write(image: &RgbImage, row: &mut RowMut<'_>) -> Result<(), BoxError> {
///     Ok(write_chw(image, row.slice_mut::<u8>("image")?)?)
/// }
/// ```
///
/// # Errors
/// If `row` is not `3 * height * width` bytes long.
pub fn write_chw(image: &RgbImage, row: &mut [u8]) -> Result<(), VisionError> {
    let pixels = image.as_raw();
    let (width, height) = image.dimensions();
    if row.len() != 3 * width as usize * height as usize {
        let expected = 3 * width as usize * height as usize;
        return Err(VisionError::RowLength { width, height, expected, given: row.len() });
    }
    let (red, rest) = row.split_at_mut(row.len() / 3);
    let (green, blue) = rest.split_at_mut(rest.len() / 2);
    for (((pixel, red), green), blue) in pixels.chunks_exact(3).zip(red).zip(green).zip(blue) {
        (*red, *green, *blue) = (pixel[0], pixel[1], pixel[2]);
    }
    Ok(())
}
