//! Small grey pictures of lines, drawn when they are asked for. Their class is the direction of the line.

use burn::{
    data::dataset::{Dataset, DatasetError},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

pub(crate) const SIDE: usize = 28;
pub(crate) const CLASSES: usize = 8;

/// The pictures of a seed: the same on every machine.
pub(crate) struct Lines {
    pub(crate) len: usize,
    pub(crate) seed: u64,
}

pub(crate) type Picture = (Vec<u8>, i32);

impl Dataset<Picture> for Lines {
    fn get(&self, index: usize) -> Result<Picture, DatasetError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64);
        let class = rng.random_range(0..CLASSES);
        let (sin, cos) = (std::f32::consts::PI * class as f32 / CLASSES as f32).sin_cos();
        let middle = SIDE as f32 / 2.0;
        let (x0, y0) = (middle + rng.random_range(-4.0..4.0f32), middle + rng.random_range(-4.0..4.0f32));
        let mut pixels = vec![0; SIDE * SIDE];
        rng.fill(&mut pixels[..]);
        for (at, pixel) in pixels.iter_mut().enumerate() {
            let (x, y) = ((at % SIDE) as f32 - x0, (at / SIDE) as f32 - y0);
            let is_line = (x * sin - y * cos).abs() < 1.2;
            *pixel = *pixel / 3 + if is_line { 150 } else { 0 };
        }
        Ok((pixels, class as i32))
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Pictures `[batch, SIDE * SIDE]` from -0.5 to 0.5, and classes `[batch]`.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) pixels: Tensor<2>,
    pub(crate) classes: Tensor<1, Int>,
}

pub(crate) struct ToBatch;

impl Collate<Picture> for ToBatch {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("pixels", DType::U8, [SIDE * SIDE]), Field::new("class", DType::I32, [])]
    }

    fn write(&self, (pixels, class): &Picture, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("pixels", pixels)?;
        Ok(row.put("class", *class)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        let pixels = batch.take::<2, Int>("pixels")?.float() / 255.0 - 0.5;
        Ok(Batch { pixels, classes: batch.take_int("class")? })
    }
}
