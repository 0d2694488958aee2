//! Loops that wait for the loader, and how long.

use super::{OnDevice, check};
use crate::common::Numbers;
use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{BoxError, Collate, Error, Field, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// A batch of this many tensors.
struct Fields(usize);

impl Fields {
    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.0).map(|nth| format!("field {nth}"))
    }
}

impl Collate<usize> for Fields {
    type Batch = Vec<Tensor<2, Int>>;
    fn layout(&self) -> Vec<Field> {
        self.names().map(|name| Field::new(name, DType::U8, [10_000])).collect()
    }
    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        for name in self.names() {
            row.slice_mut::<u8>(&name)?.fill(number as u8);
        }
        Ok(())
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        self.names().map(|name| Ok(batch.take(&name)?)).collect()
    }
}

/// Burn gathers tasks before it begins one, and the drop of a tensor is a task. A loop that only takes batches gives Burn
/// few tasks. It does not stand still until there are enough, also after a pause at the start.
#[test]
#[ignore = "needs a CUDA device"]
fn a_loop_without_a_step_never_stands_still() {
    const PAUSE: Duration = Duration::from_millis(1500);
    let cases: Vec<(usize, bool)> = (1..=8).flat_map(|fields| [(fields, false), (fields, true)]).collect();
    let loaders = cases.iter().map(|(fields, _)| {
        let builder = PinnedDataLoaderBuilder::new(Fields(*fields)).batch_size(64).num_workers(8);
        builder.set_device(Device::cuda(0)).build(Numbers::new(64 * 404)).unwrap()
    });
    let loaders: Vec<_> = loaders.collect();
    let take = |batch: Vec<Tensor<2, Int>>, computes| {
        if computes {
            drop(batch[0].clone().sum());
        }
    };
    // Kernels are compiled and tuned before the clock.
    let start = |(loader, (_, computes)): (_, &(usize, bool))| {
        let loader: &PinnedDataLoader<_> = loader;
        let mut batches = loader.iter();
        (0..4).for_each(|_| take(batches.next().unwrap().unwrap(), *computes));
        batches
    };
    let all: Vec<_> = loaders.iter().map(|loader| &**loader).zip(&cases).map(start).collect();
    Device::cuda(0).sync().unwrap();
    sleep(PAUSE);
    for ((mut batches, loader), (fields, computes)) in all.into_iter().zip(&loaders).zip(&cases) {
        let (mut count, mut longest) = (0, Duration::ZERO);
        loop {
            let asked = Instant::now();
            let Some(batch) = batches.next() else { break };
            longest = longest.max(asked.elapsed());
            take(batch.unwrap(), *computes);
            count += 1;
        }
        println!(
            "{fields} fields, computes: {computes}: the longest wait was {longest:?}, {:?} of it for batches kept",
            loader.stats().kept_wait
        );
        assert!(count == 400 && longest < PAUSE / 15, "{longest:?}\n{}", loader.stats());
    }
}

/// An idle iterator may hold every slot. Then a second iterator gets an error after the timeout, and does not hang.
#[test]
#[ignore = "needs a CUDA device"]
fn an_idle_iterator_does_not_hang_another() {
    struct Slow;
    impl Dataset<usize> for Slow {
        fn get(&self, index: usize) -> Result<usize, DatasetError> {
            Ok(index)
        }
        fn len(&self) -> usize {
            4000
        }
    }
    let builder = PinnedDataLoaderBuilder::new(OnDevice { width: 100 }).batch_size(10).num_workers(2);
    let builder = builder.timeout(Duration::from_millis(300)).set_device(Device::cuda(0));
    let loader = builder.build(Slow).unwrap();
    let mut idle = loader.iter();
    check(idle.next().unwrap().unwrap(), 100);
    std::thread::sleep(Duration::from_millis(200));
    let mut second = loader.iter();
    let first = second.next().unwrap().map(|kept| check(kept, 100));
    drop(idle);
    match first {
        Ok(seen) => assert_eq!(seen + second.map(|kept| check(kept.unwrap(), 100)).sum::<usize>(), 4000),
        Err(error) => {
            assert!(matches!(Error::of(&error), Some(Error::Timeout { .. })), "{error}");
            assert!(second.next().is_none(), "its epoch is over");
        }
    }
    let seen: usize = loader.iter().map(|kept| check(kept.unwrap(), 100)).sum();
    assert_eq!(seen, 4000);
}
