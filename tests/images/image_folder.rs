//! A folder of images, with everything that is wrong with real ones, through the loader.

use burn::{
    data::dataset::Dataset,
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    Augment, BadSamples, BoxError, Collate, Error, Field, KeyedRng, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage,
    fault::Quota,
    vision::{CropBox, FolderError, Image, ImageFolder, Interpolation, Picture, RandomRotation, Size},
};
use image::{DynamicImage, ImageBuffer, Luma, Rgb};
use std::{fs, path::Path};

type Sample = (Image, usize);

/// The images become squares of 16 pixels.
const SQUARE: CentreSquare = CentreSquare;

#[derive(Clone, Copy)]
struct CentreSquare;

impl Augment<Sample> for CentreSquare {
    fn apply(&self, mut sample: Sample, _: &mut KeyedRng) -> Result<Sample, BoxError> {
        let (width, height) = sample.0.dimensions();
        let side = width.min(height);
        let (left, top) = (i64::from((width - side) / 2), i64::from((height - side) / 2));
        let square = CropBox { left, top, width: side, height: side };
        sample.0.resized_crop(square, Size::from(16), Interpolation::Bilinear)?;
        Ok(sample)
    }
}

struct Pixels;

impl Collate<Sample> for Pixels {
    type Batch = (Tensor<4, Int>, Tensor<1, Int>);
    fn layout(&self) -> Vec<Field> {
        vec![Field::image("image", 16), Field::new("label", DType::I32, [])]
    }
    fn write(&self, (image, label): &Sample, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.image("image", image)?;
        Ok(row.put("label", i32::try_from(*label)?)?)
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

/// The stages and messages of one epoch's errors, batches of one.
fn errors(root: &Path, augment: impl Augment<Sample>) -> Vec<(Stage, String)> {
    let folder = ImageFolder::open(root).unwrap();
    let builder = PinnedDataLoaderBuilder::new(Pixels).batch_size(1).num_workers(3).set_device(Device::flex());
    let loader = builder.augment(augment).build(folder.clone()).unwrap();
    let batches: Vec<_> = loader.iter().collect();
    assert_eq!(batches.len(), folder.len(), "every file is delivered or reported");
    let failed = batches.into_iter().enumerate().filter_map(|(at, batch)| Some((at, batch.err()?)));
    failed
        .map(|(at, error)| {
            let error = Error::of(&error).unwrap();
            let (place, message) = (error.place().unwrap(), error.to_string());
            assert_eq!(place.index, Some(at), "{message}");
            assert!(message.contains(&folder.path(at).display().to_string()), "{message}");
            (place.stage, message)
        })
        .collect()
}

/// Checks that every file of a folder arrives.
fn check_all_good(root: &Path) {
    let failed = errors(root, SQUARE);
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn good_images_arrive_square_and_labelled() {
    let dir = tempfile::tempdir().unwrap();
    good(dir.path());
    check_all_good(dir.path());
    let folder = ImageFolder::open(dir.path()).unwrap();
    assert_eq!(folder.classes(), ["dark", "light"]);
    let builder = PinnedDataLoaderBuilder::new(Pixels).batch_size(12).num_workers(2).set_device(Device::flex());
    let (images, labels) = builder.augment(SQUARE).build(folder).unwrap().iter().next().unwrap().unwrap();
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
    // A header is read with the file, and so is the end of a JPEG. The data of a PNG is looked at where it is decoded:
    // by the collate, or before it by a change that needs pixels.
    let decoded_late = (Stage::Collate, errors(dir.path(), SQUARE));
    let decoded_early = (Stage::Augment, errors(dir.path(), (SQUARE, RandomRotation::new(10.0).unwrap())));
    for (decoded, failed) in [decoded_late, decoded_early] {
        let expected = [
            ("truncated.jpg", Stage::Read),
            ("truncated.png", decoded),
            ("empty.jpg", Stage::Read),
            ("text.png", Stage::Read),
        ];
        for (name, stage) in expected {
            let of = |(at, message): &&(Stage, String)| {
                *at == stage && message.contains(name) && message.contains("cannot read image")
            };
            assert_eq!(failed.iter().filter(of).count(), 1, "{name}, {stage}: {failed:?}");
        }
        assert_eq!(failed.len(), 4);
    }

    let builder = PinnedDataLoaderBuilder::new(Pixels).batch_size(5).num_workers(2).set_device(Device::flex());
    let builder = builder.augment(SQUARE).bad_samples(BadSamples::Skip(Quota::Count(4)));
    let loader = builder.build(ImageFolder::open(dir.path()).unwrap()).unwrap();
    let images: usize = loader.iter().map(|batch| batch.unwrap().0.dims()[0]).sum();
    assert_eq!(images, 12, "all but the four");
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
    check_all_good(dir.path());
}

#[test]
fn folders_that_are_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| ImageFolder::open(path).unwrap_err();
    assert!(matches!(open(&dir.path().join("missing")), FolderError::NoFolder { .. }));
    let message = open(dir.path()).to_string();
    assert!(message.contains("no sub-folders: one sub-folder per class is expected"), "{message}");
    fs::create_dir(dir.path().join("cats")).unwrap();
    assert!(matches!(open(dir.path()), FolderError::NoImages { .. }));
    assert!(matches!(ImageFolder::open_with_classes(dir.path(), ["cats"]).unwrap_err(), FolderError::NoImages { .. }));
    good(&dir.path().join("nested"));
    fs::rename(dir.path().join("nested/dark"), dir.path().join("dogs")).unwrap();
    assert!(matches!(open(dir.path()), FolderError::OneClass { .. }));
}

/// A class without images has a label: else labels of two folders would differ without an error.
#[test]
fn a_folder_without_images_is_a_class() {
    let dir = tempfile::tempdir().unwrap();
    let labels = |root: &Path| {
        let folder = ImageFolder::open(root).unwrap();
        let names: Vec<_> = folder.classes().to_vec();
        (names, folder.labels().into_iter().collect::<std::collections::BTreeSet<_>>())
    };
    let [train, valid] = ["train", "valid"].map(|name| dir.path().join(name));
    good(&train);
    good(&valid);
    for empty in ["a_first", "empty", "zebra"] {
        fs::create_dir(valid.join(empty)).unwrap();
    }
    fs::write(valid.join("empty/notes.txt"), b"no image").unwrap();
    assert_eq!(labels(&train), (vec!["dark".into(), "light".into()], [0, 1].into()));
    let five = ["a_first", "dark", "empty", "light", "zebra"].map(String::from).to_vec();
    assert_eq!(labels(&valid), (five, [1, 3].into()));
    let [train, valid] = [train, valid].map(|root| ImageFolder::open(root).unwrap());
    assert!(train.check_classes(&train.clone().split(0.5, 1).unwrap().1).is_ok());
    let error = train.check_classes(&valid).unwrap_err();
    let FolderError::OtherClasses { only_first, only_second, .. } = &error else { panic!("{error}") };
    assert_eq!((only_first.len(), &only_second[..]), (0, &["a_first", "empty", "zebra"].map(String::from)[..]));
    assert!(error.to_string().contains("open_with_classes"), "{error}");
    for share in [0.0, 1.0, 10.0, -3.0, f64::NAN, f64::INFINITY] {
        assert!(train.clone().split(share, 1).is_err(), "{share}");
    }
    // A split has all labels too.
    let (mut part, rest) = valid.split(0.5, 3).unwrap();
    part = part.limits(Default::default());
    assert_eq!((part.classes().len(), rest.classes().len()), (5, 5));
    assert_eq!(rest.labels(), [1, 1, 1, 3, 3, 3]);
}

#[test]
fn classes_that_are_given_are_the_labels() {
    let dir = tempfile::tempdir().unwrap();
    good(dir.path());
    let open = |classes: &[&str]| ImageFolder::open_with_classes(dir.path(), classes.iter().copied());
    let folder = open(&["light", "middle", "dark"]).unwrap();
    assert_eq!(folder.classes(), ["light", "middle", "dark"]);
    assert_eq!(folder.labels(), [0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2]);
    assert!(folder.path(0).ends_with("light/0.png") && folder.path(6).ends_with("dark/0.png"));
    let again = ImageFolder::open_with_classes(dir.path(), folder.classes()).unwrap();
    assert!(folder.check_classes(&again).is_ok());
    let message = folder.check_classes(&open(&["dark", "light", "middle"]).unwrap()).unwrap_err().to_string();
    assert!(message.contains("do not mean the same"), "{message}");

    let error = open(&["light", "bright"]).unwrap_err();
    assert!(matches!(&error, FolderError::UnknownClass { path, .. } if path.ends_with("dark")), "{error}");
    assert!(error.to_string().contains("dark is none of the classes"), "{error}");
    assert!(matches!(open(&["dark", "light", "dark"]), Err(FolderError::TwiceAClass { class }) if class == "dark"));
    // One class with images is enough here.
    fs::remove_dir_all(dir.path().join("dark")).unwrap();
    assert_eq!(open(&["dark", "light"]).unwrap().labels(), [1; 6]);
    assert!(matches!(ImageFolder::open(dir.path()), Err(FolderError::OneClass { .. })));
}
