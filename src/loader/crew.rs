//! The workers that a loader and its copies share.

use super::options::Options;
use crate::{
    fault::{Error, keep_backtraces},
    observe::Counters,
    pipeline::{Crew, Flow, Settings, Threads, Tuner, Tuning},
};
use parking_lot::Mutex;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};

/// How long `next()` waits if nothing is on its way and every slot is held elsewhere.
const LEASE_TIMEOUT: Duration = Duration::from_secs(60);

/// A crew at work. The last copy of the loader that drops it dismisses the workers, and waits for them.
pub(crate) struct Workers<O> {
    pub(crate) crew: Arc<Crew<O>>,
    _threads: Threads,
}

/// The crew that is at work, if there is one.
pub(crate) struct SharedCrew<O>(Arc<Mutex<Weak<Workers<O>>>>);

/// Not derived: `O` need not be `Default` or `Clone`.
impl<O> Default for SharedCrew<O> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<O> Clone for SharedCrew<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: Send + 'static> SharedCrew<O> {
    /// Whether these workers are those at work.
    pub(crate) fn has(&self, workers: &Arc<Workers<O>>) -> bool {
        std::ptr::eq(self.0.lock().as_ptr(), Arc::as_ptr(workers))
    }

    /// Returns the crew that is at work. If there is none, or its workers hang, new workers are started.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    pub(crate) fn get(&self, options: &Options, on_host: bool, counters: &Counters) -> Result<Arc<Workers<O>>, Error> {
        let mut shared = self.0.lock();
        if let Some(workers) = shared.upgrade().filter(|workers| !workers.crew.is_dead()) {
            return Ok(workers);
        }
        keep_backtraces();
        let ((least, workers), (prefetch, most)) = (options.workers(), options.prefetch());
        let settings = Settings::new(workers, prefetch);
        let tuner = Tuner::new((least, workers), (prefetch, most));
        let tuning = tuner.has_choice().then(|| Tuning::new(tuner, Arc::clone(&settings)));
        let flow = Flow {
            workers,
            steps_back: !on_host,
            prefetch,
            now: settings,
            lease_timeout: LEASE_TIMEOUT,
            timeout: options.timeout,
        };
        counters.set_workers(workers);
        counters.set_most_workers(if least < workers { workers } else { 0 });
        counters.set_cpu_threads(options.machine().threads);
        let crew = Arc::new(Crew::new(flow, tuning));
        let workers = Arc::new(Workers { _threads: Threads::of_crew(&crew)?, crew });
        *shared = Arc::downgrade(&workers);
        Ok(workers)
    }
}
