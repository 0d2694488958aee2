//! The time of the training loops that a loader and its copies feed. There may be several loops at once: a step of
//! Burn's multi-device training takes a batch from each copy, and with one thread per device the loops run
//! concurrently.

use crate::observe::stats::TIMED;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Accumulates times: at each change of state of a loop, the time since the previous change.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// The sums include the time up to this moment; `None` before the first epoch.
    until: Option<Instant>,
    /// The copies with epochs in progress, by their numbers, and how many epochs each has.
    epochs: BTreeMap<usize, usize>,
    /// The number of loops that wait in `next()`, and of those that wait for the first batch of an epoch.
    waiting: usize,
    starting: usize,
    /// The number of worker threads of all copies together.
    workers: usize,
    sums: Sums,
}

/// The sums of the times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// The time in which an epoch was in progress.
    pub(crate) elapsed: Duration,
    /// The time in which a loop waited, and the time in which a loop waited for the first batch of an epoch. While one
    /// of several loops waits for its batch, none of them makes progress.
    pub(crate) waited: Duration,
    pub(crate) start_waited: Duration,
    /// The total time of all copies with an epoch in progress, and the total time of the workers.
    pub(crate) copies_had: Duration,
    pub(crate) workers_had: Duration,
    /// Steps that have ended.
    pub(crate) steps: u64,
    /// The number of workers, or the last one if all have ended.
    pub(crate) workers: usize,
}

impl Loops {
    fn advance(&mut self, now: Instant) {
        let since = self.until.map_or(Duration::ZERO, |until| now.saturating_duration_since(until));
        self.until = Some(self.until.map_or(now, |until| until.max(now)));
        let copies = u32::try_from(self.epochs.len()).unwrap_or(u32::MAX);
        let workers = u32::try_from(self.workers).unwrap_or(u32::MAX);
        let sums = &mut self.sums;
        if copies > 0 {
            sums.elapsed += since;
            sums.copies_had += since * copies;
            sums.workers_had += since * workers;
        }
        if self.waiting > 0 {
            sums.waited += since;
        }
        if self.starting > 0 {
            sums.start_waited += since;
        }
    }

    fn waits(&mut self, first: bool, more: bool) {
        let change = |count: &mut usize| *count = if more { *count + 1 } else { count.saturating_sub(1) };
        change(&mut self.waiting);
        if first {
            change(&mut self.starting);
        }
    }

    /// Notes that the number of workers of a copy of the loader changes.
    pub(crate) fn note_workers(&mut self, now: usize, before: usize) {
        self.advance(Instant::now());
        self.workers = (self.workers + now).saturating_sub(before);
        if self.workers > 0 {
            self.sums.workers = self.workers;
        }
    }

    /// Notes that a loop requests a batch. The epoch begins with the first request.
    pub(crate) fn note_request(&mut self, copy: usize, now: Instant, first: bool) {
        if !TIMED {
            return;
        }
        self.advance(now);
        self.waits(first, true);
        self.sums.steps += u64::from(!first);
        if first {
            *self.epochs.entry(copy).or_default() += 1;
        }
    }

    /// Notes that the loop no longer waits.
    pub(crate) fn note_delivery(&mut self, now: Instant, first: bool) {
        if TIMED {
            self.advance(now);
            self.waits(first, false);
        }
    }

    /// Notes that an epoch that has begun is over.
    pub(crate) fn ended(&mut self, copy: usize, now: Instant) {
        self.advance(now);
        if let Some(epochs) = self.epochs.get_mut(&copy) {
            *epochs -= 1;
            if *epochs == 0 {
                self.epochs.remove(&copy);
            }
        }
    }

    /// Returns the sums up to now.
    pub(crate) fn sums(&mut self) -> Sums {
        self.advance(Instant::now());
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn sums(loops: &mut Loops, now: Instant) -> [u128; 5] {
        loops.advance(now);
        let Sums { elapsed, waited, start_waited, copies_had, workers_had, .. } = loops.sums;
        [elapsed, waited, start_waited, copies_had, workers_had].map(|time| time.as_millis())
    }

    /// Returns a clock in milliseconds. It starts later than all real times that a test uses.
    fn clock() -> impl Fn(u32) -> Instant {
        let start = Instant::now() + 1000 * MS;
        move |ms| start + ms * MS
    }

    #[test]
    fn one_loop() {
        let (mut loops, copy, at) = (Loops::default(), 0, clock());
        loops.note_workers(4, 0);
        loops.note_request(copy, at(0), true);
        loops.note_delivery(at(10), true);
        assert_eq!(sums(&mut loops, at(15)), [15, 10, 10, 15, 60], "a step in progress counts");
        loops.note_request(copy, at(30), false);
        loops.note_delivery(at(31), false);
        loops.note_request(copy, at(40), false); // the end
        loops.note_delivery(at(42), false);
        loops.ended(copy, at(42));
        assert_eq!(sums(&mut loops, at(500)), [42, 13, 10, 42, 168], "between epochs nothing counts");
    }

    /// One loop takes a batch of each of two copies, one after the other. The waits for both count.
    #[test]
    fn copies_in_turn() {
        let (mut loops, at) = (Loops::default(), clock());
        loops.note_workers(2, 0);
        for step in 0..10 {
            for copy in 0..2 {
                loops.note_request(copy, at(20 * step + 2 * copy as u32), step == 0);
                loops.note_delivery(at(20 * step + 2 * copy as u32 + 2), step == 0);
            }
        }
        let [elapsed, waited, start_waited, copies, workers] = sums(&mut loops, at(200));
        assert_eq!([elapsed, waited, start_waited], [200, 40, 4]);
        assert_eq!([copies, workers], [398, 400], "the second copy began 2 ms later");
    }

    /// Two loops side by side, and two epochs of one copy.
    #[test]
    fn loops_side_by_side() {
        let (mut loops, at) = (Loops::default(), clock());
        loops.note_workers(1, 0);
        for epoch in 0..2 {
            loops.note_request(0, at(epoch), true);
        }
        for epoch in 0..2 {
            loops.note_delivery(at(10 + epoch), true);
        }
        loops.ended(0, at(20));
        assert_eq!(sums(&mut loops, at(30)), [30, 11, 11, 30, 30]);
        loops.ended(0, at(40));
        assert_eq!(sums(&mut loops, at(90)), [40, 11, 11, 40, 40]);
    }
}
