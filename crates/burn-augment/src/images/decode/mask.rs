//! From a file to numbers: the stored values, not the colours that they stand for.

use super::{
    file::{EncodedFile, Limits, check_size, guarded, opened},
    format::format,
};
use crate::images::error::VisionError;
use bytes::Bytes;
use image::{DynamicImage, ExtendedColorType, ImageBuffer, ImageDecoder, ImageFormat, Luma};
use png::{BitDepth, ColorType as PngColour};
use std::{fmt::Debug, io::Cursor};

/// Reads the header of a mask file.
pub(crate) fn read_mask(bytes: Bytes, limits: &Limits) -> Result<EncodedFile, VisionError> {
    let format = format(&bytes)?;
    if format == ImageFormat::Jpeg {
        let cure = "store it as PNG, anew from where it was drawn";
        return Err(VisionError::of_part("mask", "is a JPEG, whose numbers are not those that were drawn", cure));
    }
    guarded(|| {
        let (decoder, orientation) = opened(&bytes, format, limits)?;
        match format {
            ImageFormat::Png => drop(indexed(&bytes, limits)?),
            // The crate image would scale numbers of fewer bits.
            _ if matches!(decoder.original_color_type(), ExtendedColorType::L8 | ExtendedColorType::L16) => {}
            _ => return Err(colours(decoder.original_color_type())),
        }
        Ok(EncodedFile::of(bytes.clone(), limits, &decoder, orientation))
    })
}

/// Decodes a file of numbers, to the picture that its header says.
pub(crate) fn numbers(file: &EncodedFile) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
    let EncodedFile { bytes, limits, .. } = file;
    let format = format(bytes)?;
    guarded(|| {
        let numbers = match format {
            ImageFormat::Png => stored(bytes, limits)?,
            _ => match DynamicImage::from_decoder(opened(bytes, format, limits)?.0).map_err(VisionError::Decode)? {
                DynamicImage::ImageLuma8(grey) => {
                    let numbers = grey.iter().map(|byte| u16::from(*byte)).collect();
                    ImageBuffer::from_raw(grey.width(), grey.height(), numbers).ok_or(VisionError::NoPixels)?
                }
                DynamicImage::ImageLuma16(grey) => grey,
                other => return Err(colours(other.color())),
            },
        };
        Ok(file.upright(DynamicImage::ImageLuma16(numbers))?.into_luma16())
    })
}

/// Opens a PNG of one channel, by the crate png: the crate image makes colours of a palette, and scales grey of few
/// bits.
fn indexed<'a>(bytes: &'a [u8], limits: &Limits) -> Result<png::Reader<Cursor<&'a [u8]>>, VisionError> {
    let bytes_limit = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
    let reader = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: bytes_limit });
    let reader = reader.read_info().map_err(refused)?;
    let info = reader.info();
    check_size((info.width, info.height), info.raw_bytes() as u64, limits)?;
    match info.color_type {
        PngColour::Indexed | PngColour::Grayscale => Ok(reader),
        other => Err(colours(other)),
    }
}

/// Decodes the numbers of a PNG.
fn stored(bytes: &[u8], limits: &Limits) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
    let mut reader = indexed(bytes, limits)?;
    let mut lines = vec![0; reader.output_buffer_size().ok_or(VisionError::NoPixels)?];
    let info = reader.next_frame(&mut lines).map_err(refused)?;
    let (width, mut numbers) = (info.width as usize, Vec::with_capacity(info.width as usize * info.height as usize));
    for line in lines.chunks_exact(info.line_size) {
        match info.bit_depth {
            BitDepth::Sixteen => {
                numbers.extend(line.as_chunks().0.iter().map(|bytes| u16::from_be_bytes(*bytes)).take(width));
            }
            BitDepth::Eight => numbers.extend(line.iter().map(|byte| u16::from(*byte)).take(width)),
            depth => {
                let bits = depth as usize;
                let number = |at: usize| line[at * bits / 8] >> (8 - bits - at * bits % 8) & (0xFF >> (8 - bits));
                numbers.extend((0..width).map(|at| u16::from(number(at))));
            }
        }
    }
    ImageBuffer::from_raw(info.width, info.height, numbers).ok_or(VisionError::NoPixels)
}

fn colours(kind: impl Debug) -> VisionError {
    let cure = "store its numbers in one channel, as PNG with a palette or as grey";
    VisionError::of_part("mask", format!("has the colours {kind:?} in its file"), cure)
}

