//! The copies of a loader: threads and slots of their own, one limit, one state, one set of statistics.

use crate::common::*;
use burn::data::dataloader::{DataLoader, split::split_dataloader};
use burn_pinned::{Error, PinnedDataLoader, Stage, memory::MemoryLimit, order::Sampler};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const BATCH: usize = 8;
const SHORT: Duration = Duration::from_millis(500);

type Slice = Arc<dyn DataLoader<Shown>>;

/// The loaders of Burn's devices.
fn cut(loader: &Arc<PinnedDataLoader<Shown>>, devices: usize) -> Vec<Slice> {
    split_dataloader(Arc::clone(loader) as Slice, &vec![device(); devices])
}

/// A loader with a worker for each of its slices.
fn slices(data: Numbers, devices: usize) -> (Arc<PinnedDataLoader<Shown>>, Vec<Slice>) {
    let loader = builder().num_workers(devices).devices(devices).build(data).unwrap();
    let slices = cut(&loader, devices);
    (loader, slices)
}

fn workers() -> usize {
    loader_threads().iter().filter(|name| name.contains("worker-")).count()
}

/// Waits until there are this many workers. On a busy machine a thread has its name late, and one that was joined can
/// still be listed.
fn wait_for_workers(count: usize) {
    eventually(&format!("loaders have {count} workers"), || workers() == count);
}

/// The order of the dataset. The first who comes to a place hangs there until a gate is open.
#[derive(Debug)]
struct Hanging {
    gate: Gate,
    at: usize,
    hung: Arc<AtomicBool>,
}

impl Sampler for Hanging {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, len: usize, _epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let (gate, at, hung) = (self.gate.clone(), self.at, Arc::clone(&self.hung));
        Box::new((0..len).inspect(move |index| {
            if *index == at && !hung.swap(true, SeqCst) {
                gate.pass();
            }
        }))
    }
}

/// What each slice gives in its next epoch. All are read at the same time.
fn side_by_side(slices: &[Slice]) -> Vec<Vec<Result<Vec<i64>, String>>> {
    thread::scope(|scope| {
        let all: Vec<_> = slices.iter().map(|slice| scope.spawn(|| outcomes(&**slice))).collect();
        all.into_iter().map(|outcomes| outcomes.join().unwrap()).collect()
    })
}

#[test]
fn slices_divide_the_workers() {
    let _alone = alone();
    // Beside the workers: the pin thread, and three that copy, if there is a link.
    let steps = if on_host() { 0 } else { 4 };
    let one = builder().build(Numbers::new(80)).unwrap();
    let first = one.iter().next();
    wait_for_threads(2 + steps);
    drop((first, one));
    wait_for_threads(0);

    for (workers, each) in [(8, 2), (6, 1), (1, 1)] {
        let loader = builder().num_workers(workers).devices(4).build(Numbers::new(4 * 10 * BATCH)).unwrap();
        let slices = cut(&loader, 4);
        let mut iterators: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
        for iterator in &mut iterators {
            iterator.next().unwrap().unwrap();
        }
        wait_for_threads(4 * (each + steps));
        wait_for_workers(4 * each);
        let names = loader_threads();
        assert!(names.iter().any(|name| name.starts_with("bp-3-worker-0")), "{names:?}");
        assert_eq!(loader.stats().workers, 4 * each);
        drop(iterators);
        drop((loader, slices));
        wait_for_threads(0);
    }
}

/// A copy for another device, and slices without `devices`.
#[test]
fn other_copies_have_workers_of_their_own() {
    let _alone = alone();
    let loader = builder().build(Numbers::new(160)).unwrap();
    let copies = [loader.to_device(&device()), loader.slice(0, 80), loader.slice(80, 160)];
    let mut iterators: Vec<_> = copies.iter().map(|copy| copy.iter()).collect();
    let mut own = loader.iter();
    for _ in 0..10 {
        for iterator in &mut iterators {
            iterator.next().unwrap().unwrap();
        }
        own.next().unwrap().unwrap();
    }
    wait_for_workers(4 * 2);
    drop((iterators, own));
    drop(loader); // it goes first
    wait_for_workers(3 * 2);
    assert_eq!(epoch(&*copies[1]).len(), 10);
    drop(copies);
    wait_for_threads(0);
}

