//! What `on_fault` is told. Callbacks and `drop` of user code cannot break the loader.

use crate::common::*;
use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError, InMemDataset},
    },
    tensor::{DType, Device},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedBatcher, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage,
    collate, fault::Quota, order::Sampler,
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Its `finish` may fail, and its batches panic in their `drop` while `bomb` is set.
struct Odd {
    fails: bool,
    delay: Duration,
    bomb: Arc<AtomicBool>,
}

struct Bomb(Arc<AtomicBool>);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0.load(Relaxed), "dropped");
    }
}

impl Collate<u8> for Odd {
    type Batch = Bomb;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::U8, [])]
    }

    fn write(&self, x: &u8, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.put("x", *x)?)
    }

    fn finish(&self, _: RawBatch) -> Result<Bomb, BoxError> {
        std::thread::sleep(self.delay);
        if self.fails { Err("no batch today".into()) } else { Ok(Bomb(Arc::clone(&self.bomb))) }
    }
}

fn odd(odd: Odd) -> PinnedDataLoaderBuilder<u8, Bomb> {
    PinnedDataLoaderBuilder::new(odd).batch_size(4).num_workers(2).set_device(Device::flex())
}

#[test]
fn a_callback_that_hangs_is_named_and_the_loader_can_be_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let gate = Gate::default();
    let held = gate.clone();
    let short = Duration::from_millis(300);
    let collate = Odd { fails: true, delay: Duration::ZERO, bomb: Arc::default() };
    let loader = odd(collate)
        .timeout(short)
        .on_fault(move |error| {
            if !matches!(error, Error::Timeout { .. }) {
                held.pass(); // like a callback that waits for a lock of the training thread
            }
        })
        .build(InMemDataset::new(vec![1; 64]))
        .unwrap();
    let mut iter = loader.iter();
    let error = iter.next().unwrap().map(|_| ()).unwrap_err();
    let Some(Error::Timeout { hung: Some(hung), .. }) = Error::of(&error) else { panic!("{error}") };
    assert_eq!(hung.place.stage, Stage::Finish);
    drop(iter);
    let start = Instant::now();
    drop(loader);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    gate.open();
    eventually("the threads end", || loader_threads().is_empty());
}

/// A sampler that breaks as an epoch begins.
#[derive(Debug)]
struct Broken;

impl Sampler for Broken {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, _: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        panic!("no order today")
    }
}

/// Before `next()` gives an error, `on_fault` was told of it, whichever thread met it.
#[test]
fn the_callback_is_told_of_faults_that_the_consumer_meets() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |told: &Arc<Mutex<Vec<String>>>| {
        let told = Arc::clone(told);
        move |error: &Error| told.lock().unwrap().push(error.to_string())
    };
    let last = |told: &Arc<Mutex<Vec<String>>>| told.lock().unwrap().last().cloned().expect("nothing was told");

    let loader = builder().order(Broken).on_fault(tell(&told)).build(Numbers::new(16)).unwrap();
    let error = outcomes(&*loader).remove(0).unwrap_err();
    assert!(error.contains("no order today"), "{error}");
    assert_eq!((last(&told), loader.stats().faults), (error, 1));

    let data = Numbers::new(16).with(3, Mischief::Error);
    let loader = builder().bad_samples(BadSamples::Skip(Quota::Count(0))).on_fault(tell(&told)).build(data).unwrap();
    let error = outcomes(&*loader).remove(0).unwrap_err();
    assert!(error.contains("0 may be skipped"), "{error}");
    assert_eq!((last(&told), loader.stats().faults), (error, 2), "the sample, and the batch");
}

/// If no sample is good, each is tried once, even if more tries are allowed.
#[test]
fn a_replacement_is_looked_for_once_around_the_dataset() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = (0..10).fold(Numbers::new(10), |data, index| data.with(index, Mischief::Error));
    let asked = Arc::clone(&data.asked);
    let loader = builder().bad_samples(BadSamples::Replace { tries: usize::MAX }).build(data).unwrap();
    let error = loader.iter().next().unwrap().unwrap_err();
    let Some(Error::NoReplacement { tries, .. }) = Error::of(&error) else { panic!("{error}") };
    assert_eq!(*tries, 9);
    drop(loader);
    assert!(asked.load(Relaxed) <= 10 * 10, "{asked:?}");
}

