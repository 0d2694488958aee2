//! How far the two decoders of JPEGs on the host differ: the README gives the numbers.

use crate::scenes::files;
use burn_augment::images::{Limits, decode};
use image::{DynamicImage, ImageDecoder, ImageReader};
use std::io::Cursor;

#[test]
fn the_pixels_of_zune_jpeg_are_close_to_those_of_libjpeg_turbo() {
    let (mut most, mut sum, mut count) = (0, 0, 0);
    // One of each kind.
    for file in files().into_iter().take(24) {
        let turbo = decode(&file, &Limits::default()).unwrap();
        let mut decoder = ImageReader::new(Cursor::new(&file)).with_guessed_format().unwrap().into_decoder().unwrap();
        let turned = decoder.orientation().unwrap();
        let mut zune = DynamicImage::from_decoder(decoder).unwrap();
        zune.apply_orientation(turned);
        let zune = zune.to_rgb8();
        assert_eq!(turbo.dimensions(), zune.dimensions());
        for (a, b) in turbo.iter().zip(zune.iter()) {
            let far = a.abs_diff(*b);
            most = most.max(far);
            (sum, count) = (sum + u64::from(far), count + 1);
        }
    }
    let mean = sum as f64 / count as f64;
    println!("differences of zune-jpeg and libjpeg-turbo: at most {most}, mean {mean:.4}");
    assert!((1..=6).contains(&most) && mean <= 0.3, "{most} {mean}");
}
