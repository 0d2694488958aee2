//! Every kind of fault in every stage, at every place, under every policy: each sample is delivered, skipped by the policy or
//! reported, exactly once; nothing hangs; nothing is left behind.
//!
//! What is expected of a combination is computed here from the options alone, and so is the same for any number of workers.

mod common;

use burn::{
    data::{
        dataloader::{DataLoader, batcher::Batcher},
        dataset::{Dataset, DatasetError},
    },
    tensor::Device,
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, HeapAlloc, HostAlloc, HostBlock, KeyedRng, PinnedDataLoader,
    PinnedDataLoaderBuilder, Quota, RawBatch, RowMut,
};
use common::*;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const LEN: usize = 24;
const BATCH: usize = 4;
const TIMEOUT: Duration = Duration::from_millis(250);
/// Combinations that run beside each other: those that hang only wait.
const BESIDE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Site {
    Dataset,
    Augment,
    Collate,
    Finish,
    Batcher,
    Allocator,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Error,
    Panic,
    Delay,
    Hang,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    site: Site,
    kind: Kind,
    /// The bad sample; of `Finish` and `Batcher`, one of the bad batch.
    index: usize,
    workers: usize,
    /// The epoch in which things go wrong.
    epoch: usize,
    policy: BadSamples,
}

/// Misbehaves where and when the case says.
#[derive(Debug, Clone)]
struct Fault {
    case: Case,
    epoch: Arc<AtomicUsize>,
    gate: Gate,
}

impl Fault {
    fn act(&self, site: Site, index: usize) -> Result<(), BoxError> {
        let Case { kind, .. } = self.case;
        let here = self.case.site == site && self.case.index == index && self.epoch.load(SeqCst) == self.case.epoch;
        match kind {
            _ if !here => {}
            Kind::Error => return Err("injected".into()),
            Kind::Panic => std::panic::panic_any("injected"),
            Kind::Delay => std::thread::sleep(Duration::from_millis(3)),
            Kind::Hang => self.gate.pass(),
        }
        Ok(())
    }
}

struct Data(Fault);

impl Dataset<usize> for Data {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        let fault = self.0.act(Site::Dataset, index);
        fault.map_err(|error| DatasetError::new(std::io::Error::other(error)))?;
        Ok(index)
    }
    fn len(&self) -> usize {
        LEN
    }
}

impl burn_pinned::Augment<usize> for Fault {
    fn apply(&self, number: usize, _: &mut KeyedRng) -> Result<usize, BoxError> {
        self.act(Site::Augment, number).map(|()| number)
    }
}

struct Collated(Fault);

impl Collate<usize> for Collated {
    type Batch = Vec<i64>;
    fn layout(&self) -> Vec<Field> {
        Show { width: 3 }.layout()
    }
    fn write(&self, number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("number", *number as i64)?;
        self.0.act(Site::Collate, *number)?;
        Show { width: 3 }.write(number, row)
    }
    fn finish(&self, batch: RawBatch) -> Result<Vec<i64>, BoxError> {
        if batch.number() == self.0.case.index / BATCH {
            self.0.act(Site::Finish, self.0.case.index)?;
        }
        let shown = Show { width: 3 }.finish(batch)?;
        for (number, bytes) in shown.numbers.iter().zip(shown.bytes.chunks(3)) {
            assert!(bytes.iter().enumerate().all(|(at, value)| *value == byte(*number as usize, at)), "another's row");
        }
        Ok(shown.numbers)
    }
}

struct Batched(Fault);

impl Batcher<usize, Vec<i64>> for Batched {
    fn batch(&self, items: Vec<usize>, _: &Device) -> Vec<i64> {
        if items.iter().any(|item| item / BATCH == self.0.case.index / BATCH)
            && let Err(error) = self.0.act(Site::Batcher, self.0.case.index)
        {
            panic!("{error}");
        }
        items.into_iter().map(|item| item as i64).collect()
    }
}

