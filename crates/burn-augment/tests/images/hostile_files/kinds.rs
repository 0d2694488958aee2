//! Kinds of files: what becomes of their pixels, and what is said of those that are not decoded.

use super::{decode, encoded, header, picture};
use crate::photo::png_chunk;
use burn_augment::images::VisionError;
use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba};

const COLOURS: [[u8; 3]; 4] = [[10, 20, 30], [200, 0, 0], [0, 200, 0], [0, 0, 200]];

/// A GIF whose first frame, all of colour 2, is a part of its screen. Colour 3 is transparent.
fn gif(screen: (u8, u8), part: [u8; 4], background: u8, global: bool) -> Vec<u8> {
    let mut file = b"GIF89a".to_vec();
    let table = |global: bool| if global { 0x81 } else { 0 };
    file.extend([screen.0, 0, screen.1, 0, table(global), background, 0]);
    if global {
        file.extend(COLOURS.as_flattened());
    }
    file.extend([0x21, 0xFE, 2, b'h', b'i', 0]); // a comment
    file.extend([0x21, 0xF9, 4, 1, 0, 0, 3, 0]); // colour 3 is transparent
    let [left, top, width, height] = part;
    file.extend([0x2C, left, 0, top, 0, width, 0, height, 0, table(!global)]);
    if !global {
        file.extend(COLOURS.as_flattened());
    }
    // Codes of 3 bits: 4 starts anew, so that they stay so short; 5 ends.
    let pixels = std::iter::repeat_n([4u8, 2], usize::from(width) * usize::from(height)).flatten();
    let bits: Vec<u8> = pixels.chain([5]).flat_map(|code| [code & 1, code >> 1 & 1, code >> 2]).collect();
    let bytes: Vec<u8> = bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect();
    file.push(2);
    for block in bytes.chunks(255) {
        file.push(block.len() as u8);
        file.extend(block);
    }
    file.extend([0, 0x3B]);
    file
}

#[test]
fn around_the_first_frame_of_a_gif_is_the_background() {
    for (part, background) in [([1, 2, 3, 2], 1), ([0, 1, 6, 2], 0), ([4, 4, 2, 1], 3), ([0, 0, 6, 5], 1)] {
        let [left, top, width, height] = part.map(u32::from);
        let meant = RgbImage::from_fn(6, 5, |x, y| {
            let inside = (left..left + width).contains(&x) && (top..top + height).contains(&y);
            Rgb(COLOURS[if inside { 2 } else { usize::from(background) }])
        });
        assert_eq!(decode(&gif((6, 5), part, background, true)).unwrap(), meant, "{part:?}");
    }
    // Without a table of the screen there is no such colour.
    let none = decode(&gif((2, 1), [1, 0, 1, 1], 1, false)).unwrap();
    assert_eq!(none.as_raw()[..], [0, 0, 0, 0, 200, 0]);
    let beyond = decode(&gif((2, 1), [1, 0, 1, 1], 9, true)).unwrap();
    assert_eq!(beyond.as_raw()[..], [0, 0, 0, 0, 200, 0]);
}

/// `value / 257` to the nearest number, of each of the 65,536.
#[test]
fn values_of_16_bits_are_rounded() {
    let all = ImageBuffer::from_fn(256, 256, |x, y| Luma([(256 * y + x) as u16]));
    let image = decode(&encoded(DynamicImage::ImageLuma16(all), ImageFormat::Png)).unwrap();
    for (value, pixel) in image.pixels().enumerate() {
        assert_eq!(*pixel, Rgb([(value as f64 / 257.0).round() as u8; 3]), "{value}");
    }
}

#[test]
fn palettes_become_colours_and_alpha_is_dropped() {
    let head = [&3u32.to_be_bytes()[..], &1u32.to_be_bytes(), &[8, 3, 0, 0, 0]].concat();
    let data = [0x78, 0x01, 1, 4, 0, 0xFB, 0xFF, 0, 1, 2, 3, 0, 14, 0, 7];
    let chunks = [
        png_chunk(b"IHDR", &head),
        png_chunk(b"PLTE", COLOURS.as_flattened()),
        png_chunk(b"tRNS", &[255, 0]),
        png_chunk(b"IDAT", &data),
        png_chunk(b"IEND", &[]),
    ];
    let image = decode(&[&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()).unwrap();
    assert_eq!(image.as_raw()[..], COLOURS.as_flattened()[3..]);
    let clear = ImageBuffer::from_pixel(1, 1, Rgba([1u8, 2, 3, 0]));
    assert_eq!(decode(&encoded(DynamicImage::ImageRgba8(clear), ImageFormat::Png)).unwrap().as_raw()[..], [1, 2, 3]);
}

#[test]
fn a_kind_that_is_not_decoded_is_named_with_the_cure() {
    let ftyp = |brand: &[u8; 4]| [b"\0\0\0\x18ftyp", &brand[..], b"\0\0\0\0mif1", &brand[..]].concat();
    let files = [
        (b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0".to_vec(), "BMP", "the feature `bmp` of the crate `image`"),
        (b"II*\0\x08\0\0\0".to_vec(), "TIFF", "the feature `tiff` of the crate `image`"),
        (b"MM\0*\0\0\0\x08".to_vec(), "TIFF", "the feature `tiff` of the crate `image`"),
        (ftyp(b"avif"), "AVIF", "the feature `avif-native` of the crate `image`"),
        (ftyp(b"heic"), "HEIC", "convert"),
        (ftyp(b"mif1"), "HEIF", "convert"),
        (b"\xFF\x0A\xFA\x7F\x01".to_vec(), "JPEG XL", "convert"),
        (b"\0\0\0\x0CJXL \r\n\x87\n\0\0\0\0".to_vec(), "JPEG XL", "convert"),
        (b"\0\0\0\x0CjP  \r\n\x87\n\0\0\0\0".to_vec(), "JPEG 2000", "convert"),
    ];
    for (file, kind, cure) in files {
        for error in [decode(&file).unwrap_err(), header(&file).unwrap_err()] {
            let message = error.to_string();
            assert!(matches!(error, VisionError::Unsupported { .. }), "{message}");
            assert!(message.contains(&format!("its content is {kind}, which")), "{message}");
            assert!(message.contains(cure), "{message}");
        }
    }
    assert!(decode(&encoded(picture(), ImageFormat::Png)).is_ok());
}
