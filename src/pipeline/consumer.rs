//! The consumer's side of the pipeline: it begins epochs, waits for their batches, and ends epochs.

use super::{
    clocks::{Clock, Clocks},
    pipeline::Pipeline,
    state::{EndedEpoch, State},
};
use crate::{
    batch::{Batch, BatchState, Queue},
    fault::{Error, discard},
    order::Feed,
    sync::MutexGuard,
    vocabulary::{BatchKey, IteratorId, Place, Stage},
};
use burn::tensor::StreamId;
use std::{
    ops::Range,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

impl<O> Pipeline<O> {
    /// Begins an epoch of the batches with these numbers. Returns the feed if threads hang or have died: then the epoch
    /// needs new threads.
    pub(crate) fn begin(&self, epoch: usize, feed: Feed, batches: Range<usize>) -> Result<IteratorId, Feed> {
        let key = BatchKey { device: self.settings.device, ..BatchKey::new(epoch, batches.start) };
        let mut state = self.lock();
        if self.hung.load(Relaxed) || state.is_closed() {
            return Err(feed);
        }
        if state.epochs() == 0 {
            self.pool.ask_again();
        }
        let (feed, unneeded) = if batches.is_empty() { (None, Some(feed)) } else { (Some(feed), None) };
        let id = state.add_epoch(key, feed, batches);
        drop(state);
        // The drop of what the sampler has made is user code, so it does not run under the lock.
        discard(Place::batch(Stage::Sampler, key), unneeded);
        self.for_workers.notify_one();
        Ok(id)
    }

    /// Waits for the next batch of an epoch, in order. Returns it or its error, and how long the consumer waited for it since `asked`,
    /// without waits for space on the device. Returns `None` at the end of the epoch. After an [`Error::Timeout`], an
    /// [`Error::LeaseTimeout`] or an [`Error::Ended`] the epoch is over.
    pub(crate) fn next(&self, id: IteratorId, asked: Instant) -> Option<(Batch<O>, Duration)> {
        let mut clocks = Clocks::start(&self.settings, self.is_host());
        let (mut state, here) = (self.lock(), StreamId::current());
        if let Some(queues) = state.asked(id, here) {
            self.counters().asked(queues);
        }
        let mut now = asked;
        loop {
            let waited = now.saturating_duration_since(asked);
            if state.is_over(id) {
                return None;
            }
            if let Some((batch, waited, since)) = state.take_ready(id, asked, now) {
                return Some((self.hand_out(state, batch, since, now), waited));
            }
            if state.is_closed() {
                return self.give_up(state, id, waited, |_, _| Error::Ended);
            }
            let lacks_slot = state.is_unopened(id) && !self.pool.has_permit();
            if lacks_slot
                && self.is_host()
                && let Some(permit) = state.take_permit_of(here)
            {
                drop(state);
                drop(permit);
                (state, now) = (self.lock(), Instant::now());
                continue;
            }
            // While a worker is in a task, slots may still come back after it, however long it takes.
            let is_lacking = (lacks_slot || self.pool.is_awaited()) && self.busy.load(Relaxed) == 0;
            match clocks.due(waited, is_lacking) {
                Some(Clock::Timeout) => {
                    self.hung.store(true, Relaxed); // under the lock, so that no epoch begins here any more
                    return self.give_up(state, id, waited, |next, lost| {
                        let BatchKey { epoch, number: batch, device, .. } = next;
                        let hung = self.watch.blame(next).map(Box::new);
                        Error::Timeout { epoch, batch, device, waited, lost, hung }
                    });
                }
                Some(Clock::Slot) => {
                    let error = self.pool.lease_timeout(waited, state.epochs().saturating_sub(1));
                    return self.give_up(state, id, waited, |_, _| error);
                }
                Some(Clock::Flush) => {
                    drop(state);
                    self.transfers.hurry(); // this thread sends no task to Burn now
                    (state, now) = (self.lock(), Instant::now());
                    continue;
                }
                Some(Clock::Permits) if lacks_slot => {
                    let permits = state.take_permits();
                    if !permits.is_empty() {
                        drop(state);
                        drop(permits);
                        (state, now) = (self.lock(), Instant::now());
                        continue;
                    }
                }
                Some(Clock::Permits) | None => {}
            }
            state = match clocks.sleep(waited) {
                None => self.for_consumers.wait(state),
                Some(time) => self.for_consumers.wait_for(state, time),
            };
            now = Instant::now();
        }
    }

    fn hand_out(&self, state: MutexGuard<'_, State<O>>, mut batch: Batch<O>, since: Instant, now: Instant) -> Batch<O> {
        // The batch is the consumer's from here on.
        if let BatchState::Ready { permit, .. } = &mut batch.state
            && let Some(permit) = permit.take()
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
        self.counters().took(Stage::Ready, batch.key, since, now.max(since));
        batch
    }

    /// Ends an epoch with an error in place of its next batch. `error` gets that batch, and how many batches after it
    /// are lost.
    fn give_up(
        &self,
        mut state: MutexGuard<'_, State<O>>,
        id: IteratorId,
        waited: Duration,
        error: impl FnOnce(BatchKey, usize) -> Error,
    ) -> Option<(Batch<O>, Duration)> {
        let ended = state.end(id)?;
        drop(state);
        let (batch, lost) = (ended.next, ended.left.saturating_sub(1));
        let error = error(batch, lost);
        self.finish(ended);
        self.source.faults().saw(&error);
        Some((Batch::failed(batch, error), waited))
    }

    /// Ends an epoch, finished or not, and drops the batches that are on their way.
    pub(crate) fn end(&self, id: IteratorId) {
        let ended = self.lock().end(id);
        if let Some(ended) = ended {
            self.finish(ended);
        }
    }

    fn finish(&self, ended: EndedEpoch<O>) {
        ended.abandoned.store(true, Relaxed);
        self.pool.wake(); // workers and the pin thread may wait there for memory
        discard(Place::batch(Stage::Finish, ended.next), ended); // slots return to the pool here, outside the lock
        let state = self.lock();
        if self.hung.load(Relaxed) && state.epochs() == 0 {
            drop(state);
            self.close(); // the next epoch has new threads; free memory is freed now
        }
    }
}
