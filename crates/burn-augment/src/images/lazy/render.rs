//! Makes the pixels of a view: decodes its part, resizes the part, and writes it to its place, in as few passes as
//! possible.

use super::{file::ImageFile, view::ResizeStep};
use crate::images::{
    decode::write_planes,
    error::VisionError,
    geometry::{Rect, Walk, resize_into, resized},
};
use image::{ImageBuffer, Rgb, RgbImage};
use std::cell::RefCell;

/// The longest buffer that is kept, in bytes: three for each of 4 megapixels.
const LARGEST_KEPT: usize = 12 << 20;

thread_local! {
    /// The buffers of a thread for decoded, turned and resized pixels, which it keeps from image to image.
    static SCRATCH: RefCell<[Vec<u8>; 3]> = RefCell::default();
}

/// Writes the picture as planes: `value(channel, byte)` for each byte.
pub(crate) fn write<T>(file: &ImageFile, value: impl Fn(usize, u8) -> T, row: &mut [T]) -> Result<(), VisionError> {
    render(file, |pixels, columns, walk| {
        if file.paint.is_none() {
            return write_planes(pixels, columns, &walk, value, row);
        }
        let image = painted(file, pixels, columns, walk);
        write_planes(&image, image.width(), &Walk::whole(image.dimensions()), value, row)
    })
}

/// Returns the pixels of the picture.
pub(crate) fn pixels(file: &ImageFile) -> Result<RgbImage, VisionError> {
    render(file, |pixels, columns, walk| Ok(painted(file, pixels, columns, walk)))
}

fn painted(file: &ImageFile, pixels: &[u8], columns: u32, walk: Walk) -> RgbImage {
    let mut image = RgbImage::new(walk.size.0, walk.size.1);
    walk.copy(pixels.as_chunks::<3>().0, columns, image.as_chunks_mut().0);
    file.paint.change_pixels(&mut image);
    image
}

/// Returns the pixels of the picture of a file of 16 bits a value, without cutting them to 8.
pub(crate) fn deep_pixels(file: &ImageFile) -> Result<ImageBuffer<Rgb<u16>, Vec<u16>>, VisionError> {
    if !file.paint.is_none() {
        return Err(cut_to_bytes("its colours are changed, or a part is erased"));
    }
    let made = file.encoded.decode_deep().and_then(|whole| {
        let part = file.view.part.image(&whole);
        let Some(ResizeStep { size, by, part: seen }) = file.view.resized else { return Ok(part) };
        Ok(seen.image(&resized(&part, Rect::whole(part.dimensions()), size, by)?))
    });
    made.map_err(|error| error.of_file(file.path.as_deref()))
}

/// The error of a change that only bytes have.
pub(super) fn cut_to_bytes(change: &str) -> VisionError {
    VisionError::of_part(
        "image",
        format!("is of 16 bits, which its field keeps, and a transform needs bytes: {change}"),
        "leave such a transform out, read the file as a `Mask`, or give the field the dtype U8",
    )
}

/// Makes the picture but for its colours. `then` gets pixels, how many columns they have, and the walk through them.
fn render<T>(
    file: &ImageFile,
    then: impl FnOnce(&[u8], u32, Walk) -> Result<T, VisionError>,
) -> Result<T, VisionError> {
    SCRATCH.with_borrow_mut(|scratch| {
        let done = rendered(file, scratch).and_then(|(pixels, columns, walk)| then(pixels, columns, walk));
        for buffer in scratch {
            if buffer.capacity() > LARGEST_KEPT {
                *buffer = Vec::new();
            }
        }
        done.map_err(|error| error.of_file(file.path.as_deref()))
    })
}

fn rendered<'a>(
    file: &ImageFile,
    [decoded, gathered, resized]: &'a mut [Vec<u8>; 3],
) -> Result<(&'a [u8], u32, Walk), VisionError> {
    let (size, walk) = file.encoded.decode_part(file.view.part, decoded)?;
    let Some(ResizeStep { size: to, by, part: seen }) = file.view.resized else { return Ok((decoded, size.0, walk)) };
    let (pixels, size, part) = if (walk.across, walk.down) == ((1, 0), (0, 1)) {
        (&*decoded, size, walk.rect())
    } else {
        gathered.resize(3 * walk.size.0 as usize * walk.size.1 as usize, 0);
        walk.copy(decoded.as_chunks::<3>().0, size.0, gathered.as_chunks_mut().0);
        (&*gathered, walk.size, Rect::whole(walk.size))
    };
    resized.resize(3 * to.width as usize * to.height as usize, 0);
    resize_into(pixels, size, part, to, by, resized)?;
    Ok((resized, to.width, seen))
}
