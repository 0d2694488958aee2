//! The source of an epoch's batches: a pipeline, or a dataset that is kept on the device.

use super::kept::Gather;
use crate::{
    batch::{Batch, BatchState, Content},
    fault::{Error, aside},
    order::Guard,
    pipeline::Threads,
    stream::{BatchMarks, ShareMark},
    vocabulary::BatchKey,
};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// The batches of one epoch. Dropping it ends the work on the remaining ones.
pub(super) enum Batches<O: Send + 'static> {
    Pipeline(PipelineEpoch<O>),
    KeptData(Box<Gather<O>>),
}

impl<O: Send + 'static> Batches<O> {
    /// The next batch, in order, and how long the consumer waited for it; `None` at the epoch's end.
    pub(super) fn next(&mut self) -> Option<(Batch<O>, Duration)> {
        match self {
            Self::Pipeline(epoch) => epoch.next(),
            Self::KeptData(gather) => Some((gather.next()?, Duration::ZERO)),
        }
    }

    /// Makes the user's batch from one that is on the device.
    pub(super) fn finish(&self, content: Content<O>) -> Result<BatchState<O>, Error> {
        match self {
            Self::Pipeline(epoch) => epoch.threads.pipeline().source.finish(content),
            Self::KeptData(gather) => gather.finish_rows(content),
        }
    }

    /// The place of a stream after `units` samples of the epoch. Earlier places are not kept.
    pub(super) fn mark(&self, units: usize) -> Option<ShareMark> {
        let Self::Pipeline(PipelineEpoch { marks: Some(marks), .. }) = self else { return None };
        let mut marks = marks.lock();
        while marks.front().is_some_and(|(after, _)| *after < units) {
            marks.pop_front();
        }
        marks.front().filter(|(after, _)| *after == units).map(|(_, mark)| mark.clone())
    }

    /// Notes that the consumer has a batch: how long it waited for the batch, and how long its previous step took.
    pub(super) fn handed(&self, waited: Duration, stepped: Option<Duration>) {
        if let Self::Pipeline(epoch) = self
            && !epoch.is_left
        {
            epoch.threads.note_wait(waited, stepped);
        }
    }
}

/// An epoch on the threads of a pipeline.
pub(super) struct PipelineEpoch<O: Send + 'static> {
    pub(super) threads: Arc<Threads<O>>,
    /// Samples are fetched ahead as long as these guards live.
    pub(super) guards: Vec<Guard>,
    /// The next batch to request.
    pub(super) next: BatchKey,
    /// Places of the stream after its batches.
    pub(super) marks: Option<Arc<BatchMarks>>,
    /// Whether the process has forked, and the consumer knows it.
    pub(super) is_left: bool,
}

impl<O: Send + 'static> PipelineEpoch<O> {
    fn next(&mut self) -> Option<(Batch<O>, Duration)> {
        if self.is_left {
            return None;
        }
        if let Err(error) = self.threads.are_here() {
            self.is_left = true;
            return Some((Batch::failed(self.next, error), Duration::ZERO));
        }
        // Each wait has a clock of its own, which `timeout` is compared with.
        let (batch, waited) = self.threads.pipeline().next(self.next.iterator, Instant::now())?;
        self.next = BatchKey { number: batch.key.number.saturating_add(1), ..batch.key };
        Some((batch, waited))
    }
}

/// Ends the epoch and releases everything that it holds. New threads may then replace threads that hang.
impl<O: Send + 'static> Drop for PipelineEpoch<O> {
    fn drop(&mut self) {
        if self.threads.are_here().is_err() {
            return self.guards.drain(..).for_each(mem::forget); // the guards would wait for threads of another process
        }
        aside(|| self.threads.pipeline().end(self.next.iterator));
        self.threads.pipeline().rest();
    }
}
