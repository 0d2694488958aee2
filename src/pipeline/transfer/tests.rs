//! Transfer threads without a GPU.

pub(in crate::pipeline) mod fake;

use self::fake::{
    BROKEN, Link, ROWS, SLOTS, begin, consume, epoch_of, pictures, pictures_of, pipeline, pipeline_of, rows, rows_of,
    settings, threads,
};
use crate::{
    batch::Ready,
    device::tests::{Breaks, DeviceCall, Hang},
    fault::{BadSamples, Error, Quota},
    memory::Wait,
    observe::{Counters, Timeline, Verdict},
    pipeline::{Delivery, Settings},
    vocabulary::Stage,
};
use burn::data::dataset::{Dataset, DatasetError};
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
        let delivery = pipeline.next(id, Instant::now()).expect("an error");
        match delivery.ready {
            Err(Error::LeaseTimeout { waited, slots }) if lease_timeout == PATIENCE => {
                assert!(slots == SLOTS && waited >= PATIENCE, "{waited:?}");
            }
            Err(Error::Timeout { batch: 0, waited, hung: None, lost: 4, .. }) if timeout == PATIENCE => {
                assert!(waited >= PATIENCE, "{waited:?}");
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("a batch without a slot"),
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

/// Memory begins to lack when the consumer has waited for long already, for a sample. It sees that too, though nobody
/// tells it.
#[test]
fn memory_that_lacks_later_is_seen() {
    const PATIENCE: Duration = Duration::from_millis(200);
    let counters = Arc::<Counters>::default();
    let rows = rows_of(Sleepy(Duration::from_secs(4) / ROWS as u32), &counters);
    let pipeline = pipeline_of(Settings { lease_timeout: PATIENCE, ..settings() }, rows, &counters);
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
    let delivery = pipeline.next(id, Instant::now()).expect("an error");
    let Err(Error::LeaseTimeout { waited, .. }) = delivery.ready else { panic!("{:?}", delivery.ready.err()) };
    assert!(waited >= 4 * PATIENCE && waited < Duration::from_secs(2), "{waited:?}");
    drop(waits.join().unwrap());
    drop(threads);
}

/// An epoch that begins while another one hangs gets its order back, for new threads.
#[test]
fn no_epoch_begins_on_threads_that_hang() {
    let counters = Arc::<Counters>::default();
    let pipeline = pipeline(rows(1, &counters), &counters);
    pipeline.hung.store(true, Relaxed);
    assert!(pipeline.begin(0, epoch_of(1).feed, 0..1).is_err() && pipeline.is_dead());
    pipeline.hung.store(false, Relaxed);
    pipeline.close();
    assert!(pipeline.begin(0, epoch_of(1).feed, 0..1).is_err() && pipeline.is_dead());
}

/// A device that does not even say that its copies are done: each batch is its error at once, however few slots there
/// are.
#[test]
fn copies_whose_end_is_unknown_cost_no_permit() {
    for (breaks, stage, problem) in [
        (Breaks::Lost, Stage::Transfer, "the copy did not end"),
        (Breaks::LostInDecode, Stage::Decode, "the engines did not end"),
    ] {
        let (batches, counters, start) = (5 * SLOTS, Arc::<Counters>::default(), Instant::now());
        let rows = if stage == Stage::Decode { pictures(batches, &counters) } else { rows(batches, &counters) };
        let link = Link::new(rows).breaks(move |_| Some(breaks));
        let pipeline = pipeline(link, &counters);
        let threads = threads(&pipeline);
        let id = begin(&pipeline, 0, batches);
        for number in 0..batches {
            let delivery = pipeline.next(id, Instant::now()).expect("an error for each batch");
            let Err(Error::Device { place, message }) = delivery.ready else { panic!("batch {number}: another end") };
            assert_eq!((place.batch, place.stage, message.as_str()), (number, stage, problem));
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}: something waited for a permit", start.elapsed());
        pipeline.end(id);
        let permits: Vec<_> = (0..SLOTS).map_while(|_| pipeline.pool.permit(Duration::from_secs(5))).collect();
        assert_eq!(permits.len(), SLOTS);
        // The pin thread allocates ahead of use, so there may be more than was used.
        let (allocated, used) = (counters.snapshot().allocations, batches as u64);
        assert!(
            (used..=used + SLOTS as u64).contains(&allocated),
            "{allocated}: memory that may be read was used again"
        );
        drop((permits, threads));
    }
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
        let first = pipeline.next(id, Instant::now()).expect("a batch or an error");
        match (call, &first.ready) {
            (DeviceCall::Open | DeviceCall::Upload, Err(Error::Timeout { hung: Some(hung), .. })) => {
                assert!(hung.thread.starts_with("bp-transfer"), "{call:?}: {hung}");
                assert_eq!(hung.place.stage, Stage::Transfer);
            }
            (DeviceCall::Flush | DeviceCall::Close, Ok(_)) => {
                // On a busy machine nothing may be on the link by now.
                let sends = || {
                    let stages = counters.snapshot().stages;
                    stages.device_wait.count > stages.transfer.count
                };
                while !sends() {
                    assert!(pipeline.next(id, Instant::now()).is_some_and(|delivery| delivery.ready.is_ok()));
                }
            }
            (call, _) => panic!("{call:?}: {:?}", first.ready.err()),
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

/// A fast and a slow consumer on a slow link: every batch of both arrives.
#[test]
fn two_consumers_get_all_their_batches() {
    let (batches, counters) = (40, Arc::<Counters>::default());
    let link = Link { send: Duration::from_millis(1), ..Link::new(rows(batches, &counters)) };
    let pipeline = pipeline(link, &counters);
    let threads = threads(&pipeline);
    std::thread::scope(|scope| {
        for pause in [0, 4] {
            let pipeline = &pipeline;
            scope.spawn(move || {
                let id = begin(pipeline, 0, batches);
                for number in 0..batches {
                    let delivery = pipeline.next(id, Instant::now()).expect("a batch");
                    assert_eq!((delivery.batch.key.number, delivery.ready.is_ok()), (number, true));
                    sleep(Duration::from_millis(pause));
                }
                assert!(pipeline.next(id, Instant::now()).is_none());
                pipeline.end(id);
            });
        }
    });
    assert_eq!(pipeline.lock().epochs(), 0);
    drop(threads);
}

/// A loop that launches steps of 10 ms and does not wait for them has its batches held back by the device, not the
/// loader.
#[test]
fn a_loop_that_runs_ahead_of_the_device_is_compute_bound() {
    let (batches, counters, start) = (60, Arc::<Counters>::default(), Instant::now());
    let step = move |number: usize| start + Duration::from_millis(50 + 10 * number as u64);
    let keeps = move |number| Some(Breaks::Keeps { until: Some(step(number)) });
    let link = Link::new(rows(batches, &counters)).breaks(keeps);
    let waited = consume(pipeline(link, &counters), &counters, batches);
    assert!(waited < 0.3, "{waited}: it waits for the device, and no worker can change that");
    let stats = counters.snapshot();
    assert!(
        matches!(stats.verdict(), Verdict::Device { waits, kept: false, .. } if waits > 0.5),
        "{stats}\n{}",
        stats.verdict()
    );
    // Two ahead, two on their way, and the one that the step works on; in time of other work the window lets one more
    // in.
    assert!((3 * 80..=6 * 80).contains(&stats.device_bytes_peak), "{stats}");
}

#[test]
fn batches_that_are_kept_are_found() {
    let (batches, counters) = (20, Arc::<Counters>::default());
    let link = Link::new(rows(batches, &counters)).breaks(|_| Some(Breaks::Keeps { until: None }));
    let pipeline = pipeline(link, &counters);
    let window = Arc::clone(&pipeline.window);
    consume(pipeline, &counters, batches);
    let stats = counters.snapshot();
    assert!(matches!(stats.verdict(), Verdict::Device { kept: true, .. }), "{stats}\n{}", stats.verdict());
    assert_eq!(stats.device_bytes, 20 * 80, "{stats}");
    drop(window);
    assert_eq!(counters.snapshot().device_bytes, 0, "the pipeline is gone");
}

/// A consumer keeps all its batches and ends the epoch: what waits for a full device is not sent any more.
#[test]
fn an_epoch_that_ends_leaves_nothing_before_a_full_device() {
    let (batches, counters) = (20, Arc::<Counters>::default());
    let link = Link::new(rows(batches, &counters)).breaks(|_| Some(Breaks::Keeps { until: None }));
    let pipeline = pipeline(link, &counters);
    let threads = threads(&pipeline);
    let id = begin(&pipeline, 0, batches);
    for _ in 0..6 {
        assert!(pipeline.next(id, Instant::now()).is_some_and(|delivery| delivery.ready.is_ok()));
    }
    pipeline.end(id);
    let permits: Vec<_> = (0..SLOTS).map_while(|_| pipeline.pool.permit(Duration::from_secs(5))).collect();
    assert_eq!(permits.len(), SLOTS, "a slot is held by a batch that nobody waits for");
    let sent = counters.snapshot().stages.transfer.count;
    assert!((6..=6 + 4).contains(&sent), "{sent} batches sent");
    drop((permits, threads));
}

/// The link is known to be slow.
#[test]
fn a_slow_link_is_found() {
    let (batches, counters) = (60, Arc::<Counters>::default());
    let link = Link { send: Duration::from_millis(15), ..Link::new(rows(batches, &counters)) };
    let waited = consume(pipeline(link, &counters), &counters, batches);
    assert!(waited > 0.5, "{waited}");
    let stats = counters.snapshot();
    assert!(matches!(stats.verdict(), Verdict::Transfer { pageable: true, .. }), "{stats}\n{}", stats.verdict());
}

/// Batches are finished in `next()`, which is what its consumer waits for.
#[test]
fn transfers_are_counted_and_a_slow_finish_is_found() {
    let (batches, counters) = (30, Arc::<Counters>::default());
    counters.timeline.start(10_000);
    consume(pipeline(rows(batches, &counters), &counters), &counters, batches);
    let stats = counters.snapshot();
    assert_eq!((stats.stages.transfer.count, stats.stages.device_wait.count, stats.stages.finish.count), (30, 30, 30));
    assert_eq!((stats.sent_bytes, stats.transfer_threads), (10 * 240, 2));
    assert!(stats.to_string().contains("transfers"), "{stats}");
    assert!(matches!(stats.verdict(), Verdict::Stage { stage: Stage::Finish, .. }), "{stats}\n{}", stats.verdict());
    let svg = Timeline::of(counters.timeline.events()).to_svg();
    assert!(svg.contains("transfer 0</text>") || svg.contains("transfer 1</text>"));
}

/// Samples that take so long that a batch is cut into several tasks.
struct Slow(usize);

impl Dataset<u8> for Slow {
    fn get(&self, _: usize) -> Result<u8, DatasetError> {
        sleep(Duration::from_micros(250));
        Ok(7)
    }

    fn len(&self) -> usize {
        self.0
    }
}

/// Two epochs at once on a slow link, one of them read now and then: workers leave one of them in the middle of a batch.
#[test]
fn epochs_side_by_side_lose_no_batch() {
    let (batches, counters) = (40, Arc::<Counters>::default());
    let rows = rows_of(Slow(batches * ROWS), &counters);
    let link = Link { send: Duration::from_millis(1), ..Link::new(rows) };
    let pipeline = pipeline(link, &counters);
    let threads = threads(&pipeline);
    let ids = [0, 1].map(|epoch| begin(&pipeline, epoch, batches));
    std::thread::scope(|scope| {
        for (id, step) in ids.into_iter().zip([0, 12]) {
            let pipeline = &pipeline;
            scope.spawn(move || {
                for number in 0..batches {
                    sleep(Duration::from_millis(step));
                    let delivery = pipeline.next(id, Instant::now()).expect("a batch for each place");
                    assert_eq!(delivery.batch.key.number, number);
                    if let Err(error) = delivery.ready {
                        panic!("batch {number}: {error}");
                    }
                }
                assert!(pipeline.next(id, Instant::now()).is_none());
            });
        }
    });
    drop(threads);
}

#[test]
fn a_failed_upload_is_reported_at_its_place_and_the_next_batches_come() {
    for (breaks, images) in [
        (Breaks::Upload { after: 0 }, false),
        (Breaks::Upload { after: 1 }, false), // a part of the batch is on the device
        (Breaks::Upload { after: 1 }, true),
        (Breaks::Panic { after: 0 }, false),
        (Breaks::Panic { after: 1 }, false),
        (Breaks::Panic { after: 0 }, true),
        (Breaks::Decode, true),
        (Breaks::PanicInDecode, true),
        (Breaks::Settle, false),
        (Breaks::Settle, true),
    ] {
        let (batches, counters) = (30, Arc::<Counters>::default());
        let of_decode = matches!(breaks, Breaks::Decode | Breaks::PanicInDecode);
        let stage = if of_decode { Stage::Decode } else { Stage::Transfer };
        let rows = if images { pictures(batches, &counters) } else { rows(batches, &counters) };
        let link = Link::new(rows).breaks(move |number| Some(breaks).filter(|_| number % 3 == 2));
        let pipeline = pipeline(link, &counters);
        let threads = threads(&pipeline);
        for epoch in 0..2 {
            let id = begin(&pipeline, epoch, batches);
            for number in 0..batches {
                let Delivery { batch, ready, .. } =
                    pipeline.next(id, Instant::now()).expect("a batch or an error for each place");
                assert_eq!((batch.key.epoch, batch.key.number), (epoch, number));
                match ready {
                    Ok(Ready::Raw(raw)) if number % 3 != 2 => assert_eq!(raw.finish().unwrap().items, ROWS),
                    Err(error) if number % 3 == 2 => {
                        let at = error.place().expect("a place");
                        assert_eq!((at.stage, at.epoch, at.batch), (stage, epoch, number), "{error}");
                        let fits = match breaks {
                            Breaks::Upload { .. } | Breaks::Decode => matches!(error, Error::Failed { .. }),
                            Breaks::Panic { .. } | Breaks::PanicInDecode => matches!(error, Error::Panicked { .. }),
                            Breaks::Settle => matches!(error, Error::Device { .. }),
                            Breaks::Keeps { .. } | Breaks::Lost | Breaks::LostInDecode => false,
                        };
                        assert!(fits, "{breaks:?}: {error:?}");
                    }
                    Ok(_) => panic!("{breaks:?}: batch {number} in spite of the fault"),
                    Err(error) => panic!("{breaks:?}: batch {number}: {error}"),
                }
            }
            assert!(pipeline.next(id, Instant::now()).is_none());
            pipeline.end(id);
        }
        let permits: Vec<_> = (0..SLOTS).map_while(|_| pipeline.pool.permit(Duration::from_secs(5))).collect();
        assert_eq!(permits.len(), SLOTS, "{breaks:?}: a slot did not come home");
        drop(permits);
        drop(threads);
        let stats = counters.snapshot();
        assert_eq!((stats.faults, stats.host_bytes), (20, 0), "{breaks:?}");
        assert_eq!(stats.allocations, SLOTS as u64, "{breaks:?}: memory was not used again");
    }
}

#[test]
#[cfg_attr(feature = "turbo", ignore = "libjpeg-turbo makes something of these files")]
fn a_file_that_nobody_can_decode_is_left_out_or_fails_its_batch() {
    // The bad ones: none, the first, some in the middle, the last, all.
    let bad: [&[usize]; 5] = [&[], &[0], &[2, 3, 5], &[7], &[0, 1, 2, 3, 4, 5, 6, 7]];
    for policy in [BadSamples::Skip(Quota::Share(1.0)), BadSamples::Fail, BadSamples::Replace { tries: 2 }] {
        let counters = Arc::<Counters>::default();
        let numbers = (0..bad.len() * ROWS).map(|n| if bad[n / ROWS].contains(&(n % ROWS)) { BROKEN } else { n as u8 });
        let mut rows = pictures_of(numbers.collect(), &counters);
        let samples = Arc::get_mut(&mut rows.samples).unwrap();
        samples.faults.policy = policy;
        let breaks = Breaks::Keeps { until: Some(Instant::now()) };
        let link = Link::new(rows).breaks(move |_| Some(breaks));
        let pipeline = pipeline(link, &counters);
        let threads = threads(&pipeline);
        let id = begin(&pipeline, 0, bad.len());
        for (number, bad) in bad.iter().enumerate() {
            let Delivery { ready, skips, .. } = pipeline.next(id, Instant::now()).expect("one for each place");
            match (ready, &policy) {
                (Ok(Ready::Empty), BadSamples::Skip(_)) => assert_eq!(bad.len(), ROWS),
                (Ok(Ready::Raw(raw)), BadSamples::Skip(_)) => {
                    assert_eq!(raw.finish().unwrap().items, ROWS - bad.len(), "batch {number}");
                }
                (Ok(Ready::Raw(raw)), _) => assert_eq!((raw.finish().unwrap().items, bad.len()), (ROWS, 0)),
                (Err(error), BadSamples::Fail | BadSamples::Replace { .. }) => {
                    let place = error.place().expect("a place");
                    assert_eq!((place.stage, place.index), (Stage::Decode, Some(number * ROWS + bad[0])), "{error}");
                }
                (Ok(_), _) => panic!("batch {number}: another step"),
                (Err(error), _) => panic!("batch {number}: {error}"),
            }
            assert_eq!(skips.skipped, if matches!(policy, BadSamples::Skip(_)) { *bad } else { &[] });
        }
        assert!(pipeline.next(id, Instant::now()).is_none());
        pipeline.end(id);
        drop(threads);
        let faults = if matches!(policy, BadSamples::Skip(_)) { 13 } else { 4 };
        assert_eq!((counters.snapshot().faults, counters.snapshot().host_bytes), (faults, 0), "{policy:?}");
    }
}
