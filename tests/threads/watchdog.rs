//! User code that hangs: the error names it, the loader goes on, and the loader can be dropped.

use crate::common::*;
use burn::{
    data::{
        dataloader::{DataLoader, batcher::Batcher},
        dataset::{Dataset, DatasetError},
    },
    tensor::Device,
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage,
    fault::HungCall,
    memory::{HeapAlloc, HostAlloc, HostBlock},
};
use std::{
    sync::{Arc, PoisonError, atomic::Ordering::SeqCst},
    time::{Duration, Instant},
};

/// The timeout. It is long for a batch that does not hang, even on a machine with other work.
const SHORT: Duration = Duration::from_millis(500);

fn timed_out<T>(outcome: Option<Result<T, burn::data::dataset::DatasetError>>) -> (usize, Option<HungCall>) {
    let error = outcome.expect("more batches").map(|_| ()).expect_err("a batch in spite of the hang");
    let Some(Error::Timeout { batch, waited, hung, .. }) = Error::of(&error) else { panic!("{error}") };
    assert!(*waited >= SHORT && *waited < 10 * SHORT, "{waited:?}");
    (*batch, hung.as_deref().cloned())
}

#[test]
fn a_hanging_sample_is_named_and_the_others_arrive() {
    let _alone = alone();
    soon("the drop of a loader with calls that hang", || {
        let data = Numbers::new(64).with(19, Mischief::Hang);
        let gate = data.gate.clone();
        let loader = builder().num_workers(3).timeout(SHORT).build(data).unwrap();
        for epoch in 0..2 {
            let mut iter = loader.iter();
            for at in 0..8 {
                if at != 2 {
                    assert_eq!(iter.next().unwrap().unwrap().numbers, (8 * at..8 * at + 8).collect::<Vec<_>>());
                    continue;
                }
                gate.wait_for(epoch + 1); // so that the call lasts for longer than the wait
                let (batch, hung) = timed_out(iter.next());
                let hung = hung.expect("a call that hangs");
                assert_eq!((batch, hung.place.stage, hung.place.index), (2, Stage::Read, Some(19)));
                assert_eq!((hung.place.epoch, hung.place.batch), (epoch, 2));
                assert!(hung.since >= SHORT && hung.thread.starts_with("bp-worker-"), "{hung}");
            }
            assert!(iter.next().is_none());
        }
        // Two of three workers hang. The loader does not wait for them, because they have hung long enough. Their
        // memory stays.
        let start = Instant::now();
        drop(loader);
        let took = start.elapsed();
        wait_for_threads(2);
        gate.open();
        wait_for_threads(0);
        took
    });
}

#[test]
fn an_epoch_after_all_workers_hang_gets_new_ones() {
    let _alone = alone();
    let data = Numbers::new(16).with(9, Mischief::Hang).with(1, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().timeout(SHORT).build(data).unwrap();
    for epoch in 0..2 {
        let mut iter = loader.iter();
        gate.wait_for(2 * (epoch + 1));
        for number in 0..2 {
            assert_eq!(timed_out(iter.next()).0, number);
        }
        assert!(iter.next().is_none());
    }
    wait_for_threads(2 + 3);
    gate.open();
    wait_for_threads(3); // the first workers end
    assert_eq!(numbers(&epoch(&*loader)), (0..16).collect::<Vec<i64>>());
    let stats = loader.stats();
    drop(loader);
    assert_eq!(stats.errors, 4);
    // The second workers had only just come back when the third epoch began. The loader may not have waited for them.
    wait_for_threads(0);
}

/// More samples hang than there are slots, and fewer than there are workers. All other batches arrive, and in later
/// epochs all.
#[test]
fn what_hangs_takes_no_slots_from_the_others() {
    let _alone = alone();
    let hanging = [3, 4, 20, 44, 60, 61, 90];
    let data = hanging.into_iter().fold(Numbers::new(160), |data, at| data.with(at, Mischief::Hang));
    let gate = data.gate.clone();
    let loader = builder().num_workers(8).timeout(SHORT).build(data).unwrap();
    let outcomes: Vec<_> = loader.iter().collect();
    assert_eq!(outcomes.len(), 20);
    for (batch, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(shown) => assert_eq!(shown.numbers, (8 * batch as i64..8 * batch as i64 + 8).collect::<Vec<_>>()),
            Err(error) => assert_eq!(timed_out::<Shown>(Some(Err(error))).0, batch),
        }
    }
    assert_eq!(loader.stats().errors, 5, "one for each batch with a sample that hangs");
    gate.open();
    for _ in 0..3 {
        assert_eq!(numbers(&epoch(&*loader)), (0..160).collect::<Vec<i64>>());
    }
    drop(loader);
    wait_for_threads(0);
}

#[test]
fn a_late_batch_is_not_delivered_twice_and_its_slot_comes_home() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Numbers::new(400).with(19, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().num_workers(2).timeout(SHORT).build(data).unwrap();
    let mut iter = loader.iter();
    let firsts: Vec<_> = iter.by_ref().take(2).map(Result::unwrap).collect();
    assert_eq!(timed_out(iter.next()).0, 2);
    gate.open();
    let rest: Vec<_> = iter.map(Result::unwrap).collect();
    assert_eq!(numbers(&firsts), (0..16).collect::<Vec<_>>());
    assert_eq!(numbers(&rest), (24..400).collect::<Vec<i64>>());
    for _ in 0..5 {
        assert_eq!(numbers(&epoch(&*loader)), (0..400).collect::<Vec<i64>>());
    }
    assert!(loader.stats().allocations <= 6, "{}", loader.stats());
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
                    number
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
        let (batch, hung) = timed_out(iter.next());
        let hung = hung.unwrap_or_else(|| panic!("no call hangs in {stage}"));
        assert_eq!((batch, hung.place.stage, hung.place.batch), (good, stage, good), "{hung}");
        let of_a_sample = matches!(stage, Stage::Augment | Stage::Collate);
        assert_eq!(hung.place.index, of_a_sample.then_some(20), "{hung}");
        gate.open();
        assert_eq!(iter.count(), 5 - good - 1);
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
    let (_, hung) = timed_out(iter.next());
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
    let data = Numbers::new(400);
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
    let (batch, hung) = timed_out(iter.next());
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
