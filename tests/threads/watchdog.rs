//! User code that hangs: the error names it, the epoch ends, the next one goes on, and the loader can be dropped.

use crate::common::*;
use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError},
    },
    tensor::{DType, Device},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage,
    collate,
    fault::HungCall,
    memory::{HeapAlloc, HostAlloc, HostBlock},
    order::Sampler,
};
use std::{
    sync::{Arc, PoisonError, atomic::Ordering::SeqCst},
    time::{Duration, Instant},
};

/// The timeout. It is long for a batch that does not hang, even on a machine with other work.
const SHORT: Duration = Duration::from_millis(500);

fn timed_out<T>(outcome: Option<Result<T, burn::data::dataset::DatasetError>>) -> (usize, usize, Option<HungCall>) {
    let error = outcome.expect("more batches").map(|_| ()).expect_err("a batch in spite of the hang");
    let Some(Error::Timeout { batch, waited, lost, hung, .. }) = Error::of(&error) else { panic!("{error}") };
    assert!(*waited >= SHORT && *waited < 10 * SHORT, "{waited:?}");
    (*batch, *lost, hung.as_deref().cloned())
}

#[test]
fn a_hanging_sample_is_named_and_ends_its_epoch() {
    let _alone = alone();
    soon("the drop of a loader with calls that hang", || {
        let data = Numbers::new(64).with(19, Mischief::Hang);
        let gate = data.gate.clone();
        let loader = builder().num_workers(3).timeout(SHORT).build(data).unwrap();
        let mut kept = Vec::new();
        for epoch in 0..2 {
            let mut iter = loader.iter();
            for at in 0..2 {
                let shown = iter.next().unwrap().unwrap();
                assert_eq!(shown.numbers, (8 * at..8 * at + 8).collect::<Vec<_>>());
                kept.push(shown);
            }
            gate.wait_for(epoch + 1); // so that the call lasts for longer than the wait
            let (batch, lost, hung) = timed_out(iter.next());
            let hung = hung.expect("a call that hangs");
            assert_eq!((batch, lost, hung.place.stage, hung.place.index), (2, 5, Stage::Read, Some(19)));
            assert_eq!((hung.place.epoch, hung.place.batch), (epoch, 2));
            assert!(hung.since >= SHORT && hung.thread.starts_with("bp-worker-"), "{hung}");
            assert!(iter.next().is_none() && !iter.progress().is_completed(), "the epoch is over, and not complete");
            assert_eq!(
                (loader.state().epoch(), loader.state().position()),
                (epoch, 24),
                "the batch counts as returned"
            );
        }
        assert!(kept.iter().all(|shown| shown.numbers.len() == 8));
        // Two workers hang, each of a set of threads of its own. The loader does not wait for them, because they have
        // hung long enough.
        let start = Instant::now();
        drop(loader);
        let took = start.elapsed();
        wait_for_threads(2);
        gate.open();
        wait_for_threads(0);
        took
    });
}

/// A state after a call that hangs goes on behind its batch.
#[test]
fn a_training_goes_on_behind_a_batch_that_hangs() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Numbers::new(64).with(19, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().timeout(SHORT).build(data).unwrap();
    let outcomes = outcomes(&*loader);
    assert_eq!((outcomes.len(), outcomes.iter().filter(|outcome| outcome.is_ok()).count()), (3, 2));
    let rest = builder().resume(loader.state()).build(Numbers::new(64)).unwrap();
    assert_eq!(numbers(&epoch(&*rest)), (24..64).collect::<Vec<i64>>());
    gate.open();
}

/// The last batch of an epoch hangs. Nothing is lost, but the epoch is not complete.
#[test]
fn an_epoch_whose_last_batch_hangs_is_not_complete() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Numbers::new(16).with(15, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().timeout(SHORT).build(data).unwrap();
    let mut iter = loader.iter();
    assert!(iter.next().unwrap().is_ok());
    let (batch, lost, _) = timed_out(iter.next());
    assert_eq!((batch, lost), (1, 0));
    assert!(iter.next().is_none() && !iter.progress().is_completed());
    assert_eq!((loader.state().epoch(), loader.state().position()), (1, 0));
    gate.open();
}

