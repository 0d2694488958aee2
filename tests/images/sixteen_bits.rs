//! Images of one channel and of 16 bits a value, as the field wants them.

use crate::{
    exif::exif,
    photo::{photo, png_chunk},
};
use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device, Element, Float, Int},
};
use burn_pinned::{
    Augment, BoxError, Error, Field, KeyedRng, PinnedDataLoaderBuilder, collate, memory::Decoder, vision::*,
};
use image::{DynamicImage, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage};
use std::io::Cursor;

fn file(image: impl Into<DynamicImage>) -> Image {
    Image::from_bytes(bytes(image), &Limits::default()).unwrap()
}

fn bytes(image: impl Into<DynamicImage>) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.into().write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

fn scan(width: u32, height: u32) -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_fn(width, height, |x, y| Luma([(x * 7919 + y * 104_729) as u16]))
}

/// The values of an image in a batch of this field.
fn delivered<E: Element>(image: Image, field: Field) -> Result<Vec<E>, BoxError> {
    let is_float = field.dtype().is_float();
    let batches = collate(
        [field],
        |image: &Image, row| Ok(row.image("image", image)?),
        move |mut batch| {
            Ok(match is_float {
                true => batch.take::<4, Float>("image")?.into_data(),
                false => batch.take::<4, Int>("image")?.into_data(),
            })
        },
    );
    let builder = PinnedDataLoaderBuilder::new(batches).batch_size(1).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(vec![image]))?;
    let batch = loader.iter().next().ok_or("no batch")??;
    Ok(batch.try_to_vec::<E>()?)
}

fn field(shape: [usize; 3], dtype: DType) -> Field {
    let images = match shape {
        [1, height, width] => Field::image("image", [height, width]).grey(),
        shape => Field::image_of_shape("image", shape),
    };
    images.with_dtype(dtype)
}

fn changed(image: Image, augment: impl Augment<Image>) -> Image {
    augment.apply(image, &mut KeyedRng::for_order(1, 0)).unwrap()
}

#[test]
fn sixteen_bits_of_one_channel_are_as_they_are() -> Result<(), BoxError> {
    let scan = scan(6, 4);
    assert_eq!(delivered::<u16>(file(scan.clone()), field([1, 4, 6], DType::U16))?, scan.as_raw()[..]);
    let shares: Vec<f32> = scan.iter().map(|value| f32::from(*value) / 65_535.0).collect();
    assert_eq!(delivered::<f32>(file(scan.clone()), field([1, 4, 6], DType::F32))?, shares);
    let normal: Vec<f32> = shares.iter().map(|share| (share - 0.25) / 0.5).collect();
    let normalized = field([1, 4, 6], DType::F32).normalize([0.25, 9.0, 9.0], [0.5, 9.0, 9.0]);
    assert_eq!(delivered::<f32>(file(scan.clone()), normalized)?, normal);
    let halves: Vec<f32> = shares.iter().map(|share| burn::tensor::f16::from_f32(*share).to_f32()).collect();
    let got = delivered::<burn::tensor::f16>(file(scan), field([1, 4, 6], DType::F16))?;
    assert_eq!(got.iter().map(|half| half.to_f32()).collect::<Vec<_>>(), halves);
    Ok(())
}

#[test]
fn sixteen_bits_of_three_channels_are_planes() -> Result<(), BoxError> {
    let colours =
        ImageBuffer::from_fn(5, 3, |x, y| Rgb([(x * 9001) as u16, (y * 20_001) as u16, (x * y * 401) as u16]));
    let planes: Vec<u16> =
        (0..3).flat_map(|n| colours.pixels().map(move |pixel| pixel.0[n]).collect::<Vec<_>>()).collect();
    assert_eq!(delivered::<u16>(file(colours), field([3, 3, 5], DType::U16))?, planes);
    Ok(())
}

#[test]
fn a_mask_without_pixels_has_no_numbers() -> Result<(), BoxError> {
    for (width, height) in [(5, 0), (0, 5), (0, 0)] {
        let mask = Mask::from(GrayImage::new(width, height));
        assert_eq!(mask.to_numbers()?.dimensions(), (width, height));
    }
    Ok(())
}

#[test]
fn noted_changes_keep_16_bits() -> Result<(), BoxError> {
    let (wide, corner) = (scan(40, 30), RandomCrop::new([10, 12])?);
    let changes = (RandomHorizontalFlip::new(1.0)?, corner, RandomVerticalFlip::new(1.0)?);
    // A mask moves in the same way.
    let sample = (RgbImage::new(40, 30), Mask::from(wide.clone()));
    let (_, mask) = changes.apply(sample, &mut KeyedRng::for_order(1, 0))?;
    let image = changed(file(wide.clone()), changes);
    assert_eq!(delivered::<u16>(image, field([1, 10, 12], DType::U16))?, mask.to_numbers()?.into_raw());
    // A resize has the values of one in bytes, and what lies between them.
    let (image, small) = (photo(40, 30), Resize::exact([9, 13])?);
    let grey = GrayImage::from_fn(40, 30, |x, y| Luma([image.get_pixel(x, y).0[2]]));
    let deep = DynamicImage::ImageLuma8(grey.clone()).into_luma16();
    let of_bytes = delivered::<u8>(changed(file(grey), small), field([1, 9, 13], DType::U8))?;
    let of_deep =
        delivered::<u16>(changed(file(deep), (small, RandomHorizontalFlip::new(0.0)?)), field([1, 9, 13], DType::U16))?;
    assert!(of_deep.iter().zip(&of_bytes).all(|(deep, byte)| deep.abs_diff(257 * u16::from(*byte)) <= 257));
    assert!(of_deep.iter().any(|deep| deep % 257 != 0));
    Ok(())
}

