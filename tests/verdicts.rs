//! What the statistics and the verdict say of pipelines whose bottleneck is known.

mod common;

use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::{DType, Device},
};
use burn_pinned::{
    BoxError, Collate, Field, KeyedRng, PinnedDataLoaderBuilder, RawBatch, RowMut, Stage, Stats, observe::Cause,
};
use common::in_three_tries;
use std::{
    fs,
    hint::spin_loop,
    thread::sleep,
    time::{Duration, Instant},
};

/// How long each part of the pipeline sleeps, in microseconds, and how long a read computes. Threads that sleep share cores
/// without slowing each other down.
#[derive(Clone, Copy, Default)]
struct Slow {
    read: u64,
    compute: u64,
    augment: u64,
    write: u64,
    finish: u64,
    step: u64,
    /// One step in this many takes the time of all of them.
    burst: usize,
    /// One sample in 64 takes this much longer to read.
    rarely: u64,
}

fn pause(us: u64) {
    if us > 0 {
        sleep(Duration::from_micros(us));
    }
}

impl Dataset<usize> for Slow {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        pause(self.read + if index % 64 == 63 { self.rarely } else { 0 });
        let started = Instant::now();
        while started.elapsed() < Duration::from_micros(self.compute) {
            spin_loop();
        }
        Ok(index)
    }

    fn len(&self) -> usize {
        1600
    }
}

impl Collate<usize> for Slow {
    type Batch = usize;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::U8, [64])]
    }

    fn write(&self, &sample: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        pause(self.write);
        row.slice_mut::<u8>("x")?.fill(sample as u8);
        Ok(())
    }

    fn finish(&self, batch: RawBatch) -> Result<usize, BoxError> {
        pause(self.finish);
        Ok(batch.len())
    }
}

fn builder(slow: Slow, batch_size: usize) -> PinnedDataLoaderBuilder<usize, usize> {
    let builder = PinnedDataLoaderBuilder::new(slow).batch_size(batch_size).num_workers(2).set_device(Device::flex());
    if slow.augment == 0 {
        return builder;
    }
    builder.augment(move |sample: usize, _: &mut KeyedRng| {
        pause(slow.augment);
        Ok(sample)
    })
}

fn stats(slow: Slow, builder: PinnedDataLoaderBuilder<usize, usize>) -> Stats {
    let loader = builder.build(slow).unwrap();
    let start = Instant::now();
    for (number, batch) in (1..).zip(loader.iter()) {
        batch.unwrap();
        match slow.burst {
            0 => pause(slow.step),
            burst if number % burst == 0 => pause(slow.step * burst as u64),
            _ => {}
        }
    }
    let (time, stats) = (start.elapsed(), loader.stats());
    println!("{stats}\n\n{}\n", stats.verdict());
    assert!(stats.total() <= time, "{:?} of {time:?}", stats.total());
    stats
}

/// Checks that the verdict names the workers and this stage.
#[track_caller]
fn blames(slow: Slow, stage: Stage) {
    in_three_tries(|| {
        let stats = stats(slow, builder(slow, 16));
        let verdict = stats.verdict();
        assert!(matches!(verdict.cause, Cause::Workers { stage: found, .. } if found == stage), "{verdict}");
        assert!(verdict.to_string().contains("(2 workers busy"), "{verdict}");
        // These figures include the first steps. The verdict does not.
        assert!(stats.workers_busy() > 0.7 && stats.wait_share() > 0.5, "{stats}");
    });
}

const US: u64 = 200;

#[test]
fn a_slow_dataset() {
    blames(Slow { read: US, ..Slow::default() }, Stage::Read);
}

/// Whether the system tells how long a thread computes.
fn system_tells() -> bool {
    fs::read_to_string("/proc/thread-self/schedstat").is_ok_and(|line| !line.starts_with("0 0 0"))
}

/// Storage that sleeps needs more workers than there are cores. Where the system does not tell, nothing is claimed.
#[test]
fn storage_that_sleeps() {
    in_three_tries(|| {
        let slow = Slow { read: 2000, ..Slow::default() };
        let stats = stats(slow, builder(slow, 16));
        let verdict = stats.verdict();
        assert_eq!(verdict.cause.stage(), Some(Stage::Read), "{verdict}");
        let line = verdict.to_string();
        if system_tells() {
            assert!(matches!(verdict.cause, Cause::Storage { more: Some(16), .. }), "{line}");
            assert!(line.contains("waits for storage") && line.contains("use `num_workers(16)`"), "{line}");
            assert!(stats.slept > stats.looked / 2 && stats.looked <= stats.stages.fill.busy, "{stats}");
        } else {
            assert!(matches!(verdict.cause, Cause::Workers { .. }) && stats.looked.is_zero(), "{line}");
        }
    });
}

#[test]
fn reads_that_compute_do_not_wait_for_storage() {
    in_three_tries(|| {
        let slow = Slow { compute: 2000, ..Slow::default() };
        let stats = stats(slow, builder(slow, 16));
        let verdict = stats.verdict();
        assert!(matches!(verdict.cause, Cause::Workers { stage: Stage::Read, .. }), "{verdict}");
        assert_eq!(!stats.looked.is_zero(), system_tells());
        assert!(!verdict.to_string().contains("which waits for storage"), "{verdict}");
        assert!(!verdict.to_string().contains("decod"), "the samples are no images: {verdict}");
    });
}

