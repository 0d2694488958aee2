//! Writes an image into its row: its pixels, or its file if the device decodes.

use super::row::RowMut;
use crate::{
    fault::FieldError,
    image_rows::{ImageField, ImageRow},
    memory::Field,
};
use burn::tensor::{DType, bf16, f16};
use burn_augment::{
    for_loader::{DecodePlan, Walk, light},
    images::{Adjust, CropBox, Image, Interpolation, Size, VisionError, write_chw},
};
use bytes::Bytes;
use image::{ImageBuffer, Rgb};
use std::sync::Arc;

impl RowMut<'_> {
    /// Writes an image into an image field ([`Field::image`](crate::Field::image)).
    ///
    /// ```no_run
    /// use burn::{prelude::*, tensor::DType};
    /// use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut, vision::Image};
    ///
    /// struct Images;
    /// impl Collate<(Image, usize)> for Images {
    ///     type Batch = (Tensor<4>, Tensor<1, Int>);
    ///     fn layout(&self) -> Vec<Field> {
    ///         vec![Field::image("image", 224).with_dtype(DType::F32), Field::new("label", DType::I32, [])]
    ///     }
    ///     fn write(&self, (image, label): &(Image, usize), row: &mut RowMut<'_>) -> Result<(), BoxError> {
    ///         row.image("image", image)?; // decodes here, or leaves it to the device
    ///         Ok(row.put("label", i32::try_from(*label)?)?)
    ///     }
    ///     fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
    ///         Ok((batch.take("image")?, batch.take_int("label")?))
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// If the layout has no such field, if the image has another size, or if the worker has to decode it and cannot.
    pub fn image(&mut self, name: &str, image: &Image) -> Result<(), VisionError> {
        let (at, field) = self.find(name)?;
        let Some(values) = self.chunk.layout().image_values(at) else {
            let name = name.to_string();
            return Err(FieldError::Kind { name, problem: "takes no images: make it by `Field::image`" }.into());
        };
        let (field_height, field_width) = (field.shape[1], field.shape[2]);
        let size = check_size(field, image.dimensions(), (field_width, field_height))?;
        let whole = field.varies_in_2d.then(|| field.planes());
        let (is_grey, dtype) = (field.shape[0] == 1, field.dtype);
        let bytes = field.shape[0] * size[0] * size[1] * dtype.size();
        let deep = self.chunk.layout().image_field(at).filter(|_| field.keeps_16_bits() && image.is_deep()).cloned();
        let (decoding, most) = (self.chunk.layout().decoding, self.chunk.layout().room(at));
        let (values, row) = (Arc::clone(values), self.chunk.bytes_mut(at, self.row));
        if !decoding {
            let row = &mut row[..bytes];
            match deep {
                Some(deep) => write_deep(&image.to_rgb16()?, is_grey, &deep, dtype, row),
                None => match dtype.size() {
                    1 => write_bytes(image, is_grey, |_, byte| byte, row)?,
                    2 => write_values::<2>(image, is_grey, &values, row)?,
                    _ => write_values::<4>(image, is_grey, &values, row)?,
                },
            }
            if let Some(whole) = whole {
                self.note_size(at, whole, size);
            }
        } else if let Some((head, file)) = write_row(image, most, row, 3 * field_width * field_height)? {
            // Several fields of a row may have long files.
            let place = 64 * self.row + at; // layouts have at most 64 fields
            ImageRow { bytes: place as u32, ..head }.write(self.chunk.bytes_mut(at, self.row));
            self.extras.long.insert(place, file);
        }
        self.note_written(at);
        Ok(())
    }
}

/// Returns the height and width of an image or a mask, if it fits a field of this width and height.
pub(super) fn check_size(
    field: &Field,
    (width, height): (u32, u32),
    (field_width, field_height): (usize, usize),
) -> Result<[usize; 2], VisionError> {
    let size = [height as usize, width as usize];
    let fits = if field.varies_in_2d {
        size[0] <= field_height && size[1] <= field_width
    } else {
        size == [field_height, field_width]
    };
    if fits {
        return Ok(size);
    }
    Err(VisionError::FieldSize { field: field.name.to_string(), width, height, field_width, field_height })
}

/// Writes an image of bytes. Each byte becomes its `N`-byte entry in a table.
fn write_values<const N: usize>(image: &Image, is_grey: bool, table: &[u8], row: &mut [u8]) -> Result<(), VisionError> {
    let channels = table.as_chunks::<N>().0.as_chunks::<256>().0;
    write_bytes(image, is_grey, |channel, byte| channels[channel][usize::from(byte)], row.as_chunks_mut().0)
}

fn write_bytes<T>(
    image: &Image,
    is_grey: bool,
    value: impl Fn(usize, u8) -> T,
    row: &mut [T],
) -> Result<(), VisionError> {
    if !is_grey {
        return image.write(value, row);
    }
    for (pixel, out) in image.to_rgb()?.pixels().zip(row) {
        *out = value(0, light(pixel.0.map(u32::from)) as u8);
    }
    Ok(())
}

