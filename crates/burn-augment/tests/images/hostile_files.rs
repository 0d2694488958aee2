//! Files that real folders hold, made here byte by byte: each is a clear error or the right image, never a crash and never a hang.

mod disk;
mod kinds;
mod late;
mod orientation;
mod webp;

use crate::{exif::exif, photo::png_chunk};
use burn_augment::images::{self, Image, Limits, Mask, VisionError};
use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba};
use jpeg_encoder::{ColorType, Encoder};
use std::{
    io::Cursor,
    time::{Duration, Instant},
};

/// Red to the left, blue to the right, a green dot at the top left; 8 x 6 pixels.
fn picture() -> RgbImage {
    RgbImage::from_fn(8, 6, |x, y| match (x, y) {
        (0..2, 0..2) => Rgb([0, 255, 0]),
        (0..4, _) => Rgb([255, 0, 0]),
        _ => Rgb([0, 0, 255]),
    })
}

fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn decode(bytes: &[u8]) -> Result<RgbImage, VisionError> {
    decode_within(bytes, &Limits::default())
}

/// Decodes a file at once, and then late. All bytes of these tests go through here: both ways refuse them, or both
/// give the same pixels.
fn decode_within(bytes: &[u8], limits: &Limits) -> Result<RgbImage, VisionError> {
    let decoded = images::decode(bytes, limits);
    let late = Image::from_bytes(bytes.to_vec(), limits).and_then(|image| image.to_rgb());
    match (&decoded, &late) {
        (Ok(pixels), Ok(late)) => assert!(pixels == late, "other pixels of {bytes:?}"),
        (Err(_), Err(_)) => {}
        _ => panic!("at once {decoded:?}, late {late:?}, of {bytes:?}"),
    }
    decoded
}

/// Reads a header, as `ImageFolder` does.
fn header(bytes: &[u8]) -> Result<Image, VisionError> {
    Image::from_bytes(bytes.to_vec(), &Limits::default())
}

/// Whether all bytes are nearly equal. Those of a JPEG are never fully equal.
fn close(a: &RgbImage, b: &RgbImage, by: u8) -> bool {
    a.dimensions() == b.dimensions() && a.iter().zip(b.iter()).all(|(a, b)| a.abs_diff(*b) <= by)
}

fn jpeg(pixels: &[u8], width: u16, height: u16, kind: ColorType, progressive: bool, exif: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 100);
    encoder.set_progressive(progressive);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
    if let Some(exif) = exif {
        encoder.add_exif_metadata(exif).unwrap();
    }
    encoder.encode(pixels, width, height, kind).unwrap();
    bytes
}

#[test]
fn every_kind_of_pixel_becomes_8_bit_rgb() {
    let rgb = picture();
    assert_eq!(decode(&encoded(rgb.clone(), ImageFormat::Png)).unwrap(), rgb);
    assert_eq!(decode(&encoded(rgb.clone(), ImageFormat::WebP)).unwrap(), rgb);
    assert!(close(&decode(&jpeg(&rgb, 8, 6, ColorType::Rgb, false, None)).unwrap(), &rgb, 4));
    assert!(close(&decode(&jpeg(&rgb, 8, 6, ColorType::Rgb, true, None)).unwrap(), &rgb, 4));

    let deep = ImageBuffer::from_fn(8, 6, |x, y| Rgb(rgb.get_pixel(x, y).0.map(|byte| u16::from(byte) * 257)));
    assert_eq!(decode(&encoded(DynamicImage::ImageRgb16(deep), ImageFormat::Png)).unwrap(), rgb);
    let deep = ImageBuffer::from_pixel(3, 2, Luma([0x8080u16]));
    let grey = RgbImage::from_pixel(3, 2, Rgb([0x80; 3]));
    assert_eq!(decode(&encoded(DynamicImage::ImageLuma16(deep), ImageFormat::Png)).unwrap(), grey);
    let luma = ImageBuffer::from_pixel(3, 2, Luma([0x80u8]));
    assert!(close(&decode(&jpeg(&luma, 3, 2, ColorType::Luma, false, None)).unwrap(), &grey, 1));
    let clear = ImageBuffer::from_pixel(3, 2, Rgba([0x80u8, 0x80, 0x80, 0]));
    assert_eq!(decode(&encoded(DynamicImage::ImageRgba8(clear), ImageFormat::Png)).unwrap(), grey);

    // CMYK counts ink, which is what white lacks.
    let ink: Vec<u8> = rgb.pixels().flat_map(|Rgb([r, g, b])| [255 - r, 255 - g, 255 - b, 0]).collect();
    for kind in [ColorType::Cmyk, ColorType::CmykAsYcck] {
        let back = decode(&jpeg(&ink, 8, 6, kind, false, None)).unwrap();
        assert!(close(&back, &rgb, 6), "{kind:?}: {back:?}");
    }
    let half_black = decode(&jpeg(&[0, 0, 0, 128].repeat(4), 2, 2, ColorType::Cmyk, false, None)).unwrap();
    assert!(close(&half_black, &RgbImage::from_pixel(2, 2, Rgb([127; 3])), 2));
}