fn refused(error: png::DecodingError) -> VisionError {
    VisionError::of_decoder(ImageFormat::Png, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(file: &[u8]) -> EncodedFile {
        read_mask(file.to_vec().into(), &Limits::default()).unwrap()
    }

    fn read(file: &[u8]) -> ImageBuffer<Luma<u16>, Vec<u16>> {
        numbers(&header(file)).unwrap()
    }

    fn png(colour: PngColour, depth: BitDepth, size: (u32, u32), lines: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, size.0, size.1);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        if colour == PngColour::Indexed {
            encoder.set_palette([[7, 8, 9]; 256].as_flattened().to_vec());
        }
        encoder.write_header().unwrap().write_image_data(lines).unwrap();
        file
    }

    #[test]
    fn indices_and_greys_of_few_bits_are_as_they_are_in_the_file() {
        use BitDepth::{Eight, Four, One, Two};
        // Lines of five numbers, from the highest bit down.
        let kinds: [(BitDepth, &[u8], [u16; 10]); 4] = [
            (One, &[0b1010_1000, 0b0111_0000], [1, 0, 1, 0, 1, 0, 1, 1, 1, 0]),
            (Two, &[0b0001_1011, 0b1100_0000, 0b1110_0100, 0], [0, 1, 2, 3, 3, 3, 2, 1, 0, 0]),
            (Four, &[0x01, 0x9F, 0x30, 0xFE, 0x12, 0x70], [0, 1, 9, 15, 3, 15, 14, 1, 2, 7]),
            (Eight, &[0, 1, 128, 254, 255, 5, 6, 7, 8, 9], [0, 1, 128, 254, 255, 5, 6, 7, 8, 9]),
        ];
        for colour in [PngColour::Indexed, PngColour::Grayscale] {
            for (depth, lines, expected) in &kinds {
                let file = png(colour, *depth, (5, 2), lines);
                assert_eq!(header(&file).seen, (5, 2));
                assert_eq!(read(&file).as_raw(), expected, "{colour:?} {depth:?}");
            }
        }
    }

    /// A file whose lines come in the seven passes of Adam7, packed to bits.
    fn interlaced(depth: u32, (width, height): (usize, usize), number: impl Fn(usize, usize) -> u16) -> Vec<u8> {
        let mut lines = Vec::new();
        // The first column and row of each pass, and the steps to the next.
        let passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)];
        for (left, top, across, down) in passes {
            for y in (top..height).step_by(down).filter(|_| left < width) {
                let bits: String = (left..width)
                    .step_by(across)
                    .map(|x| format!("{:0n$b}", number(x, y), n = depth as usize))
                    .collect();
                lines.push(0); // no filter
                lines.extend(bits.as_bytes().chunks(8).map(|eight| {
                    let digit = |at: usize| if eight.get(at) == Some(&b'1') { 0x80_u8 >> at } else { 0 };
                    (0..8).map(digit).sum::<u8>()
                }));
            }
        }
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &lines).unwrap();
        let mut head = [width as u32, height as u32].map(u32::to_be_bytes).concat();
        head.extend([depth as u8, 0, 0, 0, 1]);
        let chunk = |kind: &[u8; 4], data: &[u8]| {
            let body = [kind, data].concat();
            let mut crc = flate2::Crc::new();
            crc.update(&body);
            [&(data.len() as u32).to_be_bytes()[..], &body, &crc.sum().to_be_bytes()].concat()
        };
        let data = packed.finish().unwrap();
        [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &head), &chunk(b"IDAT", &data), &chunk(b"IEND", &[])].concat()
    }

    #[test]
    fn interlaced_numbers_are_as_they_are_in_the_file() {
        for depth in [1, 2, 4, 8, 16] {
            for size in [(1, 1), (3, 2), (5, 7), (19, 11)] {
                let number = |x: usize, y: usize| (x * 7919 + y * 5557) as u16 >> (16 - depth);
                let read = read(&interlaced(depth, size, number));
                assert_eq!(read.dimensions(), (size.0 as u32, size.1 as u32));
                for (x, y, got) in read.enumerate_pixels() {
                    assert_eq!(got.0[0], number(x as usize, y as usize), "{depth} bits, {size:?}: {x} {y}");
                }
            }
        }
    }

    #[test]
    fn clear_colours_of_a_palette_and_a_clear_grey_are_numbers_too() {
        for (colour, clear) in [(PngColour::Indexed, &[0, 128, 255][..]), (PngColour::Grayscale, &[0, 2])] {
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, 5, 1);
            encoder.set_color(colour);
            encoder.set_depth(BitDepth::Two);
            if colour == PngColour::Indexed {
                encoder.set_palette([[7, 8, 9]; 4].as_flattened().to_vec());
            }
            encoder.set_trns(clear.to_vec());
            encoder.write_header().unwrap().write_image_data(&[0b0001_1011, 0b0100_0000]).unwrap();
            assert_eq!(read(&file).as_raw()[..], [0, 1, 2, 3, 1], "{colour:?}");
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused() {
        let file = png(PngColour::Indexed, BitDepth::Eight, (5, 2), &[3; 10]);
        let header = header(&file);
        for end in 0..file.len() - 12 {
            let read = numbers(&EncodedFile { bytes: file[..end].to_vec().into(), ..header.clone() });
            assert!(read.is_err(), "{end} bytes of {}", file.len());
        }
    }
}
