//! A sample of COCO: an image with its objects.

use super::shape::Shape;
use crate::images::{
    decode::Limits,
    error::VisionError,
    lazy::Image,
    parts::{BoxFormat, Boxes, HIDDEN, Mask, Part, Points},
    sample::HasImage,
};
use image::{ImageBuffer, Luma};
use serde::{Deserialize, Deserializer, de::Error};
use std::{collections::BTreeSet, sync::Arc};

/// An annotation of the file: an object, or a region with a crowd of them.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct CocoObject {
    /// The id in the file. 0 if it has none.
    #[serde(default, deserialize_with = "or_none")]
    pub id: i64,
    pub(super) image_id: i64,
    /// The id of the category in the file.
    pub category_id: i64,
    /// The class number.
    #[serde(skip)]
    pub class: i32,
    /// The area in the file, in pixels. COCO's is that of the mask. 0 if it has none.
    #[serde(default, deserialize_with = "or_none")]
    pub area: f32,
    /// Whether it is a region with a crowd of objects, `iscrowd`.
    #[serde(default, rename = "iscrowd", deserialize_with = "flag")]
    pub is_crowd: bool,
    /// The keypoints in the file: x, y, and 0 if it is not known, 1 if it is hidden, 2 if it can be seen.
    #[serde(default, deserialize_with = "keypoints")]
    pub keypoints: Box<[[f32; 3]]>,
    /// Left, top, width and height in the file: [`BoxFormat::Xywh`]. Zeros if it has none.
    #[serde(default, deserialize_with = "bbox")]
    pub bbox: [f32; 4],
    #[serde(default)]
    segmentation: Option<Shape>,
}

/// Some tools write `null` for what is not there.
fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(json: D) -> Result<T, D::Error> {
    Option::deserialize(json).map(Option::unwrap_or_default)
}

fn flag<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "`iscrowd` is 0 or 1")]
    enum Flag {
        Is(bool),
        Number(f32),
    }
    Ok(match Option::deserialize(json)? {
        Some(Flag::Is(is)) => is,
        Some(Flag::Number(number)) => number != 0.0,
        None => false,
    })
}

fn bbox<'de, D: Deserializer<'de>>(json: D) -> Result<[f32; 4], D::Error> {
    match or_none::<D, Vec<f32>>(json)?.as_slice() {
        [] => Ok([0.0; 4]),
        numbers => numbers.try_into().map_err(|_| D::Error::custom("a bbox has four numbers")),
    }
}

fn keypoints<'de, D: Deserializer<'de>>(json: D) -> Result<Box<[[f32; 3]]>, D::Error> {
    match or_none::<D, Vec<f32>>(json)?.as_chunks() {
        (points, []) => Ok(points.into()),
        _ => Err(D::Error::custom("keypoints have three numbers each")),
    }
}

/// A category of the file. Its class number is its place in [`Coco::classes`](super::Coco::classes).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CocoClass {
    /// The id in the file.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The names of its keypoints.
    #[serde(default, deserialize_with = "or_none")]
    pub keypoints: Vec<String>,
}

impl CocoClass {
    /// The keypoints that change places when the image is mirrored: those of the same name, but for `left` and `right` before it.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut taken = BTreeSet::new();
        let pair = |(left, name): (usize, &String)| {
            let right = format!("right{}", name.strip_prefix("left")?);
            Some((left, self.keypoints.iter().position(|name| *name == right)?))
        };
        self.keypoints.iter().enumerate().filter_map(pair).filter(move |(_, right)| taken.insert(*right))
    }
}

/// An image of the file, and its objects.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CocoImage {
    pub(super) id: i64,
    pub(super) file_name: Box<str>,
    /// Label Studio writes `null` where it did not open the image.
    width: Option<u32>,
    height: Option<u32>,
    #[serde(skip)]
    pub(super) objects: Vec<Arc<CocoObject>>,
}

/// Which masks a sample has.
#[derive(Debug, Clone, Copy)]
pub(super) enum MaskKind {
    Absent,
    Objects,
    Classes,
}

/// An image with its annotations. Transforms change the image, the boxes, the masks and the keypoints together.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CocoSample {
    /// The id of the image in the file.
    pub id: i64,
    /// The width and height of the image in the file, which no transform changes: for [`LetterBox::to_image`](crate::images::LetterBox::to_image).
    pub size: (u32, u32),
    /// The image, not decoded.
    pub image: Image,
    /// The boxes, clipped at the border of the image. Labels are class numbers. [`Boxes::indices`] has the object of
    /// each box.
    pub boxes: Boxes,
    /// One mask for each object, if [`Coco::object_masks`](super::Coco::object_masks) asks for them.
    pub masks: Vec<Mask>,
    /// One mask of all objects, if [`Coco::class_mask`](super::Coco::class_mask) asks for it.
    pub class_mask: Option<Mask>,
    /// The keypoints of each object. Those that are not known are far outside the image, and stay there: see [`Points::within`]. A flip
    /// exchanges those whose names begin with `left` and `right`.
    pub keypoints: Vec<Points>,
    /// All objects of the image, which no transform changes or removes. Those of combined samples come after them.
    pub objects: Vec<Arc<CocoObject>>,
}

