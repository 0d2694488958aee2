//! A file as a picture: the checks of its head, and its decoder behind them.

use burn_pinned::vision::{CropBox, Image, Interpolation, Limits, PaddingMode, Picture, Size};

/// Memory and time of an input are small.
pub const LIMITS: Limits = Limits { side: 512, bytes: 1 << 20 };

/// Decodes all of it, and a part, twice: a result must not depend on what was decoded before.
///
/// # Panics
/// If it does, or has another size than the head tells.
pub fn decode(data: &[u8]) {
    let Ok(image) = Image::from_bytes(data.to_vec(), &LIMITS) else { return };
    if let Ok(pixels) = image.to_rgb() {
        assert_eq!(pixels.dimensions(), image.dimensions(), "the header tells another size");
        assert_eq!(image.to_rgb().ok().as_ref(), Some(&pixels), "decoded again, it is another picture");
    }
    let (width, height) = image.dimensions();
    let part = CropBox {
        left: i64::from(width / 3),
        top: i64::from(height / 2),
        width: width.div_ceil(2).min(width - width / 3),
        height: height.div_ceil(3).min(height - height / 2),
    };
    let mut cropped = image.clone();
    if cropped.crop(part, PaddingMode::Constant, [0; 3]).is_ok() {
        let twice = [cropped.to_rgb().ok(), cropped.to_rgb().ok()];
        assert_eq!(twice[0], twice[1], "cut again, it is another part");
    }
    let mut resized = image;
    let size = Size { width: 7, height: 5 };
    if resized.resized_crop(part, size, Interpolation::Bilinear).is_ok() {
        drop(resized.to_rgb());
    }
}
