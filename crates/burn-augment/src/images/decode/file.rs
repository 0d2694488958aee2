//! From a file's bytes to an image.

#[cfg(feature = "turbo")]
use super::turbo::Turbo;
use super::{format::format, gif, jpeg::JpegHeader, png, riff, scans};
use crate::{
    files::with_room,
    images::{error::VisionError, geometry::Walk},
};
use bytes::Bytes;
use image::{
    DynamicImage, ImageBuffer, ImageDecoder, ImageError, ImageFormat, ImageReader, Rgb, RgbImage, metadata::Orientation,
};
use std::{
    fs,
    io::{Cursor, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// The limits of an image file.
///
/// A file of a few bytes can claim any size. If the size is over a limit, the file is refused before memory is
/// allocated for its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest side, in pixels. Default: 16,384.
    pub side: u32,
    /// The most bytes of the file, and also of its decoded pixels in the file's own format (a 16-bit RGBA image takes 8
    /// bytes per pixel). Default: 512 MiB. A decoder needs more memory than that while it works: about three times as
    /// much for a progressive JPEG.
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
/// use burn_augment::images::{self, Limits};
///
/// let image = images::open("cat/1.jpg", &Limits::default())?;
/// # Ok::<(), burn_augment::images::VisionError>(())
/// ```
///
/// # Errors
/// [`VisionError::File`], with the path, if the file cannot be read, is a pipe or a device, or cannot be decoded.
pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<RgbImage, VisionError> {
    let path = path.as_ref();
    read(path, limits).and_then(|bytes| decode(&bytes, limits)).map_err(|error| error.of_file(path))
}

/// Reads a regular file.
pub(crate) fn read(path: &Path, limits: &Limits) -> Result<Vec<u8>, VisionError> {
    // The kind of the file is asked for before it is opened, since opening a pipe waits for its writer.
    let meta = fs::metadata(path).map_err(VisionError::Io)?;
    if !meta.is_file() {
        return Err(VisionError::NotAFile);
    }
    let over = |bytes: u64| VisionError::OverLimit { what: format!("a file of {bytes} bytes is"), limit: limits.bytes };
    if meta.len() > limits.bytes {
        return Err(over(meta.len()));
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
    let file = with_room(|| fs::File::open(path)).map_err(VisionError::Io)?;
    // Some files are longer than their size says, for example those of /proc.
    file.take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(VisionError::Io)?;
    if bytes.len() as u64 > limits.bytes { Err(over(bytes.len() as u64)) } else { Ok(bytes) }
}

/// Decodes the bytes of a PNG, JPEG, GIF or WebP to 8-bit RGB, rotated for viewing.
///
/// It applies the orientation of EXIF, or else that of XMP; [`Image::as_stored`](crate::images::Image::as_stored) keeps
/// the stored orientation. Values of 16 bits become `value / 257`, rounded. Grey gets three equal channels, and a
/// palette becomes its colours. CMYK JPEGs are converted as by Pillow, without a profile. Alpha is dropped: a
/// transparent pixel has its stored colour. Colour profiles are ignored. Only the first frame of an animation is
/// decoded; the part of a GIF outside this frame has the background colour. Features of the crate [`image`] that your
/// program enables add formats.
///
/// # Errors
/// If the bytes have none of these formats, are truncated, contradict themselves or exceed the limits, or if the
/// decoder panics. Damage within the data of a JPEG is not detected: decoders fill the damaged part.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<RgbImage, VisionError> {
    let (image, orientation) = stored(bytes, format(bytes)?, limits)?;
    let mut image = DynamicImage::ImageRgb8(image);
    image.apply_orientation(orientation);
    Ok(image.into_rgb8())
}

/// Decodes a file to its stored pixels. Returns them, and the orientation to apply.
fn stored(bytes: &[u8], format: ImageFormat, limits: &Limits) -> Result<(RgbImage, Orientation), VisionError> {
    let mut turned = None;
    if format == ImageFormat::Jpeg {
        let jpeg = JpegHeader::read(bytes)?;
        check_size((jpeg.width, jpeg.height), jpeg.bytes(), limits)?;
        turned = Some(jpeg.orientation);
        #[cfg(feature = "turbo")]
        if jpeg.for_turbo() {
            let mut out = Vec::new();
            let whole = Walk::whole((jpeg.width, jpeg.height)).rect();
            let all = Turbo::open(bytes, &jpeg, limits.bytes)?.decode(whole, &mut out)?;
            let image = RgbImage::from_raw(all.width, all.height, out).ok_or(VisionError::NoPixels)?;
            return Ok((image, jpeg.orientation));
        }
        if jpeg.is_for_scans() {
            return Ok((guarded(|| scans::decode(bytes, &jpeg))?, jpeg.orientation));
        }
    }
    guarded(|| {
        let (decoder, orientation) = opened(bytes, format, limits)?;
        let image = DynamicImage::from_decoder(decoder).map_err(|error| refused(error, limits))?;
        let mut image = image.into_rgb8();
        if format == ImageFormat::Gif {
            gif::fill_around_frame(bytes, &mut image);
        }
        Ok((image, turned.unwrap_or(orientation)))
    })
}

/// A file, and what its header says.
#[derive(Debug, Clone)]
pub(crate) struct EncodedFile {
    pub(crate) bytes: Bytes,
    pub(super) limits: Limits,
    /// Columns and rows of the image, rotated for viewing.
    pub(crate) seen: (u32, u32),
    /// The orientation that rotates the stored image for viewing.
    pub(super) orientation: Orientation,
    /// `None` if the file is no JPEG.
    pub(crate) jpeg: Option<JpegHeader>,
    /// Whether a value has 16 bits.
    pub(crate) is_deep: bool,
}

impl EncodedFile {
    /// Reads the header, and checks the limits.
    ///
    /// # Errors
    /// The errors of [`decode`], except those of the data after the header.
    pub(crate) fn read(bytes: Bytes, limits: &Limits) -> Result<Self, VisionError> {
        match format(&bytes)? {
            ImageFormat::Jpeg => {
                let jpeg = JpegHeader::read(&bytes)?;
                check_size((jpeg.width, jpeg.height), jpeg.bytes(), limits)?;
                let (orientation, stored) = (jpeg.orientation, (jpeg.width, jpeg.height));
                let seen = Walk::new(orientation, stored).size;
                Ok(Self { bytes, limits: *limits, seen, orientation, jpeg: Some(jpeg), is_deep: false })
            }
            format => guarded(|| {
                let (decoder, orientation) = opened(&bytes, format, limits)?;
                Ok(Self::of(bytes.clone(), limits, &decoder, orientation))
            }),
        }
    }

    /// A file that is no JPEG.
    pub(super) fn of(bytes: Bytes, limits: &Limits, decoder: &impl ImageDecoder, orientation: Orientation) -> Self {
        let colour = decoder.color_type();
        let is_deep = colour.bits_per_pixel() == 16 * u16::from(colour.channel_count());
        let seen = Walk::new(orientation, decoder.dimensions()).size;
        Self { bytes, limits: *limits, seen, orientation, jpeg: None, is_deep }
    }

    /// The picture as it is stored, without its orientation.
    pub(crate) fn into_stored(mut self) -> Self {
        self.seen = Walk::new(self.orientation, self.seen).size;
        self.orientation = Orientation::NoTransforms;
        if let Some(jpeg) = &mut self.jpeg {
            jpeg.orientation = Orientation::NoTransforms;
        }
        self
    }

    /// Turns stored pixels as the header says, and compares their size with it.
    pub(super) fn upright(&self, mut stored: DynamicImage) -> Result<DynamicImage, VisionError> {
        stored.apply_orientation(self.orientation);
        of_size((stored.width(), stored.height()), self.seen).map(|()| stored)
    }

    /// Decodes a file of 16 bits a value without cutting them, to the picture that its header says.
    pub(crate) fn decode_deep(&self) -> Result<ImageBuffer<Rgb<u16>, Vec<u16>>, VisionError> {
        let format = format(&self.bytes)?;
        guarded(|| {
            let (decoder, _) = opened(&self.bytes, format, &self.limits)?;
            let image = DynamicImage::from_decoder(decoder).map_err(|error| refused(error, &self.limits))?;
            Ok(self.upright(DynamicImage::ImageRgb16(image.into_rgb16()))?.into_rgb16())
        })
    }

    /// Decodes a part of the picture into `out`, as interleaved RGB. `part` is the walk through the picture rotated for
    /// viewing. More than the part may be decoded. The pixels of the part are those of the whole picture. Returns the
    /// columns and rows that `out` has, and the walk through the part in them.
    pub(crate) fn decode_part(&self, part: Walk, out: &mut Vec<u8>) -> Result<((u32, u32), Walk), VisionError> {
        #[cfg(feature = "turbo")]
        if let Some(jpeg) = self.jpeg.filter(|jpeg| jpeg.for_turbo()) {
            let walk = Walk::new(jpeg.orientation, (jpeg.width, jpeg.height)).then(part);
            let region = Turbo::open(&self.bytes, &jpeg, self.limits.bytes)?.decode(walk.rect(), out)?;
            let start = (walk.start.0 - region.left as i32, walk.start.1 - region.top as i32);
            return Ok(((region.width, region.height), Walk { start, ..walk }));
        }
        let (image, _) = stored(&self.bytes, format(&self.bytes)?, &self.limits)?;
        *out = self.upright(DynamicImage::ImageRgb8(image))?.into_rgb8().into_raw();
        Ok((self.seen, part))
    }

    /// Checks the headers of a JPEG with its tables, as a decoder on the host does.
    ///
    /// # Errors
    /// The errors with which decoding would start.
    pub(crate) fn check_headers(&self) -> Result<(), VisionError> {
        #[cfg(feature = "turbo")]
        if let Some(jpeg) = self.jpeg.filter(|jpeg| jpeg.for_turbo()) {
            return Turbo::open(&self.bytes, &jpeg, self.limits.bytes).map(drop);
        }
        guarded(|| opened(&self.bytes, ImageFormat::Jpeg, &self.limits).map(drop))
    }
}

fn of_size(decoded: (u32, u32), expected: (u32, u32)) -> Result<(), VisionError> {
    if decoded == expected { Ok(()) } else { Err(VisionError::Malformed("it has several sizes")) }
}

pub(super) fn check_size((width, height): (u32, u32), bytes: u64, limits: &Limits) -> Result<(), VisionError> {
    let over = |limit| VisionError::OverLimit { what: format!("an image of {width} x {height} pixels is"), limit };
    if width.max(height) > limits.side {
        return Err(over(limits.side.into()));
    }
    if bytes > limits.bytes {
        return Err(over(limits.bytes));
    }
    if width == 0 || height == 0 { Err(VisionError::NoPixels) } else { Ok(()) }
}

/// Decodes a JPEG as it is stored, without its orientation. The picture must have this size.
pub(crate) fn decode_stored(bytes: &[u8], size: (u32, u32)) -> Result<RgbImage, VisionError> {
    let (image, _) = stored(bytes, ImageFormat::Jpeg, &Limits { side: u32::MAX, bytes: u64::MAX })?;
    of_size(image.dimensions(), size).map(|()| image)
}

/// Turns a panic of a decoder into an error: decoders have bugs, and some files trigger them.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T, VisionError>) -> Result<T, VisionError> {
    // What a panic leaves half done is dropped.
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|payload| {
        let text = payload.downcast::<String>().map(|text| *text);
        let text = text.or_else(|payload| payload.downcast::<&str>().map(|text| text.to_string()));
        Err(VisionError::Panicked(text.unwrap_or_else(|_| "a panic whose payload is not text".into())))
    })
}

