//! The clock of one epoch's consumer: what it waits for, and what it takes for a step.

use super::{counters::Counters, span::Entered};
use crate::activity::{Activity, BatchKey};
use std::{sync::Arc, time::Instant};

/// Follows the calls of `next()` of one epoch.
#[derive(Debug)]
pub(crate) struct StepClock {
    counters: Arc<Counters>,
    /// The batch that is asked for next.
    batch: BatchKey,
    /// When `iter()` was called.
    started: Instant,
    /// When the last batch was handed out.
    handed: Option<Instant>,
}

impl StepClock {
    /// Of an epoch that begins with this batch.
    pub(crate) fn new(counters: Arc<Counters>, batch: BatchKey, started: Instant) -> Self {
        Self { counters, batch, started, handed: None }
    }

    /// What tracers know of a call of `next()` while it lasts.
    pub(crate) fn entered(&self) -> Entered {
        Entered::new(Activity::Wait, self.batch)
    }

    /// `next()` is called.
    pub(crate) fn asked(&self) -> Instant {
        let asked = Instant::now();
        if let Some(handed) = self.handed {
            let done = BatchKey { number: self.batch.number.saturating_sub(1), ..self.batch };
            self.counters.took(Activity::Step, done, handed, asked);
        }
        asked
    }

    /// It returns the batch of this number, of so many samples, or `None` for an error at its place. Says whether it is the
    /// epoch's first.
    pub(crate) fn handed(&mut self, asked: Instant, number: usize, items: Option<usize>) -> bool {
        self.batch.number = number;
        match items {
            Some(items) => self.counters.delivered(items),
            None => self.counters.failed(),
        }
        let now = Instant::now();
        self.counters.took(Activity::Wait, self.batch, asked, now);
        self.batch.number += 1;
        let first = self.handed.replace(now).is_none();
        if first {
            self.counters.first_batch(now - self.started, now - asked);
        }
        first
    }

    /// The threads of the epoch could not be started.
    pub(crate) fn never_started(&self) {
        self.counters.failed();
    }

    /// The epoch is over: what comes after it is no step of it.
    pub(crate) fn ended(&mut self) {
        self.handed = None;
    }
}
