//! Reading ahead: threads fetch what the order of an epoch needs, before workers ask for it.
//!
//! An epoch announces its rows ([`ReadAhead::begin`]). The source says which parts of which objects each row needs. Parts are fetched in
//! the order of the rows, neighbouring ones together, within a limit in bytes. A worker that asks for a part gets it, or waits for it. If
//! the part has not been requested from the store yet, the worker requests it itself at once. So reading ahead changes when bytes arrive,
//! never which bytes.

mod piece;
mod state;

use super::{
    Store,
    grow::{grown, whole},
    stop::{LOOK, STOPPED_WAIT, Stop, end_waits_by},
};
use crate::{
    error::StoreError,
    store::fetching::fetching,
    system::{Condvar, Mutex, step_back},
};
pub use piece::AheadPiece;
pub use state::{AheadState, PartState, Plan, PlannedRow, ReadAction};
use std::{
    io::{self, Read},
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::{self, JoinHandle},
};

/// The number of rows that are planned at once.
const ROWS_AT_ONCE: usize = 64;
/// If an order has this number of rows of other data sets between two of this one, it is not read ahead any further.
const FOREIGN_ROWS: usize = 1 << 20;
/// After this number of bytes a fetching thread checks whether a row still needs its piece.
const BYTES_AT_A_TIME: usize = 1 << 20;

const PANICKED: &str = "the store panicked";

/// Fetches ahead of the reads of a data set. It has threads from the first epoch on. Dropping it ends their waits and requests, and joins
/// them.
#[derive(derive_more::Debug)]
#[debug("ReadAhead {{ requests: {requests}, .. }}")]
pub(crate) struct ReadAhead {
    shared: Arc<Fetcher>,
    /// Ends the waits for the store.
    stop: Stop,
    /// How many requests there may be at once.
    requests: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

pub(crate) struct Fetcher {
    store: Arc<dyn Store>,
    state: Mutex<AheadState>,
    /// Fetching threads wait here for work.
    work: Condvar,
    /// Reads wait here for parts to arrive.
    arrived: Condvar,
}

/// Rows that are fetched ahead. Dropping it ends the fetching.
#[derive(derive_more::Debug)]
#[debug("FetchAhead")]
#[must_use = "its drop ends the fetching"]
pub struct FetchAhead {
    /// The number of the rows' epoch. `None` if nothing is fetched ahead.
    pub(crate) epoch: Option<(Arc<Fetcher>, u64)>,
}

/// This also ends the requests that no other epoch needs.
impl Drop for FetchAhead {
    fn drop(&mut self) {
        let Some((shared, id)) = &self.epoch else { return };
        let plan = shared.state.lock().end(*id);
        drop(plan);
        shared.arrived.notify_all();
        shared.work.notify_all();
    }
}

impl ReadAhead {
    /// `stop` is that of the store. `limit` is the most bytes that are in flight or wait for a read.
    pub(crate) fn new(store: Arc<dyn Store>, stop: Stop, limit: u64, requests: usize) -> Self {
        let state = Mutex::new(AheadState::new(limit));
        let shared = Fetcher { store, state, work: Condvar::new(), arrived: Condvar::new() };
        Self { shared: Arc::new(shared), stop, requests, threads: Mutex::new(Vec::new()) }
    }

    /// Begins to fetch what these rows need, in their order. `again` says that each row reads its parts again. Otherwise a part that
    /// several rows need is read and decoded once.
    pub(crate) fn begin(&self, plan: Plan, again: bool) -> FetchAhead {
        let id = self.shared.state.lock().begin(plan, again);
        let mut threads = self.threads.lock();
        while threads.len() < self.requests {
            let shared = Arc::clone(&self.shared);
            let name = format!("bp-fetch-{}", threads.len());
            let run = move || {
                // There are dozens of these threads. If all cores are busy, they would take cores from the workers that decode parts, and
                // delay the first batch.
                step_back(15);
                shared.work();
            };
            match thread::Builder::new().name(name).spawn(run) {
                Ok(thread) => threads.push(thread),
                // With fewer threads, reads fetch more parts themselves.
                Err(error) => {
                    log::warn!("only {} threads read ahead: {error}", threads.len());
                    break;
                }
            }
        }
        drop(threads);
        // The first rows are planned before workers ask for them.
        let first = self.shared.state.lock().next_plan();
        if let Some((id, plan)) = first {
            self.shared.plan(id, plan);
        }
        self.shared.work.notify_all();
        FetchAhead { epoch: Some((Arc::clone(&self.shared), id)) }
    }

