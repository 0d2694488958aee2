//! The wanted number of workers, and the next work for a worker.

use super::{Depth, Epoch, State};
use crate::{
    batch::{Batch, Task},
    fault::Error,
    memory::Permit,
    order::Feed,
    vocabulary::BatchKey,
};
use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task(Task<O>),
    /// A batch must be opened. Its epoch has lent its feed for this, so no other worker opens its next batch.
    /// `workers` is the number of workers that there are to be.
    Open { batch: BatchKey, feed: Feed, permit: Permit, abandoned: Arc<AtomicBool>, workers: usize, since: Instant },
}

impl<O> Epoch<O> {
    /// Whether the next batch may be opened, apart from the permit. Workers first take all tasks of the previous batch.
    fn may_open(&self, depth: Depth) -> bool {
        self.tasks.is_empty() && self.feed.is_some() && self.opened < self.end.min(self.delivered + depth.open())
    }

    /// Returns true if a worker could do something: run a task, or open the next batch.
    fn has_work(&self, has_permit: bool, depth: Depth) -> bool {
        !self.tasks.is_empty() || (has_permit && self.may_open(depth))
    }

    /// How urgent the work of the epoch is; the lowest value goes first. The first part is the distance of the batch
    /// from the one that the consumer needs next. Then epochs with a waiting consumer go first, the longest wait before
    /// the others. Then tasks go before opening a batch.
    fn urgency(&self) -> (usize, bool, Option<Instant>, bool) {
        let opens = self.tasks.is_empty();
        let number = if opens { self.opened } else { self.opened - 1 };
        (number - self.delivered.min(number), self.waiting.is_none(), self.waiting, opens)
    }
}

impl<O> State<O> {
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Sets how many workers there are to be; returns the numbers of those that have to be started.
    pub(crate) fn set_workers(&mut self, workers: usize) -> Vec<usize> {
        self.workers = workers;
        self.running.resize(self.running.len().max(workers), false);
        let stopped = (0..workers).filter(|worker| !self.running[*worker]).collect();
        self.running[..workers].fill(true);
        stopped
    }

    /// Notes that a worker could not be started.
    pub(crate) fn not_started(&mut self, worker: usize) {
        self.running[worker] = false;
    }

    /// Whether a worker continues. Otherwise it must end.
    pub(crate) fn goes_on(&mut self, worker: usize) -> bool {
        let goes_on = !self.closed && worker < self.workers;
        if !goes_on {
            self.running[worker] = false;
        }
        goes_on
    }

    /// Whether there is work for a sleeping worker. Tasks that no worker has started always count. Opening a small batch does not count
    /// while the epoch has enough open batches ahead of its consumer: more than half the number of slots, more than `prefetch`, and more
    /// than two.
    pub(crate) fn has_work_for_sleepers(&self, has_permit: bool, are_small: bool) -> bool {
        let enough = if are_small { self.depth.prefetch.max(self.depth.slots / 2).max(2) } else { usize::MAX };
        let lacks = |epoch: &Epoch<O>| epoch.opened.saturating_sub(epoch.delivered) <= enough;
        let mut epochs = self.epochs.iter().filter(|epoch| !epoch.tasks.is_empty() || lacks(epoch));
        !self.closed && epochs.any(|epoch| epoch.has_work(has_permit, self.depth))
    }

    /// Takes the most urgent work for a worker that has asked for it at `asked`. `permit` takes a permit, if one is left.
    pub(crate) fn take_work(
        &mut self,
        has_permit: bool,
        permit: impl FnOnce() -> Option<Permit>,
        asked: Instant,
        now: Instant,
    ) -> Option<Work<O>> {
        let (depth, workers) = (self.depth, self.workers);
        if !has_permit {
            self.epochs.iter_mut().filter(|epoch| epoch.may_open(depth)).for_each(|epoch| {
                epoch.lacks.get_or_insert(now);
            });
        }
        let workable = self.epochs.iter_mut().filter(|epoch| epoch.has_work(has_permit, depth));
        let epoch = workable.min_by_key(|epoch| epoch.urgency())?;
        let work = match epoch.tasks.pop_front() {
            Some(task) => Work::Task(task),
            None => {
                // If another thread was quicker, there may still be tasks of other epochs.
                let Some(permit) = permit() else { return self.take_work(false, Option::default, asked, now) };
                let feed = epoch.feed.take()?; // the feed is there, or the epoch would have no work
                let (position, ahead) = (feed.position(), epoch.opened.saturating_sub(epoch.delivered));
                let since = epoch.lacks.take().map_or(now, |lacks| lacks.max(asked));
                Work::Open {
                    batch: BatchKey { position, ahead, ..epoch.batch(epoch.opened) },
                    feed,
                    permit,
                    abandoned: Arc::clone(&epoch.abandoned),
                    workers,
                    since,
                }
            }
        };
        Some(work)
    }

    /// Takes in a batch that was opened: its tasks, or an error in its place. Returns how many tasks there are. Also
    /// returns the feed and the tasks, if the batch is no longer wanted.
    #[expect(clippy::type_complexity, reason = "it is only dropped")]
    pub(crate) fn opened(
        &mut self,
        batch: BatchKey,
        feed: Feed,
        tasks: Result<Vec<Task<O>>, Error>,
        now: Instant,
    ) -> (usize, Option<(Feed, Result<Vec<Task<O>>, Error>)>) {
        let Some(epoch) = self.epoch(batch.iterator) else { return (0, Some((feed, tasks))) };
        epoch.feed = Some(feed);
        epoch.opened += 1;
        match tasks {
            Ok(tasks) => epoch.tasks = tasks.into(),
            Err(error) => drop(epoch.ready.insert(batch.number, (now, Batch::failed(batch, error)))),
        }
        (epoch.tasks.len(), None)
    }

    /// Takes out the tasks of a batch that no worker has started.
    pub(crate) fn drop_tasks(&mut self, batch: BatchKey) -> VecDeque<Task<O>> {
        let epoch = self.epoch(batch.iterator).filter(|epoch| epoch.opened == batch.number + 1);
        epoch.map_or_else(VecDeque::new, |epoch| mem::take(&mut epoch.tasks))
    }
}
