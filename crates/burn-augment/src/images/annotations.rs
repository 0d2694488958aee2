//! Samples of Burn's own annotated image data sets.

use super::{error::VisionError, lazy::Image, parts::Mask};
use burn::data::dataset::{
    Dataset, DatasetError,
    vision::{Annotation, ImageDatasetItem, PixelData},
};
use image::{ImageBuffer, RgbImage};
use std::path::Path;

/// Burn's `ImageFolderDataset` as a data set of images with annotations: `(Image, usize)` for a label, `(Image,
/// Vec<usize>)` for several labels, or `(Image, Mask)`. For boxes of COCO's annotations, use [`Coco`](super::Coco).
///
/// ```no_run
/// use burn::data::dataset::{Dataset, vision::ImageFolderDataset};
/// use burn_augment::images::{Annotated, Image, Mask};
///
/// let files = vec![("images/1.jpg", "masks/1.png")];
/// let streets = Annotated(ImageFolderDataset::new_segmentation_with_items(files, &["road", "car"])?);
/// let (image, mask): (Image, Mask) = streets.get(0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Burn decodes the whole file in `get`, and ignores its EXIF orientation. Values of 16 bits become `value / 257`, and
/// alpha is dropped. To decode late, or on the device, write a data set with [`Image::open`] and [`Mask::open`].
#[derive(Debug, Clone)]
pub struct Annotated<D>(
    /// The data set.
    pub D,
);

impl<L: FromAnnotation, D: Dataset<ImageDatasetItem>> Dataset<(Image, L)> for Annotated<D> {
    fn get(&self, index: usize) -> Result<(Image, L), DatasetError> {
        let item = self.0.get(index)?;
        let name = item.image_path.clone();
        sample(item).map_err(|error| error.of_file(Path::new(&name)).into())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A type that is made from Burn's annotations.
#[diagnostic::on_unimplemented(
    message = "no annotation becomes `{Self}`",
    label = "this must be `usize`, `Vec<usize>` or `Mask`",
    note = "give the collate the type of such a sample, as `(Image, Mask)`, or implement `FromAnnotation` for `{Self}`"
)]
pub trait FromAnnotation: Sized {
    /// Converts the annotation of an image with this width and height.
    ///
    /// # Errors
    /// If the annotation is of another kind, or does not fit the image.
    fn from_annotation(annotation: Annotation, size: (u32, u32)) -> Result<Self, VisionError>;
}

impl FromAnnotation for usize {
    fn from_annotation(annotation: Annotation, _: (u32, u32)) -> Result<Self, VisionError> {
        match annotation {
            Annotation::Label(label) => Ok(label),
            other => Err(another(&other)),
        }
    }
}

impl FromAnnotation for Vec<usize> {
    fn from_annotation(annotation: Annotation, _: (u32, u32)) -> Result<Self, VisionError> {
        match annotation {
            Annotation::MultiLabel(labels) => Ok(labels),
            other => Err(another(&other)),
        }
    }
}

impl FromAnnotation for Mask {
    fn from_annotation(annotation: Annotation, (width, height): (u32, u32)) -> Result<Self, VisionError> {
        let Annotation::SegmentationMask(mask) = annotation else { return Err(another(&annotation)) };
        let given = mask.mask.len();
        let numbers: Option<Vec<u16>> = mask.mask.into_iter().map(|number| number.try_into().ok()).collect();
        let fits = |numbers: &Vec<u16>| numbers.len() as u64 == u64::from(width) * u64::from(height);
        let numbers = numbers.filter(fits).and_then(|numbers| ImageBuffer::from_raw(width, height, numbers));
        numbers.map(Self::from).ok_or_else(|| {
            VisionError::of_part(
                "mask",
                format!("has {given} numbers, and its image {width} x {height} pixels, or a number is above 65535"),
                "give each image the mask that was drawn for it",
            )
        })
    }
}

fn another(annotation: &Annotation) -> VisionError {
    let problem = match annotation {
        Annotation::Label(_) => "is a label",
        Annotation::MultiLabel(_) => "is a list of labels",
        Annotation::BoundingBoxes(_) => "is boxes, which `Coco` reads",
        Annotation::SegmentationMask(_) => "is a mask",
    };
    let cure = "give the collate its type: `(Image, usize)`, `(Image, Vec<usize>)`, `(Image, Mask)`";
    VisionError::of_part("annotation", problem, cure)
}

fn sample<L: FromAnnotation>(item: ImageDatasetItem) -> Result<(Image, L), VisionError> {
    let ImageDatasetItem { image, image_width, image_height, annotation, .. } = item;
    let bytes: Vec<u8> = match image {
        PixelData::U8(bytes) => bytes,
        PixelData::U16(values) => values.into_iter().map(|value| ((u32::from(value) + 128) / 257) as u8).collect(),
        PixelData::F32(values) => values.into_iter().map(|value| (value * 255.0).round() as u8).collect(),
    };
    let channels = (bytes.len() / (image_width * image_height).max(1)).max(1);
    let colours = |values: &[u8]| match *values {
        [red, green, blue, ..] => [red, green, blue],
        [grey, ..] => [grey; 3],
        [] => [0; 3],
    };
    let pixels = bytes.chunks(channels).flat_map(colours).collect();
    let size = (u32::try_from(image_width).unwrap_or(0), u32::try_from(image_height).unwrap_or(0));
    let image = RgbImage::from_raw(size.0, size.1, pixels).ok_or(VisionError::NoPixels)?;
    Ok((image.into(), L::from_annotation(annotation, size)?))
}