#[test]
fn of_an_animation_it_is_the_first_frame() {
    let (first, second) = (picture(), RgbImage::from_pixel(8, 6, Rgb([9, 9, 9])));
    let mut gif = Vec::new();
    {
        let mut encoder = image::codecs::gif::GifEncoder::new(&mut gif);
        for frame in [&first, &second] {
            encoder.encode_frame(image::Frame::new(DynamicImage::ImageRgb8(frame.clone()).into_rgba8())).unwrap();
        }
    }
    assert!(close(&decode(&gif).unwrap(), &first, 2));

    let png = encoded(first.clone(), ImageFormat::Png);
    let frame: [u32; 5] = [0, 8, 6, 0, 0];
    let control = [&frame.map(u32::to_be_bytes).concat()[..], &[0, 1, 0, 10, 0, 0]].concat();
    let animation = png_chunk(b"acTL", &[0, 0, 0, 1, 0, 0, 0, 0]);
    let apng = [&png[..33], &animation, &png_chunk(b"fcTL", &control), &png[33..]].concat();
    assert_eq!(decode(&apng).unwrap(), first);

    // Frames are blended on a canvas, and this changes a byte by 1 at most.
    assert!(close(&decode(&webp::animated(8, 6, &[&first, &second])).unwrap(), &first, 1));
}

#[test]
fn the_exif_orientation_is_applied() {
    use image::imageops::{flip_horizontal as mirror, rotate90, rotate180, rotate270};
    let rgb = picture();
    // What a camera held otherwise means: https://sirv.com/help/articles/rotate-photos-to-be-upright/
    let meant: [RgbImage; 8] = [
        rgb.clone(),
        mirror(&rgb),
        rotate180(&rgb),
        mirror(&rotate180(&rgb)),
        mirror(&rotate90(&rgb)),
        rotate90(&rgb),
        mirror(&rotate270(&rgb)),
        rotate270(&rgb),
    ];
    for (orientation, meant) in (1..=8).zip(meant) {
        let bytes = jpeg(&rgb, 8, 6, ColorType::Rgb, false, Some(&exif(orientation)));
        assert!(close(&decode(&bytes).unwrap(), &meant, 4), "{orientation}");
    }
    for nonsense in [&exif(77)[..], b"II*\0", b"no TIFF at all, and quite long"] {
        let bytes = jpeg(&rgb, 8, 6, ColorType::Rgb, false, Some(nonsense));
        assert!(close(&decode(&bytes).unwrap(), &rgb, 4), "{nonsense:?}");
    }
}

