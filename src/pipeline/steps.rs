//! The steps of a batch from the workers to the consumer: its queue at each, the threads that take it from there, and
//! where they sleep. A new step with a thread of its own is a line in each of the four lists of this file.

use super::{pin, run::BatchId, shared::Pipeline, transfer};
use crate::{
    batch::{Next, Ready, ToPin, ToSend},
    device::Uploader,
    fault::Error,
    observe::Lane,
    sync::Condvar,
    vocabulary::Stage,
};
use std::{collections::BTreeMap, iter::once};

/// The batches of an epoch that wait for a step, by their numbers.
pub(crate) struct Steps<O> {
    pub(crate) to_pin: BTreeMap<usize, Box<dyn ToPin<O>>>,
    pub(crate) to_send: BTreeMap<usize, Box<dyn ToSend<O>>>,
    /// Batches below this number are past the pin thread.
    pub(crate) pinned: usize,
}

impl<O> Steps<O> {
    pub(crate) fn new(first: usize) -> Self {
        Self { to_pin: BTreeMap::new(), to_send: BTreeMap::new(), pinned: first }
    }

    /// The numbers of batches that wait for each step.
    pub(crate) fn waiting(&self) -> [usize; 2] {
        [self.to_pin.len(), self.to_send.len()]
    }

    /// Takes out all batches, or only one.
    pub(crate) fn take(&mut self, only: Option<usize>) -> Self {
        let take = |number: &usize| only.is_none_or(|only| only == *number);
        Self {
            to_pin: self.to_pin.extract_if(.., |number, _| take(number)).collect(),
            to_send: self.to_send.extract_if(.., |number, _| take(number)).collect(),
            pinned: self.pinned,
        }
    }
}

/// Where the threads of the steps sleep.
#[derive(Default)]
pub(crate) struct ForSteps {
    pub(crate) pin: Condvar,
    pub(crate) transfer: Condvar,
}

impl ForSteps {
    pub(crate) fn all(&self) -> [&Condvar; 2] {
        [&self.pin, &self.transfer]
    }
}

/// What a thread of a step runs until the pipeline is closed.
pub(crate) type Body<O> = fn(&Pipeline<O>);

/// The threads of all steps.
pub(crate) fn threads<O>(transfers: usize) -> impl Iterator<Item = (Lane, Body<O>)> {
    let pin = (Lane::of(Stage::Pin, None), pin::run as Body<O>);
    let transfer = |number| (Lane::of(Stage::Transfer, Some(number)), transfer::run as Body<O>);
    once(pin).chain((0..transfers).map(transfer))
}

impl<O> Pipeline<O> {
    /// Takes a batch to its next step: into the queue of that step, or to the consumer. Returns whether somebody waits
    /// for it.
    pub(crate) fn pass(&self, batch: BatchId, next: Result<Next<O>, Error>) -> bool {
        match next {
            Ok(next) if self.flow.is_host() => {
                let ready = self.all_steps(batch, next);
                self.ready(batch, ready)
            }
            Ok(Next::Pin(filled)) => {
                let taken = self.put(batch, filled, |run, filled| run.steps.to_pin.insert(batch.key.number, filled));
                self.for_steps.pin.notify_one();
                taken
            }
            Ok(Next::Send(filled)) => {
                let taken = self.put(batch, filled, |run, filled| run.steps.to_send.insert(batch.key.number, filled));
                self.for_steps.transfer.notify_one();
                taken
            }
            Ok(Next::Finish(raw)) => self.ready(batch, Ok(Ready::Raw(raw))),
            Ok(Next::Ready(ready)) => self.ready(batch, Ok(ready)),
            Err(error) => self.ready(batch, Err(error)),
        }
    }

    /// Does all steps of a batch here, as workers do on a CPU backend.
    fn all_steps(&self, batch: BatchId, mut next: Next<O>) -> Result<Ready<O>, Error> {
        loop {
            next = match next {
                Next::Pin(filled) => self.pin(batch, filled)?,
                Next::Send(filled) => filled.send(&self.pool, &mut Uploader::burn(self.source.target()))?,
                Next::Finish(raw) => return Ok(Ready::Finished(raw.finish()?)),
                Next::Ready(ready) => return Ok(ready),
            }
        }
    }
}