/// Writes an image of 16 bits.
fn write_deep(
    image: &ImageBuffer<Rgb<u16>, Vec<u16>>,
    is_grey: bool,
    field: &ImageField,
    dtype: DType,
    row: &mut [u8],
) {
    fn write<T>(
        image: &ImageBuffer<Rgb<u16>, Vec<u16>>,
        is_grey: bool,
        value: impl Fn(usize, u16) -> T,
        row: &mut [T],
    ) {
        let plane = image.len() / 3;
        for (at, pixel) in image.pixels().enumerate() {
            if is_grey {
                row[at] = value(0, light(pixel.0.map(u32::from)) as u16);
            } else {
                (0..3).for_each(|channel| row[channel * plane + at] = value(channel, pixel.0[channel]));
            }
        }
    }
    let level = |channel, level: u16| field.value(channel, f32::from(level) / 65_535.0);
    match dtype {
        DType::F32 => write(image, is_grey, level, bytemuck::cast_slice_mut(row)),
        DType::F16 => write(image, is_grey, |n, value| f16::from_f32(level(n, value)), bytemuck::cast_slice_mut(row)),
        DType::BF16 => write(image, is_grey, |n, value| bf16::from_f32(level(n, value)), bytemuck::cast_slice_mut(row)),
        _ => write(image, is_grey, |_, level| level, bytemuck::cast_slice_mut(row)),
    }
}

/// Writes the row of an image for a device that decodes: its file, if the device accepts it and it has at most `most`
/// bytes, otherwise its `pixels` bytes of pixels. A file that does not fit into the row is returned, with its header.
fn write_row(
    image: &Image,
    most: usize,
    row: &mut [u8],
    pixels: usize,
) -> Result<Option<(ImageRow, Bytes)>, VisionError> {
    let (head, room) = row.split_at_mut(ImageRow::BYTES);
    let Some((file, plan)) = image.decode_plan(most)? else {
        image.write(|_, byte| byte, &mut room[..pixels])?;
        ImageRow { kind: ImageRow::PIXELS, bytes: pixels as u32, ..ImageRow::default() }.write(head);
        return Ok(None);
    };
    let picture = picture(&plan, file.len());
    let Some(room) = room.get_mut(..file.len()) else {
        return Ok(Some((ImageRow { kind: ImageRow::LONG_JPEG, ..picture }, file.clone())));
    };
    room.copy_from_slice(file);
    picture.write(head);
    Ok(None)
}

/// The filters by their numbers in a [`ImageRow`].
const FILTERS: [Interpolation; 3] = [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic];

/// The header of a row: how the device makes the image from a file of this many bytes.
fn picture(plan: &DecodePlan, bytes: usize) -> ImageRow {
    let DecodePlan { stored, part, size, by, seen, changes, erased } = *plan;
    let erased_part = |part: CropBox| [part.left as u32, part.top as u32, part.width, part.height];
    ImageRow {
        kind: ImageRow::JPEG,
        bytes: bytes as u32,
        stored: stored.into(),
        start: part.start.into(),
        across: part.across.into(),
        down: part.down.into(),
        part: part.size.into(),
        resized: [size.width, size.height],
        filter: by as u32, // in the order of `FILTERS`
        window: seen.start.into(),
        mirror: [seen.across.0, seen.down.1],
        seen: seen.size.into(),
        changes: changes.map(|change| change.map_or([0; 2], code)),
        erased: erased.map_or([0; 4], |(part, _)| erased_part(part)),
        colour: erased.map_or(0, |(_, [red, green, blue])| u32::from_le_bytes([red, green, blue, 0])),
    }
}

/// The kind of a change and the bits of its strength.
fn code(change: Adjust) -> [u32; 2] {
    match change {
        Adjust::Brightness(factor) => [1, factor.to_bits()],
        Adjust::Contrast(factor) => [ImageRow::CONTRAST, factor.to_bits()],
        Adjust::Saturation(factor) => [3, factor.to_bits()],
        Adjust::Hue(turn) => [4, turn.to_bits()],
    }
}

/// The changes by their kinds, from 1 up.
const CHANGES: [fn(f32) -> Adjust; 4] = [Adjust::Brightness, Adjust::Contrast, Adjust::Saturation, Adjust::Hue];

fn decoded([kind, strength]: [u32; 2]) -> Option<Adjust> {
    let change = CHANGES.get((kind as usize).checked_sub(1)?)?;
    Some(change(f32::from_bits(strength)))
}

