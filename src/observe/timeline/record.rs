//! A bounded recording of what the threads of a loader do.

use crate::{
    sync::locks::Mutex,
    vocabulary::{BatchKey, Stage},
};
use std::{
    cell::Cell,
    cmp::Reverse,
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

/// The thread of an event, with the number of its device among those that the loader is cut for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Step(Option<u16>),
    /// No thread: batches that are ready.
    Ready(Option<u16>),
    /// A thread of a stage after the workers. The last stages come first.
    Stage(Option<u16>, Reverse<Stage>, Option<usize>),
    Worker(Option<u16>, usize),
}

thread_local! {
    static LANE: Cell<Lane> = const { Cell::new(Lane::Step(None)) };
}

impl Lane {
    /// The only thread of a stage, or one of several.
    pub(crate) fn of(device: Option<u16>, stage: Stage, number: Option<usize>) -> Self {
        Self::Stage(device, Reverse(stage), number)
    }

    /// Makes this the lane of the calling thread. Threads that never do so are consumers.
    pub(crate) fn enter(self) {
        LANE.set(self);
    }

    /// The lane that shows an activity of the calling thread.
    fn of_activity(activity: Stage, batch: BatchKey) -> Self {
        match LANE.get() {
            _ if activity == Stage::Ready => Self::Ready(batch.device),
            Self::Step(_) => Self::Step(batch.device),
            lane => lane,
        }
    }

    fn device(self) -> Option<u16> {
        match self {
            Self::Step(device) | Self::Ready(device) | Self::Stage(device, ..) | Self::Worker(device, _) => device,
        }
    }

    /// The name of the thread.
    pub(crate) fn thread(self) -> String {
        let device = self.device().map_or_else(String::new, |device| format!("{device}-"));
        format!("bp-{device}{}", self.role()).replace(' ', "-")
    }

    /// What the thread does.
    fn role(self) -> String {
        match self {
            Self::Step(_) => "step".into(),
            Self::Ready(_) => "ready".into(),
            Self::Stage(_, Reverse(stage), None) => stage.to_string(),
            Self::Stage(_, Reverse(stage), Some(number)) => format!("{stage} {number}"),
            Self::Worker(_, number) => format!("worker {number}"),
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.device() {
            write!(f, "device {device} ")?;
        }
        f.write_str(&self.role())
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

/// Keeps the last events, if recording is on.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// How many events are kept.
    capacity: AtomicUsize,
    events: Mutex<VecDeque<Event>>,
}

impl Recorder {
    pub(crate) fn start(&self, capacity: usize) {
        let mut events = self.events.lock();
        *events = VecDeque::new();
        self.capacity.store(capacity, Relaxed);
    }

    pub(crate) fn add(&self, activity: Stage, batch: BatchKey, start: Instant, end: Instant) {
        let capacity = self.capacity.load(Relaxed);
        if capacity == 0 {
            return;
        }
        let lane = Lane::of_activity(activity, batch);
        let mut events = self.events.lock();
        if events.len() >= capacity {
            events.pop_front();
        }
        events.push_back(Event { lane, activity, batch, start, end: end.max(start) });
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().iter().copied().collect()
    }
}
