//! A case: the data, and how both loaders make batches of them.

use crate::{
    data::{Item, Store},
    finish::{Batch, Finish, Raw},
};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{DType, Device, Tensor, TensorData},
};
use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut, memory::Decoder};

/// A case to run: its data, and how rows of it look.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) store: &'static Store,
    pub(crate) shape: [usize; 3],
    pub(crate) dtype: DType,
    pub(crate) batch: usize,
    pub(crate) finish: Finish,
    pub(crate) decoder: Decoder,
    pub(crate) room: Option<usize>,
}

impl Case {
    pub(crate) fn row_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }

    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch * (self.row_bytes() + 8)
    }

    fn tensor(&self, bytes: Vec<u8>, rows: usize, device: &Device) -> Raw {
        let [c, h, w] = self.shape;
        let data = TensorData::from_bytes_vec(bytes, [rows, c, h, w], self.dtype);
        match self.dtype {
            DType::F32 => Raw::Floats(Tensor::from_data(data, device)),
            dtype => Raw::Bytes(Tensor::from_data(data, (device, dtype))),
        }
    }
}

impl Collate<Item> for Case {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        let x = match self.store {
            Store::Raw { .. } => Field::new("x", self.dtype, self.shape),
            Store::Jpeg(_) => {
                let [_, height, width] = self.shape;
                let image = Field::image("x", [height, width]).decoder(self.decoder);
                match self.room {
                    Some(bytes) => image.room(bytes),
                    None => image,
                }
            }
        };
        vec![x, Field::new("label", DType::I64, [])]
    }

    fn write(&self, item: &Item, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        match (item.raw(), self.dtype) {
            (Some(raw), DType::F32) => row.write::<f32>("x", bytemuck::cast_slice(raw))?,
            (Some(raw), _) => row.write("x", raw)?,
            (None, _) => row.image("x", &item.image()?)?,
        }
        Ok(row.put("label", item.label())?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        let x = match self.dtype {
            DType::F32 => Raw::Floats(batch.take("x")?),
            _ => Raw::Bytes(batch.take("x")?),
        };
        let labels = batch.take("label")?;
        self.finish.run(x, labels, &mut batch.rng())
    }
}

/// The same batches, as a Burn user writes them.
impl Batcher<Item, Batch> for Case {
    fn batch(&self, items: Vec<Item>, device: &Device) -> Batch {
        let mut bytes = Vec::with_capacity(items.len() * self.row_bytes());
        for item in &items {
            match item.raw() {
                Some(raw) => bytes.extend_from_slice(raw),
                None => {
                    let start = bytes.len();
                    bytes.resize(start + self.row_bytes(), 0);
                    item.write(&mut bytes[start..]).expect("the bench made these images itself");
                }
            }
        }
        let labels: Vec<i64> = items.iter().map(Item::label).collect();
        let labels = TensorData::new(labels, [items.len()]);
        (self.tensor(bytes, items.len(), device), Tensor::from_data(labels, (device, DType::I64)))
    }
}
