//! Measures the time until the end of a scope, for statistics, timeline and traces.

use super::counters::Counters;
use crate::vocabulary::{BatchKey, Stage};
use std::time::Instant;

/// Adds its lifetime to the statistics when it is dropped.
pub(crate) struct Span<'a> {
    counters: &'a Counters,
    activity: Stage,
    batch: BatchKey,
    start: Instant,
    _entered: StageGuard,
}

impl<'a> Span<'a> {
    pub(crate) fn new(counters: &'a Counters, activity: Stage, batch: BatchKey) -> Self {
        let _entered = StageGuard::new(activity, batch);
        Self { counters, activity, batch, start: Instant::now(), _entered }
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        self.counters.took(self.activity, self.batch, self.start, Instant::now());
    }
}

/// A stage as tracing tools see it, while it runs.
pub(crate) struct StageGuard {
    #[cfg(feature = "tracing")]
    _span: tracing::span::EnteredSpan,
}

impl StageGuard {
    #[inline]
    pub(crate) fn new(_activity: Stage, _batch: BatchKey) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            _span: span(_activity, _batch).entered(),
        }
    }
}

#[cfg(feature = "tracing")]
fn span(stage: Stage, BatchKey { epoch, number, device, .. }: BatchKey) -> tracing::Span {
    // The name of a span belongs to its call site, so each stage needs a call of its own.
    macro_rules! spans {
        ($($(#[$doc:meta])* $stage:ident $field:ident $name:literal,)*) => {
            match stage {
                $(Stage::$stage => tracing::debug_span!($name, epoch, batch = number, device),)*
            }
        };
    }
    crate::vocabulary::stages!(spans)
}
