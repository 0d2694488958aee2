//! Datasets with errors of their own fit a loader as they are, and their errors come through it.

use crate::common::{Numbers, Shown, builder, sized};
use burn::data::{
    dataloader::batcher::Batcher,
    dataset::{
        Dataset, DatasetError, InMemDataset,
        transform::{ComposedDataset, Mapper, MapperDataset, PartialDataset},
    },
};
use burn::tensor::{Device, Int, Tensor};
use burn_pinned::{BadSamples, Error, PinnedDataLoader, PinnedDataLoaderBuilder, fault::Quota};
use std::{error::Error as StdError, sync::Arc};

/// What went wrong at a row of a table.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("row {0} is locked")]
struct Locked(usize);

/// The numbers below 16, with an error at 5.
struct Table;

impl Dataset<usize, Locked> for Table {
    fn get(&self, index: usize) -> Result<usize, Locked> {
        if index == 5 { Err(Locked(index)) } else { Ok(index) }
    }

    fn len(&self) -> usize {
        16
    }
}

struct Same;

impl Mapper<usize, usize> for Same {
    fn map(&self, item: &usize) -> usize {
        *item
    }
}

/// Checks that the only error of a loader is that of row 5, and that a caller finds it by its type.
#[track_caller]
fn reports<O: Send + 'static>(loader: &PinnedDataLoader<O>) {
    let errors: Vec<DatasetError> = loader.iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1);
    let error = Error::of(&errors[0]).unwrap();
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Locked(5)), "{error:?}");
    assert_eq!(error.place().unwrap().index, Some(5));
    assert!(error.to_string().ends_with(": row 5 is locked"), "{error}");
}

#[test]
fn a_dataset_with_errors_of_its_own() {
    reports(&builder().build(Table).unwrap());
    reports(&builder().build(Arc::new(Table)).unwrap());
    reports(&builder().build(Arc::new(Table) as Arc<dyn Dataset<usize, Locked>>).unwrap());
    reports(&builder().build(Box::new(Table) as Box<dyn Dataset<usize, Locked>>).unwrap());
    reports(&builder().build(MapperDataset::new(Table, Same)).unwrap());
    reports(&builder().build(PartialDataset::new(Table, 0, 12)).unwrap());
    reports(&builder().build(ComposedDataset::new(vec![Table])).unwrap());
}

/// A batcher that counts its items.
struct Count;

impl Batcher<usize, Tensor<1, Int>> for Count {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Tensor<1, Int> {
        Tensor::from_ints([items.len() as i64], device)
    }
}

#[test]
fn with_a_batcher() {
    let builder = PinnedDataLoaderBuilder::from_batcher(Count).batch_size(8).num_workers(2).set_device(Device::flex());
    reports(&builder.build(Table).unwrap());
}

/// Policies see such errors as they see others.
#[test]
fn policies() {
    let numbers = |policy| -> Vec<i64> {
        let loader = sized(8).bad_samples(policy).build(Table).unwrap();
        loader.iter().flat_map(|batch| batch.unwrap().numbers).collect()
    };
    assert_eq!(numbers(BadSamples::Skip(Quota::Count(1))), [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(numbers(BadSamples::Replace { tries: 1 })[4..7], [4, 6, 6]);
}

/// No call names the type of the error, and a function that takes any dataset needs no more than before.
#[test]
fn the_type_of_the_error_is_inferred() {
    fn build<D: Dataset<usize> + 'static>(dataset: D) -> Arc<PinnedDataLoader<Shown>> {
        builder().build(dataset).unwrap()
    }
    let shared: Arc<dyn Dataset<usize>> = Arc::new(Numbers::new(16));
    let boxed: Box<dyn Dataset<usize>> = Box::new(Numbers::new(16));
    let mapped = MapperDataset::new(InMemDataset::new((0..16).collect()), Same);
    let loaders = [
        build(Numbers::new(16)),
        builder().build(Arc::clone(&shared)).unwrap(),
        builder().build(boxed).unwrap(),
        builder().build(mapped).unwrap(),
        builder().build(PartialDataset::new(shared, 0, 16)).unwrap(),
        builder().build(InMemDataset::new((0..16).collect())).unwrap(),
    ];
    for loader in loaders {
        let numbers: Vec<i64> = loader.iter().flat_map(|batch| batch.unwrap().numbers).collect();
        assert_eq!(numbers, (0..16).collect::<Vec<_>>());
    }
}
