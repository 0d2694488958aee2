//! Batches of images of different sizes.

use burn::data::dataloader::batcher::Batcher;
use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device, Tensor, bf16},
};
use burn_pinned::{
    BoxError, Collate, Error, Field, PinnedBatcher, PinnedDataLoaderBuilder, RawBatch, RowMut, memory::Decoder,
    vision::Image,
};
use image::{Rgb, RgbImage};

const MEAN: [f32; 3] = [0.4, 0.5, 0.6];
const STD: [f32; 3] = [0.2, 0.25, 0.5];

/// Images of up to 6 x 8 pixels in one field.
struct Images(Field);

impl Collate<RgbImage> for Images {
    type Batch = (Vec<usize>, Vec<f32>, Vec<[usize; 2]>);

    fn layout(&self) -> Vec<Field> {
        vec![self.0.clone()]
    }

    fn write(&self, image: &RgbImage, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.image("image", &Image::from(image.clone()))?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let sizes = batch.sizes("image")?;
        let (shape, values) = if self.0.dtype() == DType::U8 {
            let images = batch.take_int::<4>("image")?;
            (images.dims().to_vec(), images.into_data().iter::<f32>().collect())
        } else {
            let images: Tensor<4> = batch.take("image")?;
            (images.dims().to_vec(), images.into_data().iter::<f32>().collect())
        };
        Ok((shape, values, sizes))
    }
}

fn image(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([x as u8 + 1, y as u8 + 101, (10 * x + y) as u8 + 101]))
}

/// Checks a batch of images whose values are `value(channel, byte)`.
fn check(
    (shape, values, sizes): (Vec<usize>, Vec<f32>, Vec<[usize; 2]>),
    images: &[RgbImage],
    value: impl Fn(usize, u8) -> f32,
) {
    let height = images.iter().map(RgbImage::height).max().unwrap();
    let width = images.iter().map(RgbImage::width).max().unwrap();
    assert_eq!(shape, [images.len(), 3, height as usize, width as usize]);
    assert_eq!(sizes, images.iter().map(|image| [image.height() as usize, image.width() as usize]).collect::<Vec<_>>());
    let mut values = values.into_iter();
    for image in images {
        for channel in 0..3 {
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let pixel = image.get_pixel_checked(x, y);
                let expected = pixel.map_or(0.0, |pixel| value(channel, pixel.0[channel]));
                assert_eq!(values.next(), Some(expected), "channel {channel} at {x}, {y}");
            }
        }
    }
}

#[test]
fn a_batch_is_as_large_as_its_largest_images() {
    let images = [image(8, 2), image(3, 6), image(1, 1), image(4, 4), image(5, 3)];
    let normal = |channel: usize, byte: u8| (f32::from(byte) / 255.0 - MEAN[channel]) / STD[channel];
    let field = || Field::image("image", [6, 8]);
    type Value = Box<dyn Fn(usize, u8) -> f32>;
    let cases: [(Field, Value); 3] = [
        (field().any_size(), Box::new(|_, byte| f32::from(byte))),
        (field().any_size().with_dtype(DType::F32).normalize(MEAN, STD), Box::new(normal)),
        (
            field().with_dtype(DType::BF16).normalize(MEAN, STD).any_size(),
            Box::new(move |channel, byte| bf16::from_f32(normal(channel, byte)).to_f32()),
        ),
    ];
    for (field, value) in cases {
        let builder =
            PinnedDataLoaderBuilder::new(Images(field.clone())).batch_size(3).num_workers(2).set_device(Device::flex());
        let loader = builder.build(InMemDataset::new(images.to_vec())).unwrap();
        for _ in 0..2 {
            for (batch, images) in loader.iter().zip(images.chunks(3)) {
                check(batch.unwrap(), images, &value);
            }
        }
        let batcher = PinnedBatcher::new(Images(field)).unwrap();
        check(batcher.batch(images.to_vec(), &Device::flex()), &images, &value);
    }
}

#[test]
fn an_image_that_is_too_large_and_a_device_that_decodes_are_refused() {
    let field = Field::image("image", [6, 8]).any_size();
    let builder =
        PinnedDataLoaderBuilder::new(Images(field.clone())).batch_size(1).num_workers(1).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(vec![image(9, 1)])).unwrap();
    let error = loader.iter().next().unwrap().err().unwrap();
    let message = Error::of(&error).unwrap().to_string();
    assert!(message.contains("9 x 1 pixels does not fit field `image` of 8 x 6"), "{message}");

    let builder =
        PinnedDataLoaderBuilder::new(Images(field.decoder(Decoder::Device))).batch_size(1).set_device(Device::flex());
    let message = builder.build(InMemDataset::new(vec![image(1, 1)])).err().unwrap().to_string();
    assert!(message.contains("images of any size of field `image`"), "{message}");
}
