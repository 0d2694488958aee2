//! Faults of user code on a CPU backend. They happen at the first, a middle and the last sample, in the first and the
//! last of three epochs, with one worker and with eight, under each policy. Each sample must be delivered, skipped by
//! the policy or reported, exactly once, or be counted as lost with the epoch that a hanging call ends. Nothing may hang, and no thread may be left behind.
//!
//! Kinds: an error, a panic, a delay, and a call that hangs until its epoch is given up. Sites: the sampler's iterator,
//! `Dataset::get` and the augmentation, each with a `Collate` and with a Burn `Batcher`; `Collate::write` and
//! `Collate::finish`; the `Batcher` itself; the allocator with a `Collate` (a batcher's batches need no slots here), at
//! one of its first blocks or at all of them, from the first epoch on. The expected result of a combination is computed
//! here from the options alone, so it is the same for any number of workers. For the allocator, it is not known which
//! batch a block is for, but only how many batches it may cost.
//!
//! Not here:
//! - `Sampler::indices` itself: it runs in `iter()`, on the caller's thread, where no timeout ends the wait for a call that hangs.
//!   `loader/faults.rs` has one that panics.
//! - A sample's drop that panics (`loader/faults.rs`), an `on_fault` that does (`loader/policies.rs`).
//! - Pin and transfer: a CPU backend has no link. `src/pipeline/tests/faults.rs` runs the transfer threads on a
//!   device whose uploads fail or panic, at once or after a part of the batch was sent, or whose copies end in an
//!   error, and on one whose decoder of images fails or panics. `gpu/main.rs` has an error and a panic of a dataset, and a device without memory, on a GPU. No test has a
//!   `MapTensors` that fails, or a call of the driver that hangs.

use super::sites::*;
use crate::common::*;
use burn_pinned::{BadSamples, Error, fault::Quota};
use std::{
    sync::{
        Mutex, Once,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// How many combinations run at the same time, and how many of those with a call that hangs, which mostly wait.
const BESIDE: u32 = 8;
const HANGING_BESIDE: u32 = 32;

const KINDS: [Kind; 4] = [Kind::Error, Kind::Panic, Kind::Delay, Kind::Hang];
const POLICIES: [BadSamples; 4] = [
    BadSamples::Fail,
    BadSamples::Skip(Quota::Count(3)),
    BadSamples::Skip(Quota::Count(0)),
    BadSamples::Replace { tries: 2 },
];

/// A batch without faults.
fn whole(number: usize) -> Vec<i64> {
    (number * BATCH..(number + 1) * BATCH).map(|number| number as i64).collect()
}

/// What an epoch must give: batches, or `None` for an error.
fn expected(case: &Case, epoch: usize) -> Vec<Option<Vec<i64>>> {
    let mut batches: Vec<_> = (0..LEN / BATCH).map(|number| Some(whole(number))).collect();
    let bad = case.index / BATCH;
    let of_a_sample = matches!(case.site, Site::Dataset | Site::Augment | Site::Collate);
    if epoch != case.epoch || case.kind == Kind::Delay {
        return batches;
    }
    match case.policy {
        // The indices after the panic are not known.
        _ if case.site == Site::Sampler && case.kind == Kind::Panic => batches[bad..].fill(None),
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
    /// Samples of epochs that ended because a call hung.
    lost: usize,
}

impl Count {
    fn add(&mut self, other: &Self) {
        self.combinations += other.combinations;
        self.delivered += other.delivered;
        self.skipped += other.skipped;
        self.replaced += other.replaced;
        self.reported += other.reported;
        self.timeouts += other.timeouts;
        self.lost += other.lost;
    }
}

/// Hides the messages of injected panics, which would hide everything else.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied();
            if text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)) != Some("injected") {
                before(info);
            }
        }));
    });
}

/// Runs combinations, some at the same time, and reports what came of them.
fn run(what: &str, cases: Vec<Case>, check: impl Fn(Case, &mut Count) + Sync) {
    let _alone = alone();
    quiet();
    let (start, combinations) = (Instant::now(), cases.len());
    let (hanging, others): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.kind == Kind::Hang);
    let count = Mutex::new(Count::default());
    // Those that hang begin one after the other, so that they do not all work at the same time.
    let groups = [(&hanging, HANGING_BESIDE, TIMEOUT / HANGING_BESIDE), (&others, BESIDE, Duration::ZERO)];
    for (cases, beside, apart) in groups {
        let next = AtomicUsize::new(0);
        let (next, count, check) = (&next, &count, &check);
        thread::scope(|scope| {
            for nth in 0..beside {
                scope.spawn(move || {
                    thread::sleep(nth * apart);
                    let mut own = Count::default();
                    while let Some(case) = cases.get(next.fetch_add(1, SeqCst)) {
                        check(*case, &mut own);
                    }
                    count.lock().unwrap().add(&own);
                });
            }
        });
    }
    let count = count.into_inner().unwrap();
    assert_eq!(count.combinations, combinations);
    let samples = count.delivered + count.skipped + count.reported + count.lost;
    assert_eq!(samples, 3 * LEN * combinations, "missing or doubled: {count:?}");
    wait_for_threads(0);
    println!(
        "{what}: {combinations} combinations of 3 epochs in {:.1?}, in {} of them a call hangs: {count:?}, missing 0, \
         hangs 0, threads left 0",
        start.elapsed(),
        hanging.len(),
    );
}

