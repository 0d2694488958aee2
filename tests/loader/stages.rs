//! Stages of a dataset, and samples that are left out.

use crate::common::*;
use burn::data::{
    dataloader::DataLoader,
    dataset::{Dataset, DatasetError, InMemDataset, transform::PartialDataset},
};
use burn_pinned::{
    Augment, BadSamples, BoxError, DatasetExt, Distributed, Error, KeyedRng, PinnedDataLoaderBuilder, Stage,
    augment::WithOthers,
    fault::{LeftOut, Quota},
    order::{FixedBatchSampler, SequentialSampler},
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

const POLICIES: [BadSamples; 4] = [
    BadSamples::Fail,
    BadSamples::Skip(Quota::Count(0)),
    BadSamples::Skip(Quota::Share(1.0)),
    BadSamples::Replace { tries: 3 },
];

fn odd(number: &usize) -> bool {
    number % 2 == 1
}

/// The odd numbers below `len`, of a dataset of all numbers.
fn odds(len: usize) -> impl Dataset<usize> + Clone + 'static {
    Numbers::new(len).filter(odd)
}

/// Batches without what a filter leaves out, and without those that it empties.
fn expected(batches: &[Shown], keep: impl Fn(i64) -> bool) -> Vec<Vec<i64>> {
    let kept = batches.iter().map(|batch| batch.numbers.iter().copied().filter(|number| keep(*number)).collect());
    kept.filter(|batch: &Vec<i64>| !batch.is_empty()).collect()
}

fn batches(loader: &dyn DataLoader<Shown>) -> Vec<Vec<i64>> {
    epoch(loader).into_iter().map(|batch| batch.numbers).collect()
}

/// Whether the progress is complete after each batch.
fn completed(loader: &dyn DataLoader<Shown>) -> Vec<bool> {
    let (mut iter, mut completed) = (loader.iter(), Vec::new());
    while let Some(batch) = iter.next() {
        batch.unwrap_or_else(|error| panic!("{error}"));
        completed.push(iter.progress().is_completed());
    }
    assert!(iter.progress().is_completed());
    completed
}

#[test]
fn batches_are_the_same_for_any_number_of_workers() {
    let whole = epoch(&*builder().shuffle(3).build(Numbers::new(100)).unwrap());
    for (workers, policy) in [1, 2, 5].into_iter().flat_map(|workers| POLICIES.map(|policy| (workers, policy))) {
        for many in [1, 3, 8] {
            let builder = builder().shuffle(3).num_workers(workers).read_many(many).bad_samples(policy);
            let loader = builder.on_fault(|error| panic!("{error}")).build(odds(100)).unwrap();
            let (before, got) = (loader.stats(), batches(&*loader));
            assert_eq!(got, expected(&whole, |number| number % 2 == 1), "{workers} workers, {policy:?}");
            let stats = loader.stats().since(&before);
            assert!(stats.to_string().contains("so far 50 by filters"), "{stats}");
            assert_eq!((stats.filtered, stats.skipped, stats.replaced, stats.faults, stats.items), (50, 0, 0, 0, 50));
        }
    }
}