#[test]
fn a_slow_augmentation() {
    blames(Slow { augment: US, ..Slow::default() }, Stage::Augment);
}

#[test]
fn a_slow_collate() {
    blames(Slow { write: US, ..Slow::default() }, Stage::Collate);
}

/// On a CPU backend workers finish batches.
#[test]
fn a_slow_finish() {
    blames(Slow { finish: 16 * US, ..Slow::default() }, Stage::Finish);
}

#[test]
fn a_slow_step() {
    in_three_tries(|| {
        let slow = Slow { step: 4000, ..Slow::default() };
        let stats = stats(slow, builder(slow, 16));
        assert!(matches!(stats.verdict().cause, Cause::Compute { .. }), "{}", stats.verdict());
        assert!(stats.workers_busy() < 0.25, "{stats}");
        assert!(stats.queues.ready > 1.0, "{:?}", stats.queues);
        assert!(stats.stages.ready.p50 > Duration::from_millis(2), "{:?}", stats.stages.ready);
    });
}

#[test]
fn tiny_batches() {
    in_three_tries(|| {
        let slow = Slow::default();
        let stats = stats(slow, builder(slow, 1));
        assert!(matches!(stats.verdict().cause, Cause::Stage { .. }), "{}", stats.verdict());
        assert!(stats.verdict().to_string().contains("`batch_size` if batches are tiny"), "{}", stats.verdict());
    });
}

/// If steps differ in length, more than one batch must be ahead.
#[test]
fn one_slot() {
    in_three_tries(|| {
        // So slow that threads that are late make no sample stand out.
        let slow = Slow { read: 1600, step: 6000, burst: 10, ..Slow::default() };
        let stats = stats(slow, builder(slow, 8).pinned_limit(8 * 64));
        assert!(matches!(stats.verdict().cause, Cause::Stage { stage: Stage::SlotWait, .. }), "{}", stats.verdict());
    });
}

#[test]
fn few_slow_samples() {
    in_three_tries(|| {
        let slow = Slow { rarely: 20_000, step: 2000, ..Slow::default() };
        let stats = stats(slow, builder(slow, 16).prefetch(1));
        assert!(matches!(stats.verdict().cause, Cause::Uneven { stage: Stage::Read, .. }), "{}", stats.verdict());
        // One sample in 64 takes 20 ms. If the figures are of groups, the verdict and the table say so.
        let grouped = [stats.verdict().to_string(), stats.to_string()].map(|text| text.contains(" of groups of "));
        let of_samples = stats.stages.read.p99 >= Duration::from_millis(20);
        assert_eq!(grouped, [!of_samples; 2], "{stats}\n{}", stats.verdict());
    });
}

#[test]
fn short_epochs() {
    in_three_tries(|| {
        let slow = Slow { read: 500, step: 8000, ..Slow::default() };
        let loader = builder(slow, 16).build(slow).unwrap();
        for _ in 0..6 {
            for batch in loader.iter().take(3) {
                batch.unwrap();
                pause(slow.step);
            }
        }
        let stats = loader.stats();
        assert_eq!(stats.epochs, 6);
        assert!(matches!(stats.verdict().cause, Cause::Start { .. }), "{stats}\n{}", stats.verdict());
    });
}

#[test]
fn too_early() {
    let loader = builder(Slow::default(), 16).build(Slow::default()).unwrap();
    let verdict = loader.stats().verdict();
    assert!(matches!(verdict.cause, Cause::TooEarly { .. }));
    assert_eq!(verdict.to_string(), "too early to say: 0 batches so far");
}

/// Counts are exact, and the times of the parts are those of the whole.
#[test]
fn counts_and_times() {
    in_three_tries(|| {
        let slow = Slow { read: 300, augment: 200, write: 100, ..Slow::default() };
        let stats = stats(slow, builder(slow, 16));
        assert_eq!((stats.batches, stats.items, stats.errors), (100, 1600, 0));
        for stage in [stats.stages.read, stats.stages.augment, stats.stages.collate] {
            assert_eq!(stage.count, 1600);
            assert!(stage.p50 <= stage.p95 && stage.p95 <= stage.p99, "{stage:?}");
        }
        let (read, augment, write) =
            (stats.stages.read.mean(), stats.stages.augment.mean(), stats.stages.collate.mean());
        assert!(
            read > augment && augment > write && write >= Duration::from_micros(100),
            "{read:?} {augment:?} {write:?}"
        );
        assert_eq!((stats.stages.ready.count, stats.stages.wait.count, stats.stages.finish.count), (100, 100, 100));
        assert_eq!((stats.stages.transfer.count, stats.sent_bytes, stats.late_allocations), (0, 0, 0));
    });
}

/// Fast samples are timed in groups, and all of them are counted.
#[test]
fn fast_samples() {
    in_three_tries(|| {
        let slow = Slow::default();
        let stats = stats(slow, builder(slow, 400));
        assert_eq!((stats.stages.read.count, stats.stages.collate.count, stats.stages.augment.count), (1600, 1600, 0));
        assert!(stats.stages.read.p99 < Duration::from_micros(50), "{:?}", stats.stages.read);
        assert_eq!(stats.stages.read.group, 32);
    });
}
