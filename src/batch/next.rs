//! The way of a batch from the workers to the consumer; `src/README.md` tells the whole walk. A new stage of it is a
//! method of `Filled`, a variant and a queue here, and a file with its threads in `pipeline`, such as `pin.rs` and
//! `transfer.rs`.

use crate::{
    device::Uploader,
    fault::{Error, Skips},
    memory::{Permit, Pool, Wait},
    vocabulary::BatchKey,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// What comes next for a batch that has left the workers.
pub(crate) enum Next<O> {
    /// The batch must be prepared for the link.
    Pin(Box<dyn Filled<O>>),
    /// The bytes of the batch may go to the device.
    Send(Box<dyn Filled<O>>),
    /// The consumer may have the batch.
    Ready(Ready<O>),
}

/// A batch whose samples are all there, on its way to the device.
pub(crate) trait Filled<O>: Send {
    /// Closes the gaps of padded rows, or packs pageable tensors. Runs on the pin thread, or on a worker on a CPU
    /// backend.
    fn pin(self: Box<Self>, pool: &Arc<Pool>, wait: &Wait<'_>) -> Result<Box<dyn Filled<O>>, Error>;

    /// Whether the device makes some of its tensors.
    fn decodes(&self) -> bool {
        false
    }

    /// Lets the device make these tensors. Returns the samples that are left out. Runs on a transfer thread.
    fn decode(&mut self, _: &mut Uploader) -> Result<Skips, Error> {
        Ok(Skips::default())
    }

    /// Hands the batch to the device. Runs on a transfer thread, or on a worker on a CPU backend.
    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error>;
}

/// The user's batch.
pub(crate) struct Finished<O> {
    pub(crate) batch: O,
    /// The number of its samples.
    pub(crate) items: usize,
    /// On a CPU backend a batch keeps its permit until it is delivered.
    pub(crate) permit: Option<Permit>,
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device. The call makes the user's batch of them, on the consumer's thread, or on a worker on a CPU
    /// backend.
    Raw(Box<dyn FnOnce() -> Result<Finished<O>, Error> + Send>),
    Finished(Finished<O>),
    /// No batch: all of its samples are skipped.
    Empty,
}

/// One batch of an epoch for its consumer, or the error in its place.
pub(crate) struct Delivery<O> {
    pub(crate) key: BatchKey,
    pub(crate) ready: Result<Ready<O>, Error>,
    /// The samples of the batch that were skipped or replaced.
    pub(crate) skips: Skips,
    /// How long the consumer waited for the batch, but for waits until the device had room.
    pub(crate) waited: Duration,
}

/// A queue of batches. Threads of its own wait at it.
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
pub(crate) type Queues<O> = [BTreeMap<usize, Box<dyn Filled<O>>>; Queue::COUNT];