/// Runs one combination through three epochs.
fn check(case: Case, count: &mut Count) {
    let fault = Fault::new(case);
    let loader = build(&fault);
    let start = Instant::now();
    for epoch in 0..3 {
        fault.epoch.store(epoch, SeqCst);
        let expected = expected(&case, epoch);
        let mut iter = loader.iter();
        for (number, expected) in expected.iter().enumerate() {
            let context = || format!("{case:?}, epoch {epoch}, batch {number}");
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
                    count.reported += BATCH;
                    if let Error::Timeout { lost, .. } = error {
                        assert_eq!(*lost, LEN / BATCH - number - 1, "{}", context());
                        count.timeouts += 1;
                        count.lost += lost * BATCH;
                        fault.gate.open();
                        break; // the epoch is over
                    }
                }
                (Ok(batch), None) => panic!("{}: {batch:?} in spite of the fault", context()),
                (Err(error), Some(_)) => panic!("{}: {error}", context()),
            }
        }
        assert!(iter.next().is_none());
        assert_eq!(iter.progress().items_total, LEN);
    }
    assert!(fault.hits() > 0, "{case:?}: nothing was injected");
    let stats = loader.stats();
    count.skipped += stats.skipped as usize;
    count.replaced += stats.replaced as usize;
    drop(loader);
    assert!(start.elapsed() < LONG, "{case:?}: {:?}", start.elapsed());
    count.combinations += 1;
}

#[test]
fn every_sample_is_delivered_skipped_or_reported_exactly_once() {
    use Site::*;
    let mut cases = Vec::new();
    for kind in KINDS {
        for (site, batcher) in [
            (Sampler, false),
            (Sampler, true),
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
                    cases.extend(POLICIES.map(|policy| Case { site, kind, index, workers, epoch, policy, batcher }));
                }
            }
        }
    }
    run("samples and batches", cases, check);
}

/// Runs one combination of the allocator through three epochs. Blocks are counted over all three, so the fault's epoch
/// stays 0.
fn check_allocator(case: Case, count: &mut Count) {
    let fault = Fault::new(case);
    let loader = build(&fault);
    let every = case.index == EVERY;
    let (start, mut errors) = (Instant::now(), 0);
    for epoch in 0..3 {
        let iter = loader.iter();
        // The first block is asked for whatever the consumer does. More of them may not be needed.
        if case.index == 0 || every {
            eventually(&format!("{case:?}: something is injected"), || fault.hits() > 0);
        }
        let mut batches = 0;
        for (number, outcome) in iter.enumerate() {
            let context = || format!("{case:?}, epoch {epoch}, batch {number}");
            match outcome {
                Ok(batch) => {
                    assert_eq!(batch, whole(number), "{}", context());
                    count.delivered += batch.len();
                }
                Err(error) => {
                    let error = Error::of(&error).unwrap_or_else(|| panic!("{}: {error}", context()));
                    match (case.kind, error) {
                        (Kind::Error, Error::OutOfHostMemory { message, .. }) => {
                            assert_eq!(message, "injected", "{}", context());
                        }
                        (Kind::Panic, Error::OutOfHostMemory { message, .. }) => {
                            assert_eq!(message, "the allocator panicked: injected", "{}", context());
                        }
                        (Kind::Hang, Error::Timeout { lost, .. }) => {
                            count.timeouts += 1;
                            count.lost += lost * BATCH;
                            batches += lost;
                            if !every {
                                fault.gate.open();
                            }
                        }
                        _ => panic!("{}: {error}", context()),
                    }
                    errors += 1;
                    count.reported += BATCH;
                }
            }
            batches += 1;
        }
        assert_eq!(batches, LEN / BATCH, "{case:?}, epoch {epoch}");
        if !every {
            fault.gate.open(); // a worker may hang, and nobody waits for its block
        }
    }
    match (case.kind, every) {
        (Kind::Delay, _) => assert_eq!(errors, 0, "{case:?}"),
        (Kind::Hang, true) => assert_eq!(errors, 3, "{case:?}: each epoch ends"),
        (_, true) => assert_eq!(errors, 3 * LEN / BATCH, "{case:?}: a batch without memory"),
        (_, false) => assert!(errors <= 1, "{case:?}: one block cost {errors} batches"),
    }
    drop(loader);
    assert!(start.elapsed() < LONG, "{case:?}: {:?}", start.elapsed());
    fault.gate.open();
    count.combinations += 1;
}

/// If one block is refused, the loader goes on with fewer blocks, or one batch is an error. If all are refused, each
/// batch is an error.
#[test]
fn an_allocator_that_fails_costs_slots_or_is_reported() {
    let mut cases = Vec::new();
    for kind in KINDS {
        for index in [0, 1, 3, EVERY] {
            for workers in [1, 8] {
                let (site, epoch, batcher) = (Site::Allocator, 0, false);
                cases.extend(POLICIES.map(|policy| Case { site, kind, index, workers, epoch, policy, batcher }));
            }
        }
    }
    run("the allocator", cases, check_allocator);
}
