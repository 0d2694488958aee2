//! Batches of images that can be recognised: with the samples they were made of, and a hash of all that the model sees.

use super::collate::{ImageBatch, ImageCollate, Sample};
use burn::{
    data::dataset::{Dataset, DatasetError},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{
    BoxError, Collate, Field, RawBatch, RowMut,
    vision::{HasImage, Image, ImageFolder},
};
use std::hash::{DefaultHasher, Hasher};

/// A sample that knows its index.
pub(crate) struct Indexed {
    index: usize,
    sample: Sample,
}

impl HasImage for Indexed {
    type Image = Image;

    fn image_mut(&mut self) -> &mut Image {
        &mut self.sample.0
    }
}

pub(crate) struct IndexedFolder(pub(crate) ImageFolder);

impl Dataset<Indexed> for IndexedFolder {
    fn get(&self, index: usize) -> Result<Indexed, DatasetError> {
        Ok(Indexed { index, sample: self.0.get(index)? })
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

pub(crate) struct TracedBatch {
    pub(crate) batch: ImageBatch,
    /// Of the indices, the labels and the augmented images, in their order.
    pub(crate) hash: u64,
}

pub(crate) struct TracedCollate(pub(crate) ImageCollate);

impl Collate<Indexed> for TracedCollate {
    type Batch = TracedBatch;

    fn layout(&self) -> Vec<Field> {
        let mut fields = self.0.layout();
        fields.push(Field::new("index", DType::I64, []));
        fields
    }

    fn write(&self, item: &Indexed, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("index", i64::try_from(item.index)?)?;
        self.0.write(&item.sample, row)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<TracedBatch, BoxError> {
        let indices = batch.take::<1, Int>("index")?;
        let batch = self.0.finish(batch)?;
        let mut hasher = DefaultHasher::new();
        for data in [indices.into_data(), batch.labels.to_data(), batch.images.to_data()] {
            hasher.write(data.as_bytes());
        }
        Ok(TracedBatch { batch, hash: hasher.finish() })
    }
}
