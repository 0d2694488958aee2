//! The format of a file, by its content.

use crate::vision::error::VisionError;
use image::{ImageFormat, ImageReader};
use std::io::Cursor;

/// Returns the format of a file.
///
/// # Errors
/// If the file is of no format that is decoded.
pub(super) fn format(bytes: &[u8]) -> Result<ImageFormat, VisionError> {
    if bytes.is_empty() {
        return Err(VisionError::Empty);
    }
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(VisionError::Io)?;
    let (kind, feature) = match reader.format() {
        Some(format) if format.reading_enabled() => return Ok(format),
        Some(ImageFormat::Avif) => ("AVIF", Some("avif-native")),
        Some(ImageFormat::Bmp) => ("BMP", Some("bmp")),
        Some(ImageFormat::Dds) => ("DDS", Some("dds")),
        Some(ImageFormat::Farbfeld) => ("farbfeld", Some("ff")),
        Some(ImageFormat::Hdr) => ("Radiance HDR", Some("hdr")),
        Some(ImageFormat::Ico) => ("ICO", Some("ico")),
        Some(ImageFormat::OpenExr) => ("OpenEXR", Some("exr")),
        Some(ImageFormat::Pnm) => ("PNM", Some("pnm")),
        Some(ImageFormat::Qoi) => ("QOI", Some("qoi")),
        Some(ImageFormat::Tiff) => ("TIFF", Some("tiff")),
        _ => (foreign(bytes).ok_or(VisionError::UnknownFormat)?, None),
    };
    Err(VisionError::Unsupported { kind, feature })
}

/// Names a format that the crate `image` does not know.
fn foreign(bytes: &[u8]) -> Option<&'static str> {
    match *bytes {
        [_, _, _, _, b'f', b't', b'y', b'p', a, b, c, d, ..] => match &[a, b, c, d] {
            b"avif" | b"avis" => Some("AVIF"),
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => Some("HEIC"),
            b"mif1" | b"msf1" => Some("HEIF"),
            _ => None,
        },
        [0xFF, 0x0A, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => Some("JPEG XL"),
        [0xFF, 0x4F, 0xFF, 0x51, ..] | [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] => Some("JPEG 2000"),
        [b'8', b'B', b'P', b'S', ..] => Some("Photoshop"),
        _ => None,
    }
}
