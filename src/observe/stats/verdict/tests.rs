use super::*;
use crate::{
    observe::{
        Counters,
        stats::{StageStats, Stages},
    },
    vocabulary::MemoryKind,
};
use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A loader of 4 workers and 3 transfer threads whose step waited for `waited` of 1000 ms.
fn stats(waited: u64) -> Stats {
    Stats {
        batches: 100,
        items: 3200,
        epochs: 1,
        waited: ms(waited),
        stepped: ms(1000 - waited),
        workers: 4,
        copies_had: ms(1000),
        workers_had: ms(4000),
        transfer_threads: 3,
        slots: 4,
        cpu_threads: 16,
        ..Stats::default()
    }
}

fn busy(time: Duration) -> StageStats {
    StageStats { count: 100, busy: time, p50: time / 100, p95: time / 100, p99: time / 100, group: 1 }
}

#[track_caller]
fn says(stats: &Stats, line: &str) {
    assert_eq!(stats.verdict().to_string(), line);
}

#[test]
fn each_cause_has_its_line() {
    says(&Stats { batches: 3, ..stats(500) }, "too early to say: 3 batches so far");
    says(
        &Stats { batches: 0, errors: 90, ..stats(500) },
        "too early to say: 0 batches so far, and 90 errors instead of batches",
    );
    says(
        &Stats { stages: Stages { read: busy(ms(320)), ..Stages::default() }, ..stats(20) },
        "compute-bound: the loader is idle 92 %, the step waits 2 % of the time; nothing to change",
    );
    says(
        &Stats { stages: Stages { read: busy(ms(3000)), collate: busy(ms(920)), ..Stages::default() }, ..stats(310) },
        "the step waits 31 % of the time for read (`Dataset::get`) (4 workers busy 98 %): use more workers, or make it \
         cheaper, or do its work once and store the result",
    );
    says(
        &Stats {
            stages: Stages { read: busy(ms(3000)), collate: busy(ms(920)), ..Stages::default() },
            grows: true,
            ..stats(310)
        },
        "the step waits 31 % of the time for read (`Dataset::get`) (4 workers busy 98 %): make it cheaper, or do its \
         work once and store the result; more workers help only if they wait for storage",
    );
    let fetched = |fetch: u64| Stages { read: busy(ms(3600)), fetch: busy(ms(fetch)), ..Stages::default() };
    says(
        &Stats { stages: fetched(3240), ..stats(400) },
        "the step waits 40 % of the time for read (`Dataset::get`) (4 workers busy 90 %), which waits for the store 90 % of \
         its time: open the rows with more `requests` or `read_ahead`, shuffle by blocks (`BlockShuffle`), or keep a `cache`",
    );
    assert!(matches!(Stats { stages: fetched(1000), ..stats(400) }.verdict().cause, Cause::Workers { .. }));
    let long = Stats { waited: ms(60_000), stepped: ms(40_000), workers_had: ms(400_000), ..stats(400) };
    says(
        &Stats { stages: fetched(3240), asked_to_wait: ms(55_000), ..long },
        "the step waits 60 % of the time for read (`Dataset::get`) (4 workers busy 1 %), which waits for the store 90 % of \
         its time: the store is busy, and made requests wait 55 s of the last 100 s: send a token, open the rows with fewer \
         `requests`, or keep a `cache`",
    );
    let seldom = Stats { stages: fetched(3240), asked_to_wait: ms(100), ..stats(400) };
    assert!(
        matches!(seldom.verdict().cause, Cause::Storage { asked_to_wait: None, .. }),
        "it explains a quarter of the waits"
    );
    says(
        &Stats {
            stages: Stages { transfer: busy(ms(2900)), read: busy(ms(1000)), ..Stages::default() },
            sent_bytes: 51_000_000_000,
            ..stats(400)
        },
        "transfer-bound: the step waits 40 % of the time, the transfers copy 97 % of their time at 51.0 GB/s: send \
         fewer bytes, such as u8 instead of f32",
    );
    let (memory, sent_bytes) = (Some(MemoryKind::Pageable), 9_000_000_000);
    says(
        &Stats { stages: Stages { transfer: busy(ms(2900)), ..Stages::default() }, sent_bytes, memory, ..stats(400) },
        "transfer-bound: the step waits 40 % of the time, the transfers copy 97 % of their time at 9.0 GB/s from \
         ordinary memory: let it be page-locked (a note says why it is not), or send fewer bytes, such as u8 instead of f32",
    );
    let decode = Stages { decode: busy(ms(2910)), transfer: busy(ms(60)), ..Stages::default() };
    says(
        &Stats { stages: Stages { read: busy(ms(3400)), ..decode }, ..stats(400) },
        "decode-bound: the step waits 40 % of the time, the transfers decode on the device 97 % of their \
         time: store smaller images",
    );
    says(
        &Stats { stages: Stages { finish: busy(ms(300)), ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time, and the most time goes into `finish` in `next()` (75 %): do less work or launch \
         fewer kernels there",
    );
    says(
        &Stats {
            stages: Stages { device_wait: busy(ms(2400)), ..Stages::default() },
            kept_wait: ms(200),
            ..stats(800)
        },
        "compute-bound: the step waits 80 % of the time, but only because the device is busy with earlier steps: \
         transfers wait 80 % of their time for these steps to end; nothing to change",
    );
    says(
        &Stats {
            stages: Stages { device_wait: busy(ms(2400)), ..Stages::default() },
            kept_wait: ms(2000),
            ..stats(400)
        },
        "the step waits 40 % of the time, and transfers wait 80 % of their time for batches to leave device memory: \
         drop batches after their step, or raise `prefetch`",
    );
    says(
        &Stats { stages: Stages { pin: busy(ms(900)), ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time, and the most time goes into pin (packing the batch) (90 %): use a `Collate` \
         instead of a batcher, or fields of one size",
    );
    says(
        &Stats { start_waited: ms(350), epochs: 7, ..stats(400) },
        "the step waits 40 % of the time, mostly 50.0ms for the first batch of each epoch: use fewer and longer \
         epochs, or smaller batches",
    );
    let uneven = StageStats { p50: ms(1), p99: ms(80), ..busy(ms(2000)) };
    says(
        &Stats { stages: Stages { read: uneven, ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time for slow samples, one in 100 takes 80.0ms in read (`Dataset::get`), most take \
         1.0ms: raise `prefetch`, or look at those samples",
    );
    says(
        &Stats { stages: Stages { read: StageStats { group: 32, ..uneven }, ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time for slow samples, of groups of 32 one in 100 takes 80.0ms a sample in read \
         (`Dataset::get`), most take 1.0ms: raise `prefetch`, or look at those samples",
    );
    // Slow samples that are too few to explain the waits are not their cause.
    let rare = StageStats { p50: ms(1), p99: ms(80), ..busy(ms(250)) };
    says(
        &Stats { stages: Stages { read: rare, ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time, and the most time goes into read (`Dataset::get`) (6 %): raise `prefetch`, or \
         `batch_size` if batches are tiny",
    );
    says(
        &Stats { stages: Stages { read: busy(ms(2000)), slot_wait: busy(ms(600)), ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time, and the most time goes into the wait for a free slot (60 %): raise `prefetch` or \
         `pinned_limit`",
    );
    says(
        &Stats { stages: Stages { read: busy(ms(2000)), transfer: busy(ms(900)), ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time, and the most time goes into read (`Dataset::get`) (50 %): raise `prefetch`, or \
         `batch_size` if batches are tiny",
    );
    says(
        &Stats { stages: Stages { read: busy(ms(800)), decode: busy(ms(1500)), ..Stages::default() }, ..stats(400) },
        "the step waits 40 % of the time, and the most time goes into decode (50 %): raise `prefetch`, or `batch_size` if \
         batches are tiny",
    );
}

/// Batches lie ready nearly all the time, so the waits for a slot are no lack of slots.
#[test]
fn a_loader_that_waits_for_a_slot_beside_ready_batches_keeps_up() {
    let stages = Stages { read: busy(ms(400)), slot_wait: busy(ms(930)), ..Stages::default() };
    let lack = Stats { stages, ..stats(70) };
    assert!(matches!(lack.verdict().cause, Cause::Stage { stage: Stage::SlotWait, .. }), "{}", lack.verdict());
    says(
        &Stats { stages: Stages { ready: busy(ms(900)), ..stages }, ..stats(70) },
        "the loader keeps up: it is idle 90 %, and batches lie ready; the step waits 7 % of the time: if short steps \
         follow each other, raise `prefetch` or `pinned_limit`",
    );
}

#[test]
fn a_loop_without_a_step_is_told_so() {
    says(
        &Stats { stages: Stages { collate: busy(ms(800)), read: busy(ms(600)), ..Stages::default() }, ..stats(990) },
        "the step waits 99 % of the time, and the most time goes into `Collate::write` (20 %): raise `batch_size` if \
         batches are tiny, and look again with a step: a loop without one always waits",
    );
}

/// Four workers that are busy with reads. Tasks take 3.92 s together. Those of `looked` ms were looked at, and slept
/// `slept` ms of it.
fn reads(looked: u64, slept: u64) -> Stats {
    let stages = Stages { read: busy(ms(3000)), collate: busy(ms(920)), ..Stages::default() };
    Stats { stages, looked: ms(looked), slept: ms(slept), cpu_threads: 4, ..stats(310) }
}

#[test]
fn storage_that_sleeps_is_told_from_reads_that_compute() {
    let sleeps = "the step waits 31 % of the time for read (`Dataset::get`) (4 workers busy 98 %), which waits for storage \
                  98 % of its time: ";
    let advice = |more: usize| format!("{sleeps}use `num_workers({more})`, since workers that sleep need no core");
    let asleep = || reads(3920, 2940); // all of the tasks' time but that of the collate
    says(&asleep(), &advice(16));
    says(&Stats { grows: true, ..asleep() }, &advice(16));
    says(&Stats { cpu_threads: 2, ..asleep() }, &advice(16));
    for (workers, threads, more) in [(8, 8, 16), (12, 8, 24), (20, 8, 32), (16, 4, 0), (32, 8, 0), (100, 64, 200)] {
        let times = workers as u32;
        let all = Stages { read: busy(ms(750) * times), collate: busy(ms(230) * times), ..Stages::default() };
        let stats = Stats { workers, workers_had: ms(1000) * times, cpu_threads: threads, stages: all, ..asleep() };
        let stats = Stats { looked: ms(980) * times, slept: ms(735) * times, ..stats };
        let line = stats.verdict().to_string();
        match more {
            0 => assert!(line.ends_with("98 % of its time: use faster storage or still more workers"), "{line}"),
            more => assert!(line.contains(&format!("use `num_workers({more})`, since")), "{line}"),
        }
    }
    // Half of the reads' time is enough.
    let of = |looked, slept| reads(looked, slept).verdict().to_string();
    assert!(of(3920, 1510).contains("which waits for storage 50 %"), "{}", of(3920, 1510));
    let cheaper = "the step waits 31 % of the time for read (`Dataset::get`) (4 workers busy 98 %): make it cheaper, or do \
                   its work once and store the result; more workers ";
    assert_eq!(of(3920, 1490), format!("{cheaper}would share the same cores"));
    assert_eq!(of(3920, 0), format!("{cheaper}would share the same cores"));
    // Most tasks were not looked at, or the system does not tell.
    assert_eq!(of(1900, 1900), format!("{cheaper}help only if they wait for storage"));
    assert_eq!(of(0, 0), format!("{cheaper}help only if they wait for storage"));
}

/// What sleeps elsewhere is no storage.
#[test]
fn only_reads_wait_for_storage() {
    let stages = Stages { collate: busy(ms(3920)), ..Stages::default() };
    let line = Stats { stages, ..reads(3920, 3900) }.verdict().to_string();
    assert!(!line.contains("storage") && line.ends_with("more workers would share the same cores"), "{line}");
}

#[test]
fn decoding_is_named_for_images_alone() {
    let line = |images, stages| Stats { images, stages, ..stats(310) }.verdict().to_string();
    let read = Stages { read: busy(ms(3920)), ..Stages::default() };
    let collate = Stages { collate: busy(ms(3920)), ..Stages::default() };
    for stages in [read, collate] {
        assert!(line(true, stages).contains("decod"), "{}", line(true, stages));
        assert!(!line(false, stages).contains("decod"), "{}", line(false, stages));
        // The device decodes the images.
        let on_device = Stages { decode: busy(ms(1)), ..stages };
        assert!(!line(true, on_device).contains("decod"), "{}", line(true, on_device));
    }
}

#[test]
fn more_transfer_threads_than_slots_do_not_hide_the_link() {
    let stats =
        Stats { stages: Stages { transfer: busy(ms(3900)), ..Stages::default() }, transfer_threads: 16, ..stats(400) };
    assert!(matches!(stats.verdict().cause, Cause::Transfer { busy, .. } if busy > 0.9), "{}", stats.verdict());
}

#[test]
fn an_order_that_decodes_again_and_again_is_the_cause() {
    let reads = Stats { stages: Stages { read: busy(ms(3900)), ..Stages::default() }, ..stats(400) };
    let verdict = Stats { scattered: true, ..reads.clone() }.verdict();
    assert!(matches!(verdict.cause, Cause::Workers { scattered: true, .. }), "{verdict}");
    let kept = |keepable| Stats { keepable, ..reads.clone() }.verdict().to_string();
    assert!(kept(Some(184_320_000)).ends_with("; or use `build_kept`, which reads once: the data set is 0.18 GB"));
    assert!(kept(Some(47_500_000)).ends_with("47.50 MB") && !kept(None).contains("build_kept"));
    assert!(verdict.to_string().ends_with("or open the rows with more `memory`"), "{verdict}");
    assert!(verdict.to_string().contains("BlockShuffle::new(rows.blocks()?, seed)"), "{verdict}");
    assert!(!reads.verdict().to_string().contains("BlockShuffle"), "{}", reads.verdict());
}

/// One epoch has one start. With many epochs, the starts may be what is waited for.
#[test]
fn the_start_of_a_single_epoch_is_no_cause() {
    let once = Stats { start_waited: ms(350), ..stats(380) };
    assert!(matches!(once.verdict().cause, Cause::Compute { waits, .. } if waits < 0.05), "{}", once.verdict());
    let slow = Stats { stages: Stages { read: busy(ms(3900)), ..Stages::default() }, ..once };
    let slow = Stats { waited: ms(650), stepped: ms(350), ..slow };
    assert!(matches!(slow.verdict().cause, Cause::Workers { .. }), "{}", slow.verdict());
}

#[test]
fn a_look_at_the_last_while_leaves_out_the_start() {
    // A first step of a minute, for example with a compiler in it, then a loop that waits.
    let compiled = Stats { batches: 1, items: 32, waited: ms(10), stepped: ms(60_000), ..Stats::default() };
    let now = Stats {
        stages: Stages { read: busy(ms(3900)), ..Stages::default() },
        workers_had: ms(4000),
        stepped: ms(60_600),
        ..stats(410)
    };
    assert!(matches!(now.verdict().cause, Cause::Compute { .. }), "{}", now.verdict());
    let since = now.since(&compiled);
    assert_eq!((since.batches, since.items, since.waited, since.stepped), (99, 3168, ms(400), ms(600)));
    assert!(matches!(since.verdict().cause, Cause::Workers { .. }), "{}", since.verdict());
}

/// The same, without a call of `since`.
#[test]
fn the_first_steps_are_left_out() {
    let compiled = Stats { batches: 8, items: 256, waited: ms(10), stepped: ms(60_000), ..Stats::default() };
    let warm_up = Some(Box::new(compiled));
    let now = Stats {
        stages: Stages { read: busy(ms(3900)), ..Stages::default() },
        workers_had: ms(4000),
        stepped: ms(60_600),
        warm_up,
        ..stats(410)
    };
    assert!(matches!(now.verdict().cause, Cause::Workers { .. }), "{}", now.verdict());
    let early = Stats { batches: 12, ..now };
    assert_eq!(early.verdict().cause, Cause::TooEarly { batches: 12, errors: 0 });
}

/// Two seconds of waits are enough, whatever the number of batches, but not those for the first batch of an epoch.
#[test]
fn long_waits_are_judged_by_their_time() {
    let busy_reads = Stages { read: busy(ms(7900)), ..Stages::default() };
    let slow = Stats {
        batches: 4,
        stages: busy_reads,
        workers_had: ms(8000),
        waited: ms(2100),
        stepped: ms(10),
        workers: 2,
        ..stats(0)
    };
    let is_told = |stats: Stats| matches!(stats.verdict().cause, Cause::Workers { stage: Stage::Read, .. });
    assert!(is_told(slow.clone()), "{}", slow.verdict());
    // Neither the end of the first steps nor an earlier look takes the verdict back.
    let warm_up = Some(Box::new(Stats { batches: 8, waited: ms(2000), ..Stats::default() }));
    assert!(is_told(Stats { batches: 9, warm_up, ..slow.clone() }));
    // After the first steps, two seconds of steps are enough too.
    let warm_up = Some(Box::new(Stats { batches: 8, ..Stats::default() }));
    let computes = Stats { batches: 11, waited: ms(10), stepped: ms(2000), warm_up, ..slow.clone() };
    assert!(matches!(computes.verdict().cause, Cause::Compute { .. }), "{}", computes.verdict());
    assert!(matches!(Stats { stepped: ms(1900), ..computes }.verdict().cause, Cause::TooEarly { .. }));
    for early in [
        Stats { waited: ms(1900), ..slow.clone() },
        Stats { start_waited: ms(200), ..slow.clone() },
        Stats { batches: 1, ..slow.clone() },
    ] {
        assert_eq!(early.verdict().cause, Cause::TooEarly { batches: early.batches, errors: 0 });
    }
}

#[test]
fn what_a_program_without_a_logger_must_know() {
    let counters = Counters::default();
    assert!(counters.remark("the workers decode images") && !counters.remark("the workers decode images"));
    let Stats { warnings, .. } = counters.snapshot();
    let stats = Stats { warnings, skipped: 1, replaced: 3, ..stats(0) };
    let line = "compute-bound: the loader is idle 100 %, the step waits 0 % of the time; nothing to change";
    let notes = "note: the workers decode images\n\
                 note: 1 sample is bad, and skipped\n\
                 note: 3 samples are bad, and replaced by others";
    says(&stats, &format!("{line}\n{notes}"));
    assert_eq!(stats.since(&stats).warnings, ["the workers decode images"]);
    // They are bounded.
    assert_eq!((0..40).filter(|number| counters.remark(&number.to_string())).count(), 15);
    assert_eq!(counters.snapshot().warnings.len(), 16);
    // What differs only behind the colon is one warning.
    let counters = Counters::default();
    assert!(
        counters.remark("there are fewer slots: 100 bytes") && !counters.remark("there are fewer slots: 200 bytes")
    );
}

#[test]
fn stored_and_read_back() {
    let stats = Stats { stages: Stages { read: busy(ms(3000)), ..Stages::default() }, ..stats(310) };
    let json = serde_json::to_string(&(&stats, stats.verdict())).unwrap();
    let back: (Stats, Verdict) = serde_json::from_str(&json).unwrap();
    assert_eq!(back, (stats.clone(), stats.verdict()));
}
