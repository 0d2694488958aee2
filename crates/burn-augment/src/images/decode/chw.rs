//! From interleaved pixels to planes.

use crate::images::{error::VisionError, geometry::Walk};
use image::RgbImage;

/// Writes an image as `[3, height, width]`: all red, then all green, then all blue.
///
/// ```
/// use burn_augment::images::write_chw;
/// use image::{Rgb, RgbImage};
///
/// let image = RgbImage::from_pixel(2, 1, Rgb([7, 8, 9]));
/// let mut row = [0; 6];
/// write_chw(&image, &mut row)?;
/// assert_eq!(row, [7, 7, 8, 8, 9, 9]);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// Use it for a row of a batch, such as that of burn-pinned's `RowMut::slice_mut` in `Collate::write`.
///
/// # Errors
/// If `row` is not `3 * height * width` bytes long.
pub fn write_chw(image: &RgbImage, row: &mut [u8]) -> Result<(), VisionError> {
    write_planes(image, image.width(), &Walk::whole(image.dimensions()), |_, byte| byte, row)
}

/// Writes what is seen of interleaved pixels as planes, red, green and blue: `value(channel, byte)` for each byte.
pub(crate) fn write_planes<T>(
    pixels: &[u8],
    columns: u32,
    walk: &Walk,
    value: impl Fn(usize, u8) -> T,
    row: &mut [T],
) -> Result<(), VisionError> {
    let (width, height) = walk.size;
    let plane = width as usize * height as usize;
    if row.len() != 3 * plane {
        return Err(VisionError::RowLength { width, height, expected: 3 * plane, given: row.len() });
    }
    let mut line = vec![[0; 3]; width as usize];
    for at in 0..height as usize {
        walk.copy_row(at, pixels.as_chunks().0, columns, &mut line);
        for channel in 0..3 {
            let out = &mut row[channel * plane + at * line.len()..][..line.len()];
            out.iter_mut().zip(&line).for_each(|(out, pixel)| *out = value(channel, pixel[channel]));
        }
    }
    Ok(())
}
