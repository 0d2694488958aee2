//! Burn's batchers and loaders, both ways round.

use crate::common::*;
use burn::{
    data::{
        dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    tensor::{Bool, Device, Int, Tensor, TensorData},
};
use burn_pinned::{Error, MapTensors, PinnedBatcher, PinnedDataLoaderBuilder, TensorMapper, map_tensors};
use std::sync::Arc;

/// An ordinary batcher, as Burn's examples write them, with a nested batch.
#[derive(Clone)]
struct Ordinary;

#[derive(Clone, Debug)]
struct Labels {
    classes: Tensor<1, Int>,
    odd: Option<Tensor<1, Bool>>,
}

#[derive(Clone, Debug)]
struct OrdinaryBatch {
    values: Tensor<2>,
    labels: Labels,
    size: usize,
}

map_tensors!(Labels { classes, odd });
map_tensors!(OrdinaryBatch { values, labels, size });

impl Batcher<f32, OrdinaryBatch> for Ordinary {
    fn batch(&self, items: Vec<f32>, device: &Device) -> OrdinaryBatch {
        let rows: Vec<_> = items.iter().map(|x| Tensor::<1>::from_floats([*x, x * x], device).unsqueeze()).collect();
        let classes: Vec<i64> = items.iter().map(|x| *x as i64 % 10).collect();
        let odd: Vec<bool> = classes.iter().map(|class| class % 2 == 1).collect();
        let n = items.len();
        let odd = (n > 3).then(|| Tensor::from_data(TensorData::new(odd, [n]), device));
        let classes = Tensor::from_data(TensorData::new(classes, [n]), device);
        OrdinaryBatch { values: Tensor::cat(rows, 0), labels: Labels { classes, odd }, size: n }
    }
}

fn values(loader: &dyn DataLoader<OrdinaryBatch>) -> Vec<(TensorData, TensorData, Option<TensorData>, usize)> {
    let data = |batch: OrdinaryBatch| {
        let odd = batch.labels.odd.map(Tensor::into_data);
        (batch.values.into_data(), batch.labels.classes.into_data(), odd, batch.size)
    };
    epoch(loader).into_iter().map(data).collect()
}

#[test]
fn from_batcher_equals_burns_own_loader() {
    let items: Vec<f32> = (0..107).map(|n| n as f32 / 2.0).collect();
    for size in [1, 4, 10, 107, 200] {
        let burns = DataLoaderBuilder::new(Ordinary)
            .batch_size(size)
            .set_device(Device::flex())
            .build(InMemDataset::new(items.clone()));
        for workers in [1, 4] {
            let ours = PinnedDataLoaderBuilder::from_batcher(Ordinary)
                .batch_size(size)
                .num_workers(workers)
                .set_device(Device::flex())
                .build(InMemDataset::new(items.clone()))
                .unwrap();
            assert_eq!(ours.num_items(), burns.num_items());
            for _ in 0..2 {
                assert_eq!(values(&*ours), values(&*burns), "batches of {size}, {workers} workers");
            }
        }
    }
}

#[test]
fn a_loader_is_burns_trait_object() {
    let loader = builder().build(Numbers::new(20)).unwrap();
    let object: Arc<dyn DataLoader<Shown>> = loader;
    let moved = object.slice(4, 12).to_device(&Device::flex());
    assert_eq!(numbers(&epoch(&*moved)), (4..12).collect::<Vec<i64>>());
}

#[test]
fn a_collate_serves_burns_loader() {
    let reference = epoch(&*builder().build(Numbers::new(50)).unwrap());
    for workers in [0, 3] {
        let burns = DataLoaderBuilder::new(PinnedBatcher::new(Show { width: 13 }).unwrap())
            .batch_size(8)
            .num_workers(workers)
            .set_device(Device::flex())
            .build(InMemDataset::new((0..50usize).collect()));
        let mut batches = epoch(&*burns);
        batches.sort_by_key(|batch| batch.numbers[0]); // Burn's workers deliver in any order
        if workers == 0 {
            assert_eq!(batches, reference);
        } else {
            assert_eq!(numbers(&batches), numbers(&reference));
        }
    }
}

/// A batch that computes with its tensor while the tensor is moved.
struct Doubled(Tensor<1>);

impl MapTensors for Doubled {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        Self(mapper.map(self.0) * 2.0)
    }
}

struct Floats;

impl Batcher<f32, Doubled> for Floats {
    fn batch(&self, items: Vec<f32>, device: &Device) -> Doubled {
        Doubled(Tensor::from_floats(items.as_slice(), device))
    }
}

/// The batch is the same as on an accelerator, where tensors are moved once.
#[test]
fn a_mapper_that_computes_does_so_once() {
    let builder = PinnedDataLoaderBuilder::from_batcher(Floats).batch_size(2).num_workers(2);
    let loader = builder.set_device(Device::flex()).build(InMemDataset::new(vec![1.0f32, 2.0, 3.0])).unwrap();
    let values = |batch: Doubled| batch.0.into_data().try_to_vec::<f32>().unwrap();
    let batches: Vec<_> = loader.iter().map(|batch| values(batch.unwrap())).collect();
    assert_eq!(batches, [vec![2.0, 4.0], vec![6.0]]);
}

/// Panics on one batch.
#[derive(Clone)]
struct Panicking;

impl Batcher<f32, OrdinaryBatch> for Panicking {
    fn batch(&self, items: Vec<f32>, device: &Device) -> OrdinaryBatch {
        assert!(!items.contains(&17.0), "seventeen");
        Ordinary.batch(items, device)
    }
}

#[test]
fn a_batcher_that_panics_is_an_error_at_its_place() {
    let loader = PinnedDataLoaderBuilder::from_batcher(Panicking)
        .batch_size(4)
        .num_workers(3)
        .set_device(Device::flex())
        .build(InMemDataset::new((0..40).map(|n| n as f32).collect::<Vec<_>>()))
        .unwrap();
    for _ in 0..3 {
        let batches: Vec<_> = loader.iter().collect();
        assert_eq!(batches.len(), 10);
        for (at, batch) in batches.into_iter().enumerate() {
            match batch {
                Ok(batch) => assert_eq!(batch.values.into_data().try_to_vec::<f32>().unwrap()[0], 4.0 * at as f32),
                Err(error) => {
                    let message = Error::of(&error).unwrap().to_string();
                    assert!(
                        at == 4 && message.starts_with("batcher (") && message.ends_with("panicked: seventeen"),
                        "{message}"
                    );
                }
            }
        }
    }
}

/// Notes how many items it is given.
#[derive(Clone)]
struct Counting(Arc<std::sync::Mutex<Vec<usize>>>);

impl Batcher<f32, OrdinaryBatch> for Counting {
    fn batch(&self, items: Vec<f32>, device: &Device) -> OrdinaryBatch {
        self.0.lock().unwrap().push(items.len());
        Ordinary.batch(items, device)
    }
}

#[test]
fn a_batcher_sees_whole_batches_only_whenever_the_iterator_is_dropped() {
    let sizes = Counting(Arc::default());
    let loader = PinnedDataLoaderBuilder::from_batcher(sizes.clone())
        .batch_size(10)
        .num_workers(4)
        .set_device(Device::flex())
        .build(InMemDataset::new((0..400).map(|n| n as f32).collect::<Vec<_>>()))
        .unwrap();
    for taken in 0..60 {
        assert_eq!(loader.iter().take(taken % 7).count(), taken % 7);
    }
    drop(loader);
    let sizes = sizes.0.lock().unwrap();
    assert!(!sizes.is_empty() && sizes.iter().all(|size| *size == 10), "{sizes:?}");
}
