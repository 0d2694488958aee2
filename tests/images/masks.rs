//! The numbers of masks in a batch.

use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device, Element, Float, Int},
};
use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate, vision::*};
use image::{GrayImage, ImageBuffer, Luma, RgbImage};

fn depths() -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_fn(5, 3, |x, y| Luma([(1000 * x + y) as u16]))
}

#[test]
fn a_mask_of_another_size_is_named_by_its_file_and_its_sample() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("street.png");
    GrayImage::new(48, 64).save(&path)?;
    let masks = [Mask::from(GrayImage::new(64, 48)), Mask::open(&path, &Limits::default())?];
    let samples = masks.map(|mask| (Image::from(RgbImage::new(64, 48)), mask)).to_vec();
    let batches = collate(
        [Field::new("mask", DType::U8, [48, 64])],
        |(_, mask): &(Image, Mask), row| Ok(row.mask("mask", mask)?),
        |mut batch| Ok(batch.take_int::<3>("mask")?),
    );
    let builder = PinnedDataLoaderBuilder::new(batches).batch_size(1).set_device(Device::flex());
    let loader = builder.augment(RandomHorizontalFlip::default()).build(InMemDataset::new(samples))?;
    let error = loader.iter().find_map(Result::err).ok_or("no error")?.to_string();
    for words in ["sample 1", "street.png", "the mask of a sample is of 48 x 64", "turned as its EXIF says"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    Ok(())
}

/// The numbers of a mask in a batch, from a field of this dtype and shape.
fn delivered<E: Element>(mask: Mask, dtype: DType, shape: Vec<usize>) -> Result<Vec<E>, BoxError> {
    let planes = shape.len() == 3;
    let batches = collate(
        [Field::new("mask", dtype, shape)],
        |mask: &Mask, row| Ok(row.mask("mask", mask)?),
        move |mut batch| {
            Ok(match dtype {
                DType::F32 => batch.take::<3, Float>("mask")?.into_data(),
                _ if planes => batch.take::<4, Int>("mask")?.into_data(),
                _ => batch.take::<3, Int>("mask")?.into_data(),
            })
        },
    );
    let builder = PinnedDataLoaderBuilder::new(batches).batch_size(1).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(vec![mask]))?;
    let batch = loader.iter().next().ok_or("no batch")??;
    Ok(batch.try_to_vec::<E>()?)
}

#[test]
fn a_field_gets_the_numbers_in_its_dtype() -> Result<(), BoxError> {
    let numbers: Vec<u16> = depths().into_raw();
    let as_i32: Vec<i32> = numbers.iter().map(|number| (*number).into()).collect();
    let as_i64: Vec<i64> = numbers.iter().map(|number| (*number).into()).collect();
    let as_f32: Vec<f32> = numbers.iter().map(|number| (*number).into()).collect();
    assert_eq!(delivered::<u16>(depths().into(), DType::U16, vec![3, 5])?, numbers);
    assert_eq!(delivered::<i32>(depths().into(), DType::I32, vec![1, 3, 5])?, as_i32);
    assert_eq!(delivered::<i64>(depths().into(), DType::I64, vec![3, 5])?, as_i64);
    assert_eq!(delivered::<f32>(depths().into(), DType::F32, vec![3, 5])?, as_f32);
    let small = GrayImage::from_fn(4, 2, |x, y| Luma([(10 * x + y) as u8]));
    assert_eq!(delivered::<u8>(small.clone().into(), DType::U8, vec![2, 4])?, small.into_raw());
    let error = |dtype, shape| delivered::<u8>(depths().into(), dtype, shape).unwrap_err().to_string();
    let large = error(DType::U8, vec![3, 5]);
    assert!(large.contains("the mask of a sample has the number 1000") && large.contains("I32"), "{large}");
    let turned = error(DType::U16, vec![5, 3]);
    assert!(turned.contains("5 x 3 pixels does not fit field `mask` of 3 x 5"), "{turned}");
    let other = error(DType::F64, vec![3, 5]);
    assert!(other.contains("`mask` holds"), "{other}");
    Ok(())
}

#[test]
fn masks_of_any_size_are_padded() -> Result<(), BoxError> {
    let batches = collate(
        [Field::padded_2d("mask", [4, 5], 255u8)],
        |mask: &Mask, row| Ok(row.mask("mask", mask)?),
        |mut batch| Ok((batch.take::<3, Int>("mask")?.into_data(), batch.sizes("mask")?)),
    );
    let mask = |width, height, number| Mask::from(GrayImage::from_pixel(width, height, Luma([number])));
    let load = |masks: Vec<Mask>| {
        let builder = PinnedDataLoaderBuilder::new(batches.clone()).batch_size(2).set_device(Device::flex());
        let loader = builder.build(InMemDataset::new(masks))?;
        loader.iter().next().ok_or("no batch")?.map_err(BoxError::from)
    };
    let (numbers, sizes) = load(vec![mask(3, 1, 7), mask(1, 2, 8)])?;
    assert_eq!(sizes, [[1, 3], [2, 1]]);
    assert_eq!(numbers.try_to_vec::<u8>()?, [7, 7, 7, 255, 255, 255, 8, 255, 255, 8, 255, 255]);
    let error = load(vec![mask(6, 1, 7)]).unwrap_err().to_string();
    assert!(error.contains("6 x 1 pixels does not fit field `mask` of 5 x 4"), "{error}");
    Ok(())
}
