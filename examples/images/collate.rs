//! From images to a batch: through this crate, and for comparison as a Burn batcher.

use super::augment::CentreSquare;
use burn::{data::dataloader::batcher::Batcher, prelude::*, tensor::DType};
use burn_pinned::{
    BoxError, Collate, Field, RawBatch, RowMut,
    memory::Decoder,
    vision::{Image, VisionError, device::normalize, write_chw},
};

/// An image and its label, as `ImageFolder` gives them.
pub(crate) type Sample = (Image, usize);

/// Mean and deviation of each channel: with these, values are from -1 to 1.
const HALF: [f32; 3] = [0.5; 3];

/// What the model sees: images `[batch, 3, side, side]` around 0, labels `[batch]`.
#[derive(Clone, Debug)]
pub(crate) struct ImageBatch {
    pub(crate) images: Tensor<4>,
    pub(crate) labels: Tensor<1, Int>,
}

/// Takes images of this side. They are decoded where the loader chooses.
#[derive(Clone)]
pub(crate) struct ImageCollate {
    pub(crate) side: u32,
    pub(crate) decoder: Decoder,
}

impl Collate<Sample> for ImageCollate {
    type Batch = ImageBatch;

    fn layout(&self) -> Vec<Field> {
        let side = self.side as usize;
        let images = Field::image("image", [3, side, side]).with_dtype(DType::F32).normalize(HALF, HALF);
        vec![images.decoder(self.decoder), Field::new("label", DType::I32, [])]
    }

    fn write(&self, (image, label): &Sample, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.image("image", image)?;
        Ok(row.put("label", i32::try_from(*label)?)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<ImageBatch, BoxError> {
        Ok(ImageBatch { images: batch.take::<4, Float>("image")?, labels: batch.take_int("label")? })
    }
}

/// The same batch in Burn's way, always of centre squares. They cross the link as bytes.
impl Batcher<Sample, ImageBatch> for ImageCollate {
    fn batch(&self, samples: Vec<Sample>, device: &Device) -> ImageBatch {
        let labels: Vec<i32> = samples.iter().map(|(_, label)| *label as i32).collect();
        let (count, side) = (samples.len(), self.side as usize);
        let mut pixels = vec![0; count * 3 * side * side];
        for ((image, _), row) in samples.into_iter().zip(pixels.chunks_exact_mut(3 * side * side)) {
            // This trait knows no errors.
            write_square(image, self.side, row).unwrap_or_else(|error| panic!("{error}"));
        }
        let images = TensorData::from_bytes_vec(pixels, [count, 3, side, side], DType::U8);
        ImageBatch {
            images: normalize(Tensor::from_data(images, (device, DType::U8)), &HALF, &HALF)
                .expect("three of each for three channels"),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

/// Decodes the centre square of an image into its row.
fn write_square(mut image: Image, side: u32, row: &mut [u8]) -> Result<(), VisionError> {
    CentreSquare(side).cut(&mut image)?;
    write_chw(&image.into_rgb()?, row)
}
