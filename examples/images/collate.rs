//! From decoded images to a batch: through this crate, and for comparison as a Burn batcher.

use super::folder::Sample;
use burn::{data::dataloader::batcher::Batcher, prelude::*, tensor::DType};
use burn_pinned::{
    Augment, BoxError, Collate, Error, Field, RawBatch, RowMut,
    vision::{ColorJitter, HasImage, PaddingMode, RandomCrop, RandomHorizontalFlip, device, write_chw},
};

/// What the model sees: images `[batch, 3, side, side]` around 0, labels `[batch]`.
#[derive(Clone, Debug)]
pub(crate) struct ImageBatch {
    pub(crate) images: Tensor<4>,
    pub(crate) labels: Tensor<1, Int>,
}

/// Bytes to numbers around 0.
fn normalize(images: Tensor<4, Int>) -> Result<Tensor<4>, Error> {
    device::normalize(images, &[0.5; 3], &[0.5; 3])
}

/// Images cross the link as bytes and become numbers on the device.
#[derive(Clone)]
pub(crate) struct ImageCollate {
    pub(crate) side: usize,
}

impl Collate<Sample> for ImageCollate {
    type Batch = ImageBatch;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("image", DType::U8, [3, self.side, self.side]), Field::new("label", DType::I32, [])]
    }

    fn write(&self, sample: &Sample, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        write_chw(&sample.image, row.slice_mut("image")?)?;
        Ok(row.put("label", i32::try_from(sample.label)?)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<ImageBatch, BoxError> {
        Ok(ImageBatch { images: normalize(batch.take("image")?)?, labels: batch.take_int("label")? })
    }
}

/// The same batch in Burn's way.
impl Batcher<Sample, ImageBatch> for ImageCollate {
    fn batch(&self, samples: Vec<Sample>, device: &Device) -> ImageBatch {
        let labels: Vec<i32> = samples.iter().map(|sample| sample.label as i32).collect();
        let (count, bytes) = (labels.len(), 3 * self.side * self.side);
        let mut pixels = vec![0; count * bytes];
        for (sample, row) in samples.iter().zip(pixels.chunks_exact_mut(bytes)) {
            write_chw(&sample.image, row).expect("the folder resizes to `side`"); // this trait knows no errors
        }
        let images = TensorData::from_bytes_vec(pixels, [count, 3, self.side, self.side], DType::U8);
        ImageBatch {
            images: normalize(Tensor::from_data(images, (device, DType::U8)))
                .expect("three of each for three channels"),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

/// Shifts each image by up to two pixels, mirrors half of them, and changes brightness and contrast.
pub(crate) fn jitter<T: HasImage>(side: usize) -> Result<impl Augment<T>, Error> {
    let shift = RandomCrop::new(side as u32)?.padding(2).padding_mode(PaddingMode::Edge);
    let light = ColorJitter::new().brightness(0.2)?.contrast(0.2)?;
    Ok((shift, RandomHorizontalFlip::default(), light))
}
