//! A thread that reads ahead as much as is asked for, and no more.

use crate::{
    fault::{Error, UserValues, discard},
    sync::{Condvar, Mutex},
    vocabulary::{BatchKey, Place, Stage},
};
use burn_shards::for_loader::end_waits_by;
use std::{
    collections::VecDeque,
    mem, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// How often a wait for items looks whether they are still wanted.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// How long a reader that is dropped waits for a call of its source. Then the thread is left behind.
const LEAVE: Duration = Duration::from_millis(30);
/// As many lots are read ahead as take this time, up to so many. Otherwise most of the time would go into waking threads. In this time no
/// source can make many bytes.
const AHEAD: (Duration, usize) = (Duration::from_millis(3), 16);

/// What a reader reads.
pub(super) trait Produce: Send + 'static {
    type Item: Send;
    /// Where it is after an item.
    type Mark: Send;

    /// The next item of `wanted` ones. `None` at the end, or once `stop` is set. An error is the end too.
    fn produce(&mut self, stop: &AtomicBool, wanted: usize) -> Option<Result<Self::Item, Box<Error>>>;

    fn mark(&mut self) -> Self::Mark;
}

/// Items that were asked for.
pub(super) struct Lot<P: Produce> {
    pub(super) items: UserValues<P::Item>,
    /// The error after them.
    pub(super) failed: Option<Box<Error>>,
    /// Where the source is after them.
    pub(super) mark: Option<P::Mark>,
    /// Whether the source has ended after them.
    pub(super) ended: bool,
}

/// What a reader and its thread share.
pub(super) struct Desk<P: Produce> {
    state: Mutex<DeskState<P>>,
    changed: Condvar,
    stop: Arc<AtomicBool>,
    /// Lots that take this time together are read ahead.
    ahead: Duration,
}

struct DeskState<P: Produce> {
    /// How many items a lot has, how many lots were asked for, and how many were read.
    size: usize,
    asked: usize,
    read: usize,
    lots: VecDeque<Lot<P>>,
    /// How many lots are read ahead, and whether the thread reads on.
    ahead: usize,
    reads: bool,
    /// Whether the thread has ended, or is about to, and whether it came to the end of its source.
    done: bool,
    finished: bool,
}

impl<P: Produce> DeskState<P> {
    /// Whether another lot is to be read. Several are read at once, as each time may wake the thread.
    fn is_due(&mut self) -> bool {
        let ahead = if self.reads { self.ahead } else { self.ahead.div_ceil(2) };
        self.reads = self.read < self.asked + ahead;
        self.reads
    }
}

impl<P: Produce> Desk<P> {
    pub(super) fn new(ahead: Duration) -> Self {
        let (lots, reads, done, finished) = (VecDeque::new(), false, false, false);
        let state = DeskState { size: 0, asked: 0, read: 0, lots, ahead: 0, reads, done, finished };
        Self { state: Mutex::new(state), changed: Condvar::new(), stop: Arc::default(), ahead }
    }

    /// Asks for a lot of this many items.
    pub(super) fn ask(&self, items: usize) {
        let mut state = self.state.lock();
        state.size = items;
        state.asked += 1;
        if state.is_due() {
            self.changed.notify_all();
        }
    }

    /// Waits for the oldest lot that was asked for, and takes it. `None` if it is not wanted any more.
    pub(super) fn take(&self, unwanted: &AtomicBool) -> Option<Lot<P>> {
        let mut state = self.state.lock();
        while !unwanted.load(Relaxed) {
            if let Some(lot) = state.lots.pop_front() {
                return Some(lot);
            }
            if state.done {
                let failed = (!state.finished).then(|| Box::new(Error::Ended)); // its thread has panicked
                return Some(Lot { items: UserValues::default(), failed, mark: None, ended: true });
            }
            state = self.changed.wait_for(state, LOOK);
        }
        None
    }

    /// Lets the thread end. Returns whether it has ended, after at most this time.
    pub(super) fn close(&self, wait: Duration) -> bool {
        self.stop.store(true, Relaxed);
        let (mut state, since) = (self.state.lock(), Instant::now());
        self.changed.notify_all();
        while !state.done {
            let Some(left) = wait.checked_sub(since.elapsed()) else { return false };
            state = self.changed.wait_for(state, left);
        }
        true
    }

    /// The loop of the thread.
    pub(super) fn serve(&self, mut source: P) {
        loop {
            let mut state = self.state.lock();
            while !state.is_due() && !self.stop.load(Relaxed) {
                state = self.changed.wait(state);
            }
            let wanted = state.size;
            drop(state);
            if self.stop.load(Relaxed) {
                break;
            }
            let (mut items, mut failed, since) = (UserValues::default(), None, Instant::now());
            while items.len() < wanted
                && !self.stop.load(Relaxed)
                && let Some(item) = source.produce(&self.stop, wanted - items.len())
            {
                match item {
                    Ok(item) => items.push(item),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            let (mark, ended) = (Some(source.mark()), items.len() < wanted);
            let mut state = self.state.lock();
            state.lots.push_back(Lot { items, failed, mark, ended });
            let ahead = self.ahead.as_nanos() / since.elapsed().as_nanos().max(1);
            (state.read, state.ahead) = (state.read + 1, ahead.min(AHEAD.1 as u128) as usize);
            state.finished = ended;
            drop(state);
            self.changed.notify_all();
            if ended {
                break;
            }
        }
        discard(Place::batch(Stage::Stream, BatchKey::NONE), source);
    }
}

/// Tells the consumer that the thread has ended, even by a panic.
struct EndNote<'a, P: Produce>(&'a Desk<P>);

impl<P: Produce> Drop for EndNote<'_, P> {
    fn drop(&mut self) {
        self.0.state.lock().done = true;
        self.0.changed.notify_all();
    }
}

/// A source on a thread of its own. The drop joins the thread, or leaves it if its source blocks.
pub(super) struct Reader<P: Produce> {
    pub(super) desk: Arc<Desk<P>>,
    thread: Option<thread::JoinHandle<()>>,
    /// The process that has the thread.
    process: u32,
}

impl<P: Produce> Reader<P> {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    pub(super) fn start(name: String, source: P) -> Result<Self, Error> {
        let desk = Arc::new(Desk::new(AHEAD.0));
        let here = Arc::clone(&desk);
        let body = move || {
            let _end = EndNote(&*here);
            end_waits_by(Arc::clone(&here.stop)); // the source may read from a store
            here.serve(source);
        };
        let thread = thread::Builder::new().name(name.clone()).spawn(body);
        Ok(Self { desk, thread: Some(thread.map_err(|source| Error::Spawn { name, source })?), process: process::id() })
    }
}

impl<P: Produce> Drop for Reader<P> {
    fn drop(&mut self) {
        if process::id() != self.process {
            return mem::forget(self.thread.take()); // a fork has no thread to wait for
        }
        let ended = self.desk.close(LEAVE);
        let Some(thread) = self.thread.take().filter(|_| ended) else {
            return log::warn!("burn-pinned does not wait for a stream that blocks in its iterator");
        };
        if thread.join().is_err() {
            log::error!("burn-pinned: a thread that reads a stream ended with a panic");
        }
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod model;
