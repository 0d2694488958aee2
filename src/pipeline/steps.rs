//! The steps of batches from the workers to the consumer: the threads that do them, and how a batch gets to its next.

use super::{pin, run::BatchId, shared::Pipeline, transfer};
use crate::{
    batch::{Next, Ready, Step},
    device::Uploader,
    fault::Error,
    observe::Lane,
    vocabulary::Stage,
};
use std::iter::once;

/// What a thread of a step runs until the pipeline is closed.
pub(super) type Body<O> = fn(&Pipeline<O>);

/// The threads of all steps of one copy of a loader.
pub(super) fn threads<O>(device: Option<u16>, transfers: usize) -> impl Iterator<Item = (Lane, Body<O>)> {
    let pin = (Lane::of(device, Stage::Pin, None), pin::run as Body<O>);
    let transfer = move |number| (Lane::of(device, Stage::Transfer, Some(number)), transfer::run as Body<O>);
    once(pin).chain((0..transfers).map(transfer))
}

impl<O> Pipeline<O> {
    /// Takes a batch to its next step: into the queue of that step, or to the consumer. Returns whether somebody waits
    /// for it.
    pub(super) fn pass(&self, batch: BatchId, next: Result<Next<O>, Error>) -> bool {
        let number = batch.key.number;
        match next {
            Ok(next) if self.is_host() => {
                let ready = self.all_steps(batch, next);
                self.ready(batch, ready)
            }
            Ok(Next::Pin(filled)) => {
                let taken = self.put(batch, filled, |run, filled| run.queues.to_pin.insert(number, filled));
                self.for_step(Step::Pin).notify_one();
                taken
            }
            Ok(Next::Send(filled)) => {
                let taken = self.put(batch, filled, |run, filled| run.queues.to_send.insert(number, filled));
                self.for_step(Step::Send).notify_one();
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
