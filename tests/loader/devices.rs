//! A loader that Burn cuts for several devices: equal steps, one global order, one state.

use crate::common::{self, Mischief, Numbers, Shown, sized};
use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::Device,
};
use burn_pinned::{
    BadSamples, Distributed, Error, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder,
    fault::Quota,
    order::{RandomSampler, RepeatSampler},
};
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

/// What a training part and a validation part have, and what Burn's cut makes of the training part.
#[test]
fn a_slice_is_still_dealt_to_all_devices() {
    let loader = build(builder(8).devices(2), 1000);
    let (train, valid, quarter) = (loader.slice(0, 800), loader.slice(800, 1000), loader.slice(0, 250));
    assert_eq!([train.num_items(), valid.num_items(), quarter.num_items()], [800, 200, 250]);
    for (part, range) in [(train, 0..800), (valid, 800..1000)] {
        let devices = split_dataloader(Arc::clone(&part), &vec![Device::flex(); 2]);
        for _ in 0..3 {
            let order = epoch(&*part).concat();
            let dealt: Vec<_> = devices.iter().map(|slice| epoch(&**slice)).collect();
            assert_eq!(together(&dealt), order, "the order of the part alone");
            let mut members = order;
            members.sort_unstable();
            assert!(members.into_iter().eq(range.clone()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    /// Slices are disjoint and complete, also for several processes with several devices. What comes again at the end of
    /// a slice is of that slice.
    #[test]
    fn slices_are_dealt_to_devices_and_processes(
        len in 60usize..300, batch in 1usize..9, devices in 1usize..5, world in 1usize..4, cut in 1usize..100,
    ) {
        let cut_at = len / world * cut / 100 / devices * devices;
        // A slice that is as long as a device's share is that device's.
        prop_assume!(cut_at > 0 && cut_at % len.div_ceil(world * devices) != 0);
        let (mut parts, mut counts) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for rank in 0..world {
            let builder = builder(batch).devices(devices).distributed(Distributed::new(rank, world).unwrap());
            let loader = build(builder, len);
            for (part, (start, end)) in [(0, cut_at), (cut_at, loader.num_items())].into_iter().enumerate() {
                for device in split_dataloader(loader.slice(start, end), &vec![Device::flex(); devices]) {
                    let batches = epoch(&*device);
                    counts[part].push(batches.len());
                    parts[part].extend(batches.concat());
                }
            }
        }
        let border = (cut_at * world) as i64;
        for (part, expected) in [0..border, border..len as i64].into_iter().enumerate() {
            prop_assert!(counts[part].iter().all(|count| *count == counts[part][0]), "{:?}", counts[part]);
            let mut given = parts[part].clone();
            given.sort_unstable();
            given.dedup();
            prop_assert_eq!(given, expected.collect::<Vec<_>>());
        }
    }
}

/// Burn cuts an endless epoch by its length too.
#[test]
fn endless_epochs_are_dealt_to_any_number_of_devices() {
    let endless = |builder: Builder| builder.order(RepeatSampler::endless(RandomSampler::new(3)));
    let order: Vec<i64> =
        build(endless(sized(4)), 100).iter().take(40).flat_map(|batch| batch.unwrap().numbers).collect();
    for devices in 1..=9 {
        let loader = build(endless(sized(4)).devices(devices), 100);
        let slices = cut(&loader, devices);
        let mut iterators: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
        let mut taken = vec![Vec::new(); devices];
        for _ in 0..4 {
            for (iterator, taken) in iterators.iter_mut().zip(&mut taken) {
                taken.push(iterator.next().unwrap().unwrap().numbers);
            }
        }
        assert_eq!(together(&taken), order[..16 * devices], "{devices} devices");
        assert_eq!(loader.state().position(), 16 * devices, "{devices} devices");
    }
}

/// Each device has its own quota. The state knows what all have skipped, and each goes on with its part.
#[test]
fn each_device_counts_what_it_skips() {
    let bad = [1, 3, 5, 6, 11, 40]; // device 0 has the even numbers
    let data = || bad.into_iter().fold(Numbers::new(64), |data, at| data.with(at, Mischief::Error));
    let skips = |quota| sized(4).devices(2).bad_samples(BadSamples::Skip(Quota::Count(quota)));
    for backwards in [false, true] {
        let loader = skips(4).build(data()).unwrap();
        let mut slices = cut(&loader, 2);
        if backwards {
            slices.reverse(); // the state must not be that of the device that came last
        }
        let mut iterators: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
        for _ in 0..3 {
            iterators.iter_mut().for_each(|iterator| drop(iterator.next().unwrap().unwrap()));
        }
        let state = serde_json::to_value(loader.state()).unwrap();
        assert_eq!((&state["position"], &state["skipped"]), (&24.into(), &5.into()), "{state}");
        let resume = |quota| {
            let state: LoaderState = serde_json::from_value(state.clone()).unwrap();
            let resumed = skips(quota).resume(state.clone()).build(data()).unwrap();
            assert_eq!(resumed.state(), state, "also before the first batch");
            let errors = cut(&resumed, 2).iter().flat_map(|slice| slice.iter()).filter(Result::is_err).count();
            (errors, serde_json::to_value(resumed.state()).unwrap()["epoch"].clone())
        };
        assert_eq!(resume(4), (0, 1.into()), "3 of the 5 for device 0, and number 40");
        assert_eq!(resume(3), (1, 1.into()));
    }
}

#[test]
fn a_loader_for_devices_has_the_batches_that_each_device_has() {
    let loader = build(builder(8).devices(3), 100);
    assert_eq!(loader.num_batches(), 5, "34 samples each");
    assert!(cut(&loader, 3).iter().all(|slice| slice.iter().count() == 5));
}
