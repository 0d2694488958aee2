//! Decodes the JPEGs that zune-jpeg, the decoder of the crate `image`, gets wrong: without progressive mode and in several
//! scans, or so narrow that their colours have one or two columns. They go to the crate `jpeg-decoder`, whose pixels are
//! within 3 levels of libjpeg-turbo's. It is slower than zune-jpeg, and for rare files.

use super::{jpeg::JpegHeader, segments::next_segment};
use crate::images::error::VisionError;
use image::{ImageFormat, RgbImage};
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
    let colours = jpeg.colours().ok_or(VisionError::Malformed("it has neither 1, 3 nor 4 components"))?;
    if file.windows(2).filter(|pair| *pair == [0xFF, 0xDA]).count() > SCANS {
        return Err(VisionError::Malformed("it has more scans than any encoder makes"));
    }
    let (is_narrow, components, height) = (jpeg.is_narrow(), usize::from(jpeg.components), jpeg.height as usize);
    let mut values = if is_narrow { values(&widened(file), components)? } else { values(file, components)? };
    let width = if is_narrow { usize::from(NARROW) } else { jpeg.width as usize };
    if values.len() != components * width * height {
        return Err(VisionError::Malformed("its headers tell two sizes"));
    }
    if is_narrow {
        repeat(&mut values, jpeg, components);
    }
    let at = |x: u32, y: u32| components * (y as usize * width + x as usize);
    Ok(RgbImage::from_fn(jpeg.width, jpeg.height, |x, y| {
        let mut values_of_pixel = [0; 4];
        values_of_pixel[..components].copy_from_slice(&values[at(x, y)..][..components]);
        image::Rgb(pixel(colours, values_of_pixel))
    }))
}

/// The values of all components, pixel by pixel.
fn values(file: &[u8], components: usize) -> Result<Vec<u8>, VisionError> {
    let mut decoder = Decoder::new(file);
    // The first two leave the values as they are, and the last one turns them round.
    decoder.set_color_transform(match components {
        1 => ColorTransform::Grayscale,
        3 => ColorTransform::RGB,
        _ => ColorTransform::CMYK,
    });
    let mut values = decoder.decode().map_err(|error| VisionError::of_decoder(ImageFormat::Jpeg, error))?;
    if components == 4 {
        values.iter_mut().for_each(|value| *value = 255 - *value);
    }
    Ok(values)
}

/// The file of a narrow picture, as one of `NARROW` columns. It has the same blocks.
fn widened(file: &[u8]) -> Vec<u8> {
    let (mut rest, mut wide) = (file.get(2..).unwrap_or_default(), file.to_vec());
    while let Some((marker, data)) = next_segment(&mut rest) {
        if let (0xC0..=0xC2, [_, _, _, _, _, ..]) = (marker, data) {
            let start = file.len() - rest.len() - data.len();
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
    let factors = &jpeg.sampling[..components];
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

/// The pixel of some values, of which there is one for each component. Those of inks are the light that the ink leaves.
fn pixel(colours: ColorTransform, [a, b, c, black]: [u8; 4]) -> [u8; 3] {
    match colours {
        ColorTransform::Grayscale => [a; 3],
        ColorTransform::YCbCr => rgb(a, b, c),
        ColorTransform::CMYK => [a, b, c].map(|ink| product(ink, black)),
        ColorTransform::YCCK => rgb(a, b, c).map(|value| product(255 - value, black)),
        _ => [a, b, c],
    }
}

/// The arithmetic of libjpeg (`jdcolor.c`).
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let [y, cb, cr] = [i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128];
    let half = 1 << 15;
    let red = y + ((91881 * cr + half) >> 16);
    let green = y + ((-22554 * cb - 46802 * cr + half) >> 16);
    let blue = y + ((116130 * cb + half) >> 16);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}

/// The product of two shares of 255.
fn product(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}

#[cfg(all(test, feature = "turbo"))]
mod tests;
