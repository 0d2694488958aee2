//! The threads of a loader: started once, named, joined when the loader is dropped. The workers are the crew's. Each
//! copy has the threads of its own steps.

use super::{crew::Crew, shared::Pipeline, steps, worker::work};
use crate::{
    fault::{Doing, Error, Watch},
    observe::Lane,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Running threads. Dropping them ends all their waits and joins them. A thread that hangs in user code for longer than
/// the timeout is left. It ends when the call returns, and keeps what it holds until then.
pub(crate) struct Threads {
    handles: Vec<(JoinHandle<()>, Arc<Doing>)>,
    watch: Arc<Watch>,
    close: Arc<dyn Fn() + Send + Sync>,
}

impl Threads {
    /// Starts the workers of a crew.
    ///
    /// # Errors
    /// [`Error::Spawn`]; the threads that did start are joined.
    pub(crate) fn of_crew<O: Send + 'static>(crew: &Arc<Crew<O>>) -> Result<Self, Error> {
        let close = Arc::clone(crew);
        let mut threads = Self::none(&crew.watch, move || close.close());
        for number in 0..crew.flow.workers {
            let crew = Arc::clone(crew);
            threads.spawn(Lane::Worker(number), move || work(&crew, number))?;
        }
        Ok(threads)
    }

    /// Starts the threads of the steps of a pipeline.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn of_steps<O: Send + 'static>(pipeline: &Arc<Pipeline<O>>) -> Result<Self, Error> {
        let close = Arc::clone(pipeline);
        let mut threads = Self::none(&pipeline.watch, move || close.close());
        for (lane, body) in steps::threads(pipeline.device, pipeline.transfers) {
            let pipeline = Arc::clone(pipeline);
            threads.spawn(lane, move || body(&pipeline))?;
        }
        Ok(threads)
    }

    fn none(watch: &Arc<Watch>, close: impl Fn() + Send + Sync + 'static) -> Self {
        Self { handles: Vec::new(), watch: Arc::clone(watch), close: Arc::new(close) }
    }

    fn spawn(&mut self, lane: Lane, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let name = lane.thread();
        let doing = self.watch.add(&name);
        let (cell, watch, close) = (Arc::clone(&doing), Arc::clone(&self.watch), Arc::clone(&self.close));
        let body = move || {
            lane.enter();
            // User code is guarded where it is called. If this crate itself panics, nobody must wait for ever.
            let guarded = || {
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    log::error!("burn-pinned: a thread of the loader panicked; its epochs end with an error");
                    close();
                }
            };
            watch.run(&cell, guarded);
        };
        let handle = thread::Builder::new().name(name.clone()).spawn(body);
        self.handles.push((handle.map_err(|source| Error::Spawn { name, source })?, doing));
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        (self.close)();
        let me = thread::current().id();
        for (handle, doing) in self.handles.drain(..) {
            if handle.thread().id() != me
                && let Some(hung) = self.watch.wait(&doing)
            {
                log::warn!("burn-pinned does not wait for a thread of a dropped loader: {hung}");
                continue;
            }
            // If user code on a worker owned the loader last, the loader is dropped on that worker, which cannot wait
            // for itself.
            if handle.thread().id() != me && handle.join().is_err() {
                log::error!("burn-pinned: a thread of the loader ended with a panic");
            }
        }
    }
}
