//! Errors and panics of user code: at their place, with their cause, and the loader goes on.

use crate::common::*;
use burn::data::{
    dataloader::DataLoader,
    dataset::{Dataset, DatasetError},
};
use burn_pinned::{
    BoxError, Collate, Error, Field, KeyedRng, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage, order::Sampler,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// 40 numbers in 5 batches of 8; those of batch `bad` must be missing, the others there.
fn check_epoch(loader: &dyn DataLoader<Shown>, bad: usize) -> String {
    let outcomes = outcomes(loader);
    assert_eq!(outcomes.len(), 5);
    let mut message = None;
    for (at, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(numbers) => assert_eq!(numbers, (8 * at as i64..8 * at as i64 + 8).collect::<Vec<_>>()),
            Err(error) => assert!(at == bad && message.replace(error).is_none()),
        }
    }
    message.expect("an error at the bad batch")
}

#[test]
fn a_bad_sample_is_an_error_at_its_place() {
    for workers in [1, 2, 8] {
        for (index, batch) in [(0, 0), (19, 2), (39, 4)] {
            for mischief in [Mischief::Error, Mischief::Panic] {
                let numbers = Numbers::new(40).with(index, mischief);
                let loader = builder().num_workers(workers).build(numbers).unwrap();
                for epoch in 0..3 {
                    let message = check_epoch(&*loader, batch);
                    let what = match mischief {
                        Mischief::Panic => format!("panicked: number {index} is worse"),
                        _ => format!("number {index} is bad"),
                    };
                    let place = format!("read of sample {index} (epoch {epoch}, batch {batch}, worker ");
                    assert!(message.starts_with(&place) && message.ends_with(&what), "{message}");
                }
                assert_eq!((loader.stats().errors, loader.stats().batches), (3, 12));
            }
        }
    }
}

#[test]
fn of_several_bad_samples_the_first_in_order_is_named() {
    let bad = [3, 9, 10, 14, 15, 31].into_iter();
    let numbers = bad.fold(Numbers::new(40), |numbers, at| numbers.with(at, Mischief::Error));
    for workers in [1, 4, 8] {
        let loader = builder().num_workers(workers).build(numbers.clone()).unwrap();
        for _ in 0..20 {
            let named: Vec<_> =
                loader.iter().filter_map(|batch| Error::of(&batch.err()?).and_then(Error::place)?.index).collect();
            assert_eq!(named, [3, 9, 31]);
        }
    }
}

/// Misbehaves in one part of the collate, at number 20.
struct Bad(Stage, bool);

impl Bad {
    fn act(&self, stage: Stage) -> Result<(), BoxError> {
        match self {
            Self(bad, true) if *bad == stage => panic!("{stage} broke"),
            Self(bad, false) if *bad == stage => Err(format!("{stage} broke").into()),
            _ => Ok(()),
        }
    }
}

impl Collate<usize> for Bad {
    type Batch = Shown;
    fn layout(&self) -> Vec<Field> {
        Show { width: 13 }.layout()
    }
    fn write(&self, number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        if *number == 20 {
            self.act(Stage::Collate)?;
        }
        Show { width: 13 }.write(number, row)
    }
    fn finish(&self, batch: RawBatch) -> Result<Shown, BoxError> {
        if batch.number() == 2 {
            self.act(Stage::Finish)?;
        }
        Show { width: 13 }.finish(batch)
    }
}

#[test]
fn collate_and_finish_fail_at_their_place() {
    for stage in [Stage::Collate, Stage::Finish] {
        for panics in [false, true] {
            let builder = PinnedDataLoaderBuilder::new(Bad(stage, panics)).batch_size(8).set_device(device());
            let loader = builder.build(Numbers::new(40)).unwrap();
            for _ in 0..2 {
                let message = check_epoch(&*loader, 2);
                let place = if stage == Stage::Collate { "collate of sample 20 (" } else { "finish (" };
                assert!(message.starts_with(place) && message.ends_with(&format!("{stage} broke")), "{message}");
                assert_eq!(message.contains("panicked"), panics, "{message}");
            }
        }
    }
}

