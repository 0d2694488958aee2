//! The consumer's side of the pipeline: it begins epochs, waits for their batches, and ends epochs. It has the only
//! clock of patience: no other thread gives up a wait for work or memory.

use super::{
    pipeline::Pipeline,
    state::{Rest, State, delivery::Found},
};
use crate::{
    batch::{Delivery, Queue, Ready},
    fault::{Error, Skips, discard},
    order::Feed,
    sync::MutexGuard,
    vocabulary::{BatchKey, EpochId, Place, Stage},
};
use burn::tensor::StreamId;
use std::{
    ops::Range,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

const fn unless_modelled(time: Duration, modelled: Duration) -> Duration {
    if cfg!(all(test, burn_pinned_loom)) { modelled } else { time } // a model must not depend on a clock
}

/// How long a wait lasts before Burn is told to begin what it has gathered. Most waits are over sooner, and then the
/// consumer's own next tasks let it begin.
const FLUSH: Duration = unless_modelled(Duration::from_micros(200), Duration::ZERO);
/// How long a wait for a slot lasts on a CPU backend before the consumer takes the permits of batches that are ready
/// for other threads: nobody may be reading these batches. It tries again after the same time. It takes the permits of
/// batches for its own thread at once.
const TAKE_PERMITS: Duration = unless_modelled(Duration::from_millis(100), Duration::ZERO);

impl<O> Pipeline<O> {
    /// Begins an epoch of the batches with these numbers. Gives the feed back if threads hang or have died: then the
    /// epoch needs new ones.
    pub(crate) fn begin(&self, epoch: usize, feed: Feed, batches: Range<usize>) -> Result<EpochId, Feed> {
        let key = BatchKey { device: self.settings.device, ..BatchKey::new(epoch, batches.start) };
        let mut state = self.lock();
        if self.hung.load(Relaxed) || state.is_closed() {
            return Err(feed);
        }
        if state.epochs() == 0 {
            self.pool.ask_again();
        }
        let (feed, unneeded) = if batches.is_empty() { (None, Some(feed)) } else { (Some(feed), None) };
        let id = state.begin(key, feed, batches);
        drop(state);
        // The drop of what the sampler has made is user code, so it does not run under the lock.
        discard(Place::batch(Stage::Sampler, key), unneeded);
        self.for_workers.notify_one();
        Ok(id)
    }

    /// Waits for the next batch of an epoch, in order; returns it or its error. The wait counts from `asked`. Returns
    /// `None` at the epoch's end. After an [`Error::Timeout`], an [`Error::LeaseTimeout`] or an [`Error::Ended`] the
    /// epoch is over.
    pub(crate) fn next(&self, id: EpochId, asked: Instant) -> Option<Delivery<O>> {
        let mut flush = (!self.is_host()).then_some(FLUSH);
        let mut take_permits = self.is_host().then_some(TAKE_PERMITS);
        let mut lacking = None; // the time since which slots or memory are lacking
        let (mut state, here) = (self.lock(), StreamId::current());
        if let Some(queues) = state.asked(id, here) {
            self.counters().asked(queues);
        }
        let mut now = asked;
        loop {
            let waited = now.saturating_duration_since(asked);
            let unopened = match state.find(id, asked, now) {
                Found::Over => return None,
                Found::Batch { delivery, since } => return Some(self.hand_out(state, delivery, since, now)),
                Found::Nothing { unopened } => unopened,
            };
            if state.is_closed() {
                return self.give_up(state, id, waited, |_, _| Error::Ended);
            }
            if self.settings.timeout.is_some_and(|timeout| waited >= timeout) {
                self.hung.store(true, Relaxed); // under the lock, so that no epoch begins here any more
                return self.give_up(state, id, waited, |next, lost| {
                    let BatchKey { epoch, number: batch, device, .. } = next;
                    Error::Timeout { epoch, batch, device, waited, lost, hung: self.watch.blame(next).map(Box::new) }
                });
            }
            let lacks_slot = unopened && !self.pool.has_permit();
            if lacks_slot
                && self.is_host()
                && let Some(permit) = state.take_permit_of(here)
            {
                drop(state);
                drop(permit);
                (state, now) = (self.lock(), Instant::now());
                continue;
            }
            // While a worker is in a task, slots may come back after it, however long it takes.
            let is_lacking = (lacks_slot || self.pool.is_awaited()) && self.busy.load(Relaxed) == 0;
            lacking = is_lacking.then(|| lacking.unwrap_or(now));
            if lacking.is_some_and(|since| now.saturating_duration_since(since) >= self.settings.lease_timeout) {
                let iterators = state.epochs().saturating_sub(1);
                let error = self.pool.lease_timeout(waited, iterators);
                return self.give_up(state, id, waited, |_, _| error);
            }
            if flush.is_some_and(|flush| waited >= flush) {
                flush = None;
                drop(state);
                self.common.hurry(); // this thread gives Burn no task now
                (state, now) = (self.lock(), Instant::now());
                continue;
            }
            if take_permits.is_some_and(|at| waited >= at) {
                take_permits = Some(waited + TAKE_PERMITS);
                let permits = if lacks_slot { state.take_permits() } else { Vec::new() };
                if !permits.is_empty() {
                    drop(state);
                    drop(permits);
                    (state, now) = (self.lock(), Instant::now());
                    continue;
                }
            }
            // Nobody tells the consumer when memory begins to lack, so it looks again after `lease_timeout` at the latest.
            let patience =
                lacking.unwrap_or(now).saturating_duration_since(asked).saturating_add(self.settings.lease_timeout);
            let next = [flush, take_permits, self.settings.timeout, Some(patience)].into_iter().flatten().min();
            state = match next.filter(|next| *next < Duration::MAX) {
                None => self.for_consumers.wait(state),
                Some(next) => self.for_consumers.wait_for(state, next.saturating_sub(waited)),
            };
            now = Instant::now();
        }
    }

    fn hand_out(
        &self,
        state: MutexGuard<'_, State<O>>,
        mut delivery: Delivery<O>,
        since: Instant,
        now: Instant,
    ) -> Delivery<O> {
        // The batch is the consumer's from here on.
        if let Ok(Ready::Finished(finished)) = &mut delivery.ready
            && let Some(permit) = finished.permit.take()
        {
            permit.give_back();
        }
        let (opens, sends) = (self.wants_worker(&state), state.may_send());
        drop(state);
        if sends {
            self.for_queue(Queue::Send).notify_one(); // one more may go to the device
        }
        if opens {
            self.for_workers.notify_one();
        }
        // The batch may have become ready after this thread looked at the clock.
        self.counters().took(Stage::Ready, delivery.key, since, now.max(since));
        delivery
    }

    /// Ends an epoch with an error in place of its next batch. `error` gets that batch, and how many batches are lost
    /// behind it.
    fn give_up(
        &self,
        mut state: MutexGuard<'_, State<O>>,
        id: EpochId,
        waited: Duration,
        error: impl FnOnce(BatchKey, usize) -> Error,
    ) -> Option<Delivery<O>> {
        let rest = state.end(id)?;
        drop(state);
        let (batch, lost) = (rest.next, rest.left.saturating_sub(1));
        let error = error(batch, lost);
        self.finish(rest);
        self.source.faults().saw(&error);
        Some(Delivery { key: batch, ready: Err(error), skips: Skips::default(), waited })
    }

    /// Ends an epoch, finished or not, and drops the batches that are on their way.
    pub(crate) fn end(&self, id: EpochId) {
        let rest = self.lock().end(id);
        if let Some(rest) = rest {
            self.finish(rest);
        }
    }

    fn finish(&self, rest: Rest<O>) {
        rest.abandoned.store(true, Relaxed);
        self.pool.wake(); // workers and the pin thread may wait there for memory
        discard(Place::batch(Stage::Finish, rest.next), rest); // slots return to the pool here, outside the lock
        let state = self.lock();
        if self.hung.load(Relaxed) && state.epochs() == 0 {
            drop(state);
            self.close(); // the next epoch has new threads; free memory is freed now
        }
    }
}
