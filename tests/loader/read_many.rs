//! Workers that read several samples at once.

use crate::common::*;
use burn::data::dataset::{Dataset, DatasetError};
use burn_pinned::{BadSamples, Error, Stage, fault::Quota};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// Numbers that can be asked for together. Some questions fail as a whole.
#[derive(Clone)]
struct Store {
    numbers: Arc<Numbers>,
    /// The questions for several, and how many were for one.
    asked: Arc<Mutex<Vec<Vec<usize>>>>,
    single: Arc<AtomicUsize>,
    whole: Whole,
}

#[derive(Clone, Copy)]
enum Whole {
    Works,
    Fails,
    Panics,
    GivesTooFew,
    Hangs,
}

impl Store {
    fn new(numbers: Numbers, whole: Whole) -> Self {
        Self { numbers: Arc::new(numbers), asked: Arc::default(), single: Arc::default(), whole }
    }
}

impl Dataset<usize> for Store {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.single.fetch_add(1, Relaxed);
        self.numbers.get(index)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<usize>, DatasetError> {
        self.asked.lock().unwrap().push(indexes.clone());
        match self.whole {
            Whole::Works => {}
            Whole::Fails => return Err(DatasetError::new(io::Error::other("not together"))),
            Whole::Panics => panic!("not together"),
            Whole::GivesTooFew => return Ok(vec![7]),
            Whole::Hangs => std::thread::sleep(Duration::from_secs(2)),
        }
        indexes.into_iter().map(|index| self.numbers.get(index)).collect()
    }

    fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[test]
fn the_batches_are_the_same_and_questions_are_few() {
    let expected = epoch(&*sized(10).shuffle(3).build(Numbers::new(100)).unwrap());
    for (workers, many) in [(1, 5), (4, 5), (3, 64)] {
        let store = Store::new(Numbers::new(100), Whole::Works);
        let loader = sized(10).shuffle(3).num_workers(workers).read_many(many).build(store.clone()).unwrap();
        assert_eq!(epoch(&*loader), expected);
        let asked = store.asked.lock().unwrap();
        assert!(asked.iter().all(|question| (2..=many).contains(&question.len())), "{asked:?}");
        assert_eq!(asked.iter().flatten().count(), 100);
        assert_eq!((asked.len(), store.single.load(Relaxed)), (100_usize.div_ceil(many.min(10)), 0));
    }
}

#[test]
fn what_cannot_be_read_together_is_read_one_by_one() {
    let expected = epoch(&*builder().build(Numbers::new(40)).unwrap());
    for whole in [Whole::Fails, Whole::Panics, Whole::GivesTooFew] {
        let store = Store::new(Numbers::new(40), whole);
        let loader = builder().read_many(8).build(store.clone()).unwrap();
        assert_eq!(epoch(&*loader), expected);
        assert_eq!((store.single.load(Relaxed), loader.stats().faults), (40, 0));
    }
}

#[test]
fn a_bad_sample_among_many_is_named_and_skipped() {
    let bad = || Numbers::new(40).with(13, Mischief::Error);
    let loader = builder().read_many(8).build(Store::new(bad(), Whole::Works)).unwrap();
    let errors: Vec<DatasetError> = loader.iter().filter_map(|batch| batch.err()).collect();
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    let place = Error::of(error).and_then(Error::place).unwrap();
    assert_eq!((place.stage, place.index), (Stage::Read, Some(13)));

    let store = Store::new(bad(), Whole::Works);
    let loader = builder().read_many(8).bad_samples(BadSamples::Skip(Quota::Count(1))).build(store).unwrap();
    let expected: Vec<i64> = (0..40).filter(|number| *number != 13).collect();
    assert_eq!((numbers(&epoch(&*loader)), loader.stats().skipped), (expected, 1));
}

#[test]
fn a_timeout_names_the_first_sample_of_the_group() {
    let store = Store::new(Numbers::new(40), Whole::Hangs);
    let loader = builder().num_workers(1).read_many(8).timeout(Duration::from_millis(200)).build(store).unwrap();
    let error = loader.iter().find_map(|batch| batch.err()).unwrap();
    let Some(Error::Timeout { hung: Some(hung), .. }) = Error::of(&error) else { panic!("{error}") };
    assert_eq!((hung.place.stage, hung.place.index), (Stage::Read, Some(0)));
}

#[test]
fn none_at_once_is_refused() {
    let error = builder().read_many(0).build(Numbers::new(4)).unwrap_err();
    assert!(matches!(error, Error::Config { option: "read_many", .. }), "{error}");
}
