//! From images to a batch.

use burn::{prelude::*, tensor::DType};
use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut, memory::Decoder, vision::Image};

/// An image and its label, as `ImageFolder` gives them.
pub(crate) type Sample = (Image, usize);

/// Mean and deviation of each channel: with these, values are from -1 to 1.
pub(crate) const HALF: [f32; 3] = [0.5; 3];

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
        let images = Field::image("image", side).with_dtype(DType::F32).normalize(HALF, HALF);
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
