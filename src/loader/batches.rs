//! Where the batches of an epoch come from: a pipeline, or a data set that is kept on the device.

use super::kept::Gather;
use crate::{
    batch::{Batch, BatchState, Content},
    fault::{Error, aside},
    order::Guard,
    pipeline::Threads,
    vocabulary::BatchKey,
};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// The batches of one epoch. Its drop ends the work on the rest.
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

    /// Makes the user's batch of one that is on the device.
    pub(super) fn finish(&self, content: Content<O>) -> Result<BatchState<O>, Error> {
        match self {
            Self::Pipeline(epoch) => epoch.threads.pipeline().source.finish(content),
            Self::KeptData(gather) => gather.finish_rows(content),
        }
    }

    /// Notes that the consumer has a batch: how long it waited for the batch, and how long its step before took.
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
    /// Guards: samples are fetched ahead as long as they live.
    pub(super) guards: Vec<Guard>,
    /// The batch that is asked for next.
    pub(super) next: BatchKey,
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

/// Ends the epoch, which then holds nothing any more. New threads may then take the place of threads that hang.
impl<O: Send + 'static> Drop for PipelineEpoch<O> {
    fn drop(&mut self) {
        if self.threads.are_here().is_err() {
            return self.guards.drain(..).for_each(mem::forget); // the guards would wait for threads of another process
        }
        aside(|| self.threads.pipeline().end(self.next.iterator));
        self.threads.pipeline().rest();
    }
}