#[test]
fn samples_are_mapped_cut_and_joined() {
    let numbers = || InMemDataset::new((0..10usize).collect());
    assert_eq!(
        numbers_of(numbers().map(|number| Ok(number * 3))),
        (0..10).map(|number| number * 3).collect::<Vec<_>>()
    );
    assert_eq!(numbers_of(numbers().flat_map(3, |number, part| Ok(10 * number + part))).len(), 30);
    let parts = numbers().flat_map(3, |number, part| Ok(10 * number + part));
    assert_eq!((parts.len(), parts.get(0).unwrap(), parts.get(29).unwrap()), (30, 0, 92));
    assert_eq!(parts.get_many(vec![4, 4, 0, 29]).unwrap(), [11, 11, 0, 92]);
    let sums = numbers().chunks(4).map(|four| Ok(four.into_iter().sum::<usize>()));
    assert_eq!((sums.len(), numbers_of(sums.clone())), (3, vec![6, 22, 17]));
    assert_eq!(sums.get_many(vec![2, 0]).unwrap(), [17, 6]);
    // What is left out is missing in its chunk.
    let few = numbers().filter(|number| *number > 4).chunks(3).map(|some| Ok(some.len()));
    assert_eq!((few.len(), numbers_of(few.clone())), (4, vec![1, 3, 1]));
    assert!(few.get(0).unwrap_err().to_string().contains("left out"));
    // A dataset that wraps a stage without knowing it.
    let wrapped = PartialDataset::new(Arc::new(numbers().filter(odd)), 0, 9).chunks(3).map(|some| Ok(some.len()));
    assert_eq!(numbers_of(wrapped), [1, 2, 1]);
    assert_eq!(numbers_of(Arc::new(odds(10)).map(|number| Ok(number + 1))), [2, 4, 6, 8, 10]);
    for empty in [numbers().flat_map(0, |number, _| Ok(number)).len(), numbers().chunks(0).len()] {
        assert_eq!(empty, 0);
    }
    assert_eq!(InMemDataset::<usize>::new(Vec::new()).chunks(4).len(), 0);
    for size in [0, 1, 3, usize::MAX] {
        let beyond = numbers().chunks(size);
        let get = std::panic::AssertUnwindSafe(|| beyond.get(beyond.len()).map(|_| ()));
        assert!(std::panic::catch_unwind(get).is_err(), "chunks of {size}");
    }
    let error = builder().build(numbers().flat_map(0, |number, _| Ok(number))).unwrap_err();
    assert!(matches!(error, Error::Config { option: "build", .. }), "{error}");
}

fn numbers_of(dataset: impl Dataset<usize> + Clone + 'static) -> Vec<i64> {
    let one = numbers(&epoch(&*sized(4).num_workers(1).build(dataset.clone()).unwrap()));
    for (workers, many) in [(1, 3), (3, 4)] {
        let loader = sized(4).num_workers(workers).read_many(many).build(dataset.clone()).unwrap();
        assert_eq!(numbers(&epoch(&*loader)), one, "{workers} workers, {many} at once");
    }
    one
}

#[test]
fn an_error_or_a_panic_is_that_of_its_sample() {
    fn picky(number: usize) -> Result<usize, BoxError> {
        match number {
            21 => Ok("x".parse::<usize>()?),
            30 => panic!("not thirty"),
            number => Ok(number),
        }
    }
    for many in [1, 4] {
        let loader = builder().read_many(many).build(odds(40).map(picky)).unwrap();
        let errors: Vec<_> = loader.iter().filter_map(Result::err).collect();
        let [error] = &*errors else { panic!("{errors:?}") };
        let Some(Error::Failed { place, source }) = Error::of(error) else { panic!("{error}") };
        assert_eq!((place.stage, place.index), (Stage::Read, Some(21)));
        assert!(source.downcast_ref::<std::num::ParseIntError>().is_some(), "{source:?}");

        let loader = builder().read_many(many).build(Numbers::new(40).map(picky).filter(odd)).unwrap();
        let indices: Vec<_> = loader
            .iter()
            .filter_map(Result::err)
            .map(|error| Error::of(&error).unwrap().place().unwrap().index)
            .collect();
        assert_eq!(indices, [Some(21), Some(30)]);
        assert_eq!(loader.stats().faults, 2);
    }
    let direct = Numbers::new(40).map(picky).get(21).unwrap_err();
    assert!(direct.to_string().contains("invalid digit"), "{direct}");
}

/// Bad samples and those that are left out, in one batch: only the bad ones count.
#[test]
fn quotas_count_only_bad_samples() {
    let data = || {
        let numbers = [1, 2, 9, 11].into_iter().fold(Numbers::new(32), |all, at| all.with(at, Mischief::Error));
        numbers.filter(|number| number % 3 != 0)
    };
    let bad = [1, 2, 9, 11];
    let good = |number: i64| number % 3 != 0 && !bad.contains(&number);
    let whole = epoch(&*builder().build(Numbers::new(32)).unwrap());
    let loader = builder().bad_samples(BadSamples::Skip(Quota::Count(4))).build(data()).unwrap();
    assert_eq!(batches(&*loader), expected(&whole, good));
    // 9 is bad before the filter sees it.
    assert_eq!((loader.stats().skipped, loader.stats().filtered, loader.stats().faults), (4, 10, 4));
    let loader = builder().bad_samples(BadSamples::Skip(Quota::Count(3))).build(data()).unwrap();
    let outcomes = outcomes(&*loader);
    assert!(outcomes[1].as_ref().unwrap_err().contains("4 bad samples in this epoch so far"), "{outcomes:?}");
    assert!(outcomes.iter().filter(|outcome| outcome.is_err()).count() == 1);
    // 3 is no replacement for 2, and 12 none for 11.
    let loader = builder().bad_samples(BadSamples::Replace { tries: 3 }).build(data()).unwrap();
    assert_eq!(numbers(&epoch(&*loader))[..5], [4, 4, 4, 5, 7]);
    let few = builder().bad_samples(BadSamples::Replace { tries: 2 }).build(data()).unwrap();
    let error = few.iter().next().unwrap().unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::NoReplacement { tries: 2, .. })), "{error}");
}

