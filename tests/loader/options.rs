//! Wrong options are errors at `build`, with what to write instead; limits hold.

use crate::common::{self, *};
use burn::tensor::{DType, Device, Int};
use burn_pinned::{
    Error, Field, PinnedDataLoaderBuilder, collate,
    memory::{HeapAlloc, HostAlloc, HostBlock, MemoryLimit},
    order::{FixedBatchSampler, RandomSampler, Sampler, SequentialSampler},
};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

fn refused<T>(built: Result<T, Error>) -> (&'static str, String) {
    match built.map(|_| ()).expect_err("a wrong option") {
        ref error @ Error::Config { option, .. } => (option, error.to_string()),
        other => panic!("{other}"),
    }
}

#[derive(Debug)]
struct Empty;

impl Sampler for Empty {
    fn len(&self, _: usize) -> usize {
        0
    }
    fn indices(&self, _: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(std::iter::empty())
    }
}

#[test]
fn wrong_options_are_refused_with_advice() {
    let unset = PinnedDataLoaderBuilder::new(Show { width: 1 }).set_device(Device::flex());
    let small = Numbers::new(5);
    let cases = [
        (refused(builder().batch_size(0).build(small.clone())), "batch_size", "at least 1"),
        (refused(unset.build(small.clone())), "batch_size", ".batch_size(32)"),
        (refused(builder().build(Numbers::new(0))), "build", "the dataset has no items"),
        (refused(builder().num_workers(0).build(small.clone())), "num_workers", "at least 1"),
        (refused(builder().prefetch(usize::MAX).build(small.clone())), "prefetch", "at most 1024"),
        (
            refused(builder().require_pinned(true).allocator(HeapAlloc).build(small.clone())),
            "require_pinned",
            "the allocator decides",
        ),
        (refused(builder().prefetch(0).build(small.clone())), "prefetch", "at least 1"),
        (refused(builder().transfer_threads(0).build(small.clone())), "transfer_threads", "at least 1"),
        (refused(builder().drop_last(true).build(small.clone())), "drop_last", "do not fill one batch of 8"),
        (refused(builder().pinned_limit(100).build(small.clone())), "pinned_limit", "less than one batch of 192"),
        (refused(builder().shuffle(1).order(RandomSampler::new(2)).build(small.clone())), "order", "`shuffle`"),
        (refused(builder().order(Empty).build(small.clone())), "sampler", "its epoch is empty"),
        (
            refused(builder().order(FixedBatchSampler::new(SequentialSampler, 8).unwrap()).build(small.clone())),
            "batch_size",
            "has a batch sampler",
        ),
        (refused(builder().host_device(Device::flex()).build(small.clone())), "host_device", "use `from_batcher`"),
        (refused(builder().require_pinned(true).build(small)), "require_pinned", "host memory"),
    ];
    for ((option, message), expected, part) in cases {
        assert_eq!(option, expected, "{message}");
        assert!(message.contains(part), "{message}");
    }
}

/// Counts what it gives out, and may refuse.
#[derive(Debug, Clone, Default)]
struct Counting {
    given: Arc<AtomicUsize>,
    at_most: Option<usize>,
}

impl HostAlloc for Counting {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let nth = self.given.fetch_add(1, Ordering::SeqCst);
        if self.at_most.is_some_and(|most| nth >= most) {
            return Err(Error::OutOfHostMemory { kind: "test", bytes, message: "that was the last".into() });
        }
        let block = HeapAlloc.allocate(bytes)?;
        assert_eq!(block.len(), bytes, "never rounded up");
        Ok(block)
    }
}

#[test]
fn the_limit_is_never_exceeded_and_workers_do_not_count() {
    let slot = 192;
    for workers in [1, 2, 16] {
        for (limit, slots) in [(slot, 1), (3 * slot + 5, 3), (100 * slot, 4)] {
            let loader = builder().num_workers(workers).pinned_limit(limit).build(Numbers::new(300)).unwrap();
            for _ in 0..3 {
                assert_eq!(numbers(&epoch(&*loader)), (0..300).collect::<Vec<i64>>());
            }
            // `Show` keeps no tensor, so on a CPU backend too all memory is that of slots.
            let stats = loader.stats();
            assert!((slot..=slots * slot).contains(&stats.host_bytes_peak), "{workers} workers, {limit}: {stats}");
        }
    }
}

/// On a CPU backend a delivered batch takes its memory along. Nothing else comes on top of the limit.
#[test]
fn what_the_loop_keeps_comes_on_top_of_the_limit() {
    let (slots, slot) = (2, 8 * 64);
    let tensors = || {
        collate(
            [Field::new("bytes", DType::U8, [64])],
            |&number: &usize, row| {
                row.slice_mut::<u8>("bytes")?.fill(number as u8);
                Ok(())
            },
            |mut batch| Ok(batch.take::<2, Int>("bytes")?),
        )
    };
    for (kept, workers) in [(0, 1), (0, 8), (1, 8), (5, 3)] {
        let builder = PinnedDataLoaderBuilder::new(tensors()).batch_size(8).num_workers(workers);
        let builder = builder.pinned_limit(slots * slot).set_device(Device::flex());
        let loader = builder.build(Numbers::new(800)).unwrap();
        let mut held = VecDeque::new();
        for batch in loader.iter() {
            held.push_back(batch.unwrap());
            held.drain(..held.len().saturating_sub(kept));
        }
        // The batch that has just come, and those that are kept.
        let (peak, most) = (loader.stats().host_bytes_peak, (slots + 1 + kept) * slot);
        assert!((slot * (1 + kept)..=most).contains(&peak), "{kept} kept, {workers} workers: {peak} of {most} bytes");
    }
}