/// Makes the image of a row from its file on the host, as bytes in planes. It works from the header: keeping the original plan of each
/// image would cost a copy, and a list that moves with the rows, only for the rare files that the device refuses.
pub(super) fn redo_on_host(row: &ImageRow, file: &[u8]) -> Result<Vec<u8>, VisionError> {
    let [start, across, down, window] = [row.start, row.across, row.down, row.window].map(|[x, y]| (x, y));
    let ([right, below], [left, top, width, height]) = (row.mirror, row.erased);
    let ([red, green, blue, _], part) =
        (row.colour.to_le_bytes(), CropBox { left: left.into(), top: top.into(), width, height });
    let plan = DecodePlan {
        stored: row.stored.into(),
        part: Walk { start, across, down, size: row.part.into() },
        size: Size { width: row.resized[0], height: row.resized[1] },
        by: FILTERS[row.filter as usize],
        seen: Walk { start: window, across: (right, 0), down: (0, below), size: row.seen.into() },
        changes: row.changes.map(decoded),
        erased: (width > 0).then_some((part, [red, green, blue])),
    };
    let seen = plan.decode(file)?;
    let mut planes = vec![0; seen.len()];
    write_chw(&seen, &mut planes)?;
    Ok(planes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_rows::LongFiles;
    use burn_augment::{
        Augment, KeyedRng,
        images::{
            ColorJitter, D4, Limits, PaddingMode, Picture, RandomErasing, RandomHorizontalFlip, RandomResizedCrop,
            RandomVerticalFlip,
        },
    };
    use image::RgbImage;
    use rand::RngExt;

    /// A JPEG that is seen in an orientation of EXIF.
    fn file(orientation: u8, (width, height): (u16, u16)) -> Vec<u8> {
        let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
        exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
        let pixels =
            RgbImage::from_fn(width.into(), height.into(), |x, y| image::Rgb([4 * x, 6 * y, x + y].map(|n| n as u8)));
        let mut file = Vec::new();
        let mut encoder = jpeg_encoder::Encoder::new(&mut file, 90);
        encoder.add_exif_metadata(&exif).unwrap();
        encoder.encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
        file
    }

    fn planes(image: &RgbImage) -> Vec<u8> {
        let mut planes = vec![0; image.len()];
        write_chw(image, &mut planes).unwrap();
        planes
    }

    /// The check accepts every header that is written.
    #[test]
    fn a_head_that_is_written_is_one_that_is_read() {
        const SIDE: u32 = 24;
        let pixels = 3 * SIDE as usize * SIDE as usize;
        let (resize, erase) = (RandomResizedCrop::new(SIDE).unwrap(), RandomErasing::new(0.5).unwrap());
        let (across, down) = (RandomHorizontalFlip::default(), RandomVerticalFlip::default());
        let jitter = ColorJitter::new().brightness(0.4).and_then(|jitter| jitter.contrast(0.4)?.hue(0.2)).unwrap();
        let none = LongFiles::new();
        let files: Vec<_> = (1..=8).map(|orientation| file(orientation, (61, 40))).collect();
        for nth in 0..400 {
            let rng = &mut KeyedRng::for_order(3, nth);
            let mut image = Image::from_bytes(files[nth % 8].clone(), &Limits::default()).unwrap();
            if nth % 7 == 0 {
                image = image.as_stored().unwrap();
            }
            image = D4.apply(image, rng).unwrap();
            if nth % 3 == 0 {
                image = across.apply(image, rng).unwrap();
            }
            if nth % 5 != 0 {
                image = resize.apply(image, rng).unwrap();
            }
            image = down.apply(image, rng).unwrap();
            let (width, height) = image.dimensions();
            let (left, top) = (rng.random_range(0..=width - SIDE), rng.random_range(0..=height - SIDE));
            let part = CropBox { left: left.into(), top: top.into(), width: SIDE, height: SIDE };
            image.crop(part, PaddingMode::Constant, [0; 3]).unwrap();
            image = across.apply(image, rng).unwrap();
            for change in jitter.draw(rng) {
                image.adjust(change).unwrap();
            }
            if let Some(part) = erase.draw(SIDE, SIDE, rng) {
                image.erase(part, [1, 2, 255]).unwrap();
            }
            image = down.apply(image, rng).unwrap();
            assert!(!image.is_decoded(), "all of it is noted");
            let mut row = vec![0; ImageRow::BYTES + pixels.max(files[nth % 8].len())];
            assert!(write_row(&image, usize::MAX, &mut row, pixels).unwrap().is_none());
            let (head, bytes) = ImageRow::open(&row, &none, [SIDE; 2]).unwrap();
            assert_eq!((head.kind, bytes), (ImageRow::JPEG, &files[nth % 8][..]));
            let redone = redo_on_host(&head, bytes).unwrap();
            assert_eq!(redone, planes(&image.to_rgb().unwrap()), "what the host makes if the device refuses it");
            assert!(write_row(&image, 0, &mut row, pixels).unwrap().is_none());
            let (head, bytes) = ImageRow::open(&row, &none, [SIDE; 2]).unwrap();
            assert_eq!((head.kind, bytes.len()), (ImageRow::PIXELS, pixels));
            if nth % 5 != 0 {
                // Behind a resize the kernels turn nothing: the worker makes the pixels.
                image.transpose();
                assert!(write_row(&image, usize::MAX, &mut row, pixels).unwrap().is_none());
                let (head, bytes) = ImageRow::open(&row, &none, [SIDE; 2]).unwrap();
                assert_eq!((head.kind, image.is_decoded()), (ImageRow::PIXELS, false));
                assert_eq!(bytes, planes(&image.to_rgb().unwrap()));
            }
        }
    }
}