#[derive(Debug, thiserror::Error)]
enum Wrapper {
    #[error("wrapped")]
    Source(#[source] LeftOut),
    #[error(transparent)]
    Transparent(LeftOut),
}

struct OddNumbers;

impl Augment<usize> for OddNumbers {
    fn apply(&self, number: usize, _: &mut KeyedRng) -> Result<usize, BoxError> {
        if odd(&number) { Ok(number) } else { Err(LeftOut.into()) }
    }
}

#[test]
fn any_dataset_and_augmentation_may_leave_out() {
    struct Odds(fn() -> DatasetError);
    impl Dataset<usize> for Odds {
        fn get(&self, index: usize) -> Result<usize, DatasetError> {
            if index % 2 == 1 { Ok(index) } else { Err((self.0)()) }
        }
        fn len(&self) -> usize {
            40
        }
    }
    let expected = batches(&*builder().build(odds(40)).unwrap());
    let errors: [fn() -> DatasetError; 3] = [
        || DatasetError::new(LeftOut),
        || DatasetError::new(Wrapper::Source(LeftOut)),
        || DatasetError::new(Wrapper::Transparent(LeftOut)),
    ];
    for error in errors {
        for many in [1, 4] {
            let loader = builder().read_many(many).build(Odds(error)).unwrap();
            assert_eq!((batches(&*loader), loader.stats().filtered), (expected.clone(), 20));
        }
    }
    for many in [1, 4] {
        let loader = builder().read_many(many).augment(OddNumbers).build(Numbers::new(40)).unwrap();
        assert_eq!((batches(&*loader), loader.stats().filtered), (expected.clone(), 20));
    }
    let listed =
        burn_pinned::dataset((0..40).collect(), |number| if odd(number) { Ok(*number) } else { Err(LeftOut.into()) });
    assert_eq!(batches(&*builder().build(listed).unwrap()), expected);
}

/// A batcher gets what is left.
#[test]
fn batchers_get_fewer_items() {
    use burn::{data::dataloader::batcher::Batcher, tensor::Device};
    #[derive(Clone)]
    struct List;
    impl Batcher<usize, burn::tensor::Tensor<1, burn::tensor::Int>> for List {
        fn batch(&self, items: Vec<usize>, device: &Device) -> burn::tensor::Tensor<1, burn::tensor::Int> {
            let items: Vec<i64> = items.into_iter().map(|item| item as i64).collect();
            burn::tensor::Tensor::from_ints(&*items, device)
        }
    }
    let loader =
        PinnedDataLoaderBuilder::from_batcher(List).batch_size(8).set_device(device()).build(odds(40)).unwrap();
    let sizes: Vec<usize> = epoch(&*loader).iter().map(|batch| batch.dims()[0]).collect();
    assert_eq!((sizes, loader.stats().filtered), (vec![4; 5], 20));
}

#[test]
fn an_epoch_that_is_all_left_out_is_an_error() {
    let bad = |at| Numbers::new(20).with(at, Mischief::Error).filter(|_| false);
    for policy in POLICIES {
        for workers in [1, 4] {
            let loader = builder().num_workers(workers).bad_samples(policy).build(odds(20).filter(|_| false)).unwrap();
            for epoch in 0..2 {
                let mut iter = loader.iter();
                let error = iter.next().expect("an error").unwrap_err();
                assert!(iter.progress().is_completed() && iter.next().is_none());
                let Some(Error::NoGoodSample { epoch: of, skipped: 0, left_out: 20, first }) = Error::of(&error) else {
                    panic!("{policy:?}: {error}")
                };
                assert!(*of == epoch && first.is_empty() && !error.to_string().contains("first"), "{error}");
                assert_eq!((loader.state().epoch(), loader.state().position()), (epoch + 1, 0));
            }
        }
    }
    let loader = builder().bad_samples(BadSamples::Skip(Quota::Count(1))).build(bad(3)).unwrap();
    let text = outcomes(&*loader).pop().unwrap().unwrap_err();
    assert!(text.contains("19 were left out, and 1 were bad") && text.contains("number 3 is bad"), "{text}");
    let kept = builder().build_kept(odds(20).filter(|_| false)).unwrap_err();
    assert!(kept.to_string().contains("all 20 samples of the dataset are bad or left out"), "{kept}");
}

/// Burn applies the last gradients of an epoch when its progress is complete.
#[test]
fn progress_is_complete_at_the_last_batch_that_is_left() {
    for left in [1, 5, 8, 9, 20, 24, 39] {
        let keep = move |number: &usize| *number < left;
        let ends = |completed: Vec<bool>| {
            assert_eq!(completed.len(), left.div_ceil(8));
            assert_eq!(completed.iter().position(|is| *is), Some(completed.len() - 1), "{left}: {completed:?}");
        };
        ends(completed(&*builder().build(Numbers::new(40).filter(keep)).unwrap()));
        ends(completed(&*builder().build(Numbers::new(40).filter(keep).map(Ok)).unwrap()));
        ends(completed(&*builder().build_kept(Numbers::new(40).filter(keep)).unwrap()));
        let planned = FixedBatchSampler::new(SequentialSampler, 8).unwrap();
        ends(completed(&*unsized_().order(planned).build(Numbers::new(40).filter(keep)).unwrap()));
        // Once a sample was left out, a loader knows that its dataset does that.
        let mapped = move |number| if number < left { Ok(number) } else { Err(LeftOut.into()) };
        let loader = builder().build(Numbers::new(40).map(mapped)).unwrap();
        assert_eq!(epoch(&*loader).len(), left.div_ceil(8));
        ends(completed(&*loader));
    }
}

#[test]
fn a_resumed_epoch_continues_with_the_next_batch() {
    let build = |workers| builder().num_workers(workers).shuffle(7);
    // Batches of some samples, and whole batches, are left out.
    let order = numbers(&epoch(&*build(2).build(Numbers::new(100)).unwrap()));
    let out: Vec<i64> = order
        .iter()
        .enumerate()
        .filter(|(at, _)| at % 3 == 0 || (24..48).contains(at) || *at >= 90)
        .map(|(_, n)| *n)
        .collect();
    let data = || {
        let out = out.clone();
        Numbers::new(100).filter(move |number| !out.contains(&(*number as i64)))
    };
    let whole = batches(&*build(2).build(data()).unwrap());
    assert_eq!(whole.len(), 9);
    for steps in 0..=whole.len() {
        for kept in [false, true] {
            let first = build(3).build(data()).unwrap();
            let mut iter = first.iter();
            iter.by_ref().take(steps).for_each(|batch| drop(batch.unwrap()));
            let state = serde_json::from_str(&serde_json::to_string(&first.state()).unwrap()).unwrap();
            let resumed = build(1).resume(state);
            let rest = if kept { resumed.build_kept(data()) } else { resumed.build(data()) }.unwrap();
            if steps == whole.len() {
                assert_eq!((rest.state().epoch(), rest.state().position()), (1, 0));
            } else {
                assert_eq!(batches(&*rest), whole[steps..], "after {steps}, kept: {kept}");
            }
        }
    }
}

#[test]
fn kept_samples_are_left_out_in_each_epoch() {
    for policy in POLICIES {
        let with = || sized(8).shuffle(5).bad_samples(policy);
        let (kept, read) = (with().build_kept(odds(100)).unwrap(), with().build(odds(100)).unwrap());
        for _ in 0..2 {
            assert_eq!(epoch(&*kept), epoch(&*read));
        }
        assert_eq!((kept.stats().filtered, kept.stats().skipped), (100, 0));
    }
}

/// Those who share an epoch have equally many batches.
#[test]
fn devices_and_processes_share_the_epoch() {
    use burn::{data::dataloader::split::split_dataloader, tensor::Device};
    let loader = builder().shuffle(5).devices(2).build(odds(64)).unwrap();
    let slices = split_dataloader(Arc::clone(&loader) as Arc<dyn DataLoader<_>>, &vec![Device::flex(); 2]);
    let of_each: Vec<_> = slices.iter().map(|slice| batches(&**slice)).collect();
    assert_eq!((of_each[0].len(), of_each[1].len()), (4, 4));
    let mut all = of_each.concat().concat();
    all.sort_unstable();
    assert!(all.into_iter().eq((0..64).filter(|number| number % 2 == 1)));
    assert_eq!(loader.stats().filtered, 32);

    // The first batch of this process has nothing left.
    let share = Distributed::new(0, 2).unwrap();
    let data = Numbers::new(64).filter(|number| *number >= 16);
    let outcomes: Vec<_> = builder().distributed(share).build(data).unwrap().iter().collect();
    assert_eq!(outcomes.len(), 4);
    let error = outcomes[0].as_ref().map(|_| ()).unwrap_err();
    assert!(matches!(Error::of(error), Some(Error::AllSkipped { skipped: 8, .. })), "{error}");
    assert!(outcomes[1..].iter().all(Result::is_ok));
}

/// Numbers that count how they are asked for.
#[derive(Clone, Default)]
struct Store(Arc<AtomicUsize>, Arc<Mutex<Vec<usize>>>);

impl Dataset<usize> for Store {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.0.fetch_add(1, Relaxed);
        Ok(index)
    }
    fn get_many(&self, indices: Vec<usize>) -> Result<Vec<usize>, DatasetError> {
        self.1.lock().unwrap().push(indices.len());
        Ok(indices)
    }
    fn len(&self) -> usize {
        64
    }
}

