//! The threads of a loader: started once, named, joined when the loader is dropped.

use super::{shared::Pipeline, steps, worker::work};
use crate::{
    fault::{Doing, Error, Watch},
    observe::Lane,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

/// The running threads. Dropping them closes the pipeline and joins them. A thread that hangs in user code for
/// longer than the timeout is left. It ends when the call returns, and keeps what it holds until then.
pub(crate) struct Threads {
    handles: Vec<(JoinHandle<()>, Arc<Doing>)>,
    watch: Arc<Watch>,
    close: Box<dyn Fn() + Send + Sync>,
}

impl Threads {
    /// Starts the workers of a pipeline and the threads of its steps.
    ///
    /// # Errors
    /// [`Error::Spawn`]; the threads that did start are joined.
    pub(crate) fn start<O: Send + 'static>(pipeline: &Arc<Pipeline<O>>) -> Result<Self, Error> {
        let close = Arc::clone(pipeline);
        let watch = Arc::clone(&pipeline.watch);
        let mut threads = Self { handles: Vec::new(), watch, close: Box::new(move || close.close()) };
        for number in 0..pipeline.flow.workers {
            threads.spawn(pipeline, Lane::Worker(number), move |pipeline| work(pipeline, number))?;
        }
        for (lane, body) in steps::threads(pipeline.flow.transfers) {
            threads.spawn(pipeline, lane, body)?;
        }
        Ok(threads)
    }

    fn spawn<O: Send + 'static>(
        &mut self,
        pipeline: &Arc<Pipeline<O>>,
        lane: Lane,
        run: impl FnOnce(&Pipeline<O>) + Send + 'static,
    ) -> Result<(), Error> {
        let pipeline = Arc::clone(pipeline);
        let name = format!("bp-{lane}").replace(' ', "-");
        let doing = self.watch.add(&name);
        let cell = Arc::clone(&doing);
        let body = move || {
            lane.enter();
            // User code is guarded where it is called. If this crate itself panics, nobody must wait for ever.
            let guarded = || {
                if catch_unwind(AssertUnwindSafe(|| run(&pipeline))).is_err() {
                    log::error!("burn-pinned: a thread of the loader panicked; its epochs end with an error");
                    pipeline.close();
                }
            };
            pipeline.watch.run(&cell, guarded);
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
