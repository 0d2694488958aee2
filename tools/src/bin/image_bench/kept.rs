//! Images that are kept on the device, as bytes. What is random is done there.

use super::{
    collate::{HALF, ImageBatch, Sample},
    square::CentreSquare,
};
use burn::{prelude::*, tensor::DType};
use burn_pinned::{
    BoxError, Collate, Error, Field, RawBatch, RowMut,
    memory::Decoder,
    vision::{RandomCrop, device},
};

/// Takes the centre square of each image, once. For training, batches are cropped and mirrored at random.
pub(crate) struct KeptCollate {
    side: u32,
    decoder: Decoder,
    crop: Option<RandomCrop>,
}

impl KeptCollate {
    pub(crate) fn new(side: u32, decoder: Decoder, train: bool) -> Result<Self, Error> {
        let crop = train.then(|| RandomCrop::new(side)).transpose()?.map(|crop| crop.padding(side / 8));
        Ok(Self { side, decoder, crop })
    }
}

impl Collate<Sample> for KeptCollate {
    type Batch = ImageBatch;

    fn layout(&self) -> Vec<Field> {
        let side = self.side as usize;
        vec![Field::image("image", side).decoder(self.decoder), Field::new("label", DType::I32, [])]
    }

    fn write(&self, (image, label): &Sample, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        let mut image = image.clone();
        CentreSquare(self.side).cut(&mut image)?;
        row.image("image", &image)?;
        Ok(row.put("label", i32::try_from(*label)?)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<ImageBatch, BoxError> {
        let mut rng = batch.rng();
        let mut images = batch.take::<4, Int>("image")?;
        if let Some(crop) = &self.crop {
            images = device::random_crop(images, crop, &mut rng)?;
            images = device::random_horizontal_flip(images, 0.5, &mut rng)?;
        }
        Ok(ImageBatch { images: device::normalize(images, &HALF, &HALF)?, labels: batch.take_int("label")? })
    }
}
