//! The example's folder of images, with everything that is wrong with real ones, through the loader.
#![allow(dead_code, unreachable_pub, reason = "the example uses all of its modules, this test a part")]

#[path = "../examples/images/folder.rs"]
mod folder;
#[path = "../examples/images/shapes.rs"]
mod shapes;

use burn::{
    data::dataloader::DataLoader,
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage, vision::write_chw,
};
use folder::{FolderError, ImageFolder, Sample};
use image::{DynamicImage, ImageBuffer, Luma, Rgb};
use std::{collections::HashSet, fs, path::Path};

struct Pixels;

impl Collate<Sample> for Pixels {
    type Batch = (Tensor<4, Int>, Tensor<1, Int>);
    fn layout(&self) -> Vec<Field> {
        vec![Field::new("image", DType::U8, [3, 16, 16]), Field::new("label", DType::I32, [])]
    }
    fn write(&self, sample: &Sample, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        write_chw(&sample.image, row.slice_mut("image")?)?;
        Ok(row.put("label", i32::try_from(sample.label)?)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok((batch.take("image")?, batch.take("label")?))
    }
}

/// Two classes of plain images.
fn good(root: &Path) {
    for (class, value) in [("dark", 10), ("light", 200)] {
        fs::create_dir_all(root.join(class)).unwrap();
        for nth in 0..6 {
            let image = ImageBuffer::from_pixel(20 + nth, 30, Rgb([value, value, value + 20]));
            let name = if nth % 2 == 0 { format!("{nth}.png") } else { format!("{nth}.jpg") };
            DynamicImage::ImageRgb8(image).save(root.join(class).join(name)).unwrap();
        }
    }
}

/// The messages of one epoch's errors, batches of one.
fn errors(root: &Path) -> Vec<String> {
    let folder = ImageFolder::open(root, 16).unwrap();
    let files = folder.len();
    let builder = PinnedDataLoaderBuilder::new(Pixels).batch_size(1).num_workers(3).set_device(Device::flex());
    let loader = builder.build(folder).unwrap();
    let batches: Vec<_> = loader.iter().collect();
    assert_eq!(batches.len(), files, "every file is delivered or reported");
    let failed = batches.into_iter().filter_map(Result::err);
    failed
        .map(|error| {
            let error = Error::of(&error).unwrap();
            assert_eq!(error.place().unwrap().stage, Stage::Read);
            error.to_string()
        })
        .collect()
}

#[test]
fn good_images_arrive_square_and_labelled() {
    let dir = tempfile::tempdir().unwrap();
    good(dir.path());
    assert_eq!(errors(dir.path()), [""; 0]);
    let folder = ImageFolder::open(dir.path(), 16).unwrap();
    assert_eq!(folder.classes(), ["dark", "light"]);
    let builder = PinnedDataLoaderBuilder::new(Pixels).batch_size(12).num_workers(2).set_device(Device::flex());
    let (images, labels) = builder.build(folder).unwrap().iter().next().unwrap().unwrap();
    assert_eq!(images.dims(), [12, 3, 16, 16]);
    let labels = labels.into_data().try_to_vec::<i32>().unwrap();
    assert_eq!(labels, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    let pixels = images.into_data().try_to_vec::<u8>().unwrap();
    for (nth, image) in pixels.chunks(3 * 256).enumerate() {
        let value = if nth < 6 { 10i32 } else { 200 };
        assert!(image[..512].iter().all(|byte| (i32::from(*byte) - value).abs() < 6), "{nth}");
        assert!(image[512..].iter().all(|byte| (i32::from(*byte) - value - 20).abs() < 6), "{nth}");
    }
}

#[test]
fn bad_files_are_reported_with_their_path_and_the_rest_arrives() {
    let dir = tempfile::tempdir().unwrap();
    good(dir.path());
    let dark = dir.path().join("dark");
    let jpeg = fs::read(dark.join("1.jpg")).unwrap();
    fs::write(dark.join("truncated.jpg"), &jpeg[..jpeg.len() / 2]).unwrap();
    let png = fs::read(dark.join("0.png")).unwrap();
    fs::write(dark.join("truncated.png"), &png[..png.len() - 30]).unwrap();
    fs::write(dark.join("empty.jpg"), b"").unwrap();
    fs::write(dark.join("text.png"), b"this is not an image").unwrap();
    let messages = errors(dir.path());
    for name in ["truncated.jpg", "truncated.png", "empty.jpg", "text.png"] {
        let of = |message: &&String| message.contains(name) && message.contains("cannot read image");
        assert_eq!(messages.iter().filter(of).count(), 1, "{name}: {messages:?}");
    }
    assert_eq!(messages.len(), 4);
}

#[test]
fn unusual_files_are_images_too() {
    let dir = tempfile::tempdir().unwrap();
    good(dir.path());
    let dark = dir.path().join("dark");
    ImageBuffer::from_pixel(40, 20, Luma([9000u16])).save(dark.join("16bit.png")).unwrap();
    DynamicImage::ImageRgba8(ImageBuffer::from_pixel(5, 50, image::Rgba([1, 2, 3, 4])))
        .save(dark.join("alpha.png"))
        .unwrap();
    DynamicImage::ImageLuma8(ImageBuffer::from_pixel(1, 1, Luma([7u8]))).save(dark.join("GREY.JPG")).unwrap();
    fs::copy(dark.join("0.png"), dark.join("png-inside.jpg")).unwrap();
    assert_eq!(errors(dir.path()), [""; 0]);
}

#[test]
fn folders_that_are_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| ImageFolder::open(path, 16).unwrap_err();
    assert!(matches!(open(&dir.path().join("missing")), FolderError::NoFolder { .. }));
    let message = open(dir.path()).to_string();
    assert!(message.contains("no sub-folders: one sub-folder per class is expected"), "{message}");
    fs::create_dir(dir.path().join("cats")).unwrap();
    assert!(matches!(open(dir.path()), FolderError::NoImages { .. }));
    good(&dir.path().join("nested"));
    fs::rename(dir.path().join("nested/dark"), dir.path().join("dogs")).unwrap();
    assert!(matches!(open(dir.path()), FolderError::OneClass { .. }));
}

#[test]
fn generated_shapes_are_whole_and_split_without_overlap() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("shapes");
    shapes::generate(&root, 10, 1).unwrap();
    shapes::generate(&root, 10, 1).unwrap(); // once is enough
    assert_eq!(errors(&root), [""; 0]);
    let folder = ImageFolder::open(&root, 16).unwrap();
    assert_eq!((folder.classes().len(), folder.len()), (6, 60));
    let pixels = |folder: &ImageFolder| -> HashSet<Vec<u8>> {
        (0..folder.len()).map(|at| folder.read(at).unwrap().image.into_raw()).collect()
    };
    let all = pixels(&folder);
    let (train, valid) = folder.split(0.2, 3);
    assert_eq!((train.len(), valid.len()), (48, 12));
    let (train, valid) = (pixels(&train), pixels(&valid));
    assert!(train.is_disjoint(&valid));
    assert_eq!(train.union(&valid).cloned().collect::<HashSet<_>>(), all);
}
