//! The numbers of masks: as they are in the file, and as they are in a batch.

use super::{png, rng};
use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device, Element, Float, Int},
};
use burn_pinned::{Augment, BoxError, Field, PinnedDataLoaderBuilder, collate, vision::*};
use image::{GrayImage, ImageBuffer, Luma, RgbImage};

fn depths() -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_fn(5, 3, |x, y| Luma([(1000 * x + y) as u16]))
}

#[test]
fn sixteen_bits_are_read_as_they_are() -> Result<(), BoxError> {
    let mask = Mask::from_bytes(png(depths()), &Limits::default())?;
    assert_eq!(mask.dimensions(), (5, 3));
    assert_eq!(mask.to_numbers()?, depths());
    Ok(())
}

#[test]
fn what_comes_from_outside_has_the_fill() -> Result<(), BoxError> {
    for (mask, fill) in [(Mask::from(depths()), 255), (Mask::from(depths()).fill(65_535), 65_535)] {
        let (_, mask) = CenterCrop::new(7)?.apply((RgbImage::new(5, 3), mask), &mut rng(0))?;
        let numbers = mask.to_numbers()?;
        assert_eq!([(0, 0), (1, 2), (6, 6)].map(|(x, y)| numbers.get_pixel(x, y).0[0]), [fill, 0, fill]);
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