#[test]
fn augmentations_fail_at_their_place() {
    struct Refuse;
    impl burn_pinned::Augment<usize> for Refuse {
        fn apply(&self, number: usize, _: &mut KeyedRng) -> Result<usize, BoxError> {
            if number == 33 { Err("no augmentation for this one".into()) } else { Ok(number) }
        }
    }
    let loader = builder().augment(Refuse).build(Numbers::new(40)).unwrap();
    let message = check_epoch(&*loader, 4);
    assert!(message.starts_with("augment of sample 33 (") && message.ends_with("no augmentation for this one"));
    let panics = |number: usize, _: &mut KeyedRng| if number == 0 { panic!("augment broke") } else { Ok(number) };
    let loader = builder().augment(panics).build(Numbers::new(40)).unwrap();
    assert!(check_epoch(&*loader, 0).ends_with("panicked: augment broke"));
}

/// Gives an index that is too large, or too few indices, or panics, late or at once.
#[derive(Debug)]
enum Broken {
    Range,
    Short,
    Panics,
    AtOnce,
}

impl Sampler for Broken {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }
    fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        match self {
            Self::Range => Box::new((0..len).map(|at| if at == 12 { 1000 } else { at })),
            Self::Short => Box::new(0..20),
            Self::AtOnce => panic!("no order"),
            Self::Panics => Box::new((0..len).map(|at| if at == 17 { panic!("no index") } else { at })),
        }
    }
}

#[test]
fn a_broken_sampler_is_reported() {
    let run = |sampler| {
        let loader = builder().order(sampler).build(Numbers::new(40)).unwrap();
        outcomes(&*loader)
    };
    let range = run(Broken::Range);
    assert_eq!(range.len(), 5);
    let message = range[1].as_ref().unwrap_err();
    assert!(message.contains("sampler's index 1000 is out of range for a dataset of 40 items"), "{message}");
    assert_eq!(range.iter().filter(|outcome| outcome.is_ok()).count(), 4);

    let short = run(Broken::Short);
    assert_eq!((short.len(), short.iter().filter(|outcome| outcome.is_ok()).count()), (5, 2));
    let message = short[2].as_ref().unwrap_err();
    assert!(message.contains("the sampler ended after 20 of the 40 samples"), "{message}");

    let panics = run(Broken::Panics);
    assert_eq!(panics.len(), 5);
    assert!(panics[2].as_ref().unwrap_err().ends_with("panicked: no index"));
    assert!(panics[0].is_ok() && panics[1].is_ok());
    for late in &panics[3..] {
        let message = late.as_ref().unwrap_err(); // the indices after the panic are not known
        assert!(message.contains("the sampler ended after 16 of the 40 samples"), "{message}");
    }

    let at_once = run(Broken::AtOnce);
    assert_eq!(at_once.len(), 1);
    assert!(at_once[0].as_ref().unwrap_err().ends_with("panicked: no order"));
}

#[test]
fn every_sample_is_delivered_or_reported_once() {
    let bad: BTreeSet<usize> = (0..200).filter(|at| at % 37 == 5).collect();
    let mischief = |at: usize| if at.is_multiple_of(2) { Mischief::Error } else { Mischief::Panic };
    let numbers = bad.iter().fold(Numbers::new(200), |numbers, at| numbers.with(*at, mischief(*at)));
    let loader = builder().shuffle(1).batch_size(1).num_workers(8).build(numbers).unwrap();
    for _ in 0..3 {
        let (mut delivered, mut reported) = (BTreeSet::new(), BTreeSet::new());
        for batch in loader.iter() {
            match batch {
                Ok(shown) => assert!(delivered.insert(shown.numbers[0] as usize)),
                Err(error) => {
                    let index = Error::of(&error).and_then(Error::place).and_then(|place| place.index);
                    assert!(reported.insert(index.unwrap()));
                }
            }
        }
        assert_eq!(reported, bad);
        assert_eq!(delivered, (0..200).filter(|at| !bad.contains(at)).collect());
    }
}

