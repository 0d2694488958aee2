//! An existing Burn `Batcher`, unchanged, through `from_batcher`: only the builder's first line differs from Burn's.
//!
//!     cargo run --release --example burn_batcher

use burn::data::{
    dataloader::{DataLoaderBuilder, batcher::Batcher},
    dataset::InMemDataset,
};
use burn::prelude::*;
use burn_pinned::{BoxError, PinnedDataLoaderBuilder, map_tensors};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Reading {
    values: [f32; 4],
    class: i32,
}

/// As in many projects: makes tensors from items, in any way.
#[derive(Clone)]
struct ReadingBatcher;

#[derive(Clone, Debug)]
struct ReadingBatch {
    values: Tensor<2>,
    classes: Tensor<1, Int>,
}

// The only addition: it says where the tensors of the batch are.
map_tensors!(ReadingBatch { values, classes });

impl Batcher<Reading, ReadingBatch> for ReadingBatcher {
    fn batch(&self, items: Vec<Reading>, device: &Device) -> ReadingBatch {
        let rows = items.iter().map(|item| Tensor::<1>::from_floats(item.values, device).unsqueeze()).collect();
        let classes: Vec<Tensor<1, Int>> = items.iter().map(|item| Tensor::from_ints([item.class], device)).collect();
        ReadingBatch { values: Tensor::cat(rows, 0), classes: Tensor::cat(classes, 0) }
    }
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let reading = |n: i32| Reading { values: [n as f32, 0.5, -1.0, n as f32 / 2.0], class: n % 3 };
    let dataset = Arc::new(InMemDataset::new((0..1000).map(reading).collect()));
    let device = Device::default();

    let burns =
        DataLoaderBuilder::new(ReadingBatcher).batch_size(32).set_device(device.clone()).build(Arc::clone(&dataset));
    let ours =
        PinnedDataLoaderBuilder::from_batcher(ReadingBatcher).batch_size(32).set_device(device).build(dataset)?;

    let (mut same, mut batches) = (0, 0);
    for (ours, burns) in ours.iter().zip(burns.iter()) {
        let (ours, burns) = (ours?, burns?);
        let equal = ours.values.into_data() == burns.values.into_data();
        same += usize::from(equal && ours.classes.into_data() == burns.classes.into_data());
        batches += 1;
    }
    println!("{same} of {batches} batches have the same values as those of Burn's own loader\n\n{}", ours.stats());
    if same == batches { Ok(()) } else { Err("the batches differ".into()) }
}