    /// Reads a part, on the calling thread.
    pub(crate) fn read(&self, object: usize, part: Range<u64>) -> io::Result<Vec<u8>> {
        let (key, end) = ((object, part.start), part.end);
        let mut state = self.shared.state.lock();
        let mut want = state.want(key, end, None);
        if let ReadAction::Coming(_) = want {
            (state, want) = fetching(|| {
                while let ReadAction::Coming(request) = want
                    && !self.stop.is_set()
                {
                    state = self.shared.arrived.wait_for(state, LOOK);
                    want = state.want(key, end, Some(request));
                }
                (state, want)
            });
        }
        drop(state);
        match want {
            ReadAction::Here(bytes) => {
                self.shared.work.notify_one(); // there is space for more
                Ok(Arc::unwrap_or_clone(bytes)) // copied without the lock, if other rows read them too
            }
            ReadAction::Failed(error) => Err(copy(&error)),
            ReadAction::Coming(_) => Err(io::Error::other(STOPPED_WAIT)),
            want => {
                let fetch = || fetching(|| whole(&*self.shared.store, object, part));
                let read = catch_unwind(AssertUnwindSafe(fetch));
                if let ReadAction::Fetch(request) = want {
                    let becomes = match &read {
                        Ok(Ok(_)) => PartState::Taken,
                        // Other reads that wait for the part may fetch it.
                        _ if self.stop.is_set() => PartState::Wanted,
                        Ok(Err(error)) => PartState::Failed(request, Arc::new(copy(error))),
                        Err(_) => PartState::Failed(request, Arc::new(io::Error::other(PANICKED))),
                    };
                    self.shared.state.lock().ended(request, key, end, becomes);
                    self.shared.arrived.notify_all();
                }
                read.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }

    /// Notes that a row was read, so that more can be planned.
    pub(crate) fn row_read(&self, row: usize) {
        let mut state = self.shared.state.lock();
        state.row_read(row);
        let has_more = state.has_more();
        drop(state);
        if has_more {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.stop.stop();
        self.shared.close();
        for thread in self.threads.lock().drain(..) {
            // The last owner of the data set may be a thread that planned for it.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join(); // panics in it are caught
            }
        }
    }
}

/// A copy of an error, for another reader.
fn copy(error: &io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>()) {
        Some(inner) => io::Error::new(error.kind(), inner.clone()),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Takes the next rows of a plan, without their parts that are on this machine. Returns them with the rest of the plan, if there is one.
pub fn next_rows(mut plan: Plan, is_near: impl Fn(usize, &Range<u64>) -> bool) -> (Vec<PlannedRow>, Option<Plan>) {
    let (mut rows, mut foreign, mut is_over) = (Vec::with_capacity(ROWS_AT_ONCE), 0, false);
    while rows.len() < ROWS_AT_ONCE && !is_over {
        match plan.next() {
            Some(Some(mut row)) => {
                row.parts.retain(|(object, part)| !is_near(*object, part));
                rows.push(row);
            }
            Some(None) if foreign < FOREIGN_ROWS => foreign += 1,
            _ => is_over = true,
        }
    }
    (rows, (!is_over).then_some(plan))
}

impl Fetcher {
    /// Ends the fetching threads, and their waits for the store.
    fn close(&self) {
        self.state.lock().close();
        self.work.notify_all();
    }

    /// The loop of a fetching thread, until the data set is dropped. Planning comes first: it takes little time, and planned parts can be
    /// fetched together.
    fn work(&self) {
        let mut state = self.state.lock();
        while !state.is_closed {
            if let Some((id, plan)) = state.next_plan() {
                drop(state);
                self.plan(id, plan);
                state = self.state.lock();
            } else if let Some(piece) = state.next_piece() {
                drop(state);
                self.fetch(&piece);
                state = self.state.lock();
            } else {
                state = self.work.wait(state);
            }
        }
    }

    fn plan(&self, id: u64, plan: Plan) {
        // The sampler is the user's code. If it panics here, the loader meets the same panic and reports it.
        let is_near = |object, part: &_| self.store.is_near(object, part);
        let planned = catch_unwind(AssertUnwindSafe(|| next_rows(plan, is_near)));
        let (rows, plan) = planned.unwrap_or_default();
        let left = self.state.lock().planned(id, rows, plan);
        drop(left);
        self.work.notify_all();
    }

    /// Fetches a piece, part by part. If a part fails, the reads that wait for it get the error.
    fn fetch(&self, piece: &AheadPiece) {
        let mut next = 0;
        end_waits_by(Arc::clone(&piece.ended));
        let fetched = catch_unwind(AssertUnwindSafe(|| self.parts(piece, &mut next)));
        end_waits_by(Arc::default()); // the next work of this thread may be for another epoch
        let mut state = self.state.lock();
        state.over(piece.request);
        let error = match fetched {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => io::Error::other(PANICKED),
        };
        let error = Arc::new(error);
        for part in piece.parts.iter().skip(next) {
            let failed = PartState::Failed(piece.request, Arc::clone(&error));
            state.ended(piece.request, (piece.object, part.start), part.end, failed);
        }
        drop(state);
        self.arrived.notify_all();
    }

    fn parts(&self, piece: &AheadPiece, next: &mut usize) -> io::Result<()> {
        let Range { start: mut at, end } = piece.range();
        let mut from = self.store.open(piece.object, at..end)?;
        for Range { start, end } in piece.parts.iter().cloned() {
            io::copy(&mut (&mut from).take(start - at), &mut io::sink())?;
            let bytes = grown(end - start, |more| {
                more.chunks_mut(BYTES_AT_A_TIME).try_for_each(|some| match piece.ended.load(Relaxed) {
                    true => Err(io::Error::other(STOPPED_WAIT)),
                    false => from.read_exact(some),
                })
            })?;
            (at, *next) = (end, *next + 1);
            let here = PartState::Here(Arc::new(bytes));
            self.state.lock().ended(piece.request, (piece.object, start), end, here);
            self.arrived.notify_all();
        }
        Ok(())
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod model;
#[cfg(all(test, not(burn_pinned_loom)))]
mod tests;