#[test]
fn slots_are_recycled_for_the_loaders_life() {
    let counting = Counting::default();
    let loader = builder().num_workers(4).allocator(counting.clone()).build(Numbers::new(400)).unwrap();
    for _ in 0..30 {
        epoch(&*loader);
    }
    let given = counting.given.load(Ordering::SeqCst);
    assert!(given <= 4 + 2, "{given} blocks for 1500 batches, where 4 slots and 2 spare blocks are enough");
    assert_eq!(loader.stats().allocations, given as u64);
}

#[test]
fn memory_that_cannot_be_had_is_an_error_or_means_fewer_slots() {
    let none = Counting { at_most: Some(0), ..Counting::default() };
    let loader = builder().allocator(none).build(Numbers::new(20)).unwrap();
    let outcomes = outcomes(&*loader);
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap_err().contains("that was the last")));
    // With some memory the loader goes on. On a CPU backend the consumer may have all of it, and then a batch may be
    // refused too.
    for few in 1..6 {
        let few = Counting { at_most: Some(few), ..Counting::default() };
        let loader = builder().allocator(few).build(Numbers::new(400)).unwrap();
        for _ in 0..3 {
            let (mut delivered, mut batches) = (0, 0);
            for (at, outcome) in common::outcomes(&*loader).into_iter().enumerate() {
                batches += 1;
                match outcome {
                    Ok(numbers) => {
                        assert_eq!(numbers, (8 * at as i64..8 * at as i64 + 8).collect::<Vec<_>>());
                        delivered += 1;
                    }
                    Err(error) => assert!(error.contains("that was the last"), "{error}"),
                }
            }
            assert!(batches == 50 && delivered > 0);
        }
    }
}

/// Either the loader or the step takes 200 ms an epoch, and the other takes almost no time. So other work of the
/// machine does not change the result.
#[test]
fn statistics_tell_who_waited() {
    let slow =
        (0..40).fold(Numbers::new(40), |numbers, at| numbers.with(at, Mischief::Sleep(Duration::from_millis(5))));
    let loader = builder().num_workers(1).build(slow).unwrap();
    epoch(&*loader);
    let starved = loader.stats();
    assert!(starved.wait_share() > 0.5, "{starved}");
    assert_eq!((starved.batches, starved.items, starved.errors), (5, 40, 0));
    let loader = builder().build(Numbers::new(40)).unwrap();
    for batch in loader.iter() {
        batch.unwrap();
        std::thread::sleep(Duration::from_millis(40));
    }
    let fed = loader.stats();
    assert!(fed.wait_share() < 0.5, "{fed}");
    assert!(fed.to_string().contains("step waited"));
}

#[test]
fn loaders_share_a_limit() {
    let limit = MemoryLimit::new(192 * 5);
    let build = || builder().shared_limit(&limit).build(Numbers::new(400)).unwrap();
    let (train, valid) = (build(), build());
    let mut iter = train.iter();
    iter.next().unwrap().unwrap();
    assert!(limit.used() <= limit.bytes());
    // Whichever loader got the blocks, both stay within the limit. When a loader is gone, its blocks are free again.
    for batch in valid.iter().take(20) {
        assert!(limit.used() <= limit.bytes());
        if let Err(error) = batch {
            assert!(matches!(Error::of(&error), Some(Error::OutOfHostMemory { .. })), "{error}");
        }
    }
    drop(iter);
    drop(train);
    assert_eq!(numbers(&epoch(&*valid)), (0..400).collect::<Vec<i64>>());
    drop(valid);
    assert_eq!(limit.used(), 0);

    let (option, message) = refused(builder().shared_limit(&MemoryLimit::new(100)).build(Numbers::new(5)));
    assert_eq!(option, "shared_limit", "{message}");
}

/// Has no memory for some time.
#[derive(Debug)]
struct Out(Arc<AtomicBool>);

impl HostAlloc for Out {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        if self.0.load(Ordering::SeqCst) {
            return Err(Error::OutOfHostMemory { kind: "test", bytes, message: "none left".into() });
        }
        HeapAlloc.allocate(bytes)
    }
}

#[test]
fn a_loader_works_again_once_there_is_memory() {
    let out = Arc::new(AtomicBool::new(true));
    let loader = builder().allocator(Out(Arc::clone(&out))).build(Numbers::new(40)).unwrap();
    let errors: Vec<_> = loader.iter().map(|batch| batch.expect_err("a batch without memory")).collect();
    assert_eq!(errors.len(), 5);
    assert!(errors.iter().all(|error| matches!(Error::of(error), Some(Error::OutOfHostMemory { .. }))));
    out.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(numbers(&epoch(&*loader)), (0..40).collect::<Vec<i64>>());
    }
}

#[test]
#[ignore = "the next test runs it in a process of its own"]
fn child() {
    for len in (10..40).flat_map(|len| [len, len]).filter(|len| len % 4 != 0) {
        let loader = builder().batch_size(4).drop_last(true).build(Numbers::new(len)).unwrap();
        assert_eq!(loader.iter().count(), len / 4);
        let verdict = loader.stats().verdict().to_string();
        assert!(verdict.contains(&format!(" {} of the {len} samples of the data set", len % 4)), "{verdict}");
    }
}

/// Nobody set up a logger.
#[test]
fn a_program_without_a_logger_sees_the_first_warnings() {
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    let done = process.args(["--exact", "options::child", "--ignored"]).output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{text}");
    let warnings: Vec<_> = text.lines().filter(|line| line.starts_with("warning (burn_pinned): `drop_last`")).collect();
    assert!(warnings[0].contains("leaves out 2 of the 10 samples"), "{text}");
    assert_eq!((warnings.len(), BTreeSet::from_iter(&warnings).len()), (8, 8), "each once: {text}");
}
