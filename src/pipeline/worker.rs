//! A worker: it takes the most urgent task of all epochs, or opens a batch.

use super::{pipeline::Pipeline, state::workers::Work};
use crate::{
    batch::{BatchPlan, Task},
    fault::{Error, catch, discard, discard_each, during},
    memory::{Permit, Wait},
    observe::{Span, TaskClock},
    order::{Feed, FeedBatch},
    vocabulary::{BatchKey, Place, Stage},
};
use burn_shards::for_loader::{end_waits_by, step_back};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The loop of a worker.
pub(super) fn run<O>(pipeline: &Pipeline<O>, worker: usize) {
    if cfg!(feature = "cuda") && !pipeline.is_host() {
        step_back(10); // the cores are left to the threads that copy: see benches/README.md
    }
    while let Some(work) = work(pipeline, worker) {
        match work {
            Work::Open { batch, feed, permit, abandoned, workers, since } => {
                pipeline.counters().took(Stage::SlotWait, batch, since, Instant::now());
                if let Some(whole) = open(pipeline, batch, feed, permit, abandoned, workers) {
                    let time = run_task(pipeline, worker, whole);
                    pipeline.note_batch_time(time);
                }
            }
            Work::Task(task) => {
                run_task(pipeline, worker, task);
                pipeline.note_batch_time(Duration::MAX); // a batch of several tasks is not small
            }
        }
    }
}

/// Runs a task, and passes on its batch if it was the last one. Returns the time that all of this took.
fn run_task<O>(pipeline: &Pipeline<O>, worker: usize, task: Task<O>) -> Duration {
    let (rows, key) = (task.rows.len(), task.batch.plan.key);
    let mut clock = TaskClock::start(pipeline.counters(), worker, key);
    pipeline.busy.fetch_add(1, Relaxed);
    // User code is guarded where it is called. Only the `drop` of samples is left.
    let place = Place { worker: Some(worker), ..Place::batch(Stage::Collate, key) };
    match during(place, || catch(|| pipeline.source.run(task, &mut clock))) {
        Ok(done) => {
            pipeline.note_task_time(rows, clock.worked());
            if let Some(batch) = done {
                pipeline.pass(batch);
            }
        }
        Err(caught) => pipeline.fail_batch(key, worker, caught),
    }
    pipeline.busy.fetch_sub(1, Relaxed);
    clock.elapsed()
}

/// Waits for work for a worker. Returns `None` if the worker has to end.
pub(super) fn work<O>(pipeline: &Pipeline<O>, worker: usize) -> Option<Work<O>> {
    let asked = Instant::now();
    let mut state = pipeline.lock();
    while state.goes_on(worker) {
        if let Some(work) =
            state.take_work(pipeline.pool.has_permit(), || pipeline.pool.try_permit(), asked, Instant::now())
        {
            let more = pipeline.wants_worker(&state);
            drop(state);
            if more {
                pipeline.for_workers.notify_one();
            }
            return Some(work);
        }
        state = pipeline.for_workers.wait(state);
    }
    drop(state);
    pipeline.for_workers.notify_one(); // this worker may have been woken for work
    None
}

/// Opens a batch: takes its indices, gives it a slot and cuts it into tasks. Returns its task if there is only one: this
/// worker runs it at once.
pub(super) fn open<O>(
    pipeline: &Pipeline<O>,
    batch: BatchKey,
    mut feed: Feed,
    permit: Permit,
    abandoned: Arc<AtomicBool>,
    workers: usize,
) -> Option<Task<O>> {
    let mut tasks = cut(pipeline, batch, &mut feed, permit, &abandoned, workers);
    let only = match &mut tasks {
        Ok(Some(tasks)) if tasks.len() == 1 => tasks.pop(),
        Ok(_) => None,
        Err(error) => {
            pipeline.source.faults().saw(error);
            None
        }
    };
    let mut state = pipeline.lock();
    let (count, left_over) = state.opened(batch, feed, tasks, Instant::now());
    let wakes = match count {
        0 => usize::from(pipeline.wants_worker(&state)),
        _ => count - 1, // it takes one of them itself
    };
    drop(state);
    for _ in 0..wakes {
        pipeline.for_workers.notify_one();
    }
    if count == 0 && only.is_none() {
        pipeline.for_consumers.notify_all(); // there is an error for them, or the end of a stream
    }
    if let Some((feed, tasks)) = left_over {
        let place = Place::batch(Stage::Read, batch);
        discard(place, feed);
        match tasks {
            Ok(tasks) => discard_each(place, tasks.into_iter().flatten().chain(only)),
            Err(error) => discard(place, error),
        }
        return None;
    }
    only
}

/// The tasks of the next batch. `None` if a stream has ended.
fn cut<O>(
    pipeline: &Pipeline<O>,
    batch: BatchKey,
    feed: &mut Feed,
    permit: Permit,
    abandoned: &Arc<AtomicBool>,
    workers: usize,
) -> Result<Option<Vec<Task<O>>>, Error> {
    let stage = if feed.items.is_some() { Stage::Stream } else { Stage::Sampler };
    let sampling = Span::new(pipeline.counters(), stage, batch);
    end_waits_by(Arc::clone(abandoned)); // a sampler may read from a store
    let occurrences = feed.occurrences();
    let Some(FeedBatch { indices, items }) = feed.take(Place::batch(Stage::Sampler, batch), abandoned)? else {
        return Ok(None);
    };
    drop(sampling);
    let chunk = pipeline.chunk(indices.len(), workers);
    let plan = Arc::new(BatchPlan {
        key: batch,
        indices: indices.into(),
        items,
        positions: None,
        occurrences,
        abandoned: Arc::clone(abandoned),
    });
    let open = |wait: &Wait<'_>| pipeline.source.open(plan, permit, &pipeline.pool, wait, chunk);
    pipeline.with_slot(batch, abandoned, open).0.map(Some)
}
