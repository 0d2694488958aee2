//! Slices of a loader: the same samples in every epoch, as with Burn's own loader.

use crate::common::{Numbers, Shown, builder, device, epoch, numbers, sized, unsized_};
use burn::data::{
    dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher, split::split_dataloader},
    dataset::InMemDataset,
};
use burn::tensor::{DType, Device};
use burn_pinned::{
    Distributed, Error, Field, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut, collate,
    order::{
        BlockShuffle, Blocks, FixedBatchSampler, LengthBucketSampler, RandomSampler, RandomWithReplacementSampler,
        RepeatSampler, Sampler, SequentialSampler, SubsetSampler, WeightedSampler,
    },
};
use proptest::prelude::*;
use rand::Rng;
use std::{collections::BTreeSet, sync::Arc};

#[test]
fn slices_compose_and_are_clamped() {
    let loader = builder().build(Numbers::new(100)).unwrap();
    let inner = loader.slice(10, 60).slice(5, 500);
    assert_eq!(inner.num_items(), 45);
    assert_eq!(numbers(&epoch(&*inner)), (15..60).collect::<Vec<i64>>());
    let empty = loader.slice(70, 20);
    assert_eq!((empty.num_items(), epoch(&*empty).len()), (0, 0));
    let beyond = loader.slice(500, 600);
    assert_eq!((beyond.num_items(), epoch(&*beyond).len()), (0, 0));
}

/// Collects numbers, for Burn's loader.
struct Collect;

impl Batcher<i64, Vec<i64>> for Collect {
    fn batch(&self, items: Vec<i64>, _: &Device) -> Vec<i64> {
        items
    }
}

type Members = BTreeSet<i64>;

/// The samples of an epoch, each of which came once.
fn members(loader: &dyn DataLoader<Shown>) -> Members {
    let given = numbers(&epoch(loader));
    let members: Members = given.iter().copied().collect();
    assert_eq!((members.len(), loader.num_items()), (given.len(), given.len()), "num_items is what is delivered");
    members
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The model is Burn's loader: slices and slices of slices have the same members in ten epochs, with any seed.
    #[test]
    fn members_are_those_of_burns_slices(
        len in 1usize..120, seed: u64, shuffle: bool, cut in (0usize..130, 0usize..130), inner in (0usize..60, 0usize..60),
    ) {
        let data = InMemDataset::new((0..len as i64).collect());
        let burns = DataLoaderBuilder::new(Collect).batch_size(7);
        let mut ours = sized(7);
        let burns = if shuffle { burns.shuffle(seed) } else { burns };
        if shuffle { ours = ours.shuffle(seed) }
        let (burns, ours) = (burns.build(data), ours.build(Numbers::new(len)).unwrap());
        let cut = (cut.0.min(cut.1), cut.0.max(cut.1).min(len));
        prop_assume!(cut.0 < cut.1);
        let (burns, ours) = (burns.slice(cut.0, cut.1), ours.slice(cut.0, cut.1));
        let inner = (inner.0.min(inner.1), inner.0.max(inner.1).min(cut.1 - cut.0));
        prop_assume!(inner.0 < inner.1);
        let pairs = [(burns.slice(inner.0, inner.1), ours.slice(inner.0, inner.1)), (burns, ours)];
        let mut orders = BTreeSet::new();
        for (burns, ours) in &pairs {
            prop_assert_eq!(burns.num_items(), ours.num_items());
            for _ in 0..10 {
                let expected: Members = burns.iter().flat_map(|batch| batch.unwrap()).collect();
                prop_assert_eq!(members(&**ours), expected);
            }
            orders.extend((0..3).map(|_| numbers(&epoch(&**ours))));
        }
        if shuffle && cut.1 - cut.0 > 20 {
            prop_assert!(orders.len() >= 3, "each epoch is shuffled");
        }
    }

    /// Burn's slices together are the whole dataset, what `drop_last` drops included, and what each promises it delivers.
    #[test]
    fn burns_slices_are_all_of_the_dataset(len in 8usize..200, batch in 1usize..9, n in 2usize..6, drop_last: bool) {
        prop_assume!(!drop_last || len / n >= batch, "a slice without a batch is an error");
        let loader = sized(batch).shuffle(3).drop_last(drop_last).build(Numbers::new(len)).unwrap();
        let dealt = split_dataloader(Arc::clone(&loader) as Arc<dyn DataLoader<_>>, &vec![Device::flex(); n]);
        let epochs = || dealt.iter().map(|slice| members(&**slice)).collect::<Vec<_>>();
        let mut all = vec![Members::new(); n];
        for _ in 0..40 {
            for (all, epoch) in all.iter_mut().zip(epochs()) {
                all.extend(epoch);
            }
        }
        let sum: usize = all.iter().map(Members::len).sum();
        let union: Members = all.into_iter().flatten().collect();
        prop_assert_eq!(sum, union.len(), "no sample is in two slices");
        if !drop_last {
            prop_assert_eq!(union.len(), len);
        }
    }

    /// Processes share a slice: its members are the same in each epoch, and together they are the slice.
    #[test]
    fn processes_share_a_slice(len in 20usize..150, world in 1usize..4, cut in 1usize..100, kept: bool) {
        let at = len / world * cut / 100;
        let mut parts = [Members::new(), Members::new()];
        for rank in 0..world {
            let builder = sized(4).shuffle(8).distributed(Distributed::new(rank, world).unwrap());
            let loader = if kept { builder.build_kept(Numbers::new(len)) } else { builder.build(Numbers::new(len)) }.unwrap();
            for (part, (start, end)) in parts.iter_mut().zip([(0, at), (at, loader.num_items())]) {
                let slice = loader.slice(start, end);
                (0..5).for_each(|_| part.extend(numbers(&epoch(&*slice))));
            }
        }
        let border = (at * world) as i64;
        prop_assert_eq!(&parts[0], &(0..border).collect::<Members>());
        prop_assert_eq!(&parts[1], &(border..len as i64).collect::<Members>());
    }
}

