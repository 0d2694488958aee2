//! From interleaved pixels to planes.

use crate::vision::{
    error::VisionError,
    geometry::{Mirror, Rect},
};
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
    let all = Rect::whole(image.dimensions());
    write_planes(image, image.width(), all, Mirror::default(), |_, byte| byte, row)
}

/// Writes a part of interleaved pixels as planes, red, green and blue: `value(channel, byte)` for each byte.
pub(crate) fn write_planes<T>(
    pixels: &[u8],
    width: u32,
    part: Rect,
    mirror: Mirror,
    value: impl Fn(usize, u8) -> T,
    row: &mut [T],
) -> Result<(), VisionError> {
    let (columns, rows) = (part.width as usize, part.height as usize);
    if row.len() != 3 * columns * rows {
        let (width, height) = (part.width, part.height);
        return Err(VisionError::RowLength { width, height, expected: 3 * columns * rows, given: row.len() });
    }
    if row.is_empty() {
        return Ok(());
    }
    let (red, rest) = row.split_at_mut(columns * rows);
    let (green, blue) = rest.split_at_mut(columns * rows);
    let lines = red.chunks_exact_mut(columns).zip(green.chunks_exact_mut(columns)).zip(blue.chunks_exact_mut(columns));
    for (at, ((red, green), blue)) in lines.enumerate() {
        let line = if mirror.down { rows - 1 - at } else { at };
        let start = 3 * ((part.top as usize + line) * width as usize + part.left as usize);
        let line = pixels[start..start + 3 * columns].as_chunks::<3>().0;
        let put = |(((pixel, red), green), blue): (((&[u8; 3], &mut T), &mut T), &mut T)| {
            *red = value(0, pixel[0]);
            *green = value(1, pixel[1]);
            *blue = value(2, pixel[2]);
        };
        if mirror.across {
            line.iter().rev().zip(red).zip(green).zip(blue).for_each(put);
        } else {
            line.iter().zip(red).zip(green).zip(blue).for_each(put);
        }
    }
    Ok(())
}
