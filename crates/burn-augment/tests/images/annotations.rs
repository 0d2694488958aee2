//! Burn's `ImageFolderDataset`, as samples whose parts move with their image. The feature switches on all formats of
//! the crate image, so TIFF and BMP are tested here.

use burn::data::dataset::{Dataset, vision::ImageFolderDataset};
use burn_augment::{Augment, BoxError, KeyedRng, images::*};
use image::{DynamicImage, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage};
use std::{io::Cursor, path::Path};

fn picture(path: &Path) -> RgbImage {
    let image = RgbImage::from_fn(12, 8, |x, y| Rgb([x as u8, y as u8, 7]));
    image.save(path).unwrap();
    image
}

#[test]
fn a_mask_moves_with_its_image() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let (path, mask) = (folder.path().join("1.png"), folder.path().join("1.mask.png"));
    let image = picture(&path);
    GrayImage::from_fn(12, 8, |x, _| Luma([x as u8])).save(&mask)?;
    let data = Annotated(ImageFolderDataset::new_segmentation_with_items(vec![(path, mask)], &["a"])?);
    let sample: (Image, Mask) = data.get(0)?;
    assert_eq!(sample.0.to_rgb()?, image);
    let (image, mask) = CenterCrop::new(4)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
    let (image, mask) = (image.into_rgb()?, mask.to_numbers()?);
    assert!(image.pixels().zip(mask.iter()).all(|(pixel, number)| u16::from(pixel.0[0]) == *number));
    let other: Result<(Image, usize), _> = data.get(0);
    let error = other.unwrap_err().to_string();
    assert!(error.contains("annotation of a sample is a mask") && error.contains("1.png"), "{error}");
    Ok(())
}

#[test]
fn labels_are_numbers_of_classes() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("1.png");
    picture(&path);
    let names = vec!["b".to_string(), "a".to_string()];
    let many = ImageFolderDataset::new_multilabel_classification_with_items(vec![(path.clone(), names)], &["a", "b"])?;
    let (_, labels): (Image, Vec<usize>) = Annotated(many).get(0)?;
    assert_eq!(labels, [1, 0]);
    let one = ImageFolderDataset::new_classification_with_items(vec![(path, "b".to_string())], &["a", "b"])?;
    let (_, label): (Image, usize) = Annotated(one).get(0)?;
    assert_eq!(label, 1);
    Ok(())
}

fn file(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.into().write_to(&mut file, format).unwrap();
    file.into_inner()
}

#[test]
fn sixteen_bits_of_a_tiff_are_as_they_are() -> Result<(), BoxError> {
    let scan = ImageBuffer::from_fn(12, 8, |x, y| Luma([(x * 7919 + y * 104_729) as u16]));
    let (bytes, limits) = (file(scan.clone(), ImageFormat::Tiff), Limits::default());
    let sample = (Image::from_bytes(bytes.clone(), &limits)?, Mask::from_bytes(bytes, &limits)?);
    assert_eq!(sample.1.to_numbers()?, scan);
    assert!(sample.0.to_rgb16()?.pixels().zip(scan.iter()).all(|(pixel, value)| pixel.0 == [*value; 3]));
    let (image, mask) = CenterCrop::new(4)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
    let (image, mask) = (image.to_rgb16()?, mask.to_numbers()?);
    assert!(image.pixels().zip(mask.iter()).all(|(pixel, number)| pixel.0[0] == *number));
    Ok(())
}

#[test]
fn a_bmp_is_an_image_and_no_mask() -> Result<(), BoxError> {
    let image = RgbImage::from_fn(12, 8, |x, y| Rgb([x as u8, y as u8, 7]));
    let bytes = file(image.clone(), ImageFormat::Bmp);
    assert_eq!(Image::from_bytes(bytes.clone(), &Limits::default())?.to_rgb()?, image);
    let error = Mask::from_bytes(bytes, &Limits::default()).unwrap_err().to_string();
    assert!(error.contains("has the colours Rgb8") && error.contains("as PNG"), "{error}");
    Ok(())
}
