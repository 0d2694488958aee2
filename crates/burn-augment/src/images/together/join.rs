//! Joins the images and all parts of two samples.

use crate::images::{
    error::VisionError,
    geometry::{CropBox, Interpolation, PaddingMode},
    parameters::Size,
    parts::{AllParts, Joined},
    picture::Picture,
    sample::HasImage,
};

/// The colour of what has no image: YOLO's grey.
pub(super) const GREY: [u8; 3] = [114; 3];

/// Joins another sample of the same size to a sample.
pub(super) fn join<S: HasImage>(ours: &mut S, theirs: &mut S, by: &Joined<'_>) -> Result<(), VisionError> {
    by.paint(ours.image_mut().pixels_mut()?, theirs.image_mut().pixels_mut()?);
    let (to, from) = (ours.parts_mut(), theirs.parts_mut());
    if to.len() != from.len() {
        let problem = format!("of two samples that are combined are {} and {}", to.len(), from.len());
        return Err(VisionError::of_part(
            "parts",
            problem,
            "give all samples the same ones, such as one mask of classes",
        ));
    }
    to.into_iter().zip(from).try_for_each(|(to, from)| by.join(to, from))
}

/// Gives a sample this size: it is scaled until it fits, and what is missing at the right or below is grey.
pub(super) fn fit<S: HasImage>(sample: &mut S, (width, height): (u32, u32)) -> Result<(), VisionError> {
    let mut all = AllParts::of(sample)?;
    if all.dimensions() != (width, height) {
        scale(&mut all, width, height)?;
        all.crop(CropBox { left: 0, top: 0, width, height }, PaddingMode::Constant, GREY)?;
    }
    all.clip();
    Ok(())
}

/// Scales a picture to the largest size that fits.
pub(super) fn scale(picture: &mut impl Picture, across: u32, down: u32) -> Result<(), VisionError> {
    let (width, height) = picture.dimensions();
    let by = (f64::from(across) / f64::from(width)).min(f64::from(down) / f64::from(height));
    let [w, h] =
        [(width, across), (height, down)].map(|(side, most)| ((f64::from(side) * by).round() as u32).clamp(1, most));
    let whole = CropBox { left: 0, top: 0, width, height };
    picture.resized_crop(whole, Size { width: w, height: h }, Interpolation::Bilinear)
}
