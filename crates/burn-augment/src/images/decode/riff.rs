//! Checks the chunks of a WebP before its decoder reads them.
//!
//! The decoder trusts what chunks say about themselves. It takes memory for as many bytes as a header claims. It takes
//! memory for a picture of any size, even on a canvas of one pixel. It panics if a frame of an animation is larger than
//! the frame says. The limits can be compared only with the size of the canvas, and that size shows none of this.

use super::orientation::of_metadata;
use crate::images::{error::VisionError, parameters::Size};
use image::metadata::Orientation;
use std::{borrow::Cow, iter, ops::Range};

/// Returns the bytes up to the end that the file states, if the chunks in them are whole and pictures are as large as
/// stated.
///
/// Bytes behind that end are no part of the image, but decoders may read them as chunks.
///
/// # Errors
/// [`VisionError::Truncated`] if something ends after the file's end, [`VisionError::Malformed`] if chunks do not fit
/// together.
pub(super) fn checked(file: &[u8]) -> Result<&[u8], VisionError> {
    let Some(size) = file.get(4..8).and_then(number) else { return Err(VisionError::Truncated) };
    let end = 8usize.saturating_add(size as usize);
    let Some(riff) = file.get(..end) else { return Err(VisionError::Truncated) };
    let mut canvas = None;
    for chunk in chunks(file, 12..end) {
        let (kind, data) = chunk?;
        match canvas {
            None => canvas = Some(canvas_of(kind, &file[data])?),
            Some(canvas) if kind == *b"ANMF" => check_frame(file, data, canvas)?,
            Some(canvas) => check_picture(kind, &file[data], canvas)?,
        }
    }
    if canvas.is_some() { Ok(riff) } else { Err(VisionError::Malformed("it has no chunks")) }
}

/// Reads the orientation of a file that was checked.
pub(super) fn orientation(riff: &[u8]) -> Orientation {
    of_metadata(first(riff, b"EXIF"), first(riff, b"XMP "))
}

/// The first chunk of a kind in a file that was checked.
fn first<'a>(riff: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    chunks(riff, 12..riff.len()).flatten().find(|(found, _)| found == kind).map(|(_, data)| &riff[data])
}

/// Returns a file that was checked without the flags of metadata that it does not have. Some tools remove a chunk of
/// metadata and leave its flag, and the decoder refuses such files.
pub(super) fn with_true_flags(riff: &[u8]) -> Cow<'_, [u8]> {
    /// Where VP8X, the first chunk, has its flags.
    const AT: usize = 20;
    let lacks = |kind| first(riff, kind).is_none();
    let untrue = if lacks(b"EXIF") { 0x08 } else { 0 } | if lacks(b"XMP ") { 0x04 } else { 0 };
    match riff.get(AT) {
        Some(flags) if riff[12..].starts_with(b"VP8X") && flags & untrue != 0 => {
            let mut riff = riff.to_vec();
            riff[AT] &= !untrue;
            riff.into()
        }
        _ => riff.into(),
    }
}

/// The chunks of the file, or those within a frame, in a range of the file. Of each its kind, and where its data are.
fn chunks(file: &[u8], range: Range<usize>) -> impl Iterator<Item = Result<([u8; 4], Range<usize>), VisionError>> {
    let mut at = range.start;
    iter::from_fn(move || {
        // Too few bytes for a header are padding.
        let header = file.get(at..range.end)?.first_chunk::<8>()?;
        let [a, b, c, d, size @ ..] = *header;
        let (start, size) = (at + 8, u32::from_le_bytes(size) as usize);
        let end = start.saturating_add(size);
        // Chunks start at even places. The last chunk may lack the padding byte after it.
        at = end.saturating_add(size % 2);
        Some(match file.get(start..end) {
            None => Err(VisionError::Truncated),
            Some(_) if end > range.end => Err(VisionError::Malformed("a chunk is longer than what contains it")),
            Some(_) => Ok(([a, b, c, d], start..end)),
        })
    })
}