#[test]
fn a_deep_image_is_turned_as_its_exif_says() -> Result<(), BoxError> {
    let png = bytes(scan(6, 4));
    let png = [&png[..33], &png_chunk(b"eXIf", &exif(6)), &png[33..]].concat();
    let image = Image::from_bytes(png, &Limits::default())?;
    let turned = image::imageops::rotate90(&scan(6, 4));
    assert_eq!(delivered::<u16>(image, field([1, 6, 4], DType::U16))?, turned.into_raw());
    Ok(())
}

#[test]
fn a_transform_that_cuts_16_bits_is_refused() -> Result<(), BoxError> {
    let turn = RandomRotation::new(20.0)?;
    let brighter = ColorJitter::new().brightness((1.5, 1.5))?;
    for image in [changed(file(scan(6, 4)), turn), changed(file(scan(6, 4)), brighter)] {
        for dtype in [DType::U16, DType::F32] {
            let error = delivered::<u16>(image.clone(), field([1, 4, 6], dtype)).unwrap_err().to_string();
            assert!(error.contains("the image of a sample is of 16 bits") && error.contains("`Mask`"), "{error}");
        }
        // Bytes are wanted here.
        assert_eq!(delivered::<u8>(image.clone(), field([1, 4, 6], DType::U8))?.len(), 24);
        assert_eq!(delivered::<f32>(image, field([3, 4, 6], DType::F32))?.len(), 72);
    }
    // A file of 8 bits loses nothing.
    let image = changed(file(photo(6, 4)), RandomRotation::new(20.0)?);
    assert_eq!(delivered::<u16>(image, field([1, 4, 6], DType::U16))?.len(), 24);
    Ok(())
}

#[test]
fn bytes_become_grey_and_16_bits() -> Result<(), BoxError> {
    let image = photo(6, 4);
    let light = |[red, green, blue]: [u8; 3]| {
        let sum = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
        sum.round()
    };
    let grey = delivered::<u8>(image.clone().into(), field([1, 4, 6], DType::U8))?;
    assert!(image.pixels().zip(&grey).all(|(pixel, grey)| (light(pixel.0) - f64::from(*grey)).abs() <= 1.0));
    let shares: Vec<f32> = grey.iter().map(|byte| f32::from(*byte) / 255.0).collect();
    assert_eq!(delivered::<f32>(file(image.clone()), field([1, 4, 6], DType::F32))?, shares);
    let deep: Vec<u16> = grey.iter().map(|byte| 257 * u16::from(*byte)).collect();
    assert_eq!(delivered::<u16>(file(image), field([1, 4, 6], DType::U16))?, deep);
    // Grey stays as it is.
    let all = GrayImage::from_fn(16, 16, |x, y| Luma([(16 * y + x) as u8]));
    assert_eq!(delivered::<u8>(file(all.clone()), field([1, 16, 16], DType::U8))?, all.into_raw());
    Ok(())
}

#[test]
fn images_of_one_channel_are_padded() -> Result<(), BoxError> {
    let scan = scan(3, 2);
    let got = delivered::<u16>(file(scan.clone()), field([1, 9, 8], DType::U16).any_size())?;
    assert_eq!(got, scan.into_raw());
    Ok(())
}

#[test]
fn fields_that_cannot_be_are_refused() {
    let problem = |field: Field| match delivered::<u8>(photo(6, 4).into(), field) {
        Err(error) => error.downcast::<Error>().unwrap().to_string(),
        Ok(_) => panic!("it was delivered"),
    };
    for (field, words) in [
        (field([2, 4, 6], DType::U8), "[1, height, width] for grey"),
        (Field::image("image", [0, 6]), "rows of field `image` are empty"),
        (Field::new("image", DType::U8, [3, 4, 6]).grey(), "field `image` is no image, but has options of one"),
        (field([1, 4, 6], DType::I32), "U8, U16, F32"),
        (field([1, 4, 6], DType::U16).normalize([0.5; 3], [0.5; 3]), "integers of field `image` cannot be normalized"),
        (field([1, 4, 6], DType::U8).decoder(Decoder::Device), "images of one channel or 16 bits of field `image`"),
        (field([3, 4, 6], DType::U16).decoder(Decoder::Device), "images of one channel or 16 bits of field `image`"),
    ] {
        let text = problem(field);
        assert!(text.contains(words), "{text}");
    }
}
