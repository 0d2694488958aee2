//! One epoch, as Burn's training loops see it.

use crate::{
    epoch::{Delivery, RunId},
    error::Error,
    pipeline::Pipeline,
    policy::Tally,
    source::Ready,
    stats::Counters,
};
use burn::data::{
    dataloader::{DataLoaderIterator, Progress},
    dataset::DatasetError,
};
use std::{sync::Arc, time::Instant};

/// The batches of one epoch, in order. Dropping it early stops the work on the rest.
pub(crate) struct EpochIter<O> {
    /// `Err` if the threads could not be started; yielded once.
    run: Result<(Arc<Pipeline<O>>, RunId), Option<Error>>,
    items_done: usize,
    items_total: usize,
    started: Instant,
    counters: Arc<Counters>,
    /// When the last batch was handed out.
    handed: Option<Instant>,
    tally: Tally,
}

impl<O> EpochIter<O> {
    pub(crate) fn new(
        run: Result<(Arc<Pipeline<O>>, RunId), Error>,
        items_total: usize,
        started: Instant,
        counters: Arc<Counters>,
    ) -> Self {
        let quota = run.as_ref().map_or(0, |(pipeline, _)| pipeline.source.faults().policy.quota(items_total));
        let tally = Tally::new(quota);
        Self { run: run.map_err(Some), items_done: 0, items_total, started, counters, handed: None, tally }
    }

    fn advance(&mut self) -> Option<Result<O, Error>> {
        let (pipeline, id) = match &mut self.run {
            Ok((pipeline, id)) => (Arc::clone(pipeline), *id),
            Err(error) => {
                let error = error.take()?;
                self.counters.failed();
                return Some(Err(error));
            }
        };
        let asked = Instant::now();
        if let Some(handed) = self.handed {
            self.counters.stepped(asked - handed);
        }
        let batch = loop {
            let Some(delivery) = pipeline.next(id) else {
                self.handed = None; // what comes after the epoch is no step of it
                return None;
            };
            // A batch of which all samples are skipped is passed over.
            if let Some(batch) = self.take(&pipeline, delivery).transpose() {
                break batch;
            }
        };
        if batch.is_err() {
            self.counters.failed();
        }
        let now = Instant::now();
        self.counters.waited(now - asked);
        if self.handed.replace(now).is_none() {
            self.counters.first_batch(now - self.started);
        }
        Some(batch)
    }

    /// Makes the user's batch of what the pipeline gives.
    fn take(&mut self, pipeline: &Pipeline<O>, delivery: Delivery<O>) -> Result<Option<O>, Error> {
        let Delivery { place, ready, bad } = delivery;
        let (skipped, replaced) = (bad.skipped.len(), bad.replaced.len());
        let ready = ready?;
        self.tally.add(place, bad)?;
        // A permit is given back after the batch is the consumer's, on the way out of here.
        let (batch, items, _permit) = match ready {
            Ready::Done { batch, items, permit } => (Some(batch), items, permit),
            Ready::Raw(raw) => {
                let items = raw.len();
                let batch = pipeline.source.finish(raw).inspect_err(|error| pipeline.source.faults().saw(error))?;
                (Some(batch), items, None)
            }
            Ready::Empty => (None, 0, None),
        };
        self.items_done += items + skipped;
        self.counters.made_do(skipped, replaced);
        if batch.is_some() {
            self.counters.delivered(items);
        }
        Ok(batch)
    }
}

impl<O> Iterator for EpochIter<O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.advance()?.map_err(DatasetError::new))
    }
}

impl<O> DataLoaderIterator<O> for EpochIter<O> {
    fn progress(&self) -> Progress {
        Progress::new(self.items_done, self.items_total, Some("items".into()))
    }
}

impl<O> Drop for EpochIter<O> {
    fn drop(&mut self) {
        if let Ok((pipeline, id)) = &self.run {
            pipeline.end(*id);
        }
    }
}
