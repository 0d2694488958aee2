//! The consumer's side of the pipeline: it starts epochs, waits for their batches or gives them up, and ends epochs.

use super::{
    epochs::Epochs,
    run::{Delivery, Run, RunId},
    shared::Pipeline,
};
use crate::{
    batch::Step,
    fault::{Error, Skips, discard},
    observe::CopyId,
    order::Feed,
    sync::MutexGuard,
    vocabulary::{BatchKey, Stage},
};
use burn::tensor::StreamId;
use std::{
    collections::VecDeque,
    mem,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

/// After this wait a consumer lets Burn begin what it has gathered. Most waits are over sooner, and then the consumer's own
/// next tasks do that.
const GRACE: Duration = if cfg!(all(test, burn_pinned_loom)) {
    Duration::ZERO // a model must not depend on a clock
} else {
    Duration::from_micros(200)
};

/// After this wait for a slot, a consumer takes the permits of batches that are ready for others: nobody may be reading them.
const UNREAD: Duration = if cfg!(all(test, burn_pinned_loom)) { Duration::ZERO } else { Duration::from_millis(100) };
/// After this wait for the workers, a consumer calls all of them, whatever `Auto` has chosen: the work may have grown, or
/// the few at work may hang.
const CALL: Duration = if cfg!(all(test, burn_pinned_loom)) { Duration::MAX } else { Duration::from_millis(250) };

impl<O> Pipeline<O> {
    /// Starts an epoch of the batches with these numbers.
    pub(crate) fn start(&self, epoch: usize, feed: Feed, batches: Range<usize>) -> RunId {
        self.pool.ask_again();
        let mut state = self.crew.lock();
        let id = RunId(state.next_id);
        state.next_id += 1;
        state.runs.push(Run::new(id, Arc::clone(self.branch()), epoch, feed, batches));
        drop(state);
        self.crew.for_workers.notify_one();
        self.crew.for_resting.notify_all(); // all work until its first batch is there
        self.counters().set_workers(self.flow.workers);
        id
    }

    /// Waits for the next batch of an epoch, in order; returns it or its error. The wait counts from `asked`. Returns
    /// `None` at the epoch's end.
    pub(crate) fn next(&self, id: RunId, asked: Instant) -> Option<Delivery<O>> {
        let mut hurried = self.is_host();
        let [unread, call] = [UNREAD, CALL].map(|most| self.flow.patience(most));
        let (mut unread_at, mut call_at) = (self.is_host().then_some(unread), self.crew.tunes().then_some(call));
        let mut state = self.crew.lock();
        if let Some(run) = state.run(id) {
            self.counters().asked(run.queues());
            run.consumer = StreamId::current();
        }
        loop {
            let closed = state.closed || self.is_closed();
            let run = state.run(id)?;
            if run.delivered == run.end {
                return None;
            }
            if let Some((since, ready)) = run.ready.remove(&run.delivered) {
                let batch = run.batch(run.delivered);
                let skips = run.skips.remove(&run.delivered).unwrap_or_default();
                let waited = run.waited(asked);
                run.permits.remove(&run.delivered);
                let called = mem::take(&mut run.calls_all) || run.is_first(run.delivered);
                run.delivered += 1;
                run.waiting = None;
                let opens = run.has_work();
                if ready.is_err() {
                    state.lets_go(batch);
                }
                drop(state);
                self.for_step(Step::Send).notify_one();
                if called {
                    self.counters().set_workers(self.flow.now.workers());
                }
                if ready.is_err() {
                    self.crew.for_resting.notify_all(); // a worker that still has a part of it in hand no longer counts
                }
                if opens {
                    self.crew.for_workers.notify_one();
                }
                self.counters().took(Stage::Ready, batch.key, since, Instant::now());
                return Some(Delivery { place: batch.place(Stage::Read), ready, skips, waited });
            }
            if closed {
                let place = run.batch(run.delivered).place(Stage::Read);
                run.delivered = run.end;
                let (ready, waited) = (Err(Error::Ended), asked.elapsed());
                return Some(Delivery { place, ready, skips: Skips::default(), waited });
            }
            if run.waiting.is_none() && run.next_to_open() {
                self.crew.for_workers.notify_one(); // its patience begins, if there is no permit
            }
            let waited = run.waiting.get_or_insert(asked).elapsed();
            if unread_at.is_some_and(|at| waited >= at) {
                unread_at = Some(waited + unread);
                let permits = if run.lacks_permit() { state.take_permits(self.branch()) } else { Vec::new() };
                if !permits.is_empty() {
                    drop(state);
                    drop(permits);
                    state = self.crew.lock();
                    continue;
                }
            }
            if call_at.is_some_and(|at| waited >= at) {
                call_at = Some(waited + call);
                if state.call_all(id, &self.flow) {
                    drop(state);
                    self.crew.called();
                    self.counters().set_workers(self.flow.workers);
                    state = self.crew.lock();
                    continue;
                }
            }
            let ends = [self.flow.timeout, unread_at, call_at];
            match ends.into_iter().flatten().filter(|end| *end > waited).min() {
                _ if self.flow.timeout.is_some_and(|timeout| waited >= timeout) => {
                    return self.give_up(state, id, waited);
                }
                _ if !hurried && waited < GRACE => drop(self.for_consumers.wait_for(&mut state, GRACE - waited)),
                _ if !hurried => {
                    drop(state);
                    self.common.hurry(); // Burn waits for more tasks, and this thread asks for none now
                    hurried = true;
                    state = self.crew.lock();
                }
                None => self.for_consumers.wait(&mut state),
                Some(end) => drop(self.for_consumers.wait_for(&mut state, end - waited)),
            }
        }
    }

    /// Gives up the next batch of an epoch and drops what there is of it. What still comes of it will be dropped too.
    fn give_up(&self, mut state: MutexGuard<'_, Epochs<O>>, id: RunId, waited: Duration) -> Option<Delivery<O>> {
        let run = state.run(id)?;
        let (batch, number) = (run.batch(run.delivered), run.delivered);
        run.delivered += 1;
        (run.waiting, run.calls_all) = (None, false);
        let tasks = if run.tasks_of == number { mem::take(&mut run.tasks) } else { VecDeque::new() };
        let left_over = (tasks, run.queues.take(Some(number)), run.skips.remove(&number));
        run.full.remove(&number);
        let permit = run.permits.remove(&number);
        state.lets_go(batch);
        drop(state);
        let hung = self.blame(batch.key).map(Box::new);
        let place = batch.place(Stage::Read);
        discard(place, left_over);
        // Some thread has the rest of it, maybe for ever. The other batches must not have one slot less because of
        // that.
        permit.into_iter().for_each(|permit| self.pool.replace(permit));
        self.crew.for_workers.notify_all();
        self.crew.for_resting.notify_all();
        self.wake_steps();
        let BatchKey { epoch, device, .. } = batch.key;
        let error = Error::Timeout { epoch, batch: number, device, waited, hung };
        self.source.faults().saw(&error);
        Some(Delivery { place, ready: Err(error), skips: Skips::default(), waited })
    }

    /// Notes that a batch was handed out: how long the consumer waited for the loader, and what its step before took. The
    /// tuning goes by that, for all copies of the loader. Each copy then makes room for the new number of batches ahead.
    pub(crate) fn handed(&self, copy: CopyId, waited: Duration, stepped: Option<Duration>) {
        if self.crew.handed(copy, waited, stepped) {
            self.counters().set_workers(self.flow.now.workers());
        }
        let ahead = self.flow.now.prefetch();
        if self.ahead.swap(ahead, Relaxed) != ahead {
            let slots = self.pool.allow(ahead.saturating_sub(self.flow.prefetch));
            self.window.allow(self.flow.ahead() + 1);
            self.counters().started(self.transfers, slots);
        }
    }

    /// Ends an epoch, finished or not, and drops what is on its way.
    pub(crate) fn end(&self, id: RunId) {
        let mut state = self.crew.lock();
        let run = state.runs.iter().position(|run| run.id == id).map(|at| state.runs.swap_remove(at));
        let in_hand = state.in_hand.iter().flatten().any(|batch| batch.run == id);
        drop(state);
        if in_hand {
            self.crew.for_resting.notify_all(); // workers that may hang there no longer count
        }
        if let Some(run) = run {
            run.abandoned.store(true, Relaxed);
            discard(run.batch(0).place(Stage::Finish), run); // slots return to the pool here, outside the lock
        }
        self.crew.for_workers.notify_one(); // workers may have rested because of this epoch
    }
}