/// Counts blocks that live; goes wrong at the first one that is asked for.
#[derive(Debug)]
struct Memory(Fault, AtomicUsize);

impl HostAlloc for Memory {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        if self.1.fetch_add(1, SeqCst) == self.0.case.index {
            self.0.act(Site::Allocator, self.0.case.index).map_err(|error| Error::OutOfHostMemory {
                kind: "test",
                bytes,
                message: error.to_string(),
            })?;
        }
        HeapAlloc.allocate(bytes)
    }
}

fn build(fault: &Fault, batcher: bool) -> Arc<PinnedDataLoader<Vec<i64>>> {
    let builder = if batcher {
        PinnedDataLoaderBuilder::from_batcher(Batched(fault.clone()))
    } else {
        PinnedDataLoaderBuilder::new(Collated(fault.clone()))
    };
    let Case { kind, site, workers, policy, .. } = fault.case;
    let mut builder = builder.batch_size(BATCH).num_workers(workers).set_device(Device::flex()).bad_samples(policy);
    builder = builder.augment(fault.clone());
    if site == Site::Allocator {
        builder = builder.allocator(Memory(fault.clone(), AtomicUsize::new(0)));
    }
    if site == Site::Allocator {
        builder = builder.timeout(Duration::from_secs(3));
    }
    if kind == Kind::Hang {
        builder = builder.timeout(TIMEOUT);
    }
    builder.build(Data(fault.clone())).unwrap()
}

/// What an epoch is to give: batches, or `None` for an error.
fn expected(case: &Case, epoch: usize) -> Vec<Option<Vec<i64>>> {
    let mut batches: Vec<_> =
        (0..LEN).step_by(BATCH).map(|first| Some((first as i64..(first + BATCH) as i64).collect::<Vec<_>>())).collect();
    let bad = case.index / BATCH;
    let of_a_sample = matches!(case.site, Site::Dataset | Site::Augment | Site::Collate);
    if epoch != case.epoch || case.kind == Kind::Delay {
        return batches;
    }
    match case.policy {
        _ if case.kind == Kind::Hang || !of_a_sample => batches[bad] = None,
        BadSamples::Skip(Quota::Count(0)) | BadSamples::Fail => batches[bad] = None,
        BadSamples::Skip(_) => {
            batches[bad].iter_mut().for_each(|batch| batch.retain(|number| *number != case.index as i64));
        }
        _ => batches[bad].iter_mut().flatten().for_each(|number| {
            if *number == case.index as i64 {
                *number = (*number + 1) % LEN as i64;
            }
        }),
    }
    batches
}

#[derive(Debug, Default)]
struct Count {
    combinations: usize,
    delivered: usize,
    skipped: usize,
    replaced: usize,
    reported: usize,
    timeouts: usize,
}

impl Count {
    fn add(&mut self, other: &Self) {
        self.combinations += other.combinations;
        self.delivered += other.delivered;
        self.skipped += other.skipped;
        self.replaced += other.replaced;
        self.reported += other.reported;
        self.timeouts += other.timeouts;
    }
}

