//! The statistics say what holds a loop up: its device, the link, or `finish`.

use super::fake::{Link, consume, pipeline, rows};
use crate::{
    device::tests::Breaks,
    observe::{Cause, Counters, Timeline},
    vocabulary::Stage,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A loop that launches steps of 40 ms and does not wait for them has its batches held back by the device, not the
/// loader.
#[test]
fn a_loop_that_runs_ahead_of_the_device_is_compute_bound() {
    let (batches, counters, start) = (40, Arc::<Counters>::default(), Instant::now());
    let step = move |number: usize| start + Duration::from_millis(100 + 40 * number as u64);
    let keeps = move |number| Some(Breaks::Keeps { until: Some(step(number)) });
    let link = Link::new(rows(batches, &counters)).breaks(keeps);
    let waited = consume(pipeline(link, &counters), &counters, batches);
    assert!(waited < 0.3, "{waited}: it waits for the device, and no worker can change that");
    let stats = counters.snapshot();
    assert!(
        matches!(stats.verdict().cause, Cause::Device { waits, kept: false, .. } if waits > 0.5),
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
    assert!(matches!(stats.verdict().cause, Cause::Device { kept: true, .. }), "{stats}\n{}", stats.verdict());
    assert_eq!(stats.device_bytes, 20 * 80, "{stats}");
    drop(window);
    assert_eq!(counters.snapshot().device_bytes, 0, "the pipeline is gone");
}

/// The link is known to be slow.
#[test]
fn a_slow_link_is_found() {
    let (batches, counters) = (60, Arc::<Counters>::default());
    let link = Link { send: Duration::from_millis(15), ..Link::new(rows(batches, &counters)) };
    let waited = consume(pipeline(link, &counters), &counters, batches);
    assert!(waited > 0.5, "{waited}");
    let stats = counters.snapshot();
    assert!(matches!(stats.verdict().cause, Cause::Transfer { pageable: true, .. }), "{stats}\n{}", stats.verdict());
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
    assert!(matches!(stats.verdict().cause, Cause::Stage { stage: Stage::Finish, .. }), "{stats}\n{}", stats.verdict());
    let trace = Timeline::of(counters.timeline.events()).to_trace();
    assert!(trace.contains("\"transfer 0\"") || trace.contains("\"transfer 1\""));
}
