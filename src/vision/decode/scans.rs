//! Decodes the JPEGs that zune-jpeg, the decoder of the crate `image`, gets wrong: without progressive mode and in several
//! scans, or so narrow that their colours have one or two columns. They go to the crate `jpeg-decoder`, whose pixels are
//! within 3 levels of libjpeg-turbo's. It is slower than zune-jpeg, and for rare files.

use super::{colours::Colours, jpeg::JpegHeader, segments::Segments};
use crate::vision::error::VisionError;
use image::{
    ImageError, ImageFormat, RgbImage,
    error::{DecodingError, ImageFormatHint},
};
use jpeg_decoder::{ColorTransform, Decoder};

/// The most scans of a picture: more than any encoder makes. Each may take as long as the whole picture.
const SCANS: usize = 500;
/// The columns of a narrow picture for jpeg-decoder, which has one block of them in each line of a component.
const NARROW: u16 = 4;

/// Decodes a picture of 8 bits and Huffman codes, as it is stored.
///
/// # Errors
/// If a component has no scan, or the headers or the codes contradict themselves.
pub(super) fn decode(file: &[u8], jpeg: &JpegHeader) -> Result<RgbImage, VisionError> {
    let colours = jpeg.frame.colours().ok_or(VisionError::Malformed("it has neither 1, 3 nor 4 components"))?;
    if file.windows(2).filter(|pair| *pair == [0xFF, 0xDA]).count() > SCANS {
        return Err(VisionError::Malformed("it has more scans than any encoder makes"));
    }
    let is_narrow = jpeg.is_narrow();
    let mut values = if is_narrow { values(&widened(file), colours)? } else { values(file, colours)? };
    let (components, height) = (colours.components(), jpeg.height as usize);
    let width = if is_narrow { usize::from(NARROW) } else { jpeg.width as usize };
    if values.len() != components * width * height {
        return Err(VisionError::Malformed("its headers tell two sizes"));
    }
    if is_narrow {
        repeat(&mut values, jpeg, components);
    }
    let at = |x: u32, y: u32| components * (y as usize * width + x as usize);
    Ok(RgbImage::from_fn(jpeg.width, jpeg.height, |x, y| {
        let mut pixel = [0; 4];
        pixel[..components].copy_from_slice(&values[at(x, y)..][..components]);
        image::Rgb(colours.pixel(pixel))
    }))
}

/// The values of all components, pixel by pixel.
fn values(file: &[u8], colours: Colours) -> Result<Vec<u8>, VisionError> {
    let mut decoder = Decoder::new(file);
    // The first two leave the values as they are, and the last one turns them round.
    let (transform, turned) = match colours.components() {
        1 => (ColorTransform::Grayscale, false),
        3 => (ColorTransform::RGB, false),
        _ => (ColorTransform::CMYK, true),
    };
    decoder.set_color_transform(transform);
    let mut values = decoder.decode().map_err(|error| {
        let format = ImageFormatHint::Exact(ImageFormat::Jpeg);
        VisionError::Decode(ImageError::Decoding(DecodingError::new(format, error)))
    })?;
    if turned {
        values.iter_mut().for_each(|value| *value = 255 - *value);
    }
    Ok(values)
}

/// The file of a narrow picture, as one of `NARROW` columns. It has the same blocks.
fn widened(file: &[u8]) -> Vec<u8> {
    let (mut segments, mut wide) = (Segments::new(file), file.to_vec());
    while let Some((marker, data)) = segments.next() {
        if let (0xC0..=0xC2, [_, _, _, _, _, ..]) = (marker, data) {
            let start = file.len() - segments.rest().len() - data.len();
            wide[start + 3..start + 5].copy_from_slice(&NARROW.to_be_bytes());
            break;
        }
    }
    wide
}

/// Puts back what jpeg-decoder has mixed. To double the one or two columns of a component, libjpeg repeats each value, and
/// jpeg-decoder mixes neighbours. It leaves the first and the last column as they are. Where lines are doubled too, it mixes lines:
/// an even line has three quarters of its own value, and a quarter of the value above.
fn repeat(values: &mut [u8], jpeg: &JpegHeader, components: usize) {
    let factors = &jpeg.frame.sampling[..components];
    let (wide, high) = factors.iter().fold((1, 1), |most, factors| (most.0.max(factors.0), most.1.max(factors.1)));
    for (nth, (_, down)) in factors.iter().enumerate().filter(|(_, (across, _))| 2 * across == wide) {
        let is_mixed = 2 * down == high;
        let mut before = [0; 2];
        for (y, line) in values.chunks_exact_mut(components * usize::from(NARROW)).enumerate() {
            for (column, value) in before.iter_mut().enumerate() {
                let seen = i32::from(line[components * 3 * column + nth]);
                *value = match y {
                    0 => seen,
                    _ if !is_mixed => seen,
                    _ if y.is_multiple_of(2) => ((4 * seen - *value + 1) / 3).clamp(0, 255),
                    _ => *value,
                };
            }
            for (x, pixel) in line.chunks_exact_mut(components).enumerate() {
                pixel[nth] = before[x / 2] as u8;
            }
        }
    }
}

#[cfg(all(test, feature = "turbo"))]
mod tests;
