//! Objects of another image.

use super::join::{fit, join};
use crate::{
    augment::{Combine, probability},
    error::{BoxError, Error},
    images::{
        error::VisionError,
        parts::{AllParts, Boxes, Joined, Part},
        picture::Picture,
        sample::HasImage,
    },
    rng::KeyedRng,
};
use image::{ImageBuffer, Luma};
use rand::RngExt;

/// Pastes objects of another image, with their masks and boxes.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_augment::{Augment, KeyedRng, augment::WithOthers, image::{GrayImage, Luma, RgbImage}, images::*};
///
/// // An object of class 7 fills the box.
/// let mask = GrayImage::from_fn(64, 48, |x, y| Luma([if x < 20 && y < 10 { 7 } else { 0 }]));
/// let sample = (RgbImage::new(64, 48), Mask::from(mask), Boxes::new([[0.0, 0.0, 20.0, 10.0]], [7], BoxFormat::Xyxy)?);
/// let empty = (RgbImage::new(64, 48), Mask::from(GrayImage::new(64, 48)), Boxes::default());
/// let paste = WithOthers::new(InMemDataset::new(vec![sample]), CopyPaste::new(1.0)?)?;
/// let (_, mask, boxes) = paste.apply(empty, &mut KeyedRng::for_sample(42, 0, 0))?;
/// assert_eq!((boxes.labels(), mask.to_numbers()?.get_pixel(19, 9).0), (&[7][..], [7]));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The method is that of Ghiasi et al., "Simple Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation", 2021. A sample has
/// a [`Mask`](crate::images::Mask) and [`Boxes`]: the pixels of an object are those in its box whose number is the label of the box. For boxes
/// of the image itself, the share that is still visible counts as after a crop ([`Boxes::least_visible`]); boxes that are covered are removed.
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
            let at = |x: u32, y: u32| y as usize * size.0 as usize + x as usize;
            let (numbers, boxes) = objects(&mut other)?;
            boxes.keep_visible(|edges, label| {
                let is_drawn = rng.random_bool(self.0);
                let pixels: Vec<_> = pixels(&numbers, edges, label).filter(|_| is_drawn).collect();
                pixels.iter().for_each(|(x, y)| pasted[at(*x, *y)] = true);
                if pixels.is_empty() { 0.0 } else { 1.0 }
            });
            let (numbers, boxes) = objects(&mut sample)?;
            boxes.keep_visible(|edges, label| {
                let (all, left) = pixels(&numbers, edges, label)
                    .fold((0, 0), |(all, left), (x, y)| (all + 1, left + i32::from(!pasted[at(x, y)])));
                if all == 0 { 1.0 } else { left as f32 / all as f32 }
            });
            join(&mut sample, &mut other, &Joined::Picked(&|x, y| pasted[at(x, y)]))?;
        }
        Ok(sample)
    }
}

type Numbers = ImageBuffer<Luma<u16>, Vec<u16>>;

/// The first mask and the first boxes of a sample.
fn objects<S: HasImage>(sample: &mut S) -> Result<(Numbers, &mut Boxes), VisionError> {
    let (mut numbers, mut boxes) = (None, None);
    for part in sample.parts_mut() {
        match part {
            Part::Mask(mask) if numbers.is_none() => numbers = Some(mask.to_numbers()?),
            Part::Boxes(some) if boxes.is_none() => boxes = Some(some),
            _ => {}
        }
    }
    numbers.zip(boxes).ok_or(VisionError::of_part(
        "objects",
        "have no mask or no boxes, and `CopyPaste` needs both",
        "use `(Image, Mask, Boxes)` as the sample, or name both in `HasImage::parts_mut`",
    ))
}

/// The pixels of an object.
fn pixels(numbers: &Numbers, edges: [f32; 4], label: i32) -> impl Iterator<Item = (u32, u32)> {
    let [left, top] = [edges[0], edges[1]].map(|edge| edge.max(0.0) as u32);
    let (right, bottom) = (numbers.width().min(edges[2].ceil() as u32), numbers.height().min(edges[3].ceil() as u32));
    let all = (top..bottom).flat_map(move |y| (left..right).map(move |x| (x, y)));
    all.filter(move |(x, y)| i32::from(numbers.get_pixel(*x, *y).0[0]) == label)
}