#[test]
fn an_epoch_after_one_that_hung_gets_new_threads() {
    let _alone = alone();
    let data = Numbers::new(16).with(9, Mischief::Hang).with(1, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().timeout(SHORT).build(data).unwrap();
    for epoch in 0..2 {
        let mut iter = loader.iter();
        gate.wait_for(2 * (epoch + 1));
        assert_eq!(timed_out(iter.next()).0, 0);
        assert!(iter.next().is_none());
    }
    wait_for_threads(2 + 2);
    gate.open();
    eventually("the old workers end", || loader_threads().is_empty());
    assert_eq!(numbers(&epoch(&*loader)), (0..16).collect::<Vec<i64>>());
    let stats = loader.stats();
    drop(loader);
    assert_eq!((stats.errors, stats.workers), (2, 2));
    wait_for_threads(0);
}

/// A call hangs in one epoch. Another one beside it goes on, as long as its own batches come.
#[test]
fn an_epoch_beside_one_that_hangs_goes_on() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Numbers::new(160).with(19, Mischief::HangOnce);
    let gate = data.gate.clone();
    let loader = builder().num_workers(3).timeout(SHORT).build(data).unwrap();
    let mut hangs = loader.iter();
    gate.wait_for(1);
    let mut other = loader.iter();
    assert!(other.next().unwrap().is_ok());
    assert!(hangs.by_ref().take(2).all(|batch| batch.is_ok()));
    assert_eq!(timed_out(hangs.next()).0, 2);
    assert_eq!(other.map(Result::unwrap).count(), 19);
    gate.open();
    assert_eq!(numbers(&epoch(&*loader)), (0..160).collect::<Vec<i64>>());
}

#[test]
fn memory_that_hung_comes_home_late() {
    let _alone = alone();
    let data = Numbers::new(400).with(19, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().num_workers(2).timeout(SHORT).build(data).unwrap();
    let mut iter = loader.iter();
    let firsts: Vec<_> = iter.by_ref().take(2).map(Result::unwrap).collect();
    assert_eq!(timed_out(iter.next()).0, 2);
    let slot = 8 * (13 + 8) + 128; // with its gaps
    eventually("only the memory of the batch that hangs stays", || loader.stats().host_bytes <= slot);
    gate.open();
    wait_for_threads(0);
    assert_eq!(loader.stats().host_bytes, 0);
    assert_eq!(numbers(&firsts), (0..16).collect::<Vec<_>>());
    for _ in 0..5 {
        assert_eq!(numbers(&epoch(&*loader)), (0..400).collect::<Vec<i64>>());
    }
}

/// Hangs in one part of the collate.
struct Hangs(Stage, Gate);

impl Collate<usize> for Hangs {
    type Batch = Shown;
    fn layout(&self) -> Vec<Field> {
        Show { width: 13 }.layout()
    }
    fn write(&self, number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        if *number == 20 && self.0 == Stage::Collate {
            self.1.pass();
        }
        Show { width: 13 }.write(number, row)
    }
    fn finish(&self, batch: RawBatch) -> Result<Shown, BoxError> {
        if batch.number() == 2 && self.0 == Stage::Finish {
            self.1.pass();
        }
        Show { width: 13 }.finish(batch)
    }
}

#[derive(Debug)]
struct NoMemory(Gate);

impl HostAlloc for NoMemory {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        self.0.pass();
        HeapAlloc.allocate(bytes)
    }
}

