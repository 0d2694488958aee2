//! The time from here to the end of a scope, for statistics, timeline and traces.

use super::counters::Counters;
use crate::{
    observe::stats::TIMED,
    vocabulary::{Activity, BatchKey},
};
use std::time::Instant;

/// Adds its lifetime to the statistics when it is dropped.
pub(crate) struct Span<'a> {
    counters: &'a Counters,
    activity: Activity,
    batch: BatchKey,
    start: Option<Instant>,
    _entered: Entered,
}

impl<'a> Span<'a> {
    pub(crate) fn new(counters: &'a Counters, activity: Activity, batch: BatchKey) -> Self {
        let start = TIMED.then(Instant::now);
        Self { counters, activity, batch, start, _entered: Entered::new(activity, batch) }
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            self.counters.took(self.activity, self.batch, start, Instant::now());
        }
    }
}

/// What tools that trace the process know of an activity while it lasts.
pub(crate) struct Entered {
    #[cfg(feature = "tracing")]
    _span: tracing::span::EnteredSpan,
    #[cfg(feature = "cuda")]
    _range: super::nvtx::Range,
}

impl Entered {
    #[inline]
    pub(crate) fn new(_activity: Activity, _batch: BatchKey) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            _span: span(_activity, _batch).entered(),
            #[cfg(feature = "cuda")]
            _range: super::nvtx::Range::new(_activity, _batch),
        }
    }
}

#[cfg(feature = "tracing")]
fn span(activity: Activity, BatchKey { epoch, number }: BatchKey) -> tracing::Span {
    // The name of a span is part of its call site, and so of the code.
    macro_rules! spans {
        ($($activity:ident $name:literal)*) => {
            match activity {
                $(Activity::$activity => tracing::debug_span!($name, epoch, batch = number),)*
            }
        };
    }
    spans!(
        Read "read" Augment "augment" Write "write" Fill "fill" Batch "batcher" SlotWait "slot wait" Pin "pin"
        DeviceWait "device wait" Transfer "transfer" Ready "ready" Finish "finish" Wait "wait" Step "step"
    )
}