#[test]
fn what_is_no_image_is_told_apart() {
    assert!(matches!(decode(b""), Err(VisionError::Empty)));
    assert!(matches!(decode(b"these are words"), Err(VisionError::UnknownFormat)));
    assert!(matches!(decode(&[0; 4096]), Err(VisionError::UnknownFormat)));
    assert!(decode(b"BM a bitmap, which is not switched on").is_err());
    let dicom = [&[0; 128][..], b"DICM\x02\0\0\0UL\x04\0"].concat();
    let others: [(&[u8], &str); 14] = [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n", "git lfs pull"),
        (b"version https://hawser.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
        (b"/annex/objects/SHA256E-s1--00.jpg\n", "git annex get"),
        (b"<!DOCTYPE html>\n<html lang=\"en\"><head>", "download the file again"),
        (b"\xef\xbb\xbf\r\n <HTML><body>Sign in</body>", "download the file again"),
        (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", "download the file again"),
        (b"404: Not Found", "download the file again"),
        (b"Entry not found", "download the file again"),
        (b"<svg xmlns=\"http://www.w3.org/2000/svg\">", "SVG, which is not decoded: convert it"),
        (b"<?xml version=\"1.0\"?>\n<!-- drawn -->\n<svg width=\"5\">", "SVG, which is not decoded: convert it"),
        (b"\x93NUMPY\x01\x00\x76\x00{'descr': '|u1'", "a NumPy array, which is not decoded: convert it"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "PDF, which is not decoded: convert it"),
        (&dicom, "DICOM, which is not decoded: convert it"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC, which is not decoded: convert it"),
    ];
    for (bytes, cure) in others {
        let mask = Mask::from_bytes(bytes.to_vec(), &Limits::default()).unwrap_err();
        for error in [decode(bytes).unwrap_err(), header(bytes).unwrap_err(), mask] {
            assert!(error.to_string().contains(cure), "{error}");
        }
    }
    let jpeg = jpeg(&picture(), 8, 6, ColorType::Rgb, false, None);
    assert!(matches!(decode(&jpeg[..jpeg.len() - 2]), Err(VisionError::Truncated)));
}

/// Some cameras and editors leave bytes between the headers of a JPEG, and decoders pass over them.
#[test]
fn bytes_between_headers_are_no_damage() {
    let rgb = picture();
    let whole = jpeg(&rgb, 8, 6, ColorType::Rgb, false, Some(&exif(1)));
    let image = decode(&whole).unwrap();
    let behind_app0 = 4 + usize::from(u16::from_be_bytes([whole[4], whole[5]]));
    assert_eq!(whole[2..4], [0xFF, 0xE0]);
    assert_eq!(whole[behind_app0], 0xFF);
    for stray in [&[0, 0][..], &[0x41; 300], &[0xFF], &[0xFF, 0xFF], &[0xFF, 0x00], &[7, 0xFF, 0x00, 0xFF, 0x00]] {
        let with = |bytes: &[u8]| [&bytes[..behind_app0], stray, &bytes[behind_app0..]].concat();
        assert_eq!(decode(&with(&whole)).unwrap(), image, "{stray:?}");
        let cut = &whole[..whole.len() - 2];
        assert!(matches!(decode(&with(cut)), Err(VisionError::Truncated)), "{stray:?}");
    }
}

/// Files are cut at every place, and many of their bytes are damaged.
#[test]
fn cut_and_damaged_files_never_crash() {
    let rgb = picture();
    let mut whole = vec![
        encoded(rgb.clone(), ImageFormat::Png),
        jpeg(&rgb, 8, 6, ColorType::Rgb, false, Some(&exif(6))),
        jpeg(&rgb, 8, 6, ColorType::Rgb, true, None),
        encoded(rgb.clone(), ImageFormat::Gif),
        encoded(rgb.clone(), ImageFormat::WebP),
    ];
    whole.extend(webp::lossy_files());
    // A damaged header may claim any size: small limits keep the test quick.
    let limits = Limits { side: 1000, bytes: 1 << 20 };
    for (nth, bytes) in whole.iter().enumerate() {
        let image = decode(bytes).unwrap();
        for cut in 0..bytes.len() {
            // What comes after the pixels may be missing.
            if let Ok(part) = decode_within(&bytes[..cut], &limits) {
                assert_eq!(part, image, "file {nth} cut at {cut}");
            }
        }
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                if let Ok(image) = decode_within(&damaged, &limits) {
                    assert!(image.width() > 0 && image.height() > 0);
                }
            }
        }
    }
}

#[test]
fn claims_of_size_are_refused_before_memory_is_taken() {
    let started = Instant::now();
    let refused = |bytes: &[u8]| match (decode(bytes), header(bytes)) {
        (Err(VisionError::OverLimit { what, .. }), Err(VisionError::OverLimit { what: late, .. })) => {
            assert_eq!(what, late);
            what
        }
        other => panic!("{other:?}"),
    };
    let png = |width: u32, height: u32| {
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        let data = [png_chunk(b"IDAT", &[0x78, 0x9C, 3, 0, 0, 0, 0, 1]), png_chunk(b"IEND", &[])].concat();
        [&b"\x89PNG\r\n\x1a\n"[..], &png_chunk(b"IHDR", &header), &data].concat()
    };
    refused(&png(0x7FFF_FFFF, 0x7FFF_FFFF));
    refused(&png(1, 20_000));
    assert_eq!(refused(&png(16_000, 16_000)), "an image of 16000 x 16000 pixels is");
    let mut huge = jpeg(&picture(), 8, 6, ColorType::Rgb, false, None);
    let frame = huge.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    huge[frame + 5..frame + 9].copy_from_slice(&[0xFF, 0xDC, 0xFF, 0xDC]);
    assert_eq!(refused(&huge), "an image of 65500 x 65500 pixels is");
    huge[frame + 5..frame + 9].copy_from_slice(&[0x3E, 0x80, 0x3E, 0x80]); // 16,000 a side: 768 MB
    refused(&huge);
    let mut gif = encoded(picture(), ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0xFF; 4]);
    refused(&gif);
    let webp = webp::animated(60_000, 60_000, &[&picture()]);
    assert_eq!(refused(&webp), "an image of 60000 x 60000 pixels is");
    assert_eq!(refused(&webp::lossy_file_of(16_383, 16_383)), "an image of 16383 x 16383 pixels is");
    assert!(started.elapsed() < Duration::from_secs(5), "nothing was decoded");
}
