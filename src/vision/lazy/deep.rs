//! Images of 16 bits a value, whose noted changes are made without cutting them to 8.

use super::{
    render::ImageFile,
    view::{ResizeStep, View},
};
use crate::vision::{
    decode::{Rgb16, decode_deep},
    error::VisionError,
    geometry::{Mirror, Rect, resize_into, transposed},
};
use image::imageops;

/// Makes the picture that a view shows of a file of 16 bits.
pub(crate) fn deep_pixels(file: &ImageFile) -> Result<Rgb16, VisionError> {
    if !file.paint.is_none() {
        return Err(cut_to_bytes("its colours are changed, or a part is erased"));
    }
    let ImageFile { bytes, header, limits, view: View { part, transposed, mirror, resized }, .. } = file;
    let made = decode_deep(bytes, header, limits).and_then(|whole| {
        let part = seen(&whole, *part, *transposed, *mirror);
        let Some(ResizeStep { size, by, window, transposed, mirror }) = *resized else { return Ok(part) };
        let mut out = Rgb16::new(size.width, size.height);
        resize_into::<u16>(&part, part.dimensions(), Rect::whole(part.dimensions()), size, by, &mut out)?;
        Ok(seen(&out, window, transposed, mirror))
    });
    made.map_err(|error| error.of_file(file.path.as_deref()))
}

fn seen(pixels: &Rgb16, part: Rect, is_transposed: bool, mirror: Mirror) -> Rgb16 {
    let mut out = imageops::crop_imm(pixels, part.left, part.top, part.width, part.height).to_image();
    if is_transposed {
        out = transposed(&out);
    }
    if mirror.across {
        imageops::flip_horizontal_in_place(&mut out);
    }
    if mirror.down {
        imageops::flip_vertical_in_place(&mut out);
    }
    out
}

/// The error of a change that only bytes have.
pub(super) fn cut_to_bytes(change: &str) -> VisionError {
    VisionError::Part {
        part: "image",
        problem: format!("is of 16 bits, which its field keeps, and a transform needs bytes: {change}"),
        cure: "leave such a transform out, read the file as a `Mask`, or give the field the dtype U8",
    }
}
