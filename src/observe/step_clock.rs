//! The clock of one epoch's consumer: how long it waits, and how long its steps take.

use super::{counters::Counters, span::StageGuard};
use crate::vocabulary::{BatchKey, Stage};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// Follows the calls of `next()` of one epoch.
#[derive(Debug)]
pub(crate) struct StepClock {
    counters: Arc<Counters>,
    /// The number of the copy of the loader.
    copy: usize,
    /// The next batch to request.
    batch: BatchKey,
    /// When `iter()` was called.
    started: Instant,
    /// When the last batch was delivered.
    handed: Option<Instant>,
    /// Whether the consumer is in `next()`.
    waits: bool,
}

impl StepClock {
    /// Makes the clock of an epoch of one copy of the loader. The epoch begins with `batch`.
    pub(crate) fn new(counters: Arc<Counters>, copy: usize, batch: BatchKey, started: Instant) -> Self {
        Self { counters, copy, batch, started, handed: None, waits: false }
    }

    /// Returns the span of a call of `next()` for tracing tools. It lasts until it is dropped.
    pub(crate) fn entered(&self) -> StageGuard {
        StageGuard::new(Stage::Wait, self.batch)
    }

    /// Notes that `next()` is called; returns the time.
    pub(crate) fn asked(&mut self) -> Instant {
        let asked = Instant::now();
        if let Some(handed) = self.handed {
            let done = BatchKey { number: self.batch.number.saturating_sub(1), ..self.batch };
            self.counters.took(Stage::Step, done, handed, asked);
        }
        self.counters.loops.lock().note_request(self.copy, asked, self.handed.is_none());
        self.waits = true;
        asked
    }

    /// Notes that `next()` returns the batch with this number. `items` is its number of samples, or `None` for an error
    /// in its place. Returns the time of the previous step, or `None` for the epoch's first batch.
    pub(crate) fn handed(&mut self, asked: Instant, number: usize, items: Option<usize>) -> Option<Duration> {
        self.batch.number = number;
        match items {
            Some(items) => self.counters.delivered(items),
            None => self.counters.note(|stats| stats.errors += 1),
        }
        let now = Instant::now();
        self.counters.took(Stage::Wait, self.batch, asked, now);
        self.batch.number += 1;
        self.waited(now);
        let before = self.handed.replace(now);
        if before.is_none() {
            let first_batch = now - self.started;
            self.counters.note(|stats| (stats.epochs, stats.first_batch) = (stats.epochs + 1, first_batch));
        }
        before.map(|handed| asked.saturating_duration_since(handed))
    }

    fn waited(&mut self, now: Instant) {
        if mem::take(&mut self.waits) {
            self.counters.loops.lock().note_delivery(now, self.handed.is_none());
        }
    }

    /// Notes that the epoch is over. Later time belongs to none of its steps.
    pub(crate) fn ended(&mut self) {
        if !self.waits && self.handed.is_none() {
            return; // the epoch has not begun
        }
        let now = Instant::now();
        self.waited(now);
        self.counters.loops.lock().ended(self.copy, now);
        self.handed = None;
    }
}

impl Drop for StepClock {
    fn drop(&mut self) {
        self.ended();
    }
}
