//! Parts of the images of a batch: cut out at random, or erased.

use super::Pixel;
use crate::{
    error::Error,
    images::{CropBox, Erased, RandomCrop, RandomErasing, VisionError},
    rng::KeyedRng,
};
use burn::{
    prelude::*,
    tensor::{Bool, DType, TensorData},
};

/// Cuts a part of fixed size at a random place out of each image of `[N, C, H, W]` with its padding. With the same
/// draws, [`RandomCrop`] cuts the same part on the host.
///
/// Images of one channel take the first value of the fill colour. Channels beyond three take its last.
///
/// # Errors
/// If the crop is larger than the images with their padding.
pub fn random_crop<K: Pixel>(
    images: Tensor<4, K>,
    crop: &RandomCrop,
    rng: &mut KeyedRng,
) -> Result<Tensor<4, K>, VisionError> {
    let [count, channels, height, width] = images.dims();
    let draw = |_| crop.draw(width as u32, height as u32, rng);
    let parts: Vec<CropBox> = (0..count).map(draw).collect::<Result<_, _>>()?;
    let Some(CropBox { width: across, height: down, .. }) = parts.first().copied() else { return Ok(images) };
    let (across, down) = (across as usize, down as usize);
    // The row or column of its image that each row and column of each part shows. `None` is the fill colour.
    let seen = |side: usize, of: usize, start: fn(&CropBox) -> i64| {
        let places = parts.iter().flat_map(|part| (0..side as i64).map(move |at| start(part) + at));
        places.map(|at| crop.mode.source(at, of as u32)).collect::<Vec<_>>()
    };
    let rows = seen(down, height, |part| part.top);
    let columns = seen(across, width, |part| part.left);
    let device = images.device();
    let places = |seen: &[Option<u32>], shape: [usize; 4]| {
        let places: Vec<i32> = seen.iter().map(|at| at.unwrap_or(0) as i32).collect();
        Tensor::<4, Int>::from_data(TensorData::new(places, shape), (&device, DType::I32))
    };
    let (row_shape, column_shape) = ([count, 1, down, 1], [count, 1, 1, across]);
    let places = places(&rows, row_shape).mul_scalar(width as i32) + places(&columns, column_shape);
    let places = places.expand([count, channels, down, across]).reshape([count, channels, down * across]);
    let cut = images.reshape([count, channels, height * width]).gather(2, places);
    let cut: Tensor<4, K> = cut.reshape([count, channels, down, across]);
    let beyond = |seen: &[Option<u32>]| seen.iter().map(Option::is_none).collect::<Vec<_>>();
    let (rows, columns) = (beyond(&rows), beyond(&columns));
    if !rows.contains(&true) && !columns.contains(&true) {
        return Ok(cut);
    }
    let marks = |marks, shape: [usize; 4]| marks_of(marks, shape, [count, 1, down, across], &device);
    let mask = marks(rows, row_shape).bool_or(marks(columns, column_shape));
    Ok(painted(cut, mask, crop.fill))
}

/// Erases a random rectangle of each image of `[N, C, H, W]`, with a probability. With the same draws,
/// [`RandomErasing`] erases the same rectangle on the host.
///
/// Cutout is `RandomErasing::new(1.0)?.scale(share, share)?.ratio(1.0, 1.0)?`: a square with this share of the area.
///
/// Images of one channel take the first value of the colour. Channels beyond three take its last.
///
/// # Errors
/// If it erases with noise, which only the host can do.
pub fn random_erasing<K: Pixel>(
    images: Tensor<4, K>,
    erasing: &RandomErasing,
    rng: &mut KeyedRng,
) -> Result<Tensor<4, K>, Error> {
    let Erased::Color(colour) = erasing.value else {
        let advice = "use `Erased::Color`, or erase on the host";
        return Err(Error::config("random_erasing", "noise is made on the host only", advice));
    };
    let [count, _, height, width] = images.dims();
    let parts: Vec<_> = (0..count).map(|_| erasing.draw(width as u32, height as u32, rng)).collect();
    if parts.iter().all(Option::is_none) {
        return Ok(images);
    }
    let inside = |side: usize, span: fn(&CropBox) -> (i64, u32)| {
        let of = |part: &Option<CropBox>| {
            let (start, length) = part.as_ref().map_or((0, 0), span);
            (0..side as i64).map(move |at| (start..start + i64::from(length)).contains(&at))
        };
        parts.iter().flat_map(of).collect::<Vec<bool>>()
    };
    let (rows, columns) =
        (inside(height, |part| (part.top, part.height)), inside(width, |part| (part.left, part.width)));
    let device = images.device();
    let marks = |marks, shape: [usize; 4]| marks_of(marks, shape, [count, 1, height, width], &device);
    let mask = marks(rows, [count, 1, height, 1]).bool_and(marks(columns, [count, 1, 1, width]));
    Ok(painted(images, mask, colour))
}

/// Turns marks of rows or of columns into marks of pixels.
fn marks_of(marks: Vec<bool>, shape: [usize; 4], of_pixels: [usize; 4], device: &Device) -> Tensor<4, Bool> {
    Tensor::<4, Bool>::from_data(TensorData::new(marks, shape), device).expand(of_pixels)
}

/// Gives the marked pixels a colour.
fn painted<K: Pixel>(images: Tensor<4, K>, mask: Tensor<4, Bool>, colour: [u8; 3]) -> Tensor<4, K> {
    let (shape, channels) = (images.shape(), images.dims()[1]);
    let colour: Vec<i32> = (0..channels).map(|channel| i32::from(colour[channel.min(2)])).collect();
    let colour = TensorData::new(colour, [1, channels, 1, 1]).convert_dtype(images.dtype());
    let colour = Tensor::<4, K>::from_data(colour, (&images.device(), images.dtype()));
    images.mask_where(mask.expand(shape.clone()), colour.expand(shape))
}