#[test]
fn several_samples_are_read_at_once_through_all_stages() {
    let asked = |store: &Store| {
        let mut many = std::mem::take(&mut *store.1.lock().unwrap());
        many.sort_unstable();
        (store.0.swap(0, Relaxed), many)
    };
    let store = Store::default();
    let read = |workers| sized(16).num_workers(workers).read_many(8);
    for workers in [1, 4] {
        epoch(&*read(workers).build(store.clone().map(Ok).filter(odd).map(Ok)).unwrap());
        assert_eq!(asked(&store), (0, vec![8; 8]));
        epoch(&*read(workers).build(store.clone().filter(odd).flat_map(2, |number, _| Ok(number))).unwrap());
        assert_eq!(asked(&store), (0, vec![8; 16]));
        epoch(&*read(workers).build(store.clone().filter(odd).chunks(4).map(|four| Ok(four[0]))).unwrap());
        assert_eq!(asked(&store), (0, vec![32; 2]));
        epoch(&*read(workers).augment(OddNumbers).build(store.clone()).unwrap());
        assert_eq!(asked(&store), (0, vec![8; 8]));
    }
    epoch(&*sized(16).build(store.clone().chunks(4).map(|four| Ok(four[0]))).unwrap());
    assert_eq!(asked(&store), (0, vec![4; 16]));
    // A bad sample: its group is read once more, one by one.
    let bad = store.clone().map(|number| if number == 5 { Err("bad".into()) } else { Ok(number) });
    let loader = read(1).bad_samples(BadSamples::Skip(Quota::Count(1))).build(bad).unwrap();
    assert_eq!((epoch(&*loader).len(), asked(&store).0 > 0), (4, true));
}

/// An augmentation that draws other samples of the dataset draws the same ones for any number of workers, and after a resume.
#[test]
fn other_samples_follow_from_seed_epoch_and_sample() {
    let others = || {
        let join = |number, others: Vec<usize>, _: &mut KeyedRng| Ok(number + 100 * others[0] + 10_000 * others[1]);
        WithOthers::new(Numbers::new(50), (2, join)).unwrap()
    };
    let loader = |workers| builder().shuffle(3).num_workers(workers).augment(others()).build(Numbers::new(50)).unwrap();
    let whole = batches(&*loader(1));
    assert!(whole.concat().iter().any(|number| number / 10_000 != number / 100 % 100));
    assert_eq!(batches(&*loader(4)), whole);
    let first = loader(2);
    let mut iterator = first.iter();
    (0..2).for_each(|_| drop(iterator.next().unwrap().unwrap()));
    let resumed = builder().shuffle(3).augment(others()).resume(first.state()).build(Numbers::new(50)).unwrap();
    assert_eq!(batches(&*resumed), whole[2..]);
}
