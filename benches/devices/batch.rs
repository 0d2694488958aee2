//! What goes to the devices: images from memory as they are, or JPEGs to decode.

use crate::data::{Item, Repeat, SIDE, Store};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_pinned::{
    BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut, memory::Decoder,
    order::RandomWithReplacementSampler,
};

/// Images and labels, on a device.
pub(crate) type Batch = (Tensor<4, Int>, Tensor<1, Int>);

/// Bytes of an image.
pub(crate) const ROW: usize = 3 * SIDE * SIDE;

/// A case to run: its data, and how they become batches.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) store: &'static Store,
    pub(crate) batch: usize,
    pub(crate) decoder: Decoder,
    /// Slots of each device, and threads that copy to it, if not as many as the loader chooses.
    pub(crate) slots: Option<usize>,
    pub(crate) transfers: Option<usize>,
}

impl Case {
    /// The builder of a loader of these batches, for `devices` devices.
    pub(crate) fn builder(&self, workers: usize, devices: usize) -> PinnedDataLoaderBuilder<Item, Batch> {
        let mut builder = PinnedDataLoaderBuilder::new(self.clone()).batch_size(self.batch);
        if let Some(slots) = self.slots {
            // A slot has the labels too.
            builder = builder.pinned_limit(devices * slots * self.batch * (ROW + 64));
        }
        if let Some(threads) = self.transfers {
            builder = builder.transfer_threads(threads);
        }
        let builder = match workers {
            0 => builder,
            workers => builder.num_workers(workers),
        };
        match self.store {
            Store::Raw { .. } => builder,
            // In order, one device in eight would get all the large files.
            Store::Jpeg(_) => builder.order(RandomWithReplacementSampler::new(5)),
        }
    }

    /// An epoch without end: the clock ends what is measured.
    pub(crate) fn dataset(&self) -> Repeat {
        Repeat { store: self.store, len: 1 << 40 }
    }

    /// The images of a batch, on the device.
    pub(crate) fn resident(&self, device: &Device) -> Result<Tensor<4, Int>, BoxError> {
        let mut bytes = vec![0; self.batch * ROW];
        for (index, row) in bytes.chunks_exact_mut(ROW).enumerate() {
            Item { store: self.store, index }.write(row)?;
        }
        let data = TensorData::from_bytes_vec(bytes, [self.batch, 3, SIDE, SIDE], DType::U8);
        Ok(Tensor::from_data(data, (device, DType::U8)))
    }
}

impl Collate<Item> for Case {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        let images = match self.store {
            Store::Raw { .. } => Field::new("x", DType::U8, [3, SIDE, SIDE]),
            Store::Jpeg(_) => Field::image("x", SIDE).decoder(self.decoder),
        };
        vec![images, Field::new("label", DType::I64, [])]
    }

    fn write(&self, item: &Item, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        match item.raw() {
            Some(raw) => row.write("x", raw)?,
            None => row.image("x", &item.image()?)?,
        }
        Ok(row.put("label", item.label())?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        Ok((batch.take("x")?, batch.take("label")?))
    }
}
