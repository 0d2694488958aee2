//! What each thread of a loader is doing, and since when. A consumer that has waited too long looks up the call to
//! blame here, and so does a loader that is dropped while user code hangs.
//!
//! Each thread notes the place of each call of user code in its own cell. Positions of samples are plain stores. Clocks
//! are read, and batches noted, only if a timeout is set.

use super::error::HungCall;
use crate::{
    sync::locks::{Condvar, Mutex},
    vocabulary::{BatchKey, Place, Stage},
};
use crossbeam_utils::CachePadded;
use std::{
    cell::RefCell,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

thread_local! {
    /// The cell of this thread. If the thread belongs to no loader, nothing reads its cell.
    static HERE: RefCell<Arc<Activity>> = RefCell::default();
}

/// The cell of one thread.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// The current sample: its position in the batch, and the stage.
    sample: CachePadded<AtomicUsize>,
    watched: bool,
    /// Whether the thread belongs to a loader.
    is_loaders: bool,
    /// The running call. It changes once per call for a batch, or once per group of small samples.
    call: Mutex<Option<Call>>,
    ended: AtomicBool,
}

#[derive(Debug, Clone)]
struct Call {
    place: Place,
    /// For a call for single samples, their indices. [`Activity::sample`] is a position in this list.
    of: Option<Arc<[usize]>>,
    since: Instant,
}

impl Activity {
    /// Returns the cell of the calling thread. On a thread that is ending, returns a cell that nothing reads.
    pub(crate) fn here() -> Arc<Self> {
        HERE.try_with(|here| Arc::clone(&here.borrow())).unwrap_or_default()
    }

    /// Notes the current sample.
    #[inline(always)]
    pub(crate) fn note(&self, position: usize, stage: Stage) {
        let stage = match stage {
            Stage::Augment => 1,
            Stage::Collate => 2,
            _ => 0,
        };
        self.sample.store(4 * position + stage, Relaxed);
    }

    /// Returns the sample that was noted last. After a failure it is the sample to blame.
    pub(crate) fn noted(&self) -> (usize, Stage) {
        let sample = self.sample.load(Relaxed);
        (sample / 4, Stage::OF_SAMPLES[sample % 4])
    }

    /// Notes that the thread starts work on a batch: on its samples with these indices, or on the batch as a whole.
    pub(crate) fn note_batch(&self, place: Place, samples: Option<&Arc<[usize]>>) {
        if self.watched {
            *self.call.lock() = Some(Call { place, of: samples.cloned(), since: Instant::now() });
        }
    }

    fn hung(&self, thread: &str) -> Option<HungCall> {
        let Call { mut place, of, since } = self.call.lock().clone()?;
        if let Some(of) = of {
            let (position, stage) = self.noted();
            place = Place { stage, index: of.get(position).copied(), ..place };
        }
        Some(HungCall { thread: thread.into(), place, since: since.elapsed() })
    }
}

/// Runs work of a loader or a batcher on its caller's thread. That thread may belong to another loader, whose samples are batches of this
/// one. The calls of `code` are noted in a cell that nothing reads, so that the other loader's cell keeps its own call.
pub(crate) fn aside<T>(code: impl FnOnce() -> T) -> T {
    let here = Activity::here();
    if !here.is_loaders {
        return code();
    }
    HERE.set(Arc::default());
    finally(code, || drop(HERE.try_with(|cell| cell.replace(here))))
}

/// Runs a call of user code for a whole batch or for no batch.
pub(crate) fn during<T>(place: Place, code: impl FnOnce() -> T) -> T {
    within(|| Some(Call { place, of: None, since: Instant::now() }), code)
}

/// Runs code that waits for something internal to the loader. Meanwhile the thread counts as in no call.
pub(crate) fn idle<T>(code: impl FnOnce() -> T) -> T {
    within(|| None, code)
}

/// Runs code while the cell notes this call. Afterwards the outer call is restored: the replacement of a sample is a call inside another
/// one.
fn within<T>(call: impl FnOnce() -> Option<Call>, code: impl FnOnce() -> T) -> T {
    let here = Activity::here();
    if !here.watched {
        return code();
    }
    let outer = mem::replace(&mut *here.call.lock(), call());
    finally(code, || *here.call.lock() = outer)
}

/// Runs code, and then `last`, even after a panic.
fn finally<T>(code: impl FnOnce() -> T, last: impl FnOnce()) -> T {
    let result = catch_unwind(AssertUnwindSafe(code));
    last();
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The threads of one copy of a loader.
#[derive(Debug)]
pub(crate) struct Watch {
    /// How long a consumer waits, and how long a call may run before its thread counts as hung.
    pub(crate) timeout: Option<Duration>,
    threads: Mutex<Vec<(String, Arc<Activity>)>>,
    ended: Condvar,
}

impl Watch {
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        Self { timeout, threads: Mutex::default(), ended: Condvar::new() }
    }

    /// Adds a cell for a thread that is about to start.
    pub(crate) fn add(&self, name: &str) -> Arc<Activity> {
        let doing = Arc::new(Activity { watched: self.timeout.is_some(), is_loaders: true, ..Activity::default() });
        let mut threads = self.threads.lock();
        threads.retain(|(_, doing)| !doing.ended.load(Relaxed));
        threads.push((name.into(), Arc::clone(&doing)));
        doing
    }

    /// Uses a cell for the calling thread until `run` has ended.
    pub(crate) fn run(&self, doing: &Arc<Activity>, run: impl FnOnce()) {
        HERE.set(Arc::clone(doing));
        run();
        let threads = self.threads.lock();
        doing.ended.store(true, Relaxed);
        drop(threads);
        self.ended.notify_all();
    }

    /// Returns the call to blame for a late batch: the longest call for this batch or, if there is none, the longest
    /// call of all.
    pub(crate) fn blame(&self, batch: BatchKey) -> Option<HungCall> {
        let of_it = |hung: &HungCall| hung.place.is_in(batch);
        let threads = self.threads.lock();
        threads.iter().filter_map(|(name, doing)| doing.hung(name)).max_by_key(|hung| (of_it(hung), hung.since))
    }

    /// Waits until a thread has ended, but no longer than its call may run. Returns the call in which it hangs. Returns
    /// at once without a timeout.
    pub(crate) fn wait(&self, doing: &Activity) -> Option<HungCall> {
        let timeout = self.timeout?;
        let mut threads = self.threads.lock();
        loop {
            if doing.ended.load(Relaxed) {
                return None;
            }
            let name = threads.iter().find(|(_, other)| std::ptr::eq(&**other, doing)).map(|(name, _)| name.as_str());
            let left = match doing.hung(name.unwrap_or_default()) {
                Some(hung) if hung.since >= timeout => return Some(hung),
                Some(hung) => timeout - hung.since,
                None => timeout, // between two calls
            };
            threads = self.ended.wait_for(threads, left);
        }
    }
}