/// Over more epochs than `drop_last` can hide a sample in.
#[test]
fn what_drop_last_drops_is_in_the_last_slice() {
    let loader = sized(8).shuffle(3).drop_last(true).build(Numbers::new(103)).unwrap();
    assert_eq!(loader.num_items(), 96);
    let halves = [loader.slice(0, 48), loader.slice(48, 96)];
    let seen = halves.map(|half| (0..60).flat_map(|_| numbers(&epoch(&*half))).collect::<Members>());
    assert_eq!(seen, [(0..48).collect(), (48..103).collect()]);
}

#[test]
fn slices_of_other_samplers_have_fixed_members_too() {
    let blocks = Blocks::new([(30, 1), (0, 1), (30, 1), (40, 1)]);
    let samplers: [(Arc<dyn Sampler>, Vec<i64>); 4] = [
        (Arc::new(BlockShuffle::new(blocks, 7).streams(2).window(2)), (0..100).collect()),
        (Arc::new(SubsetSampler::new((0..100).rev()).shuffle(4)), (0..100).rev().collect()),
        (Arc::new(SubsetSampler::new((0..100).rev())), (0..100).rev().collect()),
        (Arc::new(RandomSampler::new(4).with_size(100)), (0..100).collect()),
    ];
    for (sampler, sequence) in samplers {
        let loader = sized(8).order(sampler).build(Numbers::new(100)).unwrap();
        let slice = loader.slice(25, 75);
        let inner = slice.slice(10, 30);
        for _ in 0..4 {
            assert_eq!(members(&*slice), sequence[25..75].iter().copied().collect());
            assert_eq!(members(&*inner), sequence[35..55].iter().copied().collect());
        }
    }
}

/// The same sequence in each epoch, unknown to the loader.
#[derive(Debug)]
struct Backwards;

impl Sampler for Backwards {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }
    fn indices(&self, dataset_len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new((0..dataset_len).rev())
    }
}