/// Batches that nobody wants any more are dropped on workers. The other work of these workers must go on.
#[test]
fn a_drop_that_panics_ends_no_other_epoch() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bomb = Arc::new(AtomicBool::new(false));
    let collate = Odd { fails: false, delay: Duration::from_millis(3), bomb: Arc::clone(&bomb) };
    let loader = odd(collate).build(InMemDataset::new(vec![1; 400])).unwrap();
    std::thread::scope(|scope| {
        let whole = scope.spawn(|| {
            let batches = loader.iter().map(|batch| {
                std::thread::sleep(Duration::from_millis(3));
                std::mem::forget(batch.expect("the other epoch goes on"));
            });
            batches.count()
        });
        for late in (0..40).step_by(4) {
            let mut early = loader.iter();
            std::mem::forget(early.next().unwrap().unwrap());
            bomb.store(true, Relaxed);
            std::thread::sleep(Duration::from_millis(late)); // at last several batches are ready
            drop(early); // with batches that are ready, and some that are being finished
            std::thread::sleep(Duration::from_millis(8));
            bomb.store(false, Relaxed);
        }
        assert_eq!(whole.join().unwrap(), 100);
    });
}

/// A sample that is good until it is dropped.
struct Fragile(usize);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(self.0 != 20 || std::thread::panicking(), "a bad end");
    }
}

struct Samples;

impl Dataset<Fragile> for Samples {
    fn get(&self, index: usize) -> Result<Fragile, DatasetError> {
        Ok(Fragile(index))
    }

    fn len(&self) -> usize {
        40
    }
}

struct Plain;

impl Collate<Fragile> for Plain {
    type Batch = usize;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::U8, [])]
    }

    fn write(&self, x: &Fragile, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.put("x", x.0 as u8)?)
    }

    fn finish(&self, batch: RawBatch) -> Result<usize, BoxError> {
        Ok(batch.len())
    }
}

/// A panic in the `drop` of a sample is told and counted like any other fault, under every policy.
#[test]
fn on_fault_is_told_of_a_samples_drop() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for policy in [BadSamples::Fail, BadSamples::Skip(Quota::Count(5)), BadSamples::Replace { tries: 3 }] {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let tells = Arc::clone(&told);
        let builder = PinnedDataLoaderBuilder::new(Plain).batch_size(8).num_workers(2).set_device(Device::flex());
        let builder = builder.bad_samples(policy);
        let builder = builder.on_fault(move |error| tells.lock().unwrap().push(error.to_string()));
        let loader = builder.build(Samples).unwrap();
        let outcomes: Vec<_> = loader.iter().map(|batch| batch.is_ok()).collect();
        assert_eq!(outcomes, [true, true, false, true, true], "{policy:?}");
        let told = told.lock().unwrap();
        assert_eq!((told.len(), loader.stats().faults), (1, 1), "{policy:?}: {told:?}");
        assert!(told[0].contains("a bad end") && told[0].contains("batch 2"), "{}", told[0]);
    }
}

/// A sampler whose order panics when it is dropped and, from its second batch on, when it is asked.
#[derive(Debug)]
struct Brittle;

struct Order(usize);

impl Iterator for Order {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0 += 1;
        assert!(self.0 <= 8, "no order any more");
        Some(self.0 - 1)
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a bad end");
    }
}

impl Sampler for Brittle {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, _: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(Order(0))
    }
}

#[test]
fn the_drop_of_an_order_breaks_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let loader = builder().order(Brittle).build(Numbers::new(40)).unwrap();
    for _ in 0..2 {
        assert_eq!(outcomes(&*loader.slice(0, 0)), [], "an epoch without batches");
        let outcomes = outcomes(&*loader);
        assert!(outcomes[0].is_ok() && outcomes[1].as_ref().unwrap_err().contains("no order any more"), "{outcomes:?}");
        assert!(outcomes.len() == 5 && outcomes[1..].iter().all(Result::is_err), "the threads are still there");
    }
}

