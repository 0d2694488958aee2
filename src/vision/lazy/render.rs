//! Makes the pixels of a view: decodes its part, resizes the part, and writes it to its place, in as few passes as
//! possible.

use super::{
    paint::Paint,
    view::{ResizeStep, View},
};
use crate::vision::{
    decode::{Header, JpegHeader, Limits, Walk, decode_part, decode_stored, write_chw, write_planes},
    error::VisionError,
    geometry::{Mirror, Rect, resize_into, transposed},
};
use bytes::Bytes;
use image::RgbImage;
use std::{cell::RefCell, path::Path, sync::Arc};

/// A file that is not decoded, and the noted changes.
#[derive(Clone)]
pub(crate) struct ImageFile {
    pub(crate) bytes: Bytes,
    pub(crate) header: Header,
    pub(crate) limits: Limits,
    /// The path of the file, for errors.
    pub(crate) path: Option<Arc<Path>>,
    pub(crate) view: View,
    pub(crate) paint: Paint,
}

/// Which stored pixels of a file make its picture, and how they are resized and coloured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WantedPixels {
    /// The walk through the part, mirrored.
    pub(crate) walk: Walk,
    /// Columns and rows of the part.
    pub(crate) part: (u32, u32),
    pub(crate) resized: ResizeStep,
    pub(crate) paint: Paint,
}

impl ImageFile {
    /// Mirrors the picture that will be made: its view, and its erased part.
    pub(super) fn mirror(&mut self, by: Mirror) {
        self.paint.mirror(by, self.view.dimensions());
        self.view.mirror(by);
    }

    /// Makes columns of the rows of the picture that will be made: of its view, and of its erased part.
    pub(super) fn transpose(&mut self) {
        self.paint.transpose();
        self.view.transpose();
    }

    /// Returns which pixels of a JPEG make the picture. It must not be turned after a resize.
    pub(crate) fn wanted(&self, jpeg: &JpegHeader) -> WantedPixels {
        let View { part, transposed, mirror, resized } = self.view;
        let size = self.view.part_size();
        let walk = Walk::new(jpeg.orientation, (jpeg.width, jpeg.height)).from(part).transposed(transposed);
        match resized {
            Some(resized) => WantedPixels { walk: walk.mirrored(mirror, size), part: size, resized, paint: self.paint },
            None => WantedPixels { walk, part: size, resized: ResizeStep::none(size, mirror), paint: self.paint },
        }
    }
}

/// Makes the wanted pixels of a JPEG, as bytes in planes.
pub(crate) fn wanted_planes(bytes: &[u8], stored: (u32, u32), wanted: &WantedPixels) -> Result<Vec<u8>, VisionError> {
    let WantedPixels { walk, part, resized: ResizeStep { size, by, window, transposed, mirror }, paint } = *wanted;
    let (mut pixels, mut out) = (Vec::new(), RgbImage::new(size.width, size.height));
    walk.gather(&decode_stored(bytes, stored)?, stored.0, part, &mut pixels);
    resize_into(&pixels, part, Rect::whole(part), size, by, &mut out)?;
    let seen = RenderedView { pixels: &out, width: size.width, window, transposed, mirror }.image(&paint);
    let mut row = vec![0; seen.len()];
    write_chw(&seen, &mut row)?;
    Ok(row)
}

/// The longest buffer that is kept, in bytes: three for each of 4 megapixels.
const LARGEST_KEPT: usize = 12 << 20;

thread_local! {
    /// The buffers of a thread for decoded, turned and resized pixels, which it keeps from image to image.
    static SCRATCH: RefCell<[Vec<u8>; 3]> = RefCell::default();
}

/// Interleaved pixels, and the part of them that a view shows.
struct RenderedView<'a> {
    pixels: &'a [u8],
    /// Columns of all pixels.
    width: u32,
    /// The part that is seen.
    window: Rect,
    transposed: bool,
    mirror: Mirror,
}

impl RenderedView<'_> {
    /// Copies the part that the view shows, and changes its colours.
    fn image(&self, paint: &Paint) -> RgbImage {
        let Self { pixels, width, window, transposed: is_transposed, mirror } = *self;
        let mirror = if is_transposed { Mirror { across: mirror.down, down: mirror.across } } else { mirror };
        let mut out = RgbImage::new(window.width, window.height);
        let pitch = 3 * window.width as usize;
        for (at, out) in out.chunks_exact_mut(pitch).enumerate() {
            let row = if mirror.down { window.height as usize - 1 - at } else { at };
            let start = 3 * ((window.top as usize + row) * width as usize + window.left as usize);
            out.copy_from_slice(&pixels[start..][..pitch]);
            if mirror.across {
                out.as_chunks_mut::<3>().0.reverse();
            }
        }
        if is_transposed {
            out = transposed(&out);
        }
        paint.change_pixels(&mut out);
        out
    }
}

/// Writes the picture as planes: `value(channel, byte)` for each byte.
pub(crate) fn write<T>(file: &ImageFile, value: impl Fn(usize, u8) -> T, row: &mut [T]) -> Result<(), VisionError> {
    render(file, |seen| {
        if file.paint.is_none() && !seen.transposed {
            return write_planes(seen.pixels, seen.width, seen.window, seen.mirror, value, row);
        }
        let image = seen.image(&file.paint);
        write_planes(&image, image.width(), Rect::whole(image.dimensions()), Mirror::default(), value, row)
    })
}

/// Returns the pixels of the picture.
pub(crate) fn pixels(file: &ImageFile) -> Result<RgbImage, VisionError> {
    render(file, |seen| Ok(seen.image(&file.paint)))
}

fn render<T>(
    file: &ImageFile,
    then: impl FnOnce(RenderedView<'_>) -> Result<T, VisionError>,
) -> Result<T, VisionError> {
    SCRATCH.with_borrow_mut(|scratch| {
        let done = rendered(file, scratch).and_then(then);
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
) -> Result<RenderedView<'a>, VisionError> {
    let ImageFile { bytes, header, limits, view, .. } = file;
    let (decoded_size, walk) = decode_part(bytes, header, view.part, limits, decoded)?;
    // Without a resize the last pass mirrors.
    let first = if view.resized.is_some() { view.mirror } else { Mirror::default() };
    let turned = view.part_size();
    let walk = walk.transposed(view.transposed).mirrored(first, turned);
    let (pixels, size, window) = if walk.is_straight() {
        let (left, top) = walk.start();
        (&decoded[..], decoded_size, Rect { left, top, ..Rect::whole(turned) })
    } else {
        walk.gather(decoded, decoded_size.0, turned, gathered);
        (&gathered[..], turned, Rect::whole(turned))
    };
    let Some(ResizeStep { size: to, by, window: seen, transposed, mirror }) = view.resized else {
        return Ok(RenderedView { pixels, width: size.0, window, transposed: false, mirror: view.mirror });
    };
    resized.resize(3 * to.width as usize * to.height as usize, 0);
    resize_into(pixels, size, window, to, by, resized)?;
    Ok(RenderedView { pixels: resized, width: to.width, window: seen, transposed, mirror })
}
