//! A bounded recording of what the threads of a loader do.

use crate::vocabulary::{BatchKey, Stage};
use parking_lot::{Mutex, MutexGuard};
use std::{
    cell::Cell,
    cmp::Reverse,
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Instant,
};

/// The thread that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Step,
    /// No thread: batches that lie ready.
    Ready,
    /// A thread of a step that batches go through after the workers. The last steps come first.
    Stage(Reverse<Stage>, Option<usize>),
    Worker(usize),
}

thread_local! {
    static LANE: Cell<Lane> = const { Cell::new(Lane::Step) };
}

impl Lane {
    /// The only thread of a step, or one of several.
    pub(crate) fn of(stage: Stage, number: Option<usize>) -> Self {
        Self::Stage(Reverse(stage), number)
    }

    /// Makes this the lane of the calling thread. Threads that never do so are consumers.
    pub(crate) fn enter(self) {
        LANE.set(self);
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step => f.write_str("step"),
            Self::Ready => f.write_str("ready"),
            Self::Stage(Reverse(stage), None) => write!(f, "{stage}"),
            Self::Stage(Reverse(stage), Some(number)) => write!(f, "{stage} {number}"),
            Self::Worker(number) => write!(f, "worker {number}"),
        }
    }
}

/// One activity of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) lane: Lane,
    pub(crate) activity: Stage,
    pub(crate) batch: BatchKey,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// Keeps the last events, if asked to.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    on: AtomicBool,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Event>,
    capacity: usize,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    pub(crate) fn start(&self, capacity: usize) {
        let mut log = self.lock();
        log.events.clear();
        log.events.shrink_to(0);
        log.capacity = capacity;
        self.on.store(capacity > 0, Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, activity: Stage, batch: BatchKey, start: Instant, end: Instant) {
        if self.on.load(Relaxed) {
            let lane = if activity == Stage::Ready { Lane::Ready } else { LANE.get() };
            self.keep(Event { lane, activity, batch, start, end });
        }
    }

    #[cold]
    fn keep(&self, event: Event) {
        let mut log = self.lock();
        if log.events.len() >= log.capacity {
            log.events.pop_front();
        }
        log.events.push_back(event);
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.lock().events.iter().copied().collect()
    }
}
