//! Operations on pixels: cutting, mirroring, resizing (by the crate fast_image_resize).

use super::{
    rect::{CropBox, Rect},
    walk::Walk,
};
use crate::images::{error::VisionError, parameters::Size};
use bytemuck::Pod;
use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{CroppedImage, Image, ImageRef},
};
use image::{ImageBuffer, Pixel, Primitive, Rgb, RgbImage};
use std::{cell::RefCell, fmt::Display};

/// Returns a part of an image of at least one pixel, with padding where the part lies outside.
pub(crate) fn cut(image: &RgbImage, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> RgbImage {
    let mut out = RgbImage::new(part.width, part.height);
    cut_into(image.as_chunks().0, image.dimensions(), part, mode, fill, out.as_chunks_mut().0);
    out
}

/// Copies a part of the pixels of an image of at least one pixel, with padding where the part lies outside.
pub(crate) fn cut_into<P: Copy>(
    pixels: &[P],
    (width, height): (u32, u32),
    part: CropBox,
    mode: PaddingMode,
    fill: P,
    out: &mut [P],
) {
    if let Some(part) = Rect::within(part, (width, height)) {
        return Walk::whole((width, height)).part(part).copy(pixels, width, out);
    }
    let pitch = width as usize;
    let columns: Vec<Option<u32>> = (0..i64::from(part.width)).map(|x| mode.source(part.left + x, width)).collect();
    // The columns of the image are copied together, which is faster than one by one.
    let [start, end] = [0, i64::from(width)].map(|x| (x - part.left).clamp(0, part.width.into()) as usize);
    let first = part.left.clamp(0, width.into()) as usize;
    for (row, out) in out.chunks_exact_mut(part.width as usize).enumerate() {
        let Some(y) = mode.source(part.top + row as i64, height) else {
            out.fill(fill);
            continue;
        };
        let row = &pixels[y as usize * pitch..][..pitch];
        out[start..end].copy_from_slice(&row[first..][..end - start]);
        for at in (0..start).chain(end..columns.len()) {
            out[at] = columns[at].map_or(fill, |x| row[x as usize]);
        }
    }
}

/// What padding shows, and a crop beyond the border of the image.
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

/// Mirrors row by row. The function of the crate image goes pixel by pixel, and takes four times as long.
pub(crate) fn mirror(image: &mut RgbImage) {
    let pitch = 3 * image.width() as usize;
    image.chunks_exact_mut(pitch).for_each(|row| row.as_chunks_mut::<3>().0.reverse());
}

/// Gives a part of an image one colour.
pub(crate) fn fill(image: &mut RgbImage, part: Rect, colour: [u8; 3]) {
    rows_of(image, part).for_each(|row| row.as_chunks_mut::<3>().0.fill(colour));
}

/// Returns the bytes of each row of a part.
pub(crate) fn rows_of(image: &mut RgbImage, part: Rect) -> impl Iterator<Item = &mut [u8]> {
    let (pitch, columns) = (3 * image.width() as usize, 3 * part.left as usize..3 * (part.left + part.width) as usize);
    let rows = image.chunks_exact_mut(pitch).skip(part.top as usize).take(part.height as usize);
    rows.map(move |row| &mut row[columns.clone()])
}

/// How a pixel is computed from the pixels around it.
///
/// Downscaling uses all pixels, as torchvision with `antialias=True` and Pillow do. The weights are integers, so every
/// CPU gives the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Interpolation {
    /// The pixel with the nearest centre: torchvision's `NEAREST_EXACT`.
    Nearest,
    /// A triangle filter.
    #[default]
    Bilinear,
    /// A cubic filter with a = -0.5, as in Pillow 13: horizontally and then vertically, or vertically first if that
    /// removes more than twice as many rows as columns. Rotations and other warps have Pillow's filter for them, with a
    /// = -1.
    Bicubic,
}

/// Resizes a part of the image as if it were the whole image.
pub(crate) fn resized<V: Pod + Primitive>(
    image: &ImageBuffer<Rgb<V>, Vec<V>>,
    part: Rect,
    size: Size,
    by: Interpolation,
) -> Result<ImageBuffer<Rgb<V>, Vec<V>>, VisionError>
where
    Rgb<V>: Pixel<Subpixel = V>,
{
    let mut out = ImageBuffer::new(size.width, size.height);
    resize_into(image.as_raw(), image.dimensions(), part, size, by, &mut out)?;
    Ok(out)
}

thread_local! {
    /// The resizer of a thread. It keeps its buffers from image to image.
    static RESIZER: RefCell<Resizer> = RefCell::new(Resizer::new());
}

/// Whether Pillow 13 goes down first. `resample.cu` has the same rule.
fn is_down_first(part: Rect, size: Size) -> bool {
    let rows = i64::from(part.height) - i64::from(size.height);
    rows > 0 && rows > 2 * (i64::from(part.width) - i64::from(size.width))
}

/// Resizes a part of an image of interleaved RGB and of `width` x `height` pixels, as if the part were the whole image.
/// A value is a `u8` or a `u16`.
///
/// The resizer resizes columns first, and Pillow mostly rows. Between the two steps values are cut to bytes, and a cubic filter
/// makes values beyond a byte. So such an image is resized in two calls, in Pillow's order.
pub(crate) fn resize_into<V: Pod>(
    pixels: &[V],
    (width, height): (u32, u32),
    part: Rect,
    size: Size,
    by: Interpolation,
    out: &mut [V],
) -> Result<(), VisionError> {
    let both = size.width != part.width && size.height != part.height;
    if by == Interpolation::Bicubic && both && !is_down_first(part, size) {
        let across = Size { height: part.height, ..size };
        let mut rows = vec![V::zeroed(); 3 * across.width as usize * across.height as usize];
        resize_into(pixels, (width, height), part, across, by, &mut rows)?;
        let whole = (across.width, across.height);
        return resize_into(&rows, whole, Rect::whole(whole), size, by, out);
    }
    let kind = if size_of::<V>() == 1 { PixelType::U8x3 } else { PixelType::U16x3 };
    let whole = ImageRef::new(width, height, bytemuck::cast_slice(pixels), kind).map_err(failed)?;
    // The resizer's own crop box is not used, since it looks at the pixels around the box.
    let source = CroppedImage::new(&whole, part.left, part.top, part.width, part.height).map_err(failed)?;
    let target = Image::from_slice_u8(size.width, size.height, bytemuck::cast_slice_mut(out), kind);
    let mut target = target.map_err(failed)?;
    let options = ResizeOptions::new().resize_alg(match by {
        Interpolation::Nearest => ResizeAlg::Nearest,
        Interpolation::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
        Interpolation::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
    });
    RESIZER.with_borrow_mut(|resizer| resizer.resize(&source, &mut target, &options)).map_err(failed)
}

fn failed(error: impl Display) -> VisionError {
    VisionError::Resize(error.to_string())
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
