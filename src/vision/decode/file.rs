//! From a file's bytes to an image.

use super::riff;
use crate::{fault::catch, vision::error::VisionError};
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, RgbImage};
use std::{
    fs::{self, File},
    io::{Cursor, Read},
    path::Path,
};

/// What a file may hold.
///
/// A file of a few bytes can claim any size. If the size is over a limit, the file is refused before memory is
/// allocated for its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest side, in pixels. Default: 16,384.
    pub side: u32,
    /// The most bytes of the file, and also of the decoded pixels in the file's own format (a 16-bit RGBA image takes 8
    /// bytes a pixel). Default: 512 MiB. Decoders need more memory than that while they work: progressive JPEGs take
    /// about three times as much.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { side: 16_384, bytes: 512 * 1024 * 1024 }
    }
}

/// Reads and decodes a file; see [`decode`].
///
/// ```no_run
/// use burn_pinned::vision::{self, Limits};
///
/// let image = vision::open("cat/1.jpg", &Limits::default())?;
/// # Ok::<(), burn_pinned::vision::VisionError>(())
/// ```
///
/// # Errors
/// [`VisionError::File`], with the path, if the file cannot be read, is a pipe or a device, or cannot be decoded.
pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<RgbImage, VisionError> {
    let path = path.as_ref();
    let file = |source: VisionError| VisionError::File { path: path.into(), source: Box::new(source) };
    read(path, limits).and_then(|bytes| decode(&bytes, limits)).map_err(file)
}

fn read(path: &Path, limits: &Limits) -> Result<Vec<u8>, VisionError> {
    // This is asked before opening the file, since opening a pipe waits for its writer.
    let meta = fs::metadata(path).map_err(VisionError::Io)?;
    if !meta.is_file() {
        return Err(VisionError::NotAFile);
    }
    let over = |bytes: u64| VisionError::OverLimit { what: format!("a file of {bytes} bytes is"), limit: limits.bytes };
    if meta.len() > limits.bytes {
        return Err(over(meta.len()));
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
    let file = File::open(path).map_err(VisionError::Io)?;
    // Some files are longer than they say, those of /proc for example.
    file.take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(VisionError::Io)?;
    if bytes.len() as u64 > limits.bytes { Err(over(bytes.len() as u64)) } else { Ok(bytes) }
}

/// Decodes a PNG, JPEG, GIF or WebP by its content, whatever its name, to 8-bit RGB as it is meant to be seen.
///
/// The EXIF orientation is applied. 16-bit images are scaled. Grey images and palettes are spread over three channels.
/// CMYK JPEGs are converted as Pillow does, without a profile. Alpha is dropped, and colour profiles are ignored. Of an
/// animation the first frame is decoded. More formats of the crate [`image`] are decoded if a program switches on their
/// features.
///
/// # Errors
/// If the bytes are of none of these formats, are cut off, contradict themselves or are over the limits, or if the
/// decoder panics. Damage within the data of a JPEG is not noticed: decoders fill the damaged part with something.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<RgbImage, VisionError> {
    if bytes.is_empty() {
        return Err(VisionError::Empty);
    }
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(VisionError::Io)?;
    match reader.format() {
        None => return Err(VisionError::UnknownFormat),
        Some(ImageFormat::Jpeg) if !jpeg_is_whole(bytes) => return Err(VisionError::Truncated),
        Some(format @ ImageFormat::WebP) => {
            reader = ImageReader::with_format(Cursor::new(riff::checked(bytes)?), format);
        }
        Some(_) => {}
    }
    guarded(|| pixels(reader, limits))
}

/// Turns a panic of a decoder into an error: decoders have bugs, and some files trigger them.
fn guarded<T>(decode: impl FnOnce() -> Result<T, VisionError>) -> Result<T, VisionError> {
    catch(decode).unwrap_or_else(|caught| Err(VisionError::Panicked(caught.message)))
}

fn pixels(mut reader: ImageReader<Cursor<&[u8]>>, limits: &Limits) -> Result<RgbImage, VisionError> {
    let mut inner = image::Limits::default();
    inner.max_alloc = Some(limits.bytes);
    reader.limits(inner);
    let refused = |error| match error {
        ImageError::Limits(_) => {
            VisionError::OverLimit { what: "the memory to decode it is".into(), limit: limits.bytes }
        }
        error => VisionError::Decode(error),
    };
    let mut decoder = reader.into_decoder().map_err(refused)?;
    let (width, height) = decoder.dimensions();
    let over = |limit| VisionError::OverLimit { what: format!("an image of {width} x {height} pixels is"), limit };
    if width.max(height) > limits.side {
        return Err(over(limits.side.into()));
    }
    if decoder.total_bytes() > limits.bytes {
        return Err(over(limits.bytes));
    }
    if width == 0 || height == 0 {
        return Err(VisionError::NoPixels);
    }
    // Metadata that cannot be read is no reason to refuse the pixels.
    let orientation = decoder.orientation().ok();
    let image = DynamicImage::from_decoder(decoder).map_err(refused)?;
    let mut image = DynamicImage::ImageRgb8(image.into_rgb8());
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    Ok(image.into_rgb8())
}

/// Whether the end marker follows the first scan.
///
/// The decoder fills what is missing with grey and reports nothing, so half-copied files would be used for training.
/// The headers are skipped, since a thumbnail in them has its own end marker. What decoders skip between headers is
/// skipped too.
fn jpeg_is_whole(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(2..).unwrap_or_default();
    loop {
        let step = match *rest {
            // The search starts at the end of the file, where the marker is.
            [0xFF, 0xDA, ..] => return rest.windows(2).rev().any(|pair| pair == [0xFF, 0xD9]),
            // Padding before a marker.
            [0xFF, 0xFF, ..] => 1,
            // Bytes that are no marker, and markers without a length.
            [0xFF, 0x00 | 0x01 | 0xD0..=0xD9, ..] => 2,
            [0xFF, _, high, low, ..] => 2 + usize::from(u16::from_be_bytes([high, low])),
            [] | [0xFF, ..] => return false,
            // Stray bytes.
            [..] => rest.iter().position(|byte| *byte == 0xFF).unwrap_or(rest.len()),
        };
        rest = rest.get(step..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_decoder_is_an_error() {
        let error = guarded::<()>(|| panic!("index {} out of range", 4)).unwrap_err();
        assert_eq!(error.to_string(), "the decoder panicked: index 4 out of range");
        assert!(matches!(guarded(|| Ok(3)), Ok(3)));
    }
}
