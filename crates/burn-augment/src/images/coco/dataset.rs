//! COCO's annotations as a Burn data set.

use super::{
    error::CocoError,
    sample::{CocoClass, CocoImage, CocoObject, CocoSample, MaskKind},
};
use crate::{
    files::with_room,
    images::{decode::Limits, lazy::Image},
};
use burn::data::dataset::{Dataset, DatasetError};
use serde::Deserialize;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader},
    path::Path,
    sync::Arc,
};

/// Images with COCO's annotations (`instances_*.json`, `person_keypoints_*.json`, and files of the same form): a Burn
/// data set of [`CocoSample`].
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_augment::{Augment, KeyedRng, images::*};
/// # let folder = tempfile::tempdir()?;
/// # let (json, images) = (folder.path().join("instances.json"), folder.path());
/// # image::RgbImage::new(40, 30).save(images.join("1.png"))?;
/// # std::fs::write(&json, r#"{"categories": [{"id": 18, "name": "dog"}],
/// #     "images": [{"id": 7, "file_name": "1.png", "width": 40, "height": 30}],
/// #     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [10, 5, 20, 20], "area": 200,
/// #         "segmentation": [[10, 5, 30, 5, 10, 25]]}]}"#)?;
///
/// let train = Coco::open(json, images)?.annotated_only().object_masks();
/// let sample = RandomHorizontalFlip::new(1.0)?.apply(train.get(0)?, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!((sample.boxes.xyxy(), sample.boxes.labels()), (&[[10.0, 5.0, 30.0, 25.0]][..], &[0][..]));
/// assert_eq!(train.classes()[0].name, "dog");
/// // The object and the mask of each box that is still in the image.
/// for index in sample.boxes.indices() {
///     let (object, mask) = (&sample.objects[*index], &sample.masks[*index]);
///     assert_eq!((object.area, mask.dimensions()), (200.0, (40, 30)));
/// }
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The file is read once, piece by piece, and only what this type gives is kept. `get` reads one image file on the
/// calling thread, and decodes nothing. As in pycocotools and torchvision, the orientation of EXIF is ignored. Clones
/// share their content.
#[derive(Debug, Clone)]
pub struct Coco {
    folder: Arc<Path>,
    images: Arc<[CocoImage]>,
    classes: Arc<[CocoClass]>,
    limits: Limits,
    masks: MaskKind,
}

/// The file.
#[derive(Deserialize)]
struct CocoFile {
    images: Vec<CocoImage>,
    #[serde(default)]
    annotations: Vec<CocoObject>,
    #[serde(default)]
    categories: Vec<CocoClass>,
}

impl Coco {
    /// Reads a file of annotations. Images are those of the file, in its order; `folder` has them. No image is opened. A path in the file may lead
    /// out of the folder, as in torchvision.
    ///
    /// # Errors
    /// If the file cannot be read or is not as COCO describes it, with the line; if an id is there twice; or if an
    /// annotation is of an unknown image or category.
    pub fn open(json: impl AsRef<Path>, folder: impl AsRef<Path>) -> Result<Self, CocoError> {
        let path = json.as_ref();
        let read = || -> io::Result<CocoFile> {
            Ok(serde_json::from_reader(BufReader::with_capacity(1 << 16, with_room(|| File::open(path))?))?)
        };
        let CocoFile { mut images, annotations, categories: mut classes } =
            read().map_err(|source| CocoError::Read { path: path.into(), source })?;
        classes.sort_by_key(|class| class.id);
        let class_of = places(path, "categories", classes.iter().map(|class| class.id))?;
        let image_of = places(path, "images", images.iter().map(|image| image.id))?;
        for mut object in annotations {
            let unknown = |list, id| CocoError::UnknownId { path: path.into(), annotation: object.id, list, id };
            let image = image_of.get(&object.image_id).ok_or_else(|| unknown("images", object.image_id))?;
            let class = class_of.get(&object.category_id).ok_or_else(|| unknown("categories", object.category_id))?;
            object.class = *class as i32;
            images[*image].objects.push(Arc::new(object));
        }
        Ok(Self {
            folder: folder.as_ref().into(),
            images: images.into(),
            classes: classes.into(),
            limits: Limits::default(),
            masks: MaskKind::Absent,
        })
    }

    /// Leaves out images without an object whose box is wider and higher than a pixel, as torchvision's references of
    /// detection do for training.
    pub fn annotated_only(self) -> Self {
        let is_box = |object: &Arc<CocoObject>| object.bbox[2] > 1.0 && object.bbox[3] > 1.0;
        let images = self.images.iter().filter(|image| image.objects.iter().any(is_box)).cloned().collect();
        Self { images, ..self }
    }

    /// Leaves out the regions with a crowd of objects, as torchvision's references do for training. Call it before
    /// [`annotated_only`](Self::annotated_only).
    pub fn without_crowds(self) -> Self {
        let mut images = self.images.to_vec();
        for image in &mut images {
            image.objects.retain(|object| !object.is_crowd);
        }
        Self { images: images.into(), ..self }
    }

    /// Gives a sample a mask for each object: 1 where the object is, and 0 elsewhere, also outside the image. They are
    /// drawn in `get`, as by pycocotools' `annToMask`, and each takes 2 bytes for a pixel, together at most `Limits::bytes`. Samples
    /// that are combined have those of all, each of the new size. An object without a segmentation has no pixels.
    pub fn object_masks(self) -> Self {
        Self { masks: MaskKind::Objects, ..self }
    }

    /// Gives a sample one mask for segmentation: the class number plus 1, 0 where no object is, and 255 where several
    /// are, and outside the image. A crowd counts as an object. torchvision's references have the ids of categories in it.
    ///
    /// `get` is an error for an image with an object beyond the first 254 classes.
    pub fn class_mask(self) -> Self {
        Self { masks: MaskKind::Classes, ..self }
    }

    /// Sets the limits of each image file.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The categories, in the order of their ids. A class number is an index into them.
    pub fn classes(&self) -> &[CocoClass] {
        &self.classes
    }

    /// The id of an image in the file, without reading it.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn id(&self, index: usize) -> i64 {
        self.images[index].id
    }

    /// The objects of an image, without reading it: for samplers, to count, or for [`AveragePrecision`](crate::images::AveragePrecision).
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn objects(&self, index: usize) -> &[Arc<CocoObject>] {
        &self.images[index].objects
    }
}

impl Dataset<CocoSample> for Coco {
    /// Reads one file and its header.
    ///
    /// # Errors
    /// With the path: if the image cannot be read, is of another size than the file says, or has a box of negative
    /// size; or if masks are drawn, and a segmentation is damaged.
    ///
    /// # Panics
    /// If `index >= len()`.
    fn get(&self, index: usize) -> Result<CocoSample, DatasetError> {
        let entry = &self.images[index];
        let path = self.folder.join(&*entry.file_name);
        let image = Image::open(&path, &self.limits)?.as_stored()?;
        Ok(entry.sample(image, self.masks, &self.classes, &self.limits).map_err(|error| error.of_file(&*path))?)
    }

    fn len(&self) -> usize {
        self.images.len()
    }
}

/// The place of each id in its list.
fn places(path: &Path, list: &'static str, ids: impl Iterator<Item = i64>) -> Result<HashMap<i64, usize>, CocoError> {
    let mut places = HashMap::new();
    for (place, id) in ids.enumerate() {
        if places.insert(id, place).is_some() {
            return Err(CocoError::TwiceAnId { path: path.into(), list, id });
        }
    }
    Ok(places)
}
