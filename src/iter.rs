//! One epoch, as Burn's training loops see it.

use crate::{
    epoch::RunId, error::Error, order::EpochProgress, pipeline::Pipeline, source::Ready, state::Standing,
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
    progress: EpochProgress,
    standing: Standing,
    started: Instant,
    counters: Arc<Counters>,
    /// When the last batch was handed out.
    handed: Option<Instant>,
}

impl<O> EpochIter<O> {
    pub(crate) fn new(
        run: Result<(Arc<Pipeline<O>>, RunId), Error>,
        progress: EpochProgress,
        standing: Standing,
        started: Instant,
        counters: Arc<Counters>,
    ) -> Self {
        Self { run: run.map_err(Some), progress, standing, started, counters, handed: None }
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
        let Some(ready) = pipeline.next(id) else {
            self.handed = None; // what comes after the epoch is no step of it
            return None;
        };
        let batch = ready.and_then(|ready| {
            // A permit is given back after the batch is the consumer's, on the way out of here.
            let (batch, items, _permit) = match ready {
                Ready::Done { batch, items, permit } => (batch, items, permit),
                Ready::Raw(raw) => {
                    let items = raw.len();
                    (pipeline.source.finish(raw)?, items, None)
                }
            };
            self.counters.delivered(items);
            Ok((batch, items))
        });
        self.progress.given(batch.as_ref().map_or(0, |(_, items)| *items));
        self.standing.set(self.progress.at());
        let batch = batch.map(|(batch, _)| batch);
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
}

impl<O> Iterator for EpochIter<O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.advance()?.map_err(DatasetError::new))
    }
}

impl<O> DataLoaderIterator<O> for EpochIter<O> {
    fn progress(&self) -> Progress {
        Progress::new(self.progress.items, self.progress.items_total, Some("items".into()))
    }
}

impl<O> Drop for EpochIter<O> {
    fn drop(&mut self) {
        if let Ok((pipeline, id)) = &self.run {
            pipeline.end(*id);
        }
    }
}
