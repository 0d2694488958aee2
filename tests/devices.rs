//! A loader that Burn cuts for several devices: equal steps, one global order, one state.

mod common;

use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::Device,
};
use burn_pinned::{Distributed, Error, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder};
use common::{Numbers, Shown, keep_log, logged, sized};
use proptest::prelude::*;
use std::sync::Arc;

type Builder = PinnedDataLoaderBuilder<usize, Shown>;

fn builder(batch: usize) -> Builder {
    sized(batch).shuffle(5)
}

fn build(builder: Builder, len: usize) -> Arc<PinnedDataLoader<Shown>> {
    builder.build(Numbers::new(len)).unwrap()
}

/// The loaders of Burn's devices.
fn cut(loader: &Arc<PinnedDataLoader<Shown>>, devices: usize) -> Vec<Arc<dyn DataLoader<Shown>>> {
    split_dataloader(Arc::clone(loader) as Arc<dyn DataLoader<_>>, &vec![Device::flex(); devices])
}

/// The samples of each batch of the next epoch.
fn epoch(loader: &dyn DataLoader<Shown>) -> Vec<Vec<i64>> {
    common::epoch(loader).into_iter().map(|batch| batch.numbers).collect()
}

/// The batches that all devices have at the same time, as one: the samples of each place, device by device.
fn together(devices: &[Vec<Vec<i64>>]) -> Vec<i64> {
    let steps = devices[0].len();
    let mut all = Vec::new();
    for step in 0..steps {
        for row in 0..devices[0][step].len() {
            all.extend(devices.iter().map(|batches| batches[step][row]));
        }
    }
    all
}

/// The case in which Burn's own slices have one and two batches.
#[test]
fn slices_of_129_samples_have_equally_many_batches() {
    let (whole, devices) = (build(builder(64), 129), 2);
    let slices = cut(&build(builder(64).devices(devices), 129), devices);
    let batches: Vec<_> = slices.iter().map(|slice| epoch(&**slice)).collect();
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    let order: Vec<i64> = epoch(&*whole).concat();
    let mut expected = order.clone();
    expected.push(order[0]); // one sample is missing: the first comes again
    assert_eq!(together(&batches), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn devices_share_one_order(len in 1usize..300, batch in 1usize..40, devices in 1usize..9, drop_last: bool) {
        let with = |builder: Builder| builder.drop_last(drop_last).devices(devices);
        let Ok(loader) = with(builder(batch)).build(Numbers::new(len)) else {
            prop_assert!(drop_last && len.div_ceil(devices) < batch, "only too short an epoch is refused");
            return Ok(());
        };
        let slices = cut(&loader, devices);
        let batches: Vec<_> = slices.iter().map(|slice| epoch(&**slice)).collect();
        let items: usize = slices.iter().map(|slice| slice.num_items()).sum();
        prop_assert_eq!(items, loader.num_items());
        prop_assert_eq!(items, batches.iter().flatten().map(Vec::len).sum::<usize>());
        prop_assert!(batches.iter().all(|all| all.len() == batches[0].len()), "all have equally many steps");
        let order: Vec<i64> = epoch(&*build(builder(batch), len)).concat();
        let expected: Vec<i64> = order.iter().cycle().take(items).copied().collect();
        prop_assert_eq!(together(&batches), expected);
    }
}

/// Steps of three devices, then of two, then of one: each sample comes once.
#[test]
fn another_number_of_devices_goes_on_where_these_stopped() {
    const LEN: usize = 720;
    let order: Vec<i64> = epoch(&*build(builder(8), LEN)).concat();
    let (mut seen, mut state) = (Vec::new(), None::<LoaderState>);
    for (devices, steps) in [(3, 7), (2, 9), (1, 1000)] {
        let mut builder = builder(8).devices(devices);
        if let Some(state) = state.take() {
            builder = builder.resume(state);
        }
        let loader = build(builder, LEN);
        let slices = cut(&loader, devices);
        let mut iterators: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
        let mut taken = vec![Vec::new(); devices];
        for _ in 0..steps {
            let batches: Vec<_> = iterators.iter_mut().map(|iterator| iterator.next()).collect();
            for (taken, batch) in taken.iter_mut().zip(batches) {
                taken.extend(batch.map(|batch| batch.unwrap().numbers));
            }
        }
        seen.extend(together(&taken));
        state = Some(loader.state());
    }
    assert_eq!(seen, order);
}

/// Two processes with two devices each are like four processes.
#[test]
fn processes_and_devices_share_one_order() {
    let mut batches = Vec::new();
    for rank in 0..2 {
        let builder = builder(5).distributed(Distributed::new(rank, 2).unwrap()).devices(2);
        batches.extend(cut(&build(builder, 101), 2).iter().map(|slice| epoch(&**slice)));
    }
    let order: Vec<i64> = epoch(&*build(builder(5), 101)).concat();
    assert_eq!(together(&batches), order.iter().cycle().take(104).copied().collect::<Vec<_>>());
}

#[test]
fn a_wrong_number_of_devices_is_refused() {
    let refused = |builder: Builder, len: usize| match builder.build(Numbers::new(len)) {
        Err(Error::Config { option, advice, .. }) => (option, advice),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(builder(4).devices(0), 10).0, "devices");
    let (option, advice) = refused(builder(8).devices(4).drop_last(true), 20);
    assert_eq!(option, "devices");
    assert!(advice.contains("fewer devices"), "{advice}");
}

#[test]
fn uneven_slices_are_warned_of() {
    keep_log(log::LevelFilter::Warn);
    let warned = || logged().iter().filter(|said| said.contains("`.devices(n)`")).count();
    cut(&build(builder(64), 128), 2);
    cut(&build(builder(64).devices(2), 129), 2);
    assert_eq!(warned(), 0);
    cut(&build(builder(64), 129), 2); // one batch and two
    assert_eq!(warned(), 1);
    assert!(logged().iter().any(|said| said.contains("1 and 2 batches")));
}
