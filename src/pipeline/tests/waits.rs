//! Waits that must end: for a slot, for memory, for a device that hangs.

use super::fake::{
    Link, ROWS, SLOTS, begin, epoch_of, is_whole, pipeline, pipeline_of, rows, rows_of, settings, threads,
};
use crate::{
    batch::{BatchState, RowsSource},
    device::{
        Target,
        tests::{DeviceCall, Hang},
    },
    fault::Error,
    memory::{HeapAlloc, LimitedAlloc, MemoryLimit, Pool, PoolLimits, Wait},
    observe::Counters,
    pipeline::{Pipeline, Settings},
    vocabulary::Stage,
};
use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::Device,
};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::{sleep, spawn},
    time::{Duration, Instant},
};

/// Nothing gives a slot back. A consumer is told so after a long wait, or after its own timeout.
#[test]
fn a_step_that_never_gets_a_slot_is_told_why() {
    const PATIENCE: Duration = Duration::from_millis(700);
    let long = Duration::from_secs(20);
    for (lease_timeout, timeout) in [(PATIENCE, long), (long, PATIENCE)] {
        let (batches, counters) = (5, Arc::<Counters>::default());
        let settings = Settings { lease_timeout, timeout: Some(timeout), ..settings() };
        let pipeline = pipeline_of(settings, rows(batches, &counters), &counters);
        let threads = threads(&pipeline);
        let held: Vec<_> = (0..SLOTS).map(|_| pipeline.pool.try_permit().expect("a permit")).collect();
        let id = begin(&pipeline, 1, batches);
        let (batch, _) = pipeline.next(id, Instant::now()).expect("an error");
        match batch.state {
            BatchState::Failed(Error::LeaseTimeout { waited, slots, iterators: 0, kept: 0 })
                if lease_timeout == PATIENCE =>
            {
                assert!(slots == SLOTS && waited >= PATIENCE, "{waited:?}");
            }
            BatchState::Failed(Error::Timeout { batch: 0, waited, hung: None, lost: 4, .. }) if timeout == PATIENCE => {
                assert!(waited >= PATIENCE, "{waited:?}");
            }
            BatchState::Failed(error) => panic!("{error}"),
            _ => panic!("a batch without a slot"),
        }
        assert!(pipeline.next(id, Instant::now()).is_none(), "the epoch is over");
        drop((held, threads));
    }
}

/// One batch, whose samples take long.
struct Sleepy(Duration);

impl Dataset<u8> for Sleepy {
    fn get(&self, _: usize) -> Result<u8, DatasetError> {
        sleep(self.0);
        Ok(7)
    }

    fn len(&self) -> usize {
        ROWS
    }
}

/// Samples may take longer than the wait for a slot. Those of an iterator that was dropped hold all slots until then.
#[test]
fn a_wait_for_slow_samples_is_no_wait_for_a_slot() {
    const PATIENCE: Duration = Duration::from_millis(100);
    let counters = Arc::<Counters>::default();
    let rows = rows_of(Sleepy(3 * PATIENCE), &counters);
    let (settings, target) =
        (Settings { transfers: 0, lease_timeout: PATIENCE, ..settings() }, Target::of(Device::flex()));
    let bytes = rows.layout.bytes();
    let pool = Pool::new(Arc::new(HeapAlloc), PoolLimits { slots: 1, bytes }, Arc::clone(&counters));
    let pipeline = Pipeline::new(settings, Arc::new(RowsSource { target, ..rows }), pool);
    let threads = threads(&pipeline);
    let dropped = begin(&pipeline, 0, 1);
    while pipeline.busy.load(Relaxed) == 0 {
        sleep(Duration::from_millis(1));
    }
    pipeline.end(dropped); // its tasks stop after the sample that they are at
    let id = begin(&pipeline, 1, 1);
    let (batch, _) = pipeline.next(id, Instant::now()).expect("a batch");
    if let BatchState::Failed(error) = batch.state {
        panic!("{error}");
    }
    drop(threads);
}

/// The loop keeps its batches, and a limit allows no more of them. Nobody else is to blame.
#[test]
fn a_loop_that_keeps_too_much_is_told_so() {
    const PATIENCE: Duration = Duration::from_millis(300);
    let counters = Arc::<Counters>::default();
    let rows = rows(4, &counters);
    let (settings, target) =
        (Settings { transfers: 0, lease_timeout: PATIENCE, ..settings() }, Target::of(Device::flex()));
    let bytes = rows.layout.bytes();
    let alloc = LimitedAlloc { upstream: Arc::new(HeapAlloc), limit: MemoryLimit::new(2 * bytes) };
    let limits = PoolLimits { slots: SLOTS, bytes: SLOTS * bytes };
    let pool = Pool::new(Arc::new(alloc), limits, Arc::clone(&counters));
    let pipeline = Pipeline::new(settings, Arc::new(RowsSource { target, ..rows }), pool);
    let keep = |_| {
        let permit = pipeline.pool.try_permit().expect("a permit");
        let mut slot = pipeline.pool.slot(permit, bytes, &Wait::at_most(PATIENCE)).unwrap();
        drop(pipeline.pool.detach(&mut slot));
        slot
    };
    let kept: Vec<_> = (0..2).map(keep).collect();
    let threads = threads(&pipeline);
    let id = begin(&pipeline, 0, 4);
    let (batch, _) = pipeline.next(id, Instant::now()).expect("an error");
    let BatchState::Failed(error) = batch.state else { panic!("no memory is left") };
    let Error::LeaseTimeout { iterators: 0, kept: 2, .. } = error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("the training loop keeps 2 batches") && !text.contains("iterator"), "{text}");
    drop((kept, threads));
}

