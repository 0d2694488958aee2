//! An iterator or a loader is dropped while any stage is at work. The drop is soon over, and nothing is left.

use crate::common::*;
use burn_pinned::{
    BoxError, Collate, Error, Field, KeyedRng, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage,
    memory::{HeapAlloc, HostAlloc, HostBlock},
    order::Sampler,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// The longest call of user code.
const CALL: Duration = Duration::from_millis(120);

/// Takes its time in one stage, and counts its calls.
#[derive(Debug, Clone)]
struct Slow(Stage, Arc<Calls>);

#[derive(Debug, Default)]
struct Calls {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Slow {
    fn at(&self, stage: Stage) {
        if self.0 == stage {
            self.1.begun.fetch_add(1, SeqCst);
            std::thread::sleep(CALL);
            self.1.ended.fetch_add(1, SeqCst);
        }
    }

    fn calls(&self) -> (usize, usize) {
        let ended = self.1.ended.load(SeqCst); // first: a call that begins in between must not seem to have ended
        (self.1.begun.load(SeqCst), ended)
    }
}

impl Collate<usize> for Slow {
    type Batch = Shown;
    fn layout(&self) -> Vec<Field> {
        Show { width: 13 }.layout()
    }
    fn write(&self, number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        self.at(Stage::Collate);
        Show { width: 13 }.write(number, row)
    }
    fn finish(&self, batch: RawBatch) -> Result<Shown, BoxError> {
        self.at(Stage::Finish);
        Show { width: 13 }.finish(batch)
    }
}

impl HostAlloc for Slow {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        self.at(Stage::SlotWait);
        HeapAlloc.allocate(bytes)
    }
}

impl Sampler for Slow {
    fn len(&self, len: usize) -> usize {
        len
    }
    fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let slow = self.clone();
        Box::new((0..len).inspect(move |at| {
            if *at == 1 {
                slow.at(Stage::Sampler)
            }
        }))
    }
}

impl burn::data::dataset::Dataset<usize> for Slow {
    fn get(&self, index: usize) -> Result<usize, burn::data::dataset::DatasetError> {
        self.at(Stage::Read);
        Ok(index)
    }
    fn len(&self) -> usize {
        400
    }
}

/// How long it takes to drop an iterator and a loader while a stage is at work: the longer of both, without the user's
/// calls.
fn dropped(stage: Stage, workers: usize) -> Duration {
    let slow = Slow(stage, Arc::default());
    let inner = slow.clone();
    let loader = PinnedDataLoaderBuilder::new(slow.clone())
        .batch_size(8)
        .num_workers(workers)
        .set_device(device())
        .order(slow.clone())
        .allocator(slow.clone())
        .augment(move |number: usize, _: &mut KeyedRng| {
            inner.at(Stage::Augment);
            Ok(number)
        })
        .build(slow.clone())
        .unwrap();
    let iter = loader.iter();
    eventually("the stage is reached", || slow.calls().0 > 0);
    let start = Instant::now();
    drop(iter);
    let iterator = start.elapsed();
    drop(loader.iter()); // and one that has only just begun
    let start = Instant::now();
    drop(loader);
    // A worker may open one batch more, and the pin thread allocate one block more, before they see the end.
    let beyond = start.elapsed().saturating_sub(2 * CALL);
    let (begun, ended) = slow.calls();
    assert_eq!(begun, ended, "{stage}, {workers} workers: user code runs after the drop");
    wait_for_threads(0);
    iterator.max(beyond)
}

#[test]
fn from_any_stage_within_the_longest_call() {
    use Stage::*;
    let _alone = alone();
    // For an accelerator `finish` runs in `next()`.
    let stages = [Sampler, SlotWait, Read, Augment, Collate, Finish];
    for stage in stages.into_iter().filter(|stage| on_host() || *stage != Finish) {
        for workers in [1, 6] {
            soon(&format!("{stage}, {workers} workers: a drop, without the user's calls,"), || dropped(stage, workers));
        }
    }
}
