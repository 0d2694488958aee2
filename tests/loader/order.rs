//! Which samples arrive, in which order, whatever the machine does.

use crate::common::*;
use burn_pinned::{KeyedRng, PinnedDataLoader, order::Sampler};
use proptest::prelude::*;
use rand::RngExt;
use std::{collections::HashSet, sync::Arc, time::Duration};

fn shuffled(len: usize, workers: usize, prefetch: usize, slots: usize) -> Arc<PinnedDataLoader<Shown>> {
    let slot = 8 * 64 + 64 * 2; // more than a slot of `Show { width: 13 }` for 8 rows
    builder()
        .shuffle(42)
        .augment(|number: usize, rng: &mut KeyedRng| Ok(number * 1000 + rng.random_range(0..1000usize)))
        .num_workers(workers)
        .prefetch(prefetch)
        .pinned_limit(slots * slot)
        .build(Numbers::new(len))
        .unwrap()
}

#[test]
fn batches_are_the_same_for_any_workers_prefetch_and_pool() {
    let reference: Vec<_> = {
        let loader = shuffled(203, 1, 1, 1);
        (0..3).map(|_| epoch(&*loader)).collect()
    };
    assert_ne!(reference[0], reference[1], "epochs differ");
    for workers in [1, 2, 8] {
        for prefetch in [1, 2, 5] {
            for slots in [1, 2, 7] {
                let loader = shuffled(203, workers, prefetch, slots);
                for expected in &reference {
                    assert_eq!(epoch(&*loader), *expected, "{workers} workers, prefetch {prefetch}, {slots} slots");
                }
            }
        }
    }
}

#[test]
fn batches_are_the_same_when_samples_take_uneven_time() {
    let slow = (0..100).step_by(7).fold(Numbers::new(100), |numbers, at| {
        numbers.with(at, Mischief::Sleep(Duration::from_millis((at % 5) as u64)))
    });
    let reference = epoch(&*builder().shuffle(3).build(Numbers::new(100)).unwrap());
    for workers in [1, 4, 8] {
        let loader = builder().shuffle(3).num_workers(workers).build(slow.clone()).unwrap();
        assert_eq!(epoch(&*loader), reference);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Each epoch has every index once. The sizes of its batches, `drop_last` and the progress are right.
    #[test]
    fn every_index_once(len in 1usize..120, size in 1usize..20, workers in 1usize..5, drop_last: bool, shuffle: bool) {
        prop_assume!(!drop_last || len >= size);
        let mut builder = builder().batch_size(size).num_workers(workers).drop_last(drop_last);
        if shuffle { builder = builder.shuffle(len as u64) }
        let loader = builder.build(Numbers::new(len)).unwrap();
        let items = if drop_last { len - len % size } else { len };
        for _ in 0..2 {
            let mut iter = loader.iter();
            let mut seen = Vec::new();
            while let Some(batch) = iter.next() {
                let batch = batch.unwrap().numbers;
                prop_assert!(batch.len() == size || seen.len() + batch.len() == items);
                seen.extend(batch);
                let progress = iter.progress();
                prop_assert_eq!((progress.items_processed, progress.items_total), (seen.len(), items));
            }
            prop_assert!(iter.progress().is_completed());
            prop_assert!(iter.next().is_none());
            prop_assert_eq!((seen.len(), loader.num_items()), (items, items));
            let distinct: HashSet<_> = seen.iter().copied().collect();
            prop_assert_eq!(distinct.len(), items);
            if !shuffle { prop_assert!(seen.is_sorted()) }
        }
    }
}

#[test]
fn a_copy_goes_on_at_the_same_epoch() {
    let loader = builder().shuffle(1).build(Numbers::new(50)).unwrap();
    let epochs: Vec<_> = (0..3).map(|_| epoch(&*loader)).collect();
    let copy = builder().shuffle(1).build(Numbers::new(50)).unwrap();
    assert_eq!(epoch(&*copy), epochs[0]);
    let moved = copy.to_device(&device());
    assert_eq!([epoch(&*moved), epoch(&*moved)], [epochs[1].clone(), epochs[2].clone()]);
    assert_eq!(copy.stats().items, 150, "a copy counts in the statistics of its origin");
}

#[derive(Debug)]
struct Threefold;

impl Sampler for Threefold {
    fn len(&self, dataset_len: usize) -> usize {
        3 * dataset_len
    }
    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new((0..3 * dataset_len).map(move |at| (at / 3 + epoch) % dataset_len))
    }
}

#[test]
fn a_sampler_of_ones_own_is_followed() {
    let loader = builder().order(Threefold).build(Numbers::new(5)).unwrap();
    assert_eq!(loader.num_items(), 15);
    assert_eq!(numbers(&epoch(&*loader)), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
    assert_eq!(numbers(&epoch(&*loader))[..6], [1, 1, 1, 2, 2, 2]);
}

#[test]
fn two_epochs_of_one_loader_run_at_once() {
    let loader = builder().shuffle(5).build(Numbers::new(200)).unwrap();
    let alone: Vec<_> = {
        let other = builder().shuffle(5).build(Numbers::new(200)).unwrap();
        (0..2).map(|_| epoch(&*other)).collect()
    };
    let (mut first, mut second) = (loader.iter(), loader.iter());
    let mut both = [Vec::new(), Vec::new()];
    while let (Some(a), Some(b)) = (first.next(), second.next()) {
        both[0].push(a.unwrap());
        both[1].push(b.unwrap());
    }
    assert_eq!(both.to_vec(), alone);
}

#[test]
fn a_consumer_may_keep_every_batch() {
    /// Gives the tensor itself. On a CPU backend this is the slot's own memory.
    struct Keep;
    impl burn_pinned::Collate<usize> for Keep {
        type Batch = burn::Tensor<2, burn::tensor::Int>;
        fn layout(&self) -> Vec<burn_pinned::Field> {
            vec![burn_pinned::Field::new("x", burn::tensor::DType::I64, [100])]
        }
        fn write(&self, &number: &usize, row: &mut burn_pinned::RowMut<'_>) -> Result<(), burn_pinned::BoxError> {
            row.slice_mut::<i64>("x")?.fill(number as i64);
            Ok(())
        }
        fn finish(&self, mut batch: burn_pinned::RawBatch) -> Result<Self::Batch, burn_pinned::BoxError> {
            Ok(batch.take("x")?)
        }
    }
    let loader = burn_pinned::PinnedDataLoaderBuilder::new(Keep)
        .batch_size(4)
        .num_workers(3)
        .set_device(burn::tensor::Device::flex())
        .build(Numbers::new(400))
        .unwrap();
    for _ in 0..2 {
        let kept = epoch(&*loader);
        for (at, batch) in kept.into_iter().enumerate() {
            let values = batch.into_data().try_to_vec::<i64>().unwrap();
            let expected: Vec<i64> = (4 * at..4 * at + 4).flat_map(|number| [number as i64; 100]).collect();
            assert_eq!(values, expected);
        }
    }
    assert!(loader.stats().host_bytes <= 6 * 4 * 100 * 8 + 6 * 64, "{}", loader.stats());
}