#[test]
fn other_iterators_are_blamed_where_there_are_some() {
    let error = |iterators, kept| {
        Error::LeaseTimeout { waited: Duration::from_secs(60), slots: 4, iterators, kept }.to_string()
    };
    assert!(error(1, 0).contains("has 1 other iterator; drop those"), "{}", error(1, 0));
    assert!(error(2, 1).contains("2 other iterators, and the training loop keeps 1 batch;"), "{}", error(2, 1));
    assert!(error(0, 0).contains("copies to the device"), "{}", error(0, 0));
}

/// Memory begins to lack when the consumer has waited for long already, for a copy. It sees that too, though nobody
/// tells it.
#[test]
fn memory_that_lacks_later_is_seen() {
    const PATIENCE: Duration = Duration::from_millis(200);
    let (counters, hang) = (Arc::<Counters>::default(), Hang::at(DeviceCall::Upload));
    let link = Link { hang: Arc::clone(&hang), ..Link::new(rows(1, &counters)) };
    let pipeline = pipeline_of(Settings { lease_timeout: PATIENCE, ..settings() }, link, &counters);
    let threads = threads(&pipeline);
    let id = begin(&pipeline, 0, 1);
    let waits = spawn({
        let pipeline = Arc::clone(&pipeline);
        // It is more than the slot of the batch leaves.
        let bytes = pipeline.pool.limits().bytes;
        move || {
            sleep(3 * PATIENCE);
            let permit = pipeline.pool.try_permit().expect("a permit");
            pipeline.pool.slot(permit, bytes, &Wait::at_most(5 * PATIENCE)).err()
        }
    });
    let (batch, _) = pipeline.next(id, Instant::now()).expect("an error");
    let BatchState::Failed(Error::LeaseTimeout { waited, .. }) = batch.state else { panic!("another end") };
    assert!(waited >= 4 * PATIENCE && waited < Duration::from_secs(2), "{waited:?}");
    drop(waits.join().unwrap());
    hang.end();
    drop(threads);
}

/// An epoch that begins while another one hangs gets its order back, for new threads.
#[test]
fn no_epoch_begins_on_threads_that_hang() {
    let counters = Arc::<Counters>::default();
    let pipeline = pipeline(rows(1, &counters), &counters);
    pipeline.hung.store(true, Relaxed);
    assert!(pipeline.begin(0, epoch_of(1), 0..1).is_err() && pipeline.is_dead());
    pipeline.hung.store(false, Relaxed);
    pipeline.close();
    assert!(pipeline.begin(0, epoch_of(1), 0..1).is_err() && pipeline.is_dead());
}

/// Whatever call of a device hangs, a loader with a timeout can be dropped, and says which call it is.
#[test]
fn a_device_that_hangs_lets_the_loader_be_dropped() {
    const TIMEOUT: Duration = Duration::from_millis(500);
    const SEND: Duration = Duration::from_millis(120);
    for call in [DeviceCall::Open, DeviceCall::Upload, DeviceCall::Flush, DeviceCall::Close] {
        let (batches, counters, hang) = (20, Arc::<Counters>::default(), Hang::at(call));
        // Batches take a while on the link, so that some are there when the epoch ends.
        let link = Link { send: SEND, hang: Arc::clone(&hang), ..Link::new(rows(batches, &counters)) };
        let pipeline = pipeline_of(Settings { timeout: Some(TIMEOUT), ..settings() }, link, &counters);
        let threads = threads(&pipeline);
        let id = begin(&pipeline, 0, batches);
        let (first, _) = pipeline.next(id, Instant::now()).expect("a batch or an error");
        match (call, &first.state) {
            (DeviceCall::Open | DeviceCall::Upload, BatchState::Failed(Error::Timeout { hung: Some(hung), .. })) => {
                assert!(hung.thread.starts_with("bp-transfer"), "{call:?}: {hung}");
                assert_eq!(hung.place.stage, Stage::Transfer);
            }
            (call, BatchState::Failed(error)) => panic!("{call:?}: {error}"),
            (DeviceCall::Flush | DeviceCall::Close, _) => {
                // On a busy machine nothing may be on the link by now.
                let sends = || {
                    let stages = counters.snapshot().stages;
                    stages.device_wait.count > stages.transfer.count
                };
                while !sends() {
                    assert!(pipeline.next(id, Instant::now()).is_some_and(|(batch, _)| is_whole(&batch)));
                }
            }
            (call, _) => panic!("{call:?}: a batch"),
        }
        drop(first);
        pipeline.end(id); // what is on the link is for nobody, and flushed
        sleep(2 * SEND);
        let (start, weak) = (Instant::now(), Arc::downgrade(&pipeline));
        drop(threads);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(5), "{call:?}: the drop took {took:?}");
        drop(pipeline);
        assert!(weak.upgrade().is_some(), "{call:?}: no thread hung");
        hang.end();
        let start = Instant::now();
        while weak.upgrade().is_some() {
            assert!(start.elapsed() < Duration::from_secs(10), "{call:?}: a thread did not end");
            sleep(Duration::from_millis(5));
        }
    }
}
