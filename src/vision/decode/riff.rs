//! Checks the chunks of a WebP before its decoder reads them.
//!
//! The decoder trusts what chunks say about themselves. It takes memory for as many bytes as a header claims. It takes
//! memory for a picture of any size, even on a canvas of one pixel. It panics if a frame of an animation is larger than
//! the frame says. The limits can be compared only with the size of the canvas, and that size shows none of this.

use super::orientation::Metadata;
use crate::vision::{error::VisionError, parameters::Size};
use std::borrow::Cow;

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
    for chunk in (RiffChunks { file, at: 12, end }) {
        let chunk = chunk?;
        match canvas {
            None => canvas = Some(canvas_of(&chunk)?),
            Some(canvas) if chunk.kind == *b"ANMF" => check_frame(file, &chunk, canvas)?,
            Some(canvas) => check_picture(&chunk, canvas)?,
        }
    }
    if canvas.is_some() { Ok(riff) } else { Err(VisionError::Malformed("it has no chunks")) }
}

/// Finds the EXIF and the XMP of a file that was checked.
pub(super) fn metadata(riff: &[u8]) -> Metadata<'_> {
    let mut found = Metadata::default();
    for chunk in (RiffChunks { file: riff, at: 12, end: riff.len() }).flatten() {
        match &chunk.kind {
            b"EXIF" => found.exif = found.exif.or(Some(chunk.data.into())),
            b"XMP " => found.xmp = found.xmp.or(Some(chunk.data.into())),
            _ => {}
        }
    }
    found
}

/// Returns a file that was checked without the flags of metadata that it does not have. Some tools remove a chunk of
/// metadata and leave its flag, and the decoder refuses such files.
pub(super) fn with_true_flags(riff: &[u8]) -> Cow<'_, [u8]> {
    /// Where VP8X, the first chunk, has its flags.
    const AT: usize = 20;
    let Metadata { exif, xmp } = metadata(riff);
    let untrue = if exif.is_none() { 0x08 } else { 0 } | if xmp.is_none() { 0x04 } else { 0 };
    match riff.get(AT) {
        Some(flags) if riff[12..].starts_with(b"VP8X") && flags & untrue != 0 => {
            let mut riff = riff.to_vec();
            riff[AT] &= !untrue;
            riff.into()
        }
        _ => riff.into(),
    }
}

struct RiffChunk<'a> {
    kind: [u8; 4],
    data: &'a [u8],
    /// Where the data starts in the file.
    start: usize,
}

/// The chunks of the file, or those within a frame.
struct RiffChunks<'a> {
    file: &'a [u8],
    at: usize,
    /// Where in the file these chunks end.
    end: usize,
}

impl<'a> Iterator for RiffChunks<'a> {
    type Item = Result<RiffChunk<'a>, VisionError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Too few bytes for a header are padding.
        let header = self.file.get(self.at..self.end)?.first_chunk::<8>()?;
        let [a, b, c, d, size @ ..] = *header;
        let (start, size) = (self.at + 8, u32::from_le_bytes(size) as usize);
        let end = start.saturating_add(size);
        // Chunks start at even places. The last chunk may lack the padding byte after it.
        self.at = end.saturating_add(size % 2);
        Some(match self.file.get(start..end) {
            None => Err(VisionError::Truncated),
            Some(_) if end > self.end => Err(VisionError::Malformed("a chunk is longer than what contains it")),
            Some(data) => Ok(RiffChunk { kind: [a, b, c, d], data, start }),
        })
    }
}

/// Returns the size of the image, which the first chunk holds.
fn canvas_of(first: &RiffChunk<'_>) -> Result<Size, VisionError> {
    let size = match &first.kind {
        b"VP8X" => first.data.get(4..10).and_then(size_less_one),
        _ => picture_size(first),
    };
    size.ok_or(VisionError::Malformed("it does not begin with the size of an image"))
}

/// Checks that a frame lies within the canvas, and that its picture is as large as the frame.
fn check_frame(file: &[u8], frame: &RiffChunk<'_>, canvas: Size) -> Result<(), VisionError> {
    /// Bytes of place, size, duration and flags.
    const HEADER: usize = 16;
    let place = frame.data.get(..3).and_then(number).zip(frame.data.get(3..6).and_then(number));
    let size = frame.data.get(6..12).and_then(size_less_one);
    let (Some((x, y)), Some(size)) = (place, size) else {
        return Err(VisionError::Malformed("a frame is too short"));
    };
    // Places are in steps of two pixels. The numbers have 24 bits, so nothing overflows.
    if 2 * x + size.width > canvas.width || 2 * y + size.height > canvas.height {
        return Err(VisionError::Malformed("a frame lies outside the canvas"));
    }
    let (mut after_alpha, mut pictures) = (false, 0);
    for chunk in (RiffChunks { file, at: frame.start + HEADER, end: frame.start + frame.data.len() }) {
        let chunk = chunk?;
        // The decoder reads the chunk behind an alpha channel as a picture, whatever it is.
        if after_alpha && chunk.kind != *b"VP8 " {
            return Err(VisionError::Malformed("no picture follows the alpha channel of a frame"));
        }
        check_picture(&chunk, size)?;
        after_alpha = chunk.kind == *b"ALPH";
        pictures += usize::from(is_picture(&chunk));
    }
    if pictures == 0 { Err(VisionError::Malformed("a frame has no picture")) } else { Ok(()) }
}

/// Checks that the chunk has this size, if it is a picture.
fn check_picture(chunk: &RiffChunk<'_>, size: Size) -> Result<(), VisionError> {
    if is_picture(chunk) && picture_size(chunk) != Some(size) {
        return Err(VisionError::Malformed("a picture and its frame or canvas differ in size"));
    }
    Ok(())
}

fn is_picture(chunk: &RiffChunk<'_>) -> bool {
    matches!(&chunk.kind, b"VP8 " | b"VP8L")
}

/// Returns what the picture's own header says, or `None` if it is not the header of a picture.
fn picture_size(chunk: &RiffChunk<'_>) -> Option<Size> {
    match (&chunk.kind, chunk.data) {
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