#[test]
fn every_stage_is_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for stage in [Stage::Augment, Stage::Collate, Stage::Finish, Stage::Sampler, Stage::SlotWait] {
        let gate = Gate::default();
        let mut builder = PinnedDataLoaderBuilder::new(Hangs(stage, gate.clone())).batch_size(8).num_workers(2);
        builder = builder.set_device(Device::flex()).timeout(SHORT);
        let inner = gate.clone();
        match stage {
            Stage::Augment => {
                builder = builder.augment(move |number: usize, _: &mut burn_pinned::KeyedRng| {
                    if number == 20 {
                        inner.pass();
                    }
                    Ok(number)
                });
            }
            Stage::SlotWait => builder = builder.allocator(NoMemory(inner)),
            Stage::Sampler => builder = builder.order(Late(inner)),
            _ => {}
        }
        let loader = builder.build(Numbers::new(40)).unwrap();
        let mut iter = loader.iter();
        let good = if stage == Stage::SlotWait { 0 } else { 2 };
        iter.by_ref().take(good).for_each(|batch| drop(batch.unwrap()));
        let (batch, lost, hung) = timed_out(iter.next());
        let hung = hung.unwrap_or_else(|| panic!("no call hangs in {stage}"));
        assert_eq!((batch, hung.place.stage, hung.place.batch), (good, stage, good), "{hung}");
        let of_a_sample = matches!(stage, Stage::Augment | Stage::Collate);
        assert_eq!(hung.place.index, of_a_sample.then_some(20), "{hung}");
        gate.open();
        assert_eq!((lost, iter.count()), (5 - good - 1, 0));
    }
}

/// Takes its time before the 17th index.
#[derive(Debug)]
struct Late(Gate);

impl burn_pinned::order::Sampler for Late {
    fn len(&self, len: usize) -> usize {
        len
    }
    fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let gate = self.0.clone();
        Box::new((0..len).inspect(move |at| {
            if *at == 17 {
                gate.pass()
            }
        }))
    }
}

#[test]
fn replacements_that_hang_are_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Numbers::new(40).with(19, Mischief::Error).with(20, Mischief::Hang);
    let gate = data.gate.clone();
    let builder = builder().timeout(SHORT).num_workers(4).bad_samples(BadSamples::Replace { tries: 1 });
    let loader = builder.build(data).unwrap();
    let mut iter = loader.iter().skip(2);
    let (_, _, hung) = timed_out(iter.next());
    assert_eq!(hung.and_then(|hung| hung.place.index), Some(20));
    gate.open();
}

#[test]
fn a_slow_batch_within_the_timeout_is_no_fault() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let slow = (0..40).fold(Numbers::new(40), |data, at| data.with(at, Mischief::Sleep(Duration::from_millis(10))));
    let loader = builder().timeout(Duration::from_secs(5)).build(slow).unwrap();
    for _ in 0..2 {
        assert_eq!(numbers(&epoch(&*loader)), (0..40).collect::<Vec<i64>>());
    }
    assert_eq!(loader.stats().faults, 0);
}

/// Iterators that nobody reads hold all slots. Another gets some long before the timeout, and nothing is lost.
#[test]
fn iterators_that_nobody_reads_hold_up_no_other() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Batches that take no time leave slots free until half of them are.
    let slow = |data: Numbers, batch: usize| data.with(8 * batch, Mischief::Sleep(Duration::from_millis(1)));
    let data = (0..50).fold(Numbers::new(400), slow);
    let asked = Arc::clone(&data.asked);
    let loader = builder().timeout(Duration::from_secs(5)).build(data).unwrap();
    let mut idle = vec![loader.iter()];
    idle[0].next().unwrap().unwrap();
    // One batch was delivered, and one is in each of the four slots.
    eventually("the idle epoch holds every slot", || asked.load(SeqCst) == 5 * 8);
    idle.push(loader.iter());
    assert_eq!(numbers(&[idle[1].next().unwrap().unwrap()]), (0..8).collect::<Vec<i64>>());
    assert_eq!(numbers(&epoch(&*loader)), (0..400).collect::<Vec<i64>>());
    // Each idle iterator has taken a batch, and others are ready for it: `prefetch`, and as many as there are slots.
    assert!(asked.load(SeqCst) <= 400 + 2 * 8 * (1 + 2 + 4), "{} samples were read", asked.load(SeqCst));
    for unread in idle {
        let rest: Vec<_> = unread.map(Result::unwrap).collect();
        assert_eq!(numbers(&rest), (8..400).collect::<Vec<i64>>());
    }
}

/// A sample whose `drop` hangs.
struct Clingy(Option<Gate>);

impl Drop for Clingy {
    fn drop(&mut self) {
        self.0.iter().for_each(Gate::pass);
    }
}

struct Clinging(Gate);

impl Dataset<Clingy> for Clinging {
    fn get(&self, index: usize) -> Result<Clingy, DatasetError> {
        match index {
            19 => Err(DatasetError::new(std::io::Error::other("no sample 19"))),
            18 => Ok(Clingy(Some(self.0.clone()))),
            _ => Ok(Clingy(None)),
        }
    }

