//! What is done about bad samples. It is the same for any number of workers, each bad sample is counted once, and
//! batches have no holes.

use crate::common::*;
use burn::{
    data::dataloader::{DataLoader, batcher::Batcher},
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Distributed, Error, Field, KeyedRng, PinnedBatcher, PinnedDataLoaderBuilder,
    RawBatch, RowMut,
    fault::Quota,
    order::{BatchSampler, EpochBatches, RepeatSampler, SequentialSampler},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

fn bad(len: usize, indices: impl IntoIterator<Item = usize>) -> Numbers {
    let mischief = |at: usize| if at.is_multiple_of(2) { Mischief::Error } else { Mischief::Panic };
    indices.into_iter().fold(Numbers::new(len), |numbers, at| numbers.with(at, mischief(at)))
}

fn check_bytes(batches: &[Shown]) {
    for shown in batches {
        let expected = shown.numbers.iter().flat_map(|number| (0..13).map(|at| byte(*number as usize, at)));
        assert!(shown.bytes.iter().copied().eq(expected), "a row of {:?} has the bytes of another", shown.numbers);
    }
}

#[test]
fn skipped_rows_close_up_and_the_rest_is_there() {
    let mut reference = None;
    for workers in [1, 2, 8] {
        let bad_ones = [0, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 39];
        let loader = builder()
            .num_workers(workers)
            .bad_samples(BadSamples::Skip(Quota::Count(12)))
            .build(bad(40, bad_ones))
            .unwrap();
        for _ in 0..3 {
            let batches = epoch(&*loader);
            check_bytes(&batches);
            assert_eq!(batches.len(), 4, "the second batch is empty and left out");
            let expected: Vec<i64> = (0..40).filter(|at| !bad_ones.contains(&(*at as usize))).collect();
            assert_eq!(numbers(&batches), expected);
            assert_eq!(*reference.get_or_insert_with(|| batches.clone()), batches);
        }
        let stats = loader.stats();
        assert_eq!((stats.skipped, stats.faults, stats.errors, stats.items), (36, 36, 0, 84), "{stats}");
        let mut iter = loader.iter();
        while iter.next().is_some() {}
        assert_eq!(iter.progress().items_processed, 40, "skipped samples count as processed");
    }
}

#[test]
fn beyond_the_quota_an_error_lists_what_was_skipped() {
    for (quota, allowed) in [(Quota::Count(2), 2), (Quota::Share(0.05), 2), (Quota::Count(0), 0)] {
        for workers in [1, 8] {
            let loader = builder()
                .num_workers(workers)
                .bad_samples(BadSamples::Skip(quota))
                .build(bad(40, [1, 9, 20, 21, 38]))
                .unwrap();
            for _ in 0..3 {
                let batches: Vec<_> = loader.iter().collect();
                assert_eq!(batches.len(), 5);
                for (at, batch) in batches.iter().enumerate() {
                    let so_far = [1, 2, 4, 4, 5][at];
                    match batch {
                        Ok(_) => assert!(so_far <= allowed || at == 3, "batch {at} of {allowed}"),
                        Err(error) => {
                            let Some(Error::QuotaExceeded { place, skipped, quota, first }) = Error::of(error) else {
                                panic!("{error}")
                            };
                            assert!(so_far > allowed && at != 3);
                            assert_eq!((*skipped, *quota, place.batch), (so_far, allowed, at));
                            let named: Vec<_> = first.iter().filter_map(|error| error.place()?.index).collect();
                            assert_eq!(named, [1, 9, 20, 21, 38][..so_far]);
                            assert!(first[0].to_string().contains("number 1 is worse"), "{}", first[0]);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_list_is_bounded() {
    let builder = builder().batch_size(500).num_workers(3).bad_samples(BadSamples::Skip(Quota::Share(0.5)));
    let loader = builder.build(bad(1000, 0..1000)).unwrap();
    let errors: Vec<_> = loader.iter().map(|batch| batch.unwrap_err()).collect();
    assert_eq!(errors.len(), 1, "the first batch is within the quota, and empty");
    let Some(Error::QuotaExceeded { skipped: 1000, quota: 500, first, .. }) = Error::of(&errors[0]) else { panic!() };
    let named: Vec<_> = first.iter().filter_map(|error| error.place()?.index).collect();
    assert_eq!(named, (0..16).collect::<Vec<_>>());
    // As a program shows it that ends with the error.
    let shown = format!("{:?}", errors[0]);
    assert!(shown.contains("skipped: 1000") && shown.contains("the first 3 of 1000"), "{shown}");
    assert_eq!((shown.matches("read of sample").count(), shown.contains("number 2 is bad")), (3, true), "{shown}");
}

#[test]
fn replaced_samples_keep_the_batches_full() {
    for workers in [1, 2, 8] {
        let loader = builder()
            .num_workers(workers)
            .bad_samples(BadSamples::Replace { tries: 3 })
            .build(bad(40, [3, 8, 9, 10, 39]))
            .unwrap();
        for _ in 0..3 {
            let batches = epoch(&*loader);
            check_bytes(&batches);
            assert!(batches.iter().all(|shown| shown.numbers.len() == 8));
            let good = |at: i64| [4, 11, 11, 11, 0].get([3, 8, 9, 10, 39].iter().position(|bad| *bad == at)?).copied();
            let expected: Vec<i64> = (0..40).map(|at| good(at).unwrap_or(at)).collect();
            assert_eq!(numbers(&batches), expected);
        }
        assert_eq!((loader.stats().replaced, loader.stats().faults), (15, 15 + 3 * 3), "{}", loader.stats());
    }
    let loader = builder().bad_samples(BadSamples::Replace { tries: 2 }).build(bad(40, [8, 9, 10])).unwrap();
    let outcomes = outcomes(&*loader);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
    let message = outcomes[1].as_ref().unwrap_err();
    assert!(message.contains("sample 8") && message.contains("none of the 2 samples after it"), "{message}");
}

/// Compares what arrived with the indices that the batch reports.
struct Told;

impl Collate<usize> for Told {
    type Batch = Option<Vec<usize>>;
    fn layout(&self) -> Vec<Field> {
        vec![Field::new("number", DType::I64, [])]
    }
    fn write(&self, &n: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.put("number", n as i64)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let indices = batch.indices().map(<[usize]>::to_vec);
        let there = batch.take::<1, Int>("number")?.into_data().try_to_vec::<i64>()?;
        let there: Vec<usize> = there.into_iter().map(|number| number as usize).collect();
        assert!(indices.as_ref().is_none_or(|indices| *indices == there), "{indices:?} is not {there:?}");
        Ok(indices)
    }
}

#[test]
fn a_batch_tells_which_samples_it_has() {
    for policy in [BadSamples::Skip(Quota::Count(9)), BadSamples::Replace { tries: 3 }] {
        let loader = PinnedDataLoaderBuilder::new(Told)
            .batch_size(8)
            .num_workers(3)
            .shuffle(5)
            .set_device(device())
            .bad_samples(policy)
            .build(bad(41, [3, 8, 9, 40]))
            .unwrap();
        let told: Vec<usize> = epoch(&*loader).into_iter().flatten().flatten().collect();
        let skips = matches!(policy, BadSamples::Skip(_));
        assert_eq!(told.len(), if skips { 37 } else { 41 });
        assert!([3, 8, 9, 40].iter().all(|bad| !told.contains(bad)));
    }
    let batcher = PinnedBatcher::new::<usize>(Told).unwrap();
    assert_eq!(batcher.batch(vec![1, 2], &Device::flex()), None, "Burn does not give the indices");
}

/// Refuses some numbers when they are written. The field is padded, so the widths must move with their rows.
struct Picky;

impl Collate<usize> for Picky {
    type Batch = Vec<Vec<i64>>;
    fn layout(&self) -> Vec<Field> {
        vec![Field::padded("values", [9], -1i64), Field::new("number", DType::I64, [])]
    }
    fn write(&self, &n: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("values", &vec![n as i64; 1 + n % 9])?;
        if n % 7 == 3 {
            return Err("half written".into());
        }
        assert!(n % 7 != 5, "half written");
        Ok(row.put("number", n as i64)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let values: Tensor<2, Int> = batch.take("values")?;
        let numbers = batch.take::<1, Int>("number")?.into_data().try_to_vec::<i64>()?;
        let width = values.dims()[1];
        let values = values.into_data().try_to_vec::<i64>()?;
        let row = |(row, number): (&[i64], &i64)| {
            assert!(row.iter().all(|value| value == number || *value == -1), "{row:?} is not {number}'s");
            row.iter().copied().filter(|value| *value != -1).collect()
        };
        Ok(values.chunks(width).zip(&numbers).map(row).collect())
    }
}

#[test]
fn a_collate_may_fail_half_way_through_a_row() {
    let rows = |numbers: &[usize]| numbers.iter().map(|n| vec![*n as i64; 1 + n % 9]).collect::<Vec<_>>();
    for workers in [1, 4] {
        let loader = |policy, batch| {
            let builder = PinnedDataLoaderBuilder::new(Picky).batch_size(batch).num_workers(workers);
            builder.set_device(device()).bad_samples(policy).build(Numbers::new(70)).unwrap()
        };
        let good: Vec<usize> = (0..70).filter(|n| n % 7 != 3 && n % 7 != 5).collect();
        for batch in [1, 5, 64] {
            let skipped: Vec<_> = epoch(&*loader(BadSamples::Skip(Quota::Share(0.5)), batch)).concat();
            assert_eq!(skipped, rows(&good));
            let replaced: Vec<_> = epoch(&*loader(BadSamples::Replace { tries: 1 }, batch)).concat();
            let instead = |n: usize| if good.contains(&n) { n } else { n + 1 };
            assert_eq!(replaced, rows(&(0..70).map(instead).collect::<Vec<_>>()));
        }
    }
}

#[derive(Clone)]
struct Sum;

impl Batcher<usize, Vec<i64>> for Sum {
    fn batch(&self, items: Vec<usize>, _: &Device) -> Vec<i64> {
        assert!(!items.is_empty());
        items.into_iter().map(|n| n as i64).collect()
    }
}

#[test]
fn batchers_get_what_is_left() {
    for workers in [1, 4] {
        let loader = |policy| {
            let builder = PinnedDataLoaderBuilder::from_batcher(Sum).batch_size(4).num_workers(workers);
            builder.set_device(Device::flex()).bad_samples(policy).build(bad(20, [4, 5, 6, 7, 10, 19])).unwrap()
        };
        let skipped = epoch(&*loader(BadSamples::Skip(Quota::Count(6))));
        assert_eq!(skipped, [vec![0, 1, 2, 3], vec![8, 9, 11], vec![12, 13, 14, 15], vec![16, 17, 18]]);
        let replaced = epoch(&*loader(BadSamples::Replace { tries: 4 }));
        assert_eq!(replaced.concat(), [0, 1, 2, 3, 8, 8, 8, 8, 8, 9, 11, 11, 12, 13, 14, 15, 16, 17, 18, 0]);
    }
}

#[test]
fn a_replacement_is_augmented_as_another() {
    let augment = |number: usize, rng: &mut KeyedRng| {
        use rand::RngExt;
        Ok(1000 * rng.random_range(1..1_000_000) + number)
    };
    let loader = builder().augment(augment).bad_samples(BadSamples::Replace { tries: 1 }).build(bad(8, [3])).unwrap();
    let shown = numbers(&epoch(&*loader));
    assert_eq!((shown[3] % 1000, shown[4] % 1000), (4, 4));
    assert_ne!(shown[3], shown[4], "one sample, augmented in two ways");
}

#[test]
fn the_callback_sees_every_fault_and_cannot_break_the_loader() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let on_fault = {
        let seen = Arc::clone(&seen);
        move |error: &Error| {
            seen.lock().unwrap().push(error.place().and_then(|place| place.index));
            assert!(std::thread::current().name().is_some_and(|name| name.starts_with("bp-worker")));
            std::panic::panic_any(3);
        }
    };
    let bad_ones = [1, 9, 20, 21, 38];
    let loader = builder()
        .num_workers(4)
        .bad_samples(BadSamples::Skip(Quota::Share(1.0)))
        .on_fault(on_fault)
        .build(bad(40, bad_ones))
        .unwrap();
    // It hears of them in each epoch anew.
    for _ in 0..2 {
        assert_eq!(numbers(&epoch(&*loader)).len(), 35);
        let mut seen: Vec<_> = seen.try_lock().unwrap().drain(..).map(|index| index.unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, bad_ones);
    }
}

#[test]
fn an_index_out_of_range_is_the_samplers_fault() {
    #[derive(Debug)]
    struct Beyond;
    impl burn_pinned::order::Sampler for Beyond {
        fn len(&self, len: usize) -> usize {
            len
        }
        fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
            Box::new(1..=len)
        }
    }
    for policy in [BadSamples::Skip(Quota::Share(1.0)), BadSamples::Replace { tries: 9 }] {
        let loader = builder().order(Beyond).bad_samples(policy).build(Numbers::new(40)).unwrap();
        let outcomes = outcomes(&*loader);
        assert!(outcomes[4].as_ref().unwrap_err().contains("index 40 is out of range"));
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
    }
}

#[test]
fn wrong_policies_are_refused() {
    let quota = |share| BadSamples::Skip(Quota::Share(share));
    for policy in [quota(-0.1), quota(1.1), quota(f64::NAN), BadSamples::Replace { tries: 0 }] {
        let refused = builder().bad_samples(policy).build(Numbers::new(40)).map(drop);
        assert!(matches!(refused, Err(Error::Config { option: "bad_samples", .. })), "{refused:?}");
    }
    let endless = builder().order(RepeatSampler::endless(SequentialSampler)).bad_samples(quota(0.1));
    let refused = endless.build(Numbers::new(40)).map(drop);
    assert!(matches!(refused, Err(Error::Config { option: "bad_samples", .. })), "{refused:?}");
}

#[test]
fn shuffled_epochs_account_for_every_sample_once() {
    let bad_ones: BTreeSet<usize> = (0..300).filter(|at| at % 11 == 4).collect();
    let mut reference: Vec<Option<Vec<i64>>> = vec![None; 3];
    for workers in [1, 3, 8] {
        let builder = builder().shuffle(9).num_workers(workers).bad_samples(BadSamples::Skip(Quota::Share(0.1)));
        let loader = builder.build(bad(300, bad_ones.iter().copied())).unwrap();
        for reference in &mut reference {
            let numbers = numbers(&epoch(&*loader));
            assert_eq!(*reference.get_or_insert_with(|| numbers.clone()), numbers);
            let there: BTreeSet<usize> = numbers.iter().map(|n| *n as usize).collect();
            assert_eq!((there.len(), numbers.len()), (273, 273));
            assert!(there.is_disjoint(&bad_ones));
        }
    }
}

/// Burn applies the last gradients of an epoch when its progress is complete.
fn completed(loader: &dyn DataLoader<Shown>) -> Vec<bool> {
    let mut iter = loader.iter();
    let mut completed = Vec::new();
    while let Some(batch) = iter.next() {
        drop(batch);
        completed.push(iter.progress().is_completed());
    }
    assert!(iter.progress().is_completed());
    completed
}

#[test]
fn an_epoch_is_complete_at_the_last_batch_that_comes() {
    let last_of = |batches: usize| (1..=batches).map(|at| at == batches).collect::<Vec<_>>();
    // The last two batches of five are skipped whole, or the last and some before.
    for bad_ones in [(24..40).collect::<Vec<_>>(), (8..16).chain(32..40).collect(), vec![39], vec![]] {
        let gone = [8, 16, 24, 32].into_iter().filter(|at| bad_ones.contains(at)).count();
        for quota in [Quota::Count(16), Quota::Share(1.0)] {
            let policy = BadSamples::Skip(quota);
            let loader = builder().bad_samples(policy).build(bad(40, bad_ones.clone())).unwrap();
            assert_eq!(completed(&*loader), last_of(5 - gone), "{bad_ones:?}");
            let mut iter = loader.iter();
            for _ in 0..4 - gone {
                assert_eq!(loader.state().epoch(), 1);
                iter.next().unwrap().unwrap();
            }
            iter.next().unwrap().unwrap();
            assert_eq!((loader.state().epoch(), loader.state().position()), (2, 0), "nothing of it is left");
        }
    }
    let errors = builder().build(bad(40, [3, 39])).unwrap();
    assert_eq!(completed(&*errors), last_of(5), "a batch that failed is over too");
}

/// A batch that is kept back at the end of an epoch is not given yet.
#[test]
fn a_batch_that_is_kept_back_is_not_in_the_state() {
    let policy = BadSamples::Skip(Quota::Share(1.0));
    let data = || bad(40, 8..24);
    let loader = builder().bad_samples(policy).build(data()).unwrap();
    let whole = epoch(&*loader);
    for stop in 0..3 {
        let first = builder().bad_samples(policy).build(data()).unwrap();
        let mut given: Vec<_> = first.iter().take(stop).map(Result::unwrap).collect();
        let rest = builder().bad_samples(policy).resume(first.state()).build(data()).unwrap();
        given.extend(epoch(&*rest));
        assert_eq!(given, whole);
    }
}

/// A plain part of the data is nobody else's.
#[test]
fn a_bad_batch_of_a_slice_is_left_out() {
    let skip = BadSamples::Skip(Quota::Share(1.0));
    let loader = builder().bad_samples(skip).build(bad(64, 8..16)).unwrap();
    assert_eq!(outcomes(&*loader.slice(0, 32)).iter().filter(|outcome| outcome.is_ok()).count(), 3);
    assert_eq!(outcomes(&*loader.slice(0, 32)).len(), 3);
    let devices = builder().devices(2).bad_samples(skip).build(bad(64, (0..32).step_by(2))).unwrap();
    let outcomes = outcomes(&*devices.slice(0, 32));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 2, "the other device has batches there");
}

/// Batches of seven and of one, in turn.
#[derive(Debug)]
struct Uneven;

impl BatchSampler for Uneven {
    fn batches(&self, dataset_len: usize, _: usize) -> EpochBatches {
        let batches = (0..dataset_len / 8).flat_map(|at| [(8 * at..8 * at + 7).collect(), vec![8 * at + 7]]);
        EpochBatches::new(dataset_len / 4, batches)
    }

    fn max_batch_size(&self, _: usize) -> usize {
        7
    }

    fn num_items(&self, dataset_len: usize) -> usize {
        dataset_len
    }
}

/// One process has 28 of 32 samples, and the other one four. Each may skip its own share.
#[test]
fn a_share_is_one_of_the_samples_of_this_process() {
    let skipping = |rank, share| {
        let bad = bad(32, (0..32).filter(|at| at % 8 < 5)); // 20 samples of the first process
        let policy = BadSamples::Skip(Quota::Share(share));
        let builder = unsized_().order(Uneven).distributed(Distributed::new(rank, 2).unwrap()).bad_samples(policy);
        outcomes(&*builder.build(bad).unwrap())
    };
    for share in [1.0, 0.75, 0.72] {
        let good: Vec<_> = (0..4).map(|at| Ok(vec![8 * at + 5, 8 * at + 6])).collect();
        assert_eq!(skipping(0, share), good, "{share}: 20 of 28");
        assert_eq!(skipping(1, share), (0..4).map(|at| Ok(vec![8 * at + 7])).collect::<Vec<_>>());
    }
    let outcomes = skipping(0, 0.7); // 19
    assert!(outcomes[..3].iter().all(Result::is_ok), "{outcomes:?}");
    assert!(
        outcomes[3].as_ref().unwrap_err().contains("20 bad samples in this epoch so far, but only 19"),
        "{outcomes:?}"
    );
}

/// Whatever the sampler says, all samples are skipped, and none too many.
#[test]
fn all_of_an_estimated_epoch_may_be_skipped() {
    let policy = BadSamples::Skip(Quota::Share(1.0));
    for rank in 0..2 {
        let share = Distributed::new(rank, 2).unwrap();
        let builder = unsized_().order(Uneven).distributed(share).bad_samples(policy);
        let outcomes = outcomes(&*builder.build(bad(32, 0..32)).unwrap());
        assert_eq!(outcomes.len(), 4);
        assert!(
            outcomes.iter().all(|batch| batch.as_ref().unwrap_err().contains("but the other processes have a batch"))
        );
    }
}
