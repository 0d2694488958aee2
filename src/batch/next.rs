//! The way of a batch from the workers to the consumer. A new stage of it is a trait, a variant and a queue here, and a
//! file with its threads in `pipeline`, such as `pin.rs` and `transfer.rs`.

use crate::{
    device::Uploader,
    fault::{Error, Skips},
    memory::{Permit, Pool, Wait},
};
use std::{collections::BTreeMap, sync::Arc};

/// What comes next for a batch that has left the workers. Each stage takes the batch and returns what comes then.
pub(crate) enum Next<O> {
    /// It must be prepared for the link.
    Pin(Box<dyn ToPin<O>>),
    /// Its bytes may go to the device.
    Send(Box<dyn ToSend<O>>),
    /// Its tensors are on the device.
    Finish(Box<dyn ToFinish<O>>),
    /// The consumer may have it.
    Ready(Ready<O>),
}

/// A batch whose rows or tensors do not lie as the link wants them.
pub(crate) trait ToPin<O>: Send {
    /// Closes the gaps of padded rows, or packs pageable tensors. Runs on the pin thread, or on a worker on a CPU
    /// backend.
    fn pin(self: Box<Self>, pool: &Arc<Pool>, wait: &Wait<'_>) -> Result<Next<O>, Error>;
}

/// A batch whose bytes may go to the device.
pub(crate) trait ToSend<O>: Send {
    /// Whether the device makes some of its tensors.
    fn decodes(&self) -> bool {
        false
    }

    /// Lets the device make these tensors. Returns the samples that are left out. Runs on a transfer thread.
    fn decode(&mut self, _: &mut Uploader) -> Result<Skips, Error> {
        Ok(Skips::default())
    }

    /// Hands it to the device. Runs on a transfer thread, or on a worker on a CPU backend.
    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Next<O>, Error>;
}

/// A batch on the device that is not the user's yet.
pub(crate) trait ToFinish<O>: Send {
    /// Makes the user's batch. Runs on the consumer's thread, or on a worker on a CPU backend.
    fn finish(self: Box<Self>) -> Result<Finished<O>, Error>;
}

/// The user's batch.
pub(crate) struct Finished<O> {
    pub(crate) batch: O,
    /// The number of its samples.
    pub(crate) items: usize,
    /// On a CPU backend it keeps its permit until it is delivered.
    pub(crate) permit: Option<Permit>,
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device, to be finished on the consumer's thread.
    Raw(Box<dyn ToFinish<O>>),
    Finished(Finished<O>),
    /// Nothing: all of its samples are skipped.
    Empty,
}

/// A queue that threads of its own wait at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Queue {
    Pin,
    Send,
}

impl Queue {
    /// The number of queues.
    pub(crate) const COUNT: usize = 2;
}

/// The batches of an epoch in the queues, by their numbers.
pub(crate) struct Queues<O> {
    pub(crate) to_pin: BTreeMap<usize, Box<dyn ToPin<O>>>,
    pub(crate) to_send: BTreeMap<usize, Box<dyn ToSend<O>>>,
}

impl<O> Queues<O> {
    pub(crate) fn new() -> Self {
        Self { to_pin: BTreeMap::new(), to_send: BTreeMap::new() }
    }

    /// How many batches each queue has.
    pub(crate) fn waiting(&self) -> [usize; Queue::COUNT] {
        [self.to_pin.len(), self.to_send.len()]
    }
}
