//! Pictures in a tar are the same samples as those of a folder: the same pixels, the same classes, the same transforms.

use crate::golden::golden;
use burn::data::dataset::Dataset;
use burn_pinned::{
    Augment, KeyedRng,
    data::{ImageLimits, Rows},
    vision::{Image, ImageFolder, Interpolation, Limits, Mask, RandomHorizontalFlip, RandomResizedCrop},
};
use image::{DynamicImage, GrayImage, ImageFormat, Luma};
use jpeg_encoder::{ColorType, Encoder};
use std::{fs, io::Cursor, path::Path};

/// A picture that no other index has.
fn picture(index: usize) -> Vec<u8> {
    let pixels: Vec<u8> = (0..32 * 24 * 3).map(|at| (at * (index + 3) / 5 % 251) as u8).collect();
    let mut file = Vec::new();
    Encoder::new(&mut file, 90).encode(&pixels, 32, 24, ColorType::Rgb).unwrap();
    file
}

/// Writes samples of two files each.
fn tar_of(path: &Path, samples: impl Iterator<Item = [(&'static str, Vec<u8>); 2]>) {
    let mut tar = tar::Builder::new(fs::File::create(path).unwrap());
    for (index, files) in samples.enumerate() {
        for (end, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, format!("{index:02}.{end}"), &*bytes).unwrap();
        }
    }
    tar.finish().unwrap();
}

#[test]
fn a_tar_gives_the_samples_of_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let (folder, path) = (root.path().join("folder"), root.path().join("pictures.tar"));
    let pictures = (0..12).map(|index| {
        let (class, file) = (index / 4, picture(index));
        let place = folder.join(["bird", "cat", "dog"][class]);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(format!("{index:02}.jpg")), &file).unwrap();
        [("jpg", file), ("cls", class.to_string().into_bytes())]
    });
    tar_of(&path, pictures);
    let folder = ImageFolder::open(folder).unwrap();
    let open = || Rows::<(Image, usize)>::tar(&path).columns(["jpg", "cls"]);
    let rows = open().open().unwrap();
    assert_eq!((rows.len(), folder.len()), (12, 12));
    let changes = (RandomResizedCrop::new(8).unwrap(), RandomHorizontalFlip::default());
    for index in 0..12 {
        let change = |sample| changes.apply(sample, &mut KeyedRng::for_order(5, index)).unwrap();
        let (one, two) = (rows.get(index).unwrap(), folder.get(index).unwrap());
        assert_eq!((one.0.to_rgb().unwrap(), one.1), (two.0.to_rgb().unwrap(), two.1));
        let ((one, _), (two, _)) = (change(one), change(two));
        assert_eq!(one.into_rgb().unwrap(), two.into_rgb().unwrap());
    }
    let limited = open().image_limits(Limits { side: 30, ..Limits::default() }).open().unwrap();
    let error = limited.get(0).unwrap_err().to_string();
    assert!(error.contains("over the limit of 30") && error.contains("column `jpg`"), "{error}");
}

/// The header of a picture is read with its row. What is behind it is read when its batch is written.
#[test]
fn a_picture_that_cannot_be_decoded_names_the_key_of_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.tar");
    let whole = png(GrayImage::from_fn(32, 24, |x, y| Luma([(x * y) as u8])));
    let mut damaged = whole.clone();
    let end = whole.len() - 20; // the last chunks stay, so that the file is not cut off
    damaged[45..end].fill(0xA5);
    let samples = [&whole, &damaged, &whole].map(|file| [("jpg", file.clone()), ("png", file.clone())]);
    tar_of(&path, samples.into_iter());
    let rows = Rows::<(Image, Mask, String)>::tar(&path).columns(["jpg", "png", "__key__"]).open().unwrap();
    let (image, mask, key) = rows.get(1).unwrap();
    assert_eq!(key, "01");
    let error = image.to_rgb().unwrap_err().to_string();
    assert!(error.starts_with("cannot read image 01: "), "{error}");
    let error = mask.to_numbers().unwrap_err().to_string();
    assert!(error.starts_with("cannot read image 01: "), "{error}");
    assert!(rows.get(2).unwrap().0.to_rgb().is_ok());
    // A row type without the key has no key to name.
    let rows = Rows::<(Image,)>::tar(&path).columns(["jpg"]).open().unwrap();
    let error = rows.get(1).unwrap().0.to_rgb().unwrap_err().to_string();
    assert!(!error.contains("01"), "{error}");
}