/// Runs one combination through three epochs.
fn check(case: Case, batcher: bool, count: &mut Count) {
    let fault = Fault { case, epoch: Arc::default(), gate: Gate::default() };
    let loader = build(&fault, batcher);
    let start = Instant::now();
    for epoch in 0..3 {
        fault.epoch.store(epoch, SeqCst);
        let expected = expected(&case, epoch);
        let mut iter = loader.iter();
        for (number, expected) in expected.iter().enumerate() {
            let context = || format!("{case:?}, batcher {batcher}, epoch {epoch}, batch {number}");
            let outcome = iter.next().unwrap_or_else(|| panic!("{}: lost", context()));
            match (outcome, expected) {
                (Ok(batch), Some(expected)) => {
                    assert_eq!(batch, *expected, "{}", context());
                    count.delivered += batch.len();
                }
                (Err(error), None) => {
                    let error = Error::of(&error).unwrap_or_else(|| panic!("{}: {error}", context()));
                    let timeout = matches!(error, Error::Timeout { .. });
                    assert_eq!(timeout, case.kind == Kind::Hang, "{}: {error}", context());
                    if let Some(place) = error.place() {
                        assert_eq!((place.epoch, place.batch), (epoch, number), "{}: {error}", context());
                    }
                    if timeout {
                        count.timeouts += 1;
                        fault.gate.open();
                    }
                    count.reported += BATCH;
                }
                (Ok(batch), None) => panic!("{}: {batch:?} in spite of the fault", context()),
                (Err(error), Some(_)) => panic!("{}: {error}", context()),
            }
        }
        assert!(iter.next().is_none());
        assert_eq!(iter.progress().items_total, LEN);
    }
    let stats = loader.stats();
    count.skipped += stats.skipped as usize;
    count.replaced += stats.replaced as usize;
    assert!(start.elapsed() < Duration::from_secs(5), "{case:?}: {:?}", start.elapsed());
    drop(loader);
    count.combinations += 1;
}

#[test]
fn every_sample_is_delivered_skipped_or_reported_exactly_once() {
    use Site::*;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let policies = [
        BadSamples::Fail,
        BadSamples::Skip(Quota::Count(3)),
        BadSamples::Skip(Quota::Count(0)),
        BadSamples::Replace { tries: 2 },
    ];
    let threads = loader_threads().len();
    let start = Instant::now();
    // The messages of injected panics would hide everything else.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"injected") && !info.to_string().contains("injected") {
            before(info);
        }
    }));
    let mut cases = Vec::new();
    for kind in [Kind::Hang, Kind::Error, Kind::Panic, Kind::Delay] {
        for (site, batcher) in [
            (Dataset, false),
            (Dataset, true),
            (Augment, false),
            (Augment, true),
            (Collate, false),
            (Finish, false),
            (Batcher, true),
        ] {
            for index in [0, LEN / 2 + 1, LEN - 1] {
                for (workers, epoch) in [(1, 0), (8, 0), (1, 2), (8, 2)] {
                    let case = |policy| (Case { site, kind, index, workers, epoch, policy }, batcher);
                    cases.extend(policies.map(case));
                }
            }
        }
    }
    let (next, count) = (AtomicUsize::new(0), Mutex::new(Count::default()));
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                let mut own = Count::default();
                while let Some((case, batcher)) = cases.get(next.fetch_add(1, SeqCst)) {
                    check(*case, *batcher, &mut own);
                }
                count.lock().unwrap().add(&own);
            });
        }
    });
    let count = count.into_inner().unwrap();
    println!(
        "{} combinations of 3 epochs in {:.1?}: {count:?}, lost 0, hangs 0, threads left {}",
        count.combinations,
        start.elapsed(),
        loader_threads().len() - threads
    );
    let samples = 3 * LEN * count.combinations;
    assert_eq!(count.delivered + count.skipped + count.reported, samples, "lost or doubled");
    assert_eq!(loader_threads().len(), threads);
}

/// An allocator that fails at one block makes the loader go on with fewer; at all of them, each batch is an error.
#[test]
fn an_allocator_that_fails_costs_slots_or_is_reported() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for kind in [Kind::Error, Kind::Delay] {
        for index in [0, 1, 3] {
            for workers in [1, 8] {
                let case = Case { site: Site::Allocator, kind, index, workers, epoch: 0, policy: BadSamples::Fail };
                let fault = Fault { case, epoch: Arc::default(), gate: Gate::default() };
                let loader = build(&fault, false);
                for _ in 0..3 {
                    let mut seen = 0;
                    for batch in loader.iter() {
                        match batch {
                            Ok(batch) => seen += batch.len(),
                            Err(error) => {
                                assert!(matches!(Error::of(&error), Some(Error::OutOfHostMemory { .. })), "{error}");
                                seen += BATCH;
                            }
                        }
                    }
                    assert_eq!(seen, LEN, "{case:?}");
                }
            }
        }
    }
}
