//! The threads of one copy of a loader: named, started at its first epoch, joined when it is dropped.

use super::{
    growth::{Growth, Sight},
    pin,
    pipeline::Pipeline,
    transfer, worker,
};
use crate::{
    fault::{Activity, Error, aside},
    observe::Lane,
    sync::locks::Mutex,
    vocabulary::Stage,
};
use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A pipeline and its threads. The drop ends all their waits and joins them. A thread that hangs in user code for longer
/// than the timeout is left. It ends when the call returns, and keeps what it holds until then.
pub(crate) struct Threads<O: Send + 'static> {
    pipeline: Arc<Pipeline<O>>,
    running: Mutex<Vec<(JoinHandle<()>, Arc<Activity>)>>,
    growth: Mutex<Growth>,
    /// The process that has these threads.
    process: u32,
}

impl<O: Send + 'static> Threads<O> {
    /// Starts the threads of a pipeline.
    ///
    /// # Errors
    /// [`Error::Spawn`]; the threads that did start are joined.
    pub(crate) fn start(pipeline: Arc<Pipeline<O>>, growth: Growth) -> Result<Self, Error> {
        let workers = growth.workers();
        let (running, growth, process) = (Mutex::default(), Mutex::new(growth), process::id());
        let threads = Self { pipeline, running, growth, process };
        threads.set_workers(workers)?;
        let settings = threads.pipeline.settings;
        if settings.transfers > 0 {
            threads.spawn(Lane::of(settings.device, Stage::Pin, None), pin::run)?;
        }
        for number in 0..settings.transfers {
            threads.spawn(Lane::of(settings.device, Stage::Transfer, Some(number)), transfer::run)?;
        }
        Ok(threads)
    }

    /// Checks that this process has the threads. A forked child has none, and locks that they held are never released
    /// there.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub(crate) fn are_here(&self) -> Result<(), Error> {
        if process::id() == self.process { Ok(()) } else { Err(Error::Forked { parent: self.process }) }
    }

    pub(crate) fn pipeline(&self) -> &Pipeline<O> {
        &self.pipeline
    }

    /// Notes that a batch was handed out: how long the consumer waited for the loader, and how long the step before
    /// took. The first batch of an epoch has no step before it, and says nothing. Starts or ends workers, if that is
    /// due.
    pub(crate) fn note_wait(&self, waited: Duration, stepped: Option<Duration>) {
        let Some(mut growth) = self.growth.try_lock() else { return }; // another loop is here
        let [took, awake] = self.pipeline.counters().slow_reads();
        let sight = Sight { now: Instant::now(), waited, stepped, worked: self.pipeline.worked(), took, awake };
        let Some((workers, why)) = growth.choose(sight) else { return };
        drop(growth);
        log::info!("burn-pinned: {why}");
        if let Err(error) = self.set_workers(workers) {
            self.pipeline.counters().warn(&format!("there are fewer workers: {error}"));
        }
    }

    /// Starts the workers that are missing. Workers beyond the number end after their task.
    fn set_workers(&self, workers: usize) -> Result<(), Error> {
        let (before, start) = {
            let mut state = self.pipeline.lock();
            (state.workers(), state.set_workers(workers))
        };
        self.pipeline.counters().loops.lock().note_workers(workers, before);
        self.pipeline.for_workers.notify_all();
        for (at, number) in start.iter().copied().enumerate() {
            let lane = Lane::Worker(self.pipeline.settings.device, number);
            if let Err(error) = self.spawn(lane, move |pipeline| worker::run(pipeline, number)) {
                let mut state = self.pipeline.lock();
                start[at..].iter().for_each(|worker| state.not_started(*worker));
                return Err(error);
            }
        }
        Ok(())
    }

    fn spawn(&self, lane: Lane, run: impl FnOnce(&Pipeline<O>) + Send + 'static) -> Result<(), Error> {
        let name = lane.thread();
        let mut running = self.running.lock();
        running.retain(|(handle, _)| !handle.is_finished());
        let doing = self.pipeline.watch.add(&name);
        let (cell, pipeline) = (Arc::clone(&doing), Arc::clone(&self.pipeline));
        let body = move || {
            lane.enter();
            // User code is guarded where it is called. If this crate itself panics, no thread may wait forever.
            let guarded = || {
                if catch_unwind(AssertUnwindSafe(|| run(&pipeline))).is_err() {
                    log::error!("burn-pinned: a thread of the loader panicked; its epochs end with an error");
                    pipeline.close();
                }
            };
            pipeline.watch.run(&cell, guarded);
        };
        let handle = thread::Builder::new().name(name.clone()).spawn(body);
        running.push((handle.map_err(|source| Error::Spawn { name, source })?, doing));
        Ok(())
    }
}

impl<O: Send + 'static> Drop for Threads<O> {
    fn drop(&mut self) {
        if self.are_here().is_err() {
            return self.running.get_mut().drain(..).for_each(mem::forget); // a fork has no threads to wait for
        }
        aside(|| self.pipeline.close());
        let workers = self.pipeline.lock().workers();
        self.pipeline.counters().loops.lock().note_workers(0, workers);
        let me = thread::current().id();
        for (handle, doing) in self.running.get_mut().drain(..) {
            // If user code on a worker owned the loader last, the loader is dropped on that worker, which cannot wait
            // for itself.
            if handle.thread().id() == me {
                continue;
            }
            if let Some(hung) = self.pipeline.watch.wait(&doing) {
                log::warn!("burn-pinned does not wait for a thread of a dropped loader: {hung}");
            } else if handle.join().is_err() {
                log::error!("burn-pinned: a thread of the loader ended with a panic");
            }
        }
    }
}