/// What is done about a bad picture is for the policy to decide, also if it is the first one.
#[test]
fn a_bad_first_picture_is_an_error_of_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("first.parquet");
    let mut file = fs::read(golden("mnist/first.parquet")).unwrap();
    let signature = file.windows(4).position(|four| four == b"\x89PNG").unwrap();
    file[signature] = 0;
    fs::write(&path, file).unwrap();
    let rows = Rows::<(Image, usize)>::parquet(&path).columns(["image", "label"]).open().unwrap();
    let error = rows.get(0).unwrap_err().to_string();
    assert!(error.contains("row 0 of") && error.contains("column `image.bytes`"), "{error}");
    assert!((1..200).all(|at| rows.get(at).unwrap().0.to_rgb().is_ok()));

    // A wrong type is still an error of `open`.
    let error = Rows::<(Image,)>::parquet(&path).columns(["label"]).open().unwrap_err().to_string();
    assert!(error.contains("column `label`: invalid type: int64, expected the bytes of an image"), "{error}");
}

#[test]
fn the_path_beside_an_image_is_not_read() {
    let files = golden("parquet").join("hub-*.parquet");
    let rows = Rows::<(Option<Image>, Option<usize>)>::parquet(files).columns(["image", "label"]).open().unwrap();
    let (mut images, mut others) = (0, 0);
    for index in 0..rows.len() {
        match rows.get(index) {
            Ok((Some(image), _)) => {
                assert!(image.to_rgb().is_ok());
                images += 1;
            }
            Ok((None, _)) => others += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(images > others && images > 0, "{images} images, {others} others");
}

fn png(image: GrayImage) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    DynamicImage::from(image).write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

#[test]
fn masks_of_a_tar_move_with_their_images() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("streets.tar");
    let grey = |index: usize| GrayImage::from_fn(32, 24, |x, y| Luma([(x * 7 + y * 3) as u8 ^ index as u8]));
    tar_of(&path, (0..6).map(|index| [("image.png", png(grey(index))), ("mask.png", png(grey(index)))]));
    let rows = Rows::<(Image, Mask)>::tar(&path).columns(["image.png", "mask.png"]).open().unwrap();
    let crop = RandomResizedCrop::new(8).unwrap().interpolation(Interpolation::Nearest);
    for index in 0..6 {
        let rng = &mut KeyedRng::for_order(5, index);
        let (image, mask) = (crop, RandomHorizontalFlip::default()).apply(rows.get(index).unwrap(), rng).unwrap();
        let (image, mask) = (image.into_rgb().unwrap(), mask.to_numbers().unwrap());
        assert!(image.pixels().zip(mask.iter()).all(|(pixel, number)| u16::from(pixel.0[0]) == *number), "{index}");
    }
}

#[test]
fn a_mask_of_a_row_that_is_none_names_its_key_and_the_cure() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("streets.tar");
    let mask = png(GrayImage::new(32, 24));
    tar_of(
        &path,
        (0..4).map(|index| [("jpg", picture(index)), ("mask", if index == 2 { picture(index) } else { mask.clone() })]),
    );
    let rows = Rows::<(Image, Mask)>::tar(&path).columns(["jpg", "mask"]).open().unwrap();
    assert!([0, 1, 3].into_iter().all(|at| rows.get(at).unwrap().1.dimensions() == (32, 24)));
    let error = rows.get(2).unwrap_err().to_string();
    assert!(error.contains("02") && error.contains("column `mask`"), "{error}");
    assert!(error.contains("is a JPEG") && error.contains("store it as PNG"), "{error}");
}

#[test]
fn a_file_that_was_not_downloaded_is_an_error_of_its_row() {
    let root = tempfile::tempdir().unwrap();
    let (path, mask) = (root.path().join("streets.tar"), png(GrayImage::new(32, 24)));
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    let file = |missing: bool, file: &[u8]| if missing { pointer.to_vec() } else { file.to_vec() };
    tar_of(&path, (0..3).map(|at| [("jpg", file(at == 1, &picture(at))), ("mask", file(at == 2, &mask))]));
    let rows = Rows::<(Image, Mask)>::tar(&path).columns(["jpg", "mask"]).open().unwrap();
    assert!(rows.get(0).is_ok());
    for (row, column) in [(1, "jpg"), (2, "mask")] {
        let error = rows.get(row).unwrap_err().to_string();
        assert!(error.contains(&format!("key `0{row}`, column `{column}`")), "{error}");
        assert!(
            error.contains("its content is a pointer of Git LFS: get the file itself with `git lfs pull`"),
            "{error}"
        );
    }
}

#[test]
fn the_bytes_of_a_struct_are_a_mask() {
    let file = golden("mnist/first.parquet");
    let images = Rows::<(Image,)>::parquet(&file).columns(["image"]).open().unwrap();
    let masks = Rows::<(Mask,)>::parquet(&file).columns(["image"]).open().unwrap();
    for index in 0..20 {
        let (image, mask) = (images.get(index).unwrap().0.to_rgb().unwrap(), masks.get(index).unwrap().0);
        let numbers = mask.to_numbers().unwrap();
        assert_eq!(numbers.dimensions(), image.dimensions());
        assert!(image.pixels().zip(numbers.iter()).all(|(pixel, number)| u16::from(pixel.0[0]) == *number));
    }
}