#[test]
fn one_worker_with_many_errors_does_not_stall() {
    let bad = |at: usize| at % 8 < 3;
    let numbers = (0..64).filter(|at| bad(*at)).fold(Numbers::new(64), |numbers, at| numbers.with(at, Mischief::Error));
    for prefetch in [1, 2, 4] {
        let builder = builder().batch_size(1).num_workers(1).prefetch(prefetch);
        let loader = builder.build(numbers.clone()).unwrap();
        let outcomes = outcomes(&*loader);
        assert_eq!(outcomes.len(), 64);
        assert!(outcomes.iter().enumerate().all(|(at, outcome)| outcome.is_err() == bad(at)));
    }
}

#[test]
fn a_broken_dataset_is_not_read_ahead_of_an_idle_consumer() {
    let numbers = (0..4000).fold(Numbers::new(4000), |numbers, at| numbers.with(at, Mischief::Error));
    let asked = Arc::clone(&numbers.asked);
    let loader = builder().batch_size(1).build(numbers).unwrap();
    let mut iter = loader.iter();
    assert!(iter.next().unwrap().is_err());
    std::thread::sleep(Duration::from_millis(50));
    let most = if on_host() { 8 } else { 20 };
    assert!(asked.load(Ordering::SeqCst) <= most, "{}", asked.load(Ordering::SeqCst));
    assert_eq!(iter.count(), 3999);
}

#[test]
fn an_iterator_dropped_early_stops_the_work_and_frees_the_slots() {
    let loader = builder().shuffle(1).build(Numbers::new(400)).unwrap();
    let expected = {
        let other = builder().shuffle(1).build(Numbers::new(400)).unwrap();
        (0..50).map(|_| epoch(&*other)).collect::<Vec<_>>()
    };
    for (at, expected) in expected.iter().enumerate() {
        if at % 2 == 0 {
            let taken: Vec<_> = loader.iter().take(at % 7).map(Result::unwrap).collect();
            assert_eq!(taken[..], expected[..at % 7]);
        } else {
            assert_eq!(epoch(&*loader), *expected);
        }
    }
    assert!(loader.stats().allocations <= if on_host() { 6 } else { 16 }, "{}", loader.stats());
}

#[test]
fn a_loader_dropped_in_mid_epoch_joins_its_threads() {
    for taken in [0, 1, 5] {
        soon(&format!("the drop of a loader after {taken} batches"), || {
            let sleep = Mischief::Sleep(Duration::from_millis(2));
            let slow = (0..400).fold(Numbers::new(400), |numbers, at| numbers.with(at, sleep));
            let asked = Arc::clone(&slow.asked);
            let loader = builder().num_workers(3).build(slow).unwrap();
            let mut iter = loader.iter();
            (0..taken).for_each(|_| drop(iter.next()));
            drop(iter);
            let start = Instant::now();
            drop(loader);
            let took = start.elapsed();
            let after = asked.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(asked.load(Ordering::SeqCst), after, "nobody works any more");
            took
        });
    }
}

/// A sample that cannot even be dropped.
struct Bomb(usize);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 != 20 || std::thread::panicking(), "a bad end");
    }
}

struct Bombs;

impl Dataset<Bomb> for Bombs {
    fn get(&self, index: usize) -> Result<Bomb, DatasetError> {
        Ok(Bomb(index))
    }
    fn len(&self) -> usize {
        40
    }
}

struct Defuse;

impl Collate<Bomb> for Defuse {
    type Batch = Shown;
    fn layout(&self) -> Vec<Field> {
        Show { width: 13 }.layout()
    }
    fn write(&self, bomb: &Bomb, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        if bomb.0 == 20 {
            return Err("no good".into()); // so it is dropped on the way out
        }
        Show { width: 13 }.write(&bomb.0, row)
    }
    fn finish(&self, batch: RawBatch) -> Result<Shown, BoxError> {
        Show { width: 13 }.finish(batch)
    }
}

#[test]
fn a_drop_that_panics_costs_its_batch_alone() {
    for workers in [1, 4] {
        let builder = PinnedDataLoaderBuilder::new(Defuse).batch_size(8).num_workers(workers);
        let loader = builder.set_device(device()).build(Bombs).unwrap();
        for _ in 0..3 {
            let outcomes = outcomes(&*loader);
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
            let message = outcomes[2].as_ref().unwrap_err();
            assert!(message.contains("a bad end"), "{message}");
        }
    }
}