/// Opens a file by the crate image: reads its header, and compares it with the limits. Returns also how the picture is
/// turned, which is not known for a JPEG.
pub(super) fn opened<'a>(
    bytes: &'a [u8],
    format: ImageFormat,
    limits: &Limits,
) -> Result<(impl ImageDecoder + 'a, Orientation), VisionError> {
    let bytes = if format == ImageFormat::WebP { riff::checked(bytes)? } else { bytes };
    let given = if format == ImageFormat::WebP { riff::with_true_flags(bytes) } else { bytes.into() };
    let mut reader = ImageReader::with_format(Cursor::new(given), format);
    let mut inner = image::Limits::default();
    inner.max_alloc = Some(limits.bytes);
    reader.limits(inner);
    let mut decoder = reader.into_decoder().map_err(|error| refused(error, limits))?;
    check_size(decoder.dimensions(), decoder.total_bytes(), limits)?;
    let orientation = match format {
        ImageFormat::Jpeg => Orientation::NoTransforms, // `JpegHeader` has the orientation
        ImageFormat::Png => png::orientation(bytes),
        ImageFormat::WebP => riff::orientation(bytes),
        // Metadata that cannot be read is no reason to refuse the pixels.
        _ => decoder.orientation().unwrap_or(Orientation::NoTransforms),
    };
    Ok((decoder, orientation))
}

fn refused(error: ImageError, limits: &Limits) -> VisionError {
    match error {
        ImageError::Limits(_) => {
            VisionError::OverLimit { what: "the memory to decode it is".into(), limit: limits.bytes }
        }
        error => VisionError::Decode(error),
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
