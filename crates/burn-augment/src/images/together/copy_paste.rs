//! Objects of another image.

use super::join::{fit, join};
use crate::{
    augment::{Combine, probability},
    error::{BoxError, Error},
    images::{
        error::VisionError,
        parts::{AllParts, Boxes, Mask, Overlay, Part},
        picture::Picture,
        sample::HasImage,
    },
    rng::KeyedRng,
};
use image::{ImageBuffer, Luma};
use rand::RngExt;

/// In errors.
const NAME: &str = "CopyPaste";

/// Pastes objects of another image, with their masks and boxes.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_augment::{Augment, KeyedRng, augment::WithOthers, image::{GrayImage, Luma, RgbImage}, images::*};
///
/// // An object of class 7, and its mask.
/// let mask = Mask::from(GrayImage::from_fn(64, 48, |x, y| Luma([(x < 20 && y < 10).into()])));
/// let sample = (RgbImage::new(64, 48), vec![mask], Boxes::new([[0.0, 0.0, 20.0, 10.0]], [7], BoxFormat::Xyxy)?);
/// let empty = (RgbImage::new(64, 48), vec![], Boxes::default());
/// let paste = WithOthers::new(InMemDataset::new(vec![sample]), CopyPaste::new(1.0)?)?;
/// let (_, masks, boxes) = paste.apply(empty, &mut KeyedRng::for_sample(42, 0, 0))?;
/// assert_eq!((boxes.labels(), masks[0].to_numbers()?.get_pixel(19, 9).0), (&[7][..], [1]));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The method is that of Ghiasi et al., "Simple Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation", 2021. A sample has
/// [`Boxes`] and a `Vec` of masks, one for each box. The pixels of an object are those of its mask that are neither 0 nor 255; where it is
/// covered, its mask becomes 0. A [`Coco`](crate::images::Coco) has them after `object_masks`. One mask of all classes cannot tell its objects
/// apart, so it is an error.
///
/// An object of the image itself whose pixels are covered loses its box. If a part of it is covered, the box shrinks to the pixels that are
/// left, and the share that is left counts as after a crop ([`Boxes::least_visible`]).
///
/// Another image of another size is scaled until it fits: change it first, by
/// [`WithOthers::changed`](crate::augment::WithOthers::changed).
#[derive(Debug, Clone, Copy)]
pub struct CopyPaste(f64);

impl CopyPaste {
    /// Pastes each object of the other image with probability `p`. The paper has 0.5.
    ///
    /// # Errors
    /// If `p` is not a probability.
    pub fn new(p: f64) -> Result<Self, Error> {
        Ok(Self(probability("CopyPaste::new", p)?))
    }
}

impl<S: HasImage> Combine<S> for CopyPaste {
    fn others(&self) -> usize {
        1
    }

    fn combine(&self, mut sample: S, others: Vec<S>, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let size = AllParts::of(&mut sample)?.dimensions();
        for mut other in others {
            fit(&mut other, size)?;
            let mut pasted = vec![false; size.0 as usize * size.1 as usize];
            let at = |(x, y): (u32, u32)| y as usize * size.0 as usize + x as usize;
            let theirs = objects(&mut other)?;
            let mut shares = vec![0.0; theirs.boxes.len()];
            for (object, share) in shares.iter_mut().enumerate().filter(|_| rng.random_bool(self.0)) {
                for pixel in theirs.pixels(object) {
                    (pasted[at(pixel)], *share) = (true, 1.0);
                }
            }
            AllParts::of(&mut other)?.boxes(NAME)?.keep_visible(shares);
            let ours = objects(&mut sample)?;
            // The share of an object that is left, and its edges, if some of it was covered.
            let left = |object| {
                let (mut all, mut left, mut edges) = (0, 0, [f32::MAX, f32::MAX, f32::MIN, f32::MIN]);
                for pixel in ours.pixels(object) {
                    all += 1;
                    if !pasted[at(pixel)] {
                        (left, edges) = (left + 1, with_pixel(edges, pixel));
                    }
                }
                if left == all { (1.0, EVERYWHERE) } else { (left as f32 / all as f32, edges) }
            };
            let (shares, edges): (Vec<_>, Vec<_>) = (0..ours.boxes.len()).map(left).unzip();
            let mut ours = AllParts::of(&mut sample)?;
            ours.boxes(NAME)?.shrink(edges);
            ours.boxes(NAME)?.keep_visible(shares);
            let is_theirs = |x, y| x < size.0 && y < size.1 && pasted[at((x, y))];
            join(&mut sample, &mut other, &Overlay::Picked(&is_theirs))?;
        }
        Ok(sample)
    }
}

const EVERYWHERE: [f32; 4] = [f32::MIN, f32::MIN, f32::MAX, f32::MAX];

/// The edges of a box that grows around a pixel.
fn with_pixel([left, top, right, bottom]: [f32; 4], (x, y): (u32, u32)) -> [f32; 4] {
    let (x, y) = (x as f32, y as f32);
    [left.min(x), top.min(y), right.max(x + 1.0), bottom.max(y + 1.0)]
}

/// The boxes of a sample, and the numbers of the mask of each object.
struct Objects {
    boxes: Boxes,
    masks: Vec<ImageBuffer<Luma<u16>, Vec<u16>>>,
}

impl Objects {
    /// The pixels of the object of a box.
    fn pixels(&self, object: usize) -> impl Iterator<Item = (u32, u32)> {
        let pixels = self.masks[self.boxes.indices()[object]].enumerate_pixels();
        pixels.filter(|(.., number)| ![0, Mask::FILL].contains(&number.0[0])).map(|(x, y, _)| (x, y))
    }
}

fn objects<S: HasImage>(sample: &mut S) -> Result<Objects, VisionError> {
    let boxes = AllParts::of(sample)?.boxes(NAME)?.clone();
    let list = |part| if let Part::Masks(masks) = part { Some(masks) } else { None };
    let masks = sample.parts_mut().into_iter().filter_map(list).flatten().map(|mask| mask.to_numbers());
    let masks: Vec<_> = masks.collect::<Result<_, _>>()?;
    if boxes.indices().iter().any(|index| *index >= masks.len()) {
        let problem =
            format!("are {} for {} boxes, and `{NAME}` needs one for each object", masks.len(), boxes.given());
        let cure =
            "give the sample a `Vec` of masks that `HasImage::parts_mut` names; of `Coco` ask for `object_masks`";
        return Err(VisionError::of_part("masks", problem, cure));
    }
    Ok(Objects { boxes, masks })
}
