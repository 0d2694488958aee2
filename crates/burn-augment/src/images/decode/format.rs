//! The format of a file, by its content.

use crate::images::error::VisionError;
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
        _ => (foreign(bytes).ok_or_else(|| other(bytes))?, None),
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
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some("a NumPy array"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("PDF"),
        _ if bytes.get(128..).is_some_and(|rest| rest.starts_with(b"DICM")) => Some("DICOM"),
        _ if is_svg(bytes) => Some("SVG"),
        _ => None,
    }
}

/// The text from its first letter on.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start()
}

/// Whether the first tag of an XML text, behind declarations and comments, is that of a drawing.
fn is_svg(bytes: &[u8]) -> bool {
    let mut tags = text(bytes).split(|byte| *byte == b'<').take(16);
    tags.next().is_some_and(<[u8]>::is_empty)
        && tags.find(|tag| !tag.starts_with(b"?") && !tag.starts_with(b"!")).is_some_and(|tag| tag.starts_with(b"svg"))
}

/// Files that are found instead of images: how they begin, what they are, and what to do.
const OTHERS: [(&[&str], &str, &str); 3] = [
    (
        &["version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"],
        "a pointer of Git LFS",
        "get the file itself with `git lfs pull`",
    ),
    (&["/annex/objects/"], "a pointer of git-annex", "get the file itself with `git annex get`"),
    (
        &[
            "<!doctype",
            "<html",
            "<head",
            "<?xml",
            "404: not found",
            "entry not found",
            "repository not found",
            "invalid username or password",
        ],
        "an answer of a web server (HTML, XML or an error)",
        "it may say why there is no file: download the file again",
    ),
];

fn other(bytes: &[u8]) -> VisionError {
    let begins = |with: &&str| text(bytes).get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with.as_bytes()));
    let other = OTHERS.iter().find(|(marks, ..)| marks.iter().any(begins));
    other.map_or(VisionError::UnknownFormat, |(_, is, cure)| VisionError::Other { is, cure })
}
