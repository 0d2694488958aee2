//! One epoch, as Burn's training loops see it.

use super::{batches::Batches, plan::Plan, state::EpochPosition};
use crate::{
    batch::{Batch, BatchState},
    fault::{Error, Tally, aside},
    observe::StepClock,
    order::EpochProgress,
    vocabulary::{Place, Stage},
};
use burn::data::{
    dataloader::{DataLoaderIterator, Progress},
    dataset::DatasetError,
};
use std::{
    cell::RefCell,
    mem,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

/// The batches of one epoch, in order. When it ends or is dropped early, the work on the remaining batches stops.
/// `progress()` may have to wait for a batch.
pub(crate) struct EpochIter<'a, O: Send + 'static>(RefCell<EpochRun<'a, O>>);

struct EpochRun<'a, O: Send + 'static> {
    /// The epoch in progress. `Err(None)` if it has ended, or the error that kept it from starting.
    batches: Result<Batches<O>, Option<Error>>,
    /// The progress including the last batch that the consumer has.
    progress: EpochProgress,
    /// The progress including the last batch that was taken from `batches`.
    taken: EpochProgress,
    /// A batch that was taken ahead, to know whether the consumer's batch is the last.
    ahead: Option<TakenBatch<O>>,
    /// Whether the consumer's batch may be the last of the epoch, because all later samples may be skipped or left out and no batch was
    /// taken ahead yet to find out.
    may_be_last: bool,
    /// Whether the iterator has given neither a batch nor an error yet.
    is_first: bool,
    /// Whether there was a good sample before the epoch was resumed.
    had_good: bool,
    /// The number of the error that the last call of `next()` returned.
    failed: Option<u64>,
    standing: EpochPosition,
    clock: StepClock,
    plan: &'a Plan,
    tally: Tally,
}

/// A batch for the consumer, with its number of samples, or the error in its place.
struct TakenBatch<O> {
    number: usize,
    batch: Result<(O, usize), Error>,
    /// How long the consumer waited for the batch.
    waited: Duration,
    /// The progress of the epoch including this batch.
    progress: EpochProgress,
}

impl<'a, O: Send + 'static> EpochIter<'a, O> {
    pub(super) fn new(
        batches: Result<Batches<O>, Error>,
        progress: EpochProgress,
        standing: EpochPosition,
        clock: StepClock,
        plan: &'a Plan,
    ) -> Self {
        let tally = Tally::new(plan.faults.policy.quota(progress.items_total), progress.skipped);
        let epoch = EpochRun {
            batches: batches.map_err(Some),
            taken: progress.clone(),
            ahead: None,
            may_be_last: false,
            is_first: true,
            had_good: progress.had_good(),
            failed: None,
            progress,
            standing,
            clock,
            plan,
            tally,
        };
        Self(RefCell::new(epoch))
    }
}

impl<O: Send + 'static> EpochRun<'_, O> {
    fn advance(&mut self) -> Option<Result<O, Error>> {
        if let Err(error) = &mut self.batches {
            let error = error.take()?;
            self.plan.faults.saw(&error);
            self.plan.faults.counters.note(|stats| stats.errors += 1);
            return Some(Err(error));
        }
        let _entered = self.clock.entered();
        let asked = self.clock.asked();
        let Some(taken) = self.ahead.take().or_else(|| self.pull()) else { return self.end(asked) };
        let is_first = mem::take(&mut self.is_first);
        let TakenBatch { number, batch, mut waited, progress } = taken;
        self.progress = progress;
        // If all remaining samples may be skipped or left out, this batch may be the last, and its progress must say so.
        // The consumer waits for the first batch of an epoch, so that batch does not wait for the second. The end of a
        // stream is looked for only when the progress is asked for.
        let most = if self.plan.counters().leaves_out.load(Relaxed) { usize::MAX } else { self.tally.left() };
        let may_skip_all = !self.taken.is_shared() && (1..=most).contains(&self.taken.least_left());
        self.may_be_last = may_skip_all || self.taken.is_open;
        if may_skip_all && !self.taken.is_open && !is_first {
            waited += self.look_ahead();
        }
        self.note_position();
        let stepped = self.clock.handed(asked, number, batch.as_ref().ok().map(|(_, items)| *items));
        if let Ok(batches) = &self.batches {
            batches.handed(waited, stepped);
        }
        Some(batch.map(|(batch, _)| batch))
    }

    /// Finds out whether the consumer's batch is the last. Returns how long this took.
    fn look_ahead(&mut self) -> Duration {
        if !mem::take(&mut self.may_be_last) {
            return Duration::ZERO;
        }
        self.ahead = self.pull();
        match &self.ahead {
            Some(next) => next.waited,
            None => {
                self.progress = self.taken.clone();
                self.note_position();
                Duration::ZERO
            }
        }
    }

    fn note_position(&self) {
        let mark = self.batches.as_ref().ok().and_then(|batches| batches.mark(self.progress.units()));
        self.standing.set(self.progress.at(), mark);
    }

    /// Ends the epoch. If all its samples were skipped or left out, that is an error: otherwise the training would silently
    /// continue without data.
    fn end(&mut self, asked: Instant) -> Option<Result<O, Error>> {
        self.progress = self.taken.clone();
        self.note_position();
        self.batches = Err(None);
        let is_bad = self.is_first && !self.had_good;
        let error = is_bad.then(|| self.tally.none_good(self.progress.epoch())).flatten();
        if let Some(error) = &error {
            self.plan.faults.saw(error);
            self.clock.handed(asked, self.progress.number().saturating_sub(1), None);
        }
        self.clock.ended();
        error.map(Err)
    }

    /// Takes the next batch that has samples; returns `None` at the end of the epoch.
    fn pull(&mut self) -> Option<TakenBatch<O>> {
        let mut waits = Duration::ZERO;
        loop {
            let Some((batch, waited)) = self.batches.as_mut().ok()?.next() else {
                self.taken.ends_here();
                return None;
            };
            let number = batch.key.number;
            waits += waited;
            if let Some(batch) = self.take(batch).transpose() {
                return Some(TakenBatch { number, batch, waited: waits, progress: self.taken.clone() });
            }
        }
    }

    /// Makes the user's batch. Returns it with the number of its samples.
    fn take(&mut self, batch: Batch<O>) -> Result<Option<(O, usize)>, Error> {
        let Batch { key, state, skips } = batch;
        let place = Place::batch(Stage::Read, key);
        let (skipped, left_out, replaced) = (skips.skipped.len(), skips.left_out.len(), skips.replaced.len());
        let saw = |error: &Error| self.plan.faults.saw(error);
        let tallied = match state {
            BatchState::Failed(error) => Err(error),
            state => self.tally.add(place, skips).inspect_err(saw).map(|()| state),
        };
        let finished = tallied.and_then(|state| match (state, &self.batches) {
            (BatchState::OnDevice(content), Ok(batches)) => batches.finish(*content).inspect_err(saw),
            (state, _) => Ok(state),
        });
        let taken = finished.and_then(|state| match state {
            BatchState::Ready { batch, items, .. } => Ok(Some((batch, items))),
            // The other processes have a batch here, and may wait for this process in a collective operation.
            BatchState::Empty if self.taken.is_shared() => Err(Error::AllSkipped { place, skipped }).inspect_err(saw),
            BatchState::Empty => Ok(None),
            BatchState::Failed(error) => Err(error),
            BatchState::Filled(_) | BatchState::Pinned(_) | BatchState::OnDevice(_) => Err(Error::Ended),
        });
        let items = match &taken {
            Ok(taken) => {
                if skipped + replaced > 0 {
                    self.plan.faults.counters.note(|stats| {
                        stats.skipped += (skipped - left_out) as u64;
                        stats.filtered += left_out as u64;
                        stats.replaced += replaced as u64;
                    });
                }
                taken.as_ref().map_or(0, |(_, items)| *items) + skipped
            }
            Err(_) => 0,
        };
        if let Err(Error::Timeout { .. } | Error::LeaseTimeout { .. } | Error::Forked { .. } | Error::Ended) = &taken {
            self.taken.breaks_off();
        }
        self.taken.given(items, self.tally.skipped());
        taken
    }
}

impl<O: Send + 'static> Iterator for EpochIter<'_, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let epoch = self.0.get_mut();
        if let Some(number) = epoch.failed.take() {
            epoch.plan.unread_errors.forget(number); // its loop continues
        }
        let batch = aside(|| epoch.advance())?;
        epoch.failed = batch.as_ref().err().map(|error| epoch.plan.unread_errors.note(error));
        Some(batch.map_err(DatasetError::new))
    }
}

impl<O: Send + 'static> DataLoaderIterator<O> for EpochIter<'_, O> {
    fn progress(&self) -> Progress {
        let mut epoch = self.0.borrow_mut();
        aside(|| epoch.look_ahead());
        let (items, total) = epoch.progress.items();
        Progress::new(items, total, Some("items".into()))
    }
}