impl HasImage for CocoSample {
    type Image = Image;

    fn image_mut(&mut self) -> &mut Image {
        &mut self.image
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        let lists = [Part::PointSets(&mut self.keypoints), Part::Masks(&mut self.masks)];
        [Part::Boxes(&mut self.boxes)]
            .into_iter()
            .chain(lists)
            .chain(self.class_mask.iter_mut().map(Part::Mask))
            .collect()
    }

    fn append(&mut self, other: &mut Self) {
        self.objects.append(&mut other.objects);
    }
}

impl CocoImage {
    /// The sample of this image, which is read.
    pub(super) fn sample(
        &self,
        image: Image,
        masks: MaskKind,
        classes: &[CocoClass],
        limits: &Limits,
    ) -> Result<CocoSample, VisionError> {
        let (size, objects) = (image.dimensions(), &self.objects);
        if let Some(claim) = self.width.zip(self.height).filter(|claim| *claim != size) {
            let problem = format!("are for {claim:?} pixels, and the image has {size:?}");
            let cure =
                "give them the image that they were made for, turned already: the orientation of EXIF is ignored";
            return Err(VisionError::of_part("annotations", problem, cure));
        }
        let labels: Vec<i32> = objects.iter().map(|object| object.class).collect();
        let boxes = Boxes::new(objects.iter().map(|object| object.bbox), labels, BoxFormat::Xywh)?.clip(size);
        let (mut object_masks, mut class_mask) = (Vec::new(), None);
        match masks {
            MaskKind::Absent => {}
            MaskKind::Objects if 2 * u64::from(size.0) * u64::from(size.1) * objects.len() as u64 > limits.bytes => {
                let problem = format!("of {} objects would take more than {} bytes", objects.len(), limits.bytes);
                return Err(VisionError::of_part("masks", problem, "use `class_mask`, or raise `Limits::bytes`"));
            }
            MaskKind::Objects => {
                let masks = objects.iter().map(|object| Ok(Mask::from(object.mask(size)?).fill(0)));
                object_masks = masks.collect::<Result<_, VisionError>>()?;
            }
            MaskKind::Classes => class_mask = Some(mask_of_classes(objects, size)?),
        }
        let points = |object: &Arc<CocoObject>| {
            let place = |[x, y, seen]: &[f32; 3]| if *seen == 0.0 { HIDDEN } else { [*x, *y] };
            let points = Points::new(object.keypoints.iter().map(place).collect::<Vec<_>>())?;
            let class = &classes[object.class as usize];
            if class.keypoints.len() == points.xy().len() { points.pairs(class.pairs()) } else { Ok(points) }
        };
        let keypoints = objects.iter().map(points).collect::<Result<_, _>>()?;
        Ok(CocoSample {
            id: self.id,
            size,
            image,
            boxes,
            masks: object_masks,
            class_mask,
            keypoints,
            objects: objects.clone(),
        })
    }
}

impl CocoObject {
    /// The mask of 0 and 1. An object without a segmentation has no pixels.
    fn mask(&self, size: (u32, u32)) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
        let Some(shape) = &self.segmentation else { return Ok(ImageBuffer::new(size.0, size.1)) };
        shape.draw(size).map_err(|problem| {
            let problem = format!("of annotation {} {problem}", self.id);
            VisionError::of_part("segmentation", problem, "correct the annotation, or leave it out")
        })
    }
}

/// One mask of all objects: their class numbers plus 1.
fn mask_of_classes(objects: &[Arc<CocoObject>], size: (u32, u32)) -> Result<Mask, VisionError> {
    let mut all = ImageBuffer::<Luma<u16>, _>::new(size.0, size.1);
    for object in objects {
        let number = u16::try_from(object.class + 1).ok().filter(|number| *number < Mask::FILL);
        let many = || VisionError::of_part("mask", "needs more than 254 numbers of classes", "use `object_masks`");
        let number = number.ok_or_else(many)?;
        for (to, _) in all.iter_mut().zip(object.mask(size)?.iter()).filter(|(_, is_in)| **is_in == 1) {
            *to = if *to == 0 { number } else { Mask::FILL };
        }
    }
    Ok(all.into())
}
