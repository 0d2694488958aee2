//! Every kind of field, and Burn's own batchers.

use super::{OnDevice, check};
use crate::common::{self, Numbers};
use burn::{
    data::{
        dataloader::{DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    tensor::{Bool, BoolStore, DType, Device, Float, Int, Tensor, TensorData},
};
use burn_pinned::{
    BoxError, Collate, Field, MapTensors, PinnedBatcher, PinnedDataLoaderBuilder, RawBatch, RowMut, TensorMapper,
    collate, map_tensors, memory::MemoryKind,
};

/// All dtypes, and padded rows.
struct Mixed;

impl Collate<usize> for Mixed {
    type Batch = (Vec<f32>, Vec<bool>, Vec<i64>, Vec<usize>);
    fn layout(&self) -> Vec<Field> {
        vec![
            Field::new("half", DType::F16, [3]),
            Field::new("mask", DType::Bool(BoolStore::Native), [2]),
            Field::padded("tokens", [9], -1i64),
        ]
    }
    fn write(&self, &n: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("half", &[burn::tensor::f16::from_f32(n as f32); 3])?;
        row.write("mask", &[n % 2 == 0, n % 3 == 0])?;
        Ok(row.write("tokens", &vec![n as i64; n % 10])?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let tokens: Tensor<2, Int> = batch.take("tokens")?;
        let shape = tokens.dims().to_vec();
        let half: Tensor<2, Float> = batch.take("half")?;
        let mask: Tensor<2, Bool> = batch.take("mask")?;
        Ok((
            half.into_data_dtype(DType::F32).try_to_vec()?,
            mask.into_data().iter::<bool>().collect(),
            tokens.into_data().try_to_vec()?,
            shape,
        ))
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_kind_of_field_crosses() {
    let builder = PinnedDataLoaderBuilder::new(Mixed).batch_size(4).num_workers(4).set_device(Device::cuda(0));
    let loader = builder.build(Numbers::new(200)).unwrap();
    for _ in 0..2 {
        let mut n = 0;
        for (half, mask, tokens, shape) in common::epoch(&*loader) {
            let longest = (n..n + 4).map(|n| n % 10).max().unwrap().max(1);
            assert_eq!(shape, [4, longest]);
            for at in 0..4 {
                assert_eq!(half[3 * at..3 * at + 3], [n as f32; 3]);
                assert_eq!(mask[2 * at..2 * at + 2], [n % 2 == 0, n % 3 == 0]);
                let row = &tokens[at * longest..(at + 1) * longest];
                assert!(row.iter().enumerate().all(|(i, value)| *value == if i < n % 10 { n as i64 } else { -1 }));
                n += 1;
            }
        }
    }
}

#[derive(Clone)]
struct Ordinary;

#[derive(Clone, Debug)]
struct OrdinaryBatch {
    values: Tensor<2>,
    classes: Vec<Tensor<1, Int>>,
}
map_tensors!(OrdinaryBatch { values, classes });

impl Batcher<f32, OrdinaryBatch> for Ordinary {
    fn batch(&self, items: Vec<f32>, device: &Device) -> OrdinaryBatch {
        let n = items.len();
        let classes = TensorData::new(items.iter().map(|x| *x as i32 % 7).collect::<Vec<_>>(), [n]);
        let values = items.iter().flat_map(|x| [*x, x * x, -x]).collect::<Vec<_>>();
        let values = Tensor::from_data(TensorData::new(values, [n, 3]), device);
        OrdinaryBatch { values, classes: vec![Tensor::from_data(classes, device)] }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_burn_batcher_equals_burns_loader_and_a_collate_serves_it() {
    let items: Vec<f32> = (0..1003).map(|n| n as f32).collect();
    let data =
        |batch: OrdinaryBatch| (batch.values.into_data(), batch.classes.into_iter().map(Tensor::into_data).collect());
    type Values = Vec<(TensorData, Vec<TensorData>)>;
    let device = Device::cuda(0);
    let burns = DataLoaderBuilder::new(Ordinary)
        .batch_size(32)
        .set_device(device.clone())
        .build(InMemDataset::new(items.clone()));
    let expected: Values = burns.iter().map(|batch| data(batch.unwrap())).collect();
    let builder =
        PinnedDataLoaderBuilder::from_batcher(Ordinary).batch_size(32).num_workers(4).set_device(device.clone());
    let ours = builder.build(InMemDataset::new(items)).unwrap();
    for _ in 0..2 {
        let values: Values = ours.iter().map(|batch| data(batch.unwrap())).collect();
        assert_eq!(values, expected);
    }
    assert!(ours.stats().memory.is_some_and(MemoryKind::is_pinned), "{}", ours.stats());

    let batcher = PinnedBatcher::new(OnDevice { width: 500 }).unwrap();
    let loader = DataLoaderBuilder::new(batcher).batch_size(64).num_workers(4).set_device(device);
    let loader = loader.build(InMemDataset::new((0..2000usize).collect()));
    let seen: usize = loader.iter().map(|kept| check(kept.unwrap(), 500)).sum();
    assert_eq!(seen, 2000);
}

/// A batch that computes with its tensors while they are moved.
struct Doubled(Tensor<2>);

impl MapTensors for Doubled {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        Self(mapper.map(self.0) * 2.0)
    }
}

struct Rows;

impl Batcher<usize, Doubled> for Rows {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Doubled {
        let values: Vec<f32> = items.iter().flat_map(|item| vec![*item as f32; 100_000]).collect();
        Doubled(Tensor::from_data(TensorData::new(values, [items.len(), 100_000]), device))
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_mapper_that_computes_sees_the_values() {
    let builder = PinnedDataLoaderBuilder::from_batcher(Rows).batch_size(32).num_workers(4);
    let loader = builder.set_device(Device::cuda(0)).build(Numbers::new(32 * 60)).unwrap();
    let mut seen = 0;
    for batch in loader.iter() {
        let values = batch.unwrap().0.into_data().try_to_vec::<f32>().unwrap();
        for row in values.chunks(100_000) {
            let wrong = row.iter().position(|value| *value != 2.0 * seen as f32);
            assert!(wrong.is_none(), "row {seen}, column {wrong:?}: {}", row[wrong.unwrap()]);
            seen += 1;
        }
    }
    assert_eq!(seen, 32 * 60);
}

/// CUDA's own integers have 32 bits. And all rows of a batch may lie end to end and have no values.
#[test]
#[ignore = "needs a CUDA device"]
fn what_does_not_fit_is_an_error_and_rows_without_values_make_no_step() {
    let build = |last: i64| {
        let ids = collate(
            [Field::new("id", DType::I64, []), Field::jagged::<i64>("edges", [3, 2])],
            |id: &i64, row| {
                row.put("id", *id)?;
                Ok(row.write::<i64>("edges", &[])?)
            },
            |mut batch| {
                let (edges, offsets) = (batch.take_int::<2>("edges")?, batch.take_int::<1>("edges_offsets")?);
                let offsets: Vec<i32> = offsets.into_data().try_to_vec()?;
                let ids: Vec<i32> = batch.take_int::<1>("id")?.into_data().try_to_vec()?;
                Ok((ids, edges.dims(), offsets))
            },
        );
        let builder = PinnedDataLoaderBuilder::new(ids).batch_size(2).set_device(Device::cuda(0));
        builder.build(InMemDataset::new(vec![1, last])).unwrap()
    };
    assert_eq!(common::epoch(&*build(2)), [(vec![1, 2], [0, 2], vec![0; 3])]);
    let error = build(5_000_000_000).iter().next().unwrap().map(drop).unwrap_err().to_string();
    assert!(error.contains("value 5000000000 of row 1 does not fit into i32"), "{error}");
}