/// The consumers of all slices but one take nothing.
#[test]
fn idle_slices_do_not_hold_up_another() {
    let _alone = alone();
    let (_loader, slices) = slices(Numbers::new(4 * 50 * BATCH), 4);
    let mut idle: Vec<_> = slices[..3].iter().map(|slice| slice.iter()).collect();
    for iterator in &mut idle {
        iterator.next().unwrap().unwrap();
    }
    let start = Instant::now();
    assert_eq!(epoch(&*slices[3]).len(), 50);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    for iterator in idle {
        assert_eq!(iterator.map(|batch| batch.unwrap().numbers.len()).sum::<usize>(), 49 * BATCH);
    }
}

/// An error and a panic in one slice are named with their device. All other batches arrive.
#[test]
fn faults_cost_no_other_batch() {
    let _alone = alone();
    let devices = 2;
    // Slices take turns: of sample 2 * n + d, device d has the n-th.
    let data = Numbers::new(devices * 10 * BATCH).with(2 * 20 + 1, Mischief::Error).with(2 * 60 + 1, Mischief::Panic);
    let (_loader, slices) = slices(data, devices);
    let seen = side_by_side(&slices);
    assert!(seen[0].len() == 10 && seen[0].iter().all(Result::is_ok), "{:?}", seen[0]);
    let bad: Vec<_> = seen[1].iter().enumerate().filter_map(|(at, batch)| Some((at, batch.as_ref().err()?))).collect();
    assert_eq!((seen[1].len(), bad.iter().map(|(at, _)| *at).collect::<Vec<_>>()), (10, vec![2, 7]));
    assert!(bad[0].1.contains("sample 41 (epoch 0, batch 2, device 1, worker "), "{}", bad[0].1);
    assert!(bad[1].1.contains("sample 121 (epoch 0, batch 7, device 1, worker "), "{}", bad[1].1);
}

