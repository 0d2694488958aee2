//! The consumer's side of the pipeline: it starts epochs, waits for their batches or gives them up, and ends epochs.

use super::{
    epochs::Epochs,
    run::{Delivery, Run, RunId},
    shared::Pipeline,
    waits::{Aid, Waits},
};
use crate::{
    batch::Step,
    fault::{Error, discard},
    memory::Permit,
    observe::CopyId,
    order::Feed,
    sync::MutexGuard,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::StreamId;
use std::{
    collections::VecDeque,
    mem,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

/// What a consumer does outside the lock about a long wait.
enum Remedy {
    Hurry,
    Free(Vec<Permit>),
    Call,
}

impl<O> Pipeline<O> {
    /// Starts an epoch of the batches with these numbers.
    pub(crate) fn start(&self, epoch: usize, feed: Feed, batches: Range<usize>) -> RunId {
        self.pool.ask_again();
        // What the sampler has made is user code too, so it is not dropped under the lock.
        let (feed, unneeded) = if batches.is_empty() { (None, Some(feed)) } else { (Some(feed), None) };
        let key = BatchKey { device: self.device, ..BatchKey::new(epoch, batches.start) };
        discard(Place::batch(Stage::Sampler, key), unneeded);
        let mut state = self.crew.lock();
        let id = RunId(state.next_id);
        state.next_id += 1;
        state.runs.push(Run::new(id, Arc::clone(self.branch()), epoch, feed, batches));
        state.count(&self.flow, self.counters());
        drop(state);
        self.crew.for_workers.notify_one();
        self.crew.for_resting.notify_all(); // all work until its first batch is there
        id
    }

    /// Waits for the next batch of an epoch, in order; returns it or its error. The wait counts from `asked`. Returns
    /// `None` at the epoch's end.
    pub(crate) fn next(&self, id: RunId, asked: Instant) -> Option<Delivery<O>> {
        let mut waits = Waits::new(&self.flow, self.is_host(), self.crew.tunes());
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
            if run.ready.contains_key(&run.delivered) {
                return self.take(state, id, asked);
            }
            if closed {
                let place = run.batch(run.delivered).place(Stage::Read);
                run.delivered = run.end;
                return Some(Delivery::error(place, Error::Ended, asked.elapsed()));
            }
            if run.waiting.is_none() && run.next_to_open() {
                self.crew.for_workers.notify_one(); // its patience begins, if there is no permit
            }
            let waited = run.waiting.get_or_insert(asked).elapsed();
            if self.flow.timeout.is_some_and(|timeout| waited >= timeout) {
                return self.give_up(state, id, waited);
            }
            if let Some(remedy) = waits.due(waited).find_map(|aid| self.remedy(&mut state, id, aid)) {
                drop(state);
                match remedy {
                    Remedy::Hurry => self.common.hurry(), // this thread gives Burn no task now
                    Remedy::Free(permits) => drop(permits),
                    Remedy::Call => self.crew.called(),
                }
                state = self.crew.lock();
                continue;
            }
            match waits.next(waited).into_iter().chain(self.flow.timeout).min() {
                None => self.for_consumers.wait(&mut state),
                Some(end) => drop(self.for_consumers.wait_for(&mut state, end.saturating_sub(waited))),
            }
        }
    }

    /// Finds what helps against a long wait.
    fn remedy(&self, state: &mut Epochs<O>, id: RunId, aid: Aid) -> Option<Remedy> {
        match aid {
            Aid::Hurry => Some(Remedy::Hurry),
            Aid::TakePermits => {
                let lacks = state.run(id)?.lacks_permit();
                let permits = if lacks { state.take_permits(self.branch()) } else { Vec::new() };
                (!permits.is_empty()).then_some(Remedy::Free(permits))
            }
            Aid::CallAll => {
                let calls = state.call_all(id, &self.flow);
                state.count(&self.flow, self.counters());
                calls.then_some(Remedy::Call)
            }
        }
    }

    /// Takes the next batch of an epoch, which is ready, or its error.
    fn take(&self, mut state: MutexGuard<'_, Epochs<O>>, id: RunId, asked: Instant) -> Option<Delivery<O>> {
        let run = state.run(id)?;
        let (since, ready) = run.ready.remove(&run.delivered)?;
        let batch = run.batch(run.delivered);
        let skips = run.skips.remove(&run.delivered).unwrap_or_default();
        let waited = run.waited(asked);
        run.permits.remove(&run.delivered);
        run.delivered += 1;
        run.waiting = None;
        run.calls_all = false;
        let opens = run.has_work();
        if ready.is_err() {
            state.lets_go(batch);
        }
        let as_chosen = state.is_as_chosen(&self.flow);
        state.count(&self.flow, self.counters());
        drop(state);
        self.for_step(Step::Send).notify_one();
        if ready.is_err() {
            self.crew.for_resting.notify_all(); // a worker that still has a part of it in hand no longer counts
        }
        if opens {
            self.crew.for_workers.notify_one();
        }
        self.counters().took(Stage::Ready, batch.key, since, Instant::now());
        Some(Delivery { place: batch.place(Stage::Read), ready, skips, waited, as_chosen })
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
        state.count(&self.flow, self.counters());
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
        Some(Delivery::error(place, error, waited))
    }

    /// Notes that a batch was handed out: how long the consumer waited for the loader, and what its step before took. The
    /// tuning goes by that, for all copies of the loader, if it is `as_chosen`. Each copy then makes room for the new number of batches ahead.
    pub(crate) fn handed(&self, copy: CopyId, waited: Duration, stepped: Option<Duration>, as_chosen: bool) {
        if self.crew.handed(copy, waited, stepped.filter(|_| as_chosen)) {
            self.crew.lock().count(&self.flow, self.counters());
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
        state.count(&self.flow, self.counters());
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