    fn len(&self) -> usize {
        64
    }
}

struct Count;

impl Batcher<Clingy, usize> for Count {
    fn batch(&self, items: Vec<Clingy>, _: &Device) -> usize {
        items.len()
    }
}

/// The samples of a failed batch are dropped on a worker, when it is in no call of the dataset any more.
#[test]
fn a_drop_of_samples_that_hangs_lets_the_loader_go() {
    let _alone = alone();
    let gate = Gate::default();
    let builder = PinnedDataLoaderBuilder::from_batcher(Count).batch_size(8).num_workers(2).timeout(SHORT);
    let loader = builder.set_device(Device::flex()).build(Clinging(gate.clone())).unwrap();
    let mut iter = loader.iter();
    assert!((0..2).all(|_| matches!(iter.next(), Some(Ok(8)))));
    gate.wait_for(1);
    let (batch, _, hung) = timed_out(iter.next());
    let hung = hung.expect("a call that hangs");
    assert_eq!((batch, hung.place.batch, hung.place.stage), (2, 2, Stage::Collate), "{hung}");
    drop(iter);
    let start = Instant::now();
    drop(loader);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    gate.open();
    wait_for_threads(0);
}

/// Each wait has a clock of its own: batches that are skipped whole on the way do not use it up.
#[test]
fn batches_that_are_skipped_do_not_shorten_the_timeout() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let slow = Duration::from_millis(400);
    // A bad sample each, and one that takes most of the timeout.
    let data = (0..6).fold(Numbers::new(7), |data, at| data.with(at, Mischief::SleepError(slow)));
    let skip = BadSamples::Skip(burn_pinned::fault::Quota::Share(1.0));
    let builder = sized(1).num_workers(1).prefetch(1).bad_samples(skip).timeout(Duration::from_millis(1500));
    let loader = builder.build(data).unwrap();
    let batches: Vec<_> =
        loader.iter().map(|batch| batch.map(|shown| shown.numbers).map_err(|e| e.to_string())).collect();
    assert_eq!(batches, [Ok(vec![6])]);
}

/// Numbers, one of which is made with an epoch of another loader.
struct Nested {
    inner: Arc<PinnedDataLoader<usize>>,
}

impl Dataset<usize> for Nested {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        if index == 19 {
            self.inner.iter().for_each(|batch| assert_eq!(batch.unwrap(), 4));
        }
        Ok(index)
    }

    fn len(&self) -> usize {
        64
    }
}

/// An order that hangs when an epoch is planned.
#[derive(Debug)]
struct HangingOrder(Gate);

impl Sampler for HangingOrder {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, dataset_len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        self.0.pass();
        Box::new(0..dataset_len)
    }
}

/// What hangs is a call of a loader within a sample. The outer loader knows the sample, and no batch of the inner one.
#[test]
fn a_loader_within_a_sample_that_hangs_is_that_sample() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for is_order in [false, true] {
        let gate = Gate::default();
        let finish = gate.clone();
        let inner = PinnedDataLoaderBuilder::new(collate(
            [Field::new("n", DType::I64, [])],
            |number: &usize, row: &mut RowMut<'_>| Ok(row.put("n", *number as i64)?),
            move |batch: RawBatch| {
                finish.pass();
                Ok(batch.len())
            },
        ));
        let inner = inner.batch_size(4).set_device(Device::flex());
        let inner = if is_order { inner.order(HangingOrder(gate.clone())) } else { inner };
        let inner = inner.build_kept(Numbers::new(8)).unwrap();
        let loader = builder().timeout(SHORT).build(Nested { inner }).unwrap();
        let mut iter = loader.iter();
        (0..2).for_each(|_| drop(iter.next().unwrap().unwrap()));
        gate.wait_for(1);
        let (batch, _, hung) = timed_out(iter.next());
        let place = hung.expect("a call that hangs").place;
        let sample = (place.stage, place.index, place.epoch, place.batch);
        assert_eq!((batch, sample), (2, (Stage::Read, Some(19), 0, 2)), "{place}");
        gate.open();
    }
}
