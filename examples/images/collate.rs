//! From decoded images to a batch: through this crate, and for comparison as a Burn batcher.

use super::folder::Sample;
use burn::{data::dataloader::batcher::Batcher, prelude::*, tensor::DType};
use burn_pinned::{BoxError, Collate, Field, KeyedRng, RawBatch, RowMut};
use rand::RngExt;

/// What the model sees: images `[batch, 3, side, side]` around 0, labels `[batch]`.
#[derive(Clone, Debug)]
pub(crate) struct ImageBatch {
    pub(crate) images: Tensor<4>,
    pub(crate) labels: Tensor<1, Int>,
}

/// Bytes to numbers around 0.
fn normalise(images: Tensor<4, Int>) -> Tensor<4> {
    images.float() / 127.5 - 1.0
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
        row.write("image", &sample.pixels)?;
        Ok(row.put("label", i32::try_from(sample.label)?)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<ImageBatch, BoxError> {
        Ok(ImageBatch { images: normalise(batch.take("image")?), labels: batch.take_int("label")? })
    }
}

/// The same batch in Burn's way.
impl Batcher<Sample, ImageBatch> for ImageCollate {
    fn batch(&self, samples: Vec<Sample>, device: &Device) -> ImageBatch {
        let labels: Vec<i32> = samples.iter().map(|sample| sample.label as i32).collect();
        let pixels = samples.into_iter().flat_map(|sample| sample.pixels).collect();
        let images = TensorData::from_bytes_vec(pixels, [labels.len(), 3, self.side, self.side], DType::U8);
        let count = labels.len();
        ImageBatch {
            images: normalise(Tensor::from_data(images, (device, DType::U8))),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

/// Mirrors half of the images and shifts each by up to two pixels.
pub(crate) fn jitter(side: usize) -> impl Fn(Sample, &mut KeyedRng) -> Sample + Send + Sync + 'static {
    move |mut sample, rng| {
        let mirror = rng.random_bool(0.5);
        let (dx, dy) = (rng.random_range(-2..=2i32) as isize, rng.random_range(-2..=2i32) as isize);
        let clamp = |at: usize, shift: isize| at.saturating_add_signed(shift).min(side - 1);
        let source = std::mem::take(&mut sample.pixels);
        sample.pixels = Vec::with_capacity(source.len());
        for row in 0..3 * side {
            let (channel, y) = (row / side, clamp(row % side, dy));
            let line = &source[(channel * side + y) * side..][..side];
            sample.pixels.extend((0..side).map(|x| line[clamp(if mirror { side - 1 - x } else { x }, dx)]));
        }
        sample
    }
}
