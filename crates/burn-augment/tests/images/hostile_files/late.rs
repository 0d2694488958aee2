//! Files that are decoded late: when it shows what is wrong with them.

use super::{decode, encoded, header, jpeg, picture, webp};
use crate::exif::exif;
use image::ImageFormat;
use jpeg_encoder::ColorType;

/// What is wrong with a header shows when a file is read. What is wrong with its data shows when it is decoded.
#[test]
fn an_image_is_refused_for_the_same_reason_as_soon_as_it_shows() {
    let png = encoded(picture(), ImageFormat::Png);
    let lossless = encoded(picture(), ImageFormat::WebP);
    let jpeg = jpeg(&picture(), 8, 6, ColorType::Rgb, false, Some(&exif(6)));
    let at_once = [
        &b""[..],
        b"these are words",
        &[0; 4096],
        b"BM a bitmap, which is not switched on",
        b"\xFF\xD8\xFF\xDA\0\x02 no frame \xFF\xD9",
        &jpeg[..jpeg.len() - 2],
        &png[..20],
        &lossless[..lossless.len() - 4],
        &webp::lossy_file_of(16_383, 16_383),
    ];
    for bytes in at_once {
        let late = header(bytes).unwrap_err();
        assert_eq!(decode(bytes).unwrap_err().to_string(), late.to_string());
    }

    let data = png.windows(4).position(|kind| kind == b"IDAT").unwrap() + 4;
    let mut damaged = png.clone();
    damaged[data] ^= 0xFF;
    for bytes in [&png[..data + 3], &damaged] {
        let image = header(bytes).unwrap();
        assert_eq!((image.dimensions(), image.is_decoded()), ((8, 6), false));
        assert_eq!(decode(bytes).unwrap_err().to_string(), image.to_rgb().unwrap_err().to_string());
    }
}