/// It panics as it is dropped, whatever else goes on, unless it was delivered and forgotten.
#[derive(Debug, Clone)]
struct Mine;

impl Drop for Mine {
    fn drop(&mut self) {
        panic!("a bad end");
    }
}

/// An error that cannot even be dropped.
#[derive(Debug, thiserror::Error)]
#[error("a mine")]
struct MinedError(Mine);

/// Mines, or errors with mines at every second index from `good` on. Reads fewer at once than it is asked for.
struct Minefield {
    good: usize,
}

impl Dataset<Mine, MinedError> for Minefield {
    fn get(&self, index: usize) -> Result<Mine, MinedError> {
        if index >= self.good && index % 2 == 1 { Err(MinedError(Mine)) } else { Ok(Mine) }
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<Mine>, MinedError> {
        Ok(vec![Mine; indexes.len() - 1])
    }

    fn len(&self) -> usize {
        40
    }
}

struct Sweep;

impl Batcher<Mine, usize> for Sweep {
    fn batch(&self, items: Vec<Mine>, _: &Device) -> usize {
        let count = items.len();
        items.into_iter().for_each(std::mem::forget);
        count
    }
}

/// Two of them in one `drop` would end the process.
#[test]
fn values_whose_drop_panics_are_dropped_one_by_one() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    type Rows = PinnedDataLoaderBuilder<Mine, usize>;
    let fields = || [Field::new("x", DType::U8, []), Field::column::<Mine>("mine")];
    let rows = |column: bool| -> Rows {
        let write = move |mine: &Mine, row: &mut RowMut<'_>| {
            row.put("x", 1_u8)?;
            Ok(row.put_column("mine", mine.clone())?)
        };
        let finish = move |mut batch: RawBatch| {
            if column {
                batch.column::<Mine>("mine")?.into_iter().for_each(std::mem::forget);
            }
            Ok(batch.len())
        };
        PinnedDataLoaderBuilder::new(collate(fields(), write, finish))
            .batch_size(8)
            .num_workers(2)
            .set_device(Device::flex())
    };
    let items = || PinnedDataLoaderBuilder::from_batcher(Sweep).batch_size(8).num_workers(2).set_device(Device::flex());
    let outcomes = |builder: Rows, good| {
        let loader = builder.build(Minefield { good }).unwrap();
        let outcomes: Vec<_> = loader.iter().map(|batch| batch.map_err(std::mem::forget).ok()).collect();
        drop(loader);
        outcomes
    };
    let skip = BadSamples::Skip(Quota::Count(100));
    assert_eq!(outcomes(rows(true), 40), [None; 5], "samples that were read together, and a column");
    assert_eq!(outcomes(rows(true).read_many(4), 40), [None; 5], "too few of them");
    assert_eq!(outcomes(items(), 16), [Some(8), Some(8), None, None, None], "items of a batch that fails");
    assert_eq!(outcomes(items().read_many(4), 40), [Some(8); 5]);
    assert_eq!(outcomes(items().bad_samples(skip), 16), [Some(8), Some(8), Some(4), Some(4), Some(4)], "skipped");

    // A column that nobody takes, and one of which rows are left out.
    let write = |number: &usize, row: &mut RowMut<'_>| {
        row.put("x", *number as u8)?;
        row.put_column("mine", Mine)?;
        if *number % 4 == 3 { Err("a bad one".into()) } else { Ok(()) }
    };
    let columns = collate(fields(), write, |batch: RawBatch| Ok(batch.len()));
    let builder = PinnedDataLoaderBuilder::new(columns).batch_size(8).num_workers(2).set_device(Device::flex());
    let loader = builder.bad_samples(skip).build(Numbers::new(40)).unwrap();
    assert_eq!(epoch(&*loader), [6; 5]);
    // Burn's own loader drops the samples on its thread.
    let batcher = PinnedBatcher::new::<Mine>(collate(
        [Field::new("x", DType::U8, [])],
        |_: &Mine, row: &mut RowMut<'_>| Ok(row.put("x", 1_u8)?),
        |batch: RawBatch| Ok(batch.len()),
    ));
    assert_eq!(batcher.unwrap().batch(vec![Mine; 5], &Device::flex()), 5);
}
