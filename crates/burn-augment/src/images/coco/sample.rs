//! A sample of COCO: an image with its objects.

use super::{json::ObjectEntry, shape::Shape};
use crate::images::{
    error::VisionError,
    lazy::Image,
    parts::{BoxFormat, Boxes, Mask, Part, Points},
    sample::HasImage,
};
use image::{ImageBuffer, Luma};
use std::sync::Arc;

/// An annotation of the file: an object, or a region with a crowd of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CocoObject {
    /// The id in the file. 0 if it has none.
    pub id: i64,
    /// The class number.
    pub class: i32,
    /// The area in the file, in pixels. COCO's is that of the mask. 0 if it has none.
    pub area: f32,
    /// Whether it is a region with a crowd of objects, `iscrowd`.
    pub is_crowd: bool,
    /// For each keypoint 0 if it is not known, 1 if it is hidden, 2 if it can be seen.
    pub visibility: Box<[u8]>,
    /// Left, top, width, height.
    pub(super) edges: [f32; 4],
    keypoints: Box<[[f32; 2]]>,
    shape: Option<Shape>,
}

/// An image of the file, and its objects.
#[derive(Debug, Clone)]
pub(super) struct CocoImage {
    pub(super) id: i64,
    pub(super) file_name: Box<str>,
    pub(super) size: (u32, u32),
    pub(super) objects: Arc<[CocoObject]>,
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
    /// The image, not decoded.
    pub image: Image,
    /// The boxes, clipped at the border of the image. Labels are class numbers. [`Boxes::indices`] has the object of each box.
    pub boxes: Boxes,
    /// One mask for each object, or one of all ([`Coco::object_masks`], [`Coco::class_mask`]). Otherwise none.
    pub masks: Vec<Mask>,
    /// The keypoints of each object. A flip does not exchange left and right ones.
    pub keypoints: Vec<Points>,
    /// All objects of the file, which no transform changes or removes.
    pub objects: Arc<[CocoObject]>,
}

impl HasImage for CocoSample {
    type Image = Image;

    fn image_mut(&mut self) -> &mut Image {
        &mut self.image
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        let masks = self.masks.iter_mut().map(Part::Mask);
        let keypoints = self.keypoints.iter_mut().map(Part::Points);
        [Part::Boxes(&mut self.boxes)].into_iter().chain(masks).chain(keypoints).collect()
    }
}

impl CocoImage {
    /// The sample of this image, which is read.
    pub(super) fn sample(&self, image: Image, masks: MaskKind) -> Result<CocoSample, VisionError> {
        let (size, objects) = (self.size, &self.objects);
        let (width, height) = image.dimensions();
        if size != (width, height) {
            let problem = format!("are for {} x {} pixels, and the image has {width} x {height}", size.0, size.1);
            return Err(VisionError::of_part("annotations", problem, "give them the image that they were made for"));
        }
        let labels: Vec<i32> = objects.iter().map(|object| object.class).collect();
        let boxes = Boxes::new(objects.iter().map(|object| object.edges), labels, BoxFormat::Xywh)?.clip(size);
        let masks = match masks {
            MaskKind::Absent => Vec::new(),
            MaskKind::Objects => {
                let mask = |object: &CocoObject| Ok(Mask::from(object.draw(size)?).fill(0));
                objects.iter().map(mask).collect::<Result<_, VisionError>>()?
            }
            MaskKind::Classes => vec![class_mask(objects, size)?],
        };
        let keypoints = objects.iter().map(|object| Points::new(&*object.keypoints)).collect::<Result<_, _>>()?;
        Ok(CocoSample { id: self.id, image, boxes, masks, keypoints, objects: Arc::clone(objects) })
    }
}

impl CocoObject {
    pub(super) fn new(entry: ObjectEntry, class: i32) -> Self {
        let ObjectEntry { id, bbox, area, iscrowd, segmentation, keypoints, .. } = entry;
        Self {
            id,
            class,
            area,
            is_crowd: iscrowd != 0,
            visibility: keypoints.0.iter().map(|point| point[2] as u8).collect(),
            edges: bbox,
            keypoints: keypoints.0.iter().map(|[x, y, _]| [*x, *y]).collect(),
            shape: segmentation,
        }
    }

    /// The mask of 0 and 1. An object without a segmentation has no pixels.
    fn draw(&self, size: (u32, u32)) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
        self.shape.as_ref().map_or_else(|| Ok(ImageBuffer::new(size.0, size.1)), |shape| shape.draw(size))
    }
}

/// One mask of all objects: their class numbers plus 1.
fn class_mask(objects: &[CocoObject], size: (u32, u32)) -> Result<Mask, VisionError> {
    let mut all = ImageBuffer::<Luma<u16>, _>::new(size.0, size.1);
    for object in objects {
        let number = u16::try_from(object.class + 1).ok().filter(|number| *number < Mask::FILL).ok_or_else(|| {
            VisionError::of_part("mask", "needs a number for each of more than 254 classes", "use `object_masks`")
        })?;
        for (to, is_in) in all.iter_mut().zip(object.draw(size)?.iter()) {
            match (*is_in, *to) {
                (0, _) => {}
                (_, 0) => *to = number,
                _ => *to = Mask::FILL,
            }
        }
    }
    Ok(all.into())
}
