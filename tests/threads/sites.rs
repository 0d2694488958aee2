//! The places where user code is called on a CPU backend. Each can misbehave on demand. `fault_matrix.rs` uses them.

use crate::common::*;
use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError},
    },
    tensor::Device,
};
use burn_pinned::{
    Augment, BadSamples, BoxError, Collate, Error, Field, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder,
    RawBatch, RowMut,
    memory::{HeapAlloc, HostAlloc, HostBlock},
    order::Sampler,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

pub(crate) const LEN: usize = 24;
pub(crate) const BATCH: usize = 4;
/// The timeout if one batch hangs. It is long for the other batches, even on a machine with other work.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout if each batch hangs.
const BRIEF: Duration = Duration::from_millis(100);
/// What takes longer than this hangs, though it should not.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// The index of an allocator that misbehaves each time.
pub(crate) const EVERY: usize = usize::MAX;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Site {
    Sampler,
    Dataset,
    Augment,
    Collate,
    Finish,
    Batcher,
    Allocator,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// An error. A sampler cannot return one, and gives an index that is out of range instead. A batcher panics with a
    /// formatted message instead.
    Error,
    Panic,
    Delay,
    Hang,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) site: Site,
    pub(crate) kind: Kind,
    /// The bad sample. For `Finish` and `Batcher`, one sample of the bad batch. For `Allocator`, the bad block, counted
    /// from 0, or [`EVERY`].
    pub(crate) index: usize,
    pub(crate) workers: usize,
    /// The epoch in which things go wrong.
    pub(crate) epoch: usize,
    pub(crate) policy: BadSamples,
    /// Whether a Burn `Batcher` makes the batches, not a `Collate`.
    pub(crate) batcher: bool,
}

/// Misbehaves where and when the case says.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) case: Case,
    /// The epoch that runs now.
    pub(crate) epoch: Arc<AtomicUsize>,
    /// Shut while calls are to hang.
    pub(crate) gate: Gate,
    hits: Arc<AtomicUsize>,
}

impl Fault {
    pub(crate) fn new(case: Case) -> Self {
        Self { case, epoch: Arc::default(), gate: Gate::default(), hits: Arc::default() }
    }

    /// How often it misbehaved.
    pub(crate) fn hits(&self) -> usize {
        self.hits.load(SeqCst)
    }

    fn act(&self, site: Site, index: usize) -> Result<(), BoxError> {
        let case = &self.case;
        if case.site != site || case.index != index || case.epoch != self.epoch.load(SeqCst) {
            return Ok(());
        }
        self.hits.fetch_add(1, SeqCst);
        match case.kind {
            Kind::Error => return Err("injected".into()),
            Kind::Panic => std::panic::panic_any("injected"),
            Kind::Delay => thread::sleep(Duration::from_millis(3)),
            Kind::Hang => self.gate.pass(),
        }
        Ok(())
    }
}

impl Sampler for Fault {
    fn len(&self, len: usize) -> usize {
        len
    }
    fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let fault = self.clone();
        Box::new((0..len).map(move |at| fault.act(Site::Sampler, at).map_or(len, |()| at)))
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

impl Augment<usize> for Fault {
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

/// Misbehaves at one of the blocks that it is asked for, or at each of them. Counts the blocks.
#[derive(Debug)]
struct Memory(Fault, AtomicUsize);

impl HostAlloc for Memory {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let nth = self.1.fetch_add(1, SeqCst);
        let index = if self.0.case.index == EVERY { EVERY } else { nth };
        let refused = |error: BoxError| Error::OutOfHostMemory { kind: "test", bytes, message: error.to_string() };
        self.0.act(Site::Allocator, index).map_err(refused)?;
        HeapAlloc.allocate(bytes)
    }
}

pub(crate) fn build(fault: &Fault) -> Arc<PinnedDataLoader<Vec<i64>>> {
    let Case { site, kind, index, workers, policy, batcher, .. } = fault.case;
    let builder = if batcher {
        PinnedDataLoaderBuilder::from_batcher(Batched(fault.clone()))
    } else {
        PinnedDataLoaderBuilder::new(Collated(fault.clone()))
    };
    let builder = builder.batch_size(BATCH).num_workers(workers).set_device(Device::flex()).bad_samples(policy);
    let mut builder = builder.augment(fault.clone());
    match site {
        Site::Sampler => builder = builder.order(fault.clone()),
        Site::Allocator => builder = builder.allocator(Memory(fault.clone(), AtomicUsize::new(0))),
        _ => {}
    }
    match (kind, index) {
        (Kind::Hang, EVERY) => builder = builder.timeout(BRIEF),
        (Kind::Hang, _) => builder = builder.timeout(TIMEOUT),
        // If a loader waits for memory in vain, the test must fail and not run for ever.
        _ if site == Site::Allocator => builder = builder.timeout(LONG),
        _ => {}
    }
    builder.build(Data(fault.clone())).unwrap()
}
