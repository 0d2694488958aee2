//! The same batches by Burn's own loader: always of centre squares.

use super::{
    collate::{HALF, ImageBatch, ImageCollate, Sample},
    square::CentreSquare,
};
use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError},
    },
    prelude::*,
    tensor::DType,
};
use burn_pinned::vision::{Image, device::normalize, write_chw};
use std::sync::Arc;

/// The same batch in Burn's way, always of centre squares. They cross the link as bytes.
impl Batcher<Sample, ImageBatch> for ImageCollate {
    fn batch(&self, samples: Vec<Sample>, device: &Device) -> ImageBatch {
        let labels: Vec<i32> = samples.iter().map(|(_, label)| *label as i32).collect();
        let (count, side) = (samples.len(), self.side as usize);
        let mut pixels = vec![0; count * 3 * side * side];
        for ((image, _), row) in samples.into_iter().zip(pixels.chunks_exact_mut(3 * side * side)) {
            let square = image.into_rgb().expect("it has its pixels: see `Decoded`");
            write_chw(&square, row).expect("`Decoded` gives squares of this side");
        }
        let images = TensorData::from_bytes_vec(pixels, [count, 3, side, side], DType::U8);
        ImageBatch {
            images: normalize(Tensor::<4, Int>::from_data(images, (device, DType::U8)), &HALF, &HALF)
                .expect("three of each for three channels"),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

/// For Burn's own loader: the centre squares of the images, decoded in `get`. A batcher knows no errors, a dataset does.
pub(crate) struct Decoded {
    pub(crate) images: Arc<dyn Dataset<Sample>>,
    pub(crate) side: u32,
}

impl Dataset<Sample> for Decoded {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        let (mut image, label) = self.images.get(index)?;
        let square = CentreSquare(self.side).cut(&mut image).and_then(|()| image.into_rgb());
        Ok((Image::from(square.map_err(DatasetError::new)?), label))
    }

    fn len(&self) -> usize {
        self.images.len()
    }
}