/// A call of one slice hangs. Its epoch ends, and all batches of the other arrive. The drop returns.
#[test]
fn a_hang_costs_no_other_slice() {
    let _alone = alone();
    let data = Numbers::new(2 * 10 * BATCH).with(2 * 20, Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder().devices(2).num_workers(2).timeout(SHORT).build(data).unwrap();
    let slices = cut(&loader, 2);
    for _ in 0..2 {
        thread::scope(|scope| {
            let other = scope.spawn(|| outcomes(&*slices[1]));
            let mut batches: Vec<_> = slices[0].iter().collect();
            let error = batches.pop().unwrap().map(|_| ()).unwrap_err();
            assert!(batches.len() == 2 && batches.iter().all(Result::is_ok));
            let Some(Error::Timeout { batch, lost, hung, .. }) = Error::of(&error) else { panic!("{error}") };
            let place = hung.as_ref().expect("a call that hangs").place;
            assert_eq!((*batch, *lost, place.stage, place.index), (2, 7, Stage::Read, Some(40)));
            assert_eq!(place.device, Some(0));
            let other = other.join().unwrap();
            assert!(other.len() == 10 && other.iter().all(Result::is_ok), "{other:?}");
        });
    }
    let start = Instant::now();
    drop((loader, slices));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    gate.open();
    wait_for_threads(0);
}

/// The sampler of one slice hangs.
#[test]
fn a_sampler_that_hangs_costs_no_other_slice() {
    let _alone = alone();
    let gate = Gate::default();
    let order = Hanging { gate: gate.clone(), at: 2 * 3 * BATCH, hung: Arc::default() };
    let loader = builder().devices(2).timeout(SHORT).order(order).build(Numbers::new(2 * 40 * BATCH)).unwrap();
    let slices = cut(&loader, 2);
    let first: Vec<_> = slices[0].iter().map(|batch| batch.is_ok()).collect();
    assert_eq!(first, [true, true, true, false]);
    assert_eq!(epoch(&*slices[1]).len(), 40);
    gate.open();
    drop((loader, slices));
    wait_for_threads(0);
}

/// There are fewer blocks than slots. An idle slice that lacks one does not hold up the other.
#[test]
fn slices_short_of_memory_do_not_hold_up_another() {
    let _alone = alone();
    if !on_host() {
        return; // with a link, small batches have more slots than the limit here has room for
    }
    let limit = MemoryLimit::new(6 * 256); // five or six slots of eight, with their gaps
    let loader = builder().devices(2).num_workers(2).shared_limit(&limit).build(Numbers::new(2 * 60 * BATCH)).unwrap();
    let slices = cut(&loader, 2);
    let mut active = slices[1].iter();
    active.next().unwrap().unwrap();
    let mut idle = slices[0].iter();
    idle.next().unwrap().unwrap();
    let start = Instant::now();
    assert_eq!(active.map(Result::unwrap).count(), 59);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(idle.map(Result::unwrap).count(), 59);
}

/// Slices come and go while others are read.
#[test]
fn a_slice_that_is_dropped_leaves_the_others() {
    let _alone = alone();
    let (loader, mut slices) = slices(Numbers::new(3 * 30 * BATCH), 3);
    let gone = slices.remove(1);
    thread::scope(|scope| {
        let others: Vec<_> = slices.iter().map(|slice| scope.spawn(|| epoch(&**slice).len())).collect();
        scope.spawn(move || gone.iter().next().unwrap().unwrap());
        assert!(others.into_iter().all(|batches| batches.join().unwrap() == 30));
    });
    eventually("its threads end", || !loader_threads().iter().any(|name| name.starts_with("bp-1-")));
    wait_for_workers(2);
    drop((loader, slices));
    wait_for_threads(0);
}

/// `pinned_limit` is for all slices together.
#[test]
fn slices_share_the_limit() {
    let _alone = alone();
    let batch = BATCH * (13 + 8 + 64); // with room for the gaps between rows and fields
    let loader = |bytes: usize| builder().devices(4).pinned_limit(bytes).build(Numbers::new(4 * 20 * BATCH));
    let Err(Error::Config { option, problem, .. }) = loader(3 * BATCH * 21) else { panic!("too small a limit") };
    assert_eq!(option, "pinned_limit");
    assert!(problem.contains("for each of 4 devices"), "{problem}");
    let limit = 4 * 3 * batch;
    let loader = loader(limit).unwrap();
    let slices = cut(&loader, 4);
    assert!(side_by_side(&slices).iter().flatten().all(Result::is_ok));
    // On a CPU backend, two blocks a slice come on top of that, for what the consumer holds.
    let peak = loader.stats().host_bytes_peak;
    assert!(peak <= limit + 4 * 2 * batch, "{peak} bytes of {limit}");
}

#[test]
fn statistics_and_timeline_are_of_all_devices() {
    let _alone = alone();
    let (loader, slices) = slices(Numbers::new(2 * 10 * BATCH), 2);
    loader.record(10_000);
    let mut iterators: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
    while iterators.iter_mut().filter_map(Iterator::next).map(Result::unwrap).count() > 0 {}
    drop(iterators);
    let stats = loader.stats();
    assert_eq!((stats.batches, stats.items, stats.workers), (20, 20 * BATCH as u64, 2));
    assert!(stats.workers_had <= 2 * (stats.waited + stats.stepped), "{stats:?}");
    assert!(stats.workers_had < 2 * stats.copies_had, "the copies overlap: {stats:?}");
    let trace: serde_json::Value = serde_json::from_str(&loader.timeline().to_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let lanes: BTreeSet<_> = events
        .iter()
        .filter_map(|event| event["args"]["name"].as_str())
        .filter(|name| *name != "burn-pinned")
        .collect();
    for lane in ["device 0 step", "device 1 step", "device 0 ready", "device 1 ready"] {
        assert!(lanes.contains(lane), "{lanes:?}");
    }
    assert!(lanes.contains("device 0 worker 0") && lanes.contains("device 1 worker 0"), "{lanes:?}");
    let fills = events.iter().filter(|event| event["cat"] == "fill");
    let devices: BTreeSet<_> = fills.filter_map(|event| event["args"]["device"].as_u64()).collect();
    assert_eq!(devices, BTreeSet::from([0, 1]));
}