/// Returns the size of the image, which the first chunk holds.
fn canvas_of(kind: [u8; 4], data: &[u8]) -> Result<Size, VisionError> {
    let size = match &kind {
        b"VP8X" => data.get(4..10).and_then(size_less_one),
        _ => picture_size(kind, data),
    };
    size.ok_or(VisionError::Malformed("it does not begin with the size of an image"))
}

/// Checks that a frame lies within the canvas, and that its picture is as large as the frame.
fn check_frame(file: &[u8], range: Range<usize>, canvas: Size) -> Result<(), VisionError> {
    /// Bytes of place, size, duration and flags.
    const HEADER: usize = 16;
    let frame = &file[range.clone()];
    let place = frame.get(..3).and_then(number).zip(frame.get(3..6).and_then(number));
    let size = frame.get(6..12).and_then(size_less_one);
    let (Some((x, y)), Some(size)) = (place, size) else {
        return Err(VisionError::Malformed("a frame is too short"));
    };
    // Places are in steps of two pixels. The numbers have 24 bits, so nothing overflows.
    if 2 * x + size.width > canvas.width || 2 * y + size.height > canvas.height {
        return Err(VisionError::Malformed("a frame lies outside the canvas"));
    }
    let (mut after_alpha, mut pictures) = (false, 0);
    for chunk in chunks(file, range.start + HEADER..range.end) {
        let (kind, data) = chunk?;
        // The decoder reads the chunk behind an alpha channel as a picture, whatever it is.
        if after_alpha && kind != *b"VP8 " {
            return Err(VisionError::Malformed("no picture follows the alpha channel of a frame"));
        }
        check_picture(kind, &file[data], size)?;
        after_alpha = kind == *b"ALPH";
        pictures += usize::from(is_picture(kind));
    }
    if pictures == 0 { Err(VisionError::Malformed("a frame has no picture")) } else { Ok(()) }
}

/// Checks that a chunk has this size, if it is a picture.
fn check_picture(kind: [u8; 4], data: &[u8], size: Size) -> Result<(), VisionError> {
    if is_picture(kind) && picture_size(kind, data) != Some(size) {
        return Err(VisionError::Malformed("a picture and its frame or canvas differ in size"));
    }
    Ok(())
}

fn is_picture(kind: [u8; 4]) -> bool {
    matches!(&kind, b"VP8 " | b"VP8L")
}

/// Returns what the picture's own header says, or `None` if it is not the header of a picture.
fn picture_size(kind: [u8; 4], data: &[u8]) -> Option<Size> {
    match (&kind, data) {
        // A key frame (RFC 6386, section 9.1); the upper bits are for scaling.
        (b"VP8 ", [tag, _, _, 0x9D, 0x01, 0x2A, a, b, c, d, ..]) if tag & 1 == 0 => {
            let side = |bytes| u32::from(u16::from_le_bytes(bytes) & 0x3FFF);
            Some(Size { width: side([*a, *b]), height: side([*c, *d]) })
        }
        (b"VP8L", [0x2F, a, b, c, d, ..]) => {
            let bits = u32::from_le_bytes([*a, *b, *c, *d]);
            let side = |bits| (bits & 0x3FFF) + 1;
            Some(Size { width: side(bits), height: side(bits >> 14) })
        }
        _ => None,
    }
}

/// Reads a size from two numbers of 24 bits. Each number is one less than the side that it means.
fn size_less_one(bytes: &[u8]) -> Option<Size> {
    let (width, height) = bytes.split_at_checked(3)?;
    Some(Size { width: number(width)? + 1, height: number(height)? + 1 })
}

/// Reads a number of up to four bytes, the lowest byte first.
fn number(bytes: &[u8]) -> Option<u32> {
    let mut all = [0; 4];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u32::from_le_bytes(all))
}
