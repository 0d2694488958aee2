//! Joins the images and all parts of two samples.

use crate::images::{
    error::VisionError,
    geometry::{CropBox, Interpolation, PaddingMode},
    parameters::{GREY, Size},
    parts::{AllParts, Overlay, Part, unlike},
    picture::Picture,
    sample::HasImage,
};

/// Joins another sample of the same size to a sample, and removes boxes that are too small then.
pub(super) fn join<S: HasImage>(ours: &mut S, theirs: &mut S, by: &Overlay<'_>) -> Result<(), VisionError> {
    by.paint(ours.image_mut().pixels_mut()?, theirs.image_mut().pixels_mut()?);
    let (to, from) = (ours.parts_mut(), theirs.parts_mut());
    if to.len() != from.len() {
        return Err(unlike(format!("are {} and {}", to.len(), from.len())));
    }
    lists_fit(&to, &from)?;
    to.into_iter().zip(from).try_for_each(|(to, from)| to.join(from, by))?;
    ours.append(theirs);
    AllParts::of(ours)?.clip();
    Ok(())
}

/// Checks that lists have an entry for each box: those of the other sample come after them. A list may also be empty in both.
fn lists_fit(to: &[Part<'_>], from: &[Part<'_>]) -> Result<(), VisionError> {
    let given = |parts: &[Part<'_>]| {
        parts.iter().find_map(|part| if let Part::Boxes(boxes) = part { Some(boxes.given()) } else { None })
    };
    let len = |part: &Part<'_>| match part {
        Part::Masks(masks) => Some(masks.len()),
        Part::PointSets(sets) => Some(sets.len()),
        _ => None,
    };
    let Some(boxes) = given(to).zip(given(from)) else { return Ok(()) };
    let lists = to.iter().map(len).zip(from.iter().map(len)).filter_map(|(to, from)| to.zip(from));
    match lists.into_iter().find(|lists| *lists != (0, 0) && *lists != boxes) {
        Some(lists) => {
            Err(unlike(format!("are lists of {} and {}, and {} and {} boxes", lists.0, lists.1, boxes.0, boxes.1)))
        }
        None => Ok(()),
    }
}

/// Gives a sample this size: it is scaled until it fits, and what is missing at the right or below is grey.
pub(super) fn fit<S: HasImage>(sample: &mut S, (width, height): (u32, u32)) -> Result<(), VisionError> {
    let mut all = AllParts::of(sample)?;
    if all.dimensions() != (width, height) {
        scale(&mut all, Size { width, height })?;
    }
    all.hide_points();
    if all.dimensions() != (width, height) {
        all.crop(CropBox::whole((width, height)), PaddingMode::Constant, GREY)?;
    }
    all.clip();
    Ok(())
}

/// Scales a picture to the largest size that fits.
pub(super) fn scale(picture: &mut impl Picture, most: Size) -> Result<(), VisionError> {
    let size = picture.dimensions();
    picture.resized_crop(CropBox::whole(size), most.fitted(size, f64::INFINITY), Interpolation::Bilinear)
}