#[test]
fn a_sequence_that_is_the_same_in_each_epoch_is_cut() {
    let loader = sized(8).order(Backwards).build(Numbers::new(100)).unwrap();
    let slice = loader.slice(20, 60).slice(5, 20);
    for _ in 0..3 {
        assert_eq!(numbers(&epoch(&*slice)), (60..75).rev().collect::<Vec<_>>());
    }
    let batches = FixedBatchSampler::new(SequentialSampler, 8).unwrap();
    let loader = unsized_().order(batches).build(Numbers::new(100)).unwrap();
    let slices = [loader.slice(0, 50), loader.slice(50, 100)];
    let [first, second] = [0, 1].map(|slice| numbers(&epoch(&*slices[slice])));
    assert_eq!(slices.map(|slice| slice.num_items()), [first.len(), second.len()]);
    assert_eq!([first, second].concat(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_sampler_that_orders_each_epoch_anew_is_refused_with_advice() {
    fn refused(loader: Arc<dyn DataLoader<Shown>>) {
        for _ in 0..2 {
            let errors: Vec<_> = loader.iter().map(|batch| batch.expect_err("no batch")).collect();
            assert_eq!(errors.len(), 1);
            assert!(matches!(Error::of(&errors[0]), Some(Error::Config { .. })), "{errors:?}");
            let text = errors[0].to_string();
            assert!(text.contains("PartialDataset") && text.contains(".devices(n)"), "{text}");
        }
    }
    let samplers: [Arc<dyn Sampler>; 3] = [
        Arc::new(WeightedSampler::new((0..100).map(f64::from), 4).unwrap()),
        Arc::new(RandomWithReplacementSampler::new(4)),
        Arc::new(RandomSampler::new(4).with_size(60)),
    ];
    for sampler in samplers {
        refused(sized(8).order(sampler).build(Numbers::new(100)).unwrap().slice(0, 50));
    }
    let buckets = LengthBucketSampler::new((0..300).map(|at| 1 + at % 7), 20, 4).unwrap().shuffle(1);
    refused(unsized_().order(buckets).build(Numbers::new(300)).unwrap().slice(0, 100));
}

/// The state of a slice is not one of the whole loader.
#[test]
fn a_slice_does_not_stand_for_the_loader() {
    let loader = sized(8).shuffle(1).build(Numbers::new(100)).unwrap();
    let state = loader.state();
    let first = members(&*loader.slice(0, 40));
    let resumed = sized(8).shuffle(1).resume(state).build(Numbers::new(100)).unwrap();
    assert_eq!(members(&*resumed.slice(0, 40)), first);
    let two_later = sized(8).shuffle(1).build(Numbers::new(100)).unwrap();
    (0..2).for_each(|_| drop(epoch(&*two_later)));
    let resumed = sized(8).shuffle(1).resume(two_later.state()).build(Numbers::new(100)).unwrap();
    let [a, b] = [&two_later, &resumed].map(|loader| numbers(&epoch(&*loader.slice(30, 90))));
    assert_eq!(a, b, "the same epoch");
}

/// Each slice says how many samples it delivers, whatever the number of devices.
#[test]
fn a_slice_of_a_loader_for_devices_says_what_it_delivers() {
    let loader = sized(16).shuffle(1).devices(3).build(Numbers::new(1000)).unwrap();
    assert_eq!((loader.num_items(), numbers(&epoch(&*loader)).len()), (3 * 334, 1000), "the devices' part is larger");
    let train = loader.slice(0, 500);
    assert_eq!(train.num_items(), 500);
    assert_eq!(members(&*train), (0..500).collect());
    for part in split_dataloader(train, &vec![device(); 3]) {
        assert_eq!((part.num_items(), numbers(&epoch(&*part)).len()), (167, 167));
    }
}

/// Slices of one length are not shuffled alike: samples of the same places would always share a step.
#[test]
fn slices_have_orders_of_their_own() {
    let subset = || SubsetSampler::new(0..200).shuffle(1);
    let blocks = || BlockShuffle::new(Blocks::new((0..20).map(|_| (10, 1))), 1);
    for builder in [sized(8).shuffle(1), sized(8).order(subset()), sized(8).order(blocks())] {
        let loader = builder.build(Numbers::new(200)).unwrap();
        let [first, second] = [(0, 100), (100, 200)].map(|(start, end)| numbers(&epoch(&*loader.slice(start, end))));
        assert_ne!(first, second.iter().map(|number| number - 100).collect::<Vec<_>>());
        let inner = loader.slice(20, 200).slice(80, 180);
        assert_eq!(numbers(&epoch(&*inner)), second, "the same members, the same order");
    }
}

/// What a loader for devices says is less than it delivers by itself.
#[test]
fn the_end_of_a_loader_for_devices_is_the_end_of_the_data() {
    let loader = sized(8).drop_last(true).devices(2).build(Numbers::new(1003)).unwrap();
    let items = loader.num_items();
    let last = loader.slice(793, items);
    assert_eq!(last.num_items(), (1003 - 793) / 8 * 8);
    let batches = FixedBatchSampler::new(SequentialSampler, 4).unwrap();
    let loader = unsized_().order(batches).devices(2).build(Numbers::new(13)).unwrap();
    let slices = [loader.slice(0, 5), loader.slice(5, loader.num_items())];
    assert_eq!(slices.map(|slice| numbers(&epoch(&*slice))).concat(), (0..13).collect::<Vec<_>>());
}

#[test]
fn a_slice_without_a_batch_says_so() {
    let refused = |slice: &dyn DataLoader<Shown>| {
        let error = slice.iter().next().expect("an error").map(drop).unwrap_err().to_string();
        assert!(error.contains("make no batch"), "{error}");
    };
    refused(&*sized(8).drop_last(true).build(Numbers::new(100)).unwrap().slice(0, 5));
    let loader = sized(8).drop_last(true).devices(2).build(Numbers::new(100)).unwrap();
    let dealt = split_dataloader(loader.slice(0, 12), &vec![device(); 2]);
    dealt.iter().for_each(|slice| refused(&**slice));
}

/// One that is shorter than there are devices, too.
#[test]
fn a_short_slice_for_devices_says_what_it_delivers() {
    let loader = sized(4).shuffle(1).devices(5).drop_last(true).build(Numbers::new(57)).unwrap();
    let slice = loader.slice(0, 5); // one batch, of which no device has a full one
    assert_eq!((slice.num_items(), numbers(&epoch(&*slice)).len()), (4, 4));
}

/// The random number of each batch of an epoch, through all ways of making batches and of cutting a loader.
#[test]
fn the_batches_of_slices_have_random_numbers_of_their_own() {
    fn random() -> PinnedDataLoaderBuilder<usize, u64> {
        let finish = |batch: RawBatch| Ok(batch.rng().next_u64());
        let write = |number: &usize, row: &mut RowMut<'_>| Ok(row.put("number", *number as i64)?);
        PinnedDataLoaderBuilder::new(collate([Field::new("number", DType::I64, [])], write, finish))
            .num_workers(1)
            .set_device(device())
    }
    let of = |loader: Arc<PinnedDataLoader<u64>>| {
        let (whole, inner) = (loader.to_device(&device()), loader.slice(50, 100).slice(20, 50));
        let slices = [(0, 30), (30, 50), (50, 100)].map(|(start, end)| loader.slice(start, end));
        let (whole, inner) = (epoch(&*whole), epoch(&*inner)); // all of the first epoch
        let mut all: Vec<u64> = slices.iter().flat_map(|slice| epoch(&**slice)).collect();
        let count = all.len();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), count, "no two are equal");
        assert_eq!(inner, all[count - inner.len()..], "a slice of a slice has its place in the whole");
        all.retain(|random| whole.contains(random));
        assert_eq!(all.len(), count, "a batch has the numbers of its place in the whole");
    };
    let fixed = || FixedBatchSampler::new(SequentialSampler, 10).unwrap();
    of(random().batch_size(10).shuffle(3).build(Numbers::new(100)).unwrap());
    of(random().batch_size(10).build(Numbers::new(100)).unwrap());
    of(random().batch_size(10).order(Backwards).build(Numbers::new(100)).unwrap());
    of(random().order(fixed()).build(Numbers::new(100)).unwrap());
    of(random().batch_size(10).shuffle(3).build_kept(Numbers::new(100)).unwrap());
    // Each of two processes has half of a slice. Burn cuts a part for two devices.
    let mut seen = BTreeSet::new();
    for rank in 0..2 {
        let share = Distributed::new(rank, 2).unwrap();
        let loader = random().batch_size(5).distributed(share).build(Numbers::new(100)).unwrap();
        seen.extend(
            [(0, 15), (15, 25), (25, 50)].into_iter().flat_map(|(start, end)| epoch(&*loader.slice(start, end))),
        );
    }
    assert_eq!(seen.len(), 20);
    let loader = random().batch_size(5).devices(2).build(Numbers::new(100)).unwrap();
    let parts = [(0, 30), (30, 100)].map(|(start, end)| split_dataloader(loader.slice(start, end), &vec![device(); 2]));
    let seen: BTreeSet<_> = parts.iter().flatten().flat_map(|part| epoch(&**part)).collect();
    assert_eq!(seen.len(), 20);
}

/// The same samples come in both slices, and are augmented otherwise.
#[test]
fn samples_that_come_again_in_another_slice_have_other_random_numbers() {
    let builder = || {
        let random = |_: usize, rng: &mut KeyedRng| Ok((rng.next_u64() >> 1) as usize);
        sized(10).augment(random)
    };
    let twice = || RepeatSampler::new(SequentialSampler, 2).unwrap();
    let loaders = [
        builder().order(twice()).build(Numbers::new(20)).unwrap(),
        builder().order(SubsetSampler::new((0..20).chain(0..20))).build(Numbers::new(20)).unwrap(),
    ];
    for loader in loaders {
        let slices = [(0, 20), (20, 40)].map(|(start, end)| numbers(&epoch(&*loader.slice(start, end))));
        assert_eq!(slices.concat().into_iter().collect::<BTreeSet<_>>().len(), 40);
    }
    let batches = FixedBatchSampler::new(twice(), 10).unwrap();
    let random = |_: usize, rng: &mut KeyedRng| Ok((rng.next_u64() >> 1) as usize);
    let loader = unsized_().augment(random).order(batches).build(Numbers::new(20)).unwrap();
    let slices = [(0, 20), (20, 40)].map(|(start, end)| numbers(&epoch(&*loader.slice(start, end))));
    assert_eq!(slices.concat().into_iter().collect::<BTreeSet<_>>().len(), 40);
}
