//! What the threads of a loader do, by the names that statistics, timeline and traces share.

/// What a thread of the loader, or the training loop, does for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    // Of one sample, on a worker: counted and timed, but too short for a picture.
    Read,
    Augment,
    Write,
    /// Reading, augmenting and writing some samples of a batch: a worker's task.
    Fill,
    /// A Burn `Batcher` on a whole batch.
    Batch,
    SlotWait,
    Pin,
    DeviceWait,
    Transfer,
    /// A batch lies ready for the step.
    Ready,
    Finish,
    /// The step waits in `next()`.
    Wait,
    /// The step computes: from one `next()` to the following.
    Step,
}

impl Activity {
    pub(crate) const COUNT: usize = Self::Step as usize + 1;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Augment => "augment",
            Self::Write => "write",
            Self::Fill => "fill",
            Self::Batch => "batcher",
            Self::SlotWait => "slot wait",
            Self::Pin => "pin",
            Self::DeviceWait => "device wait",
            Self::Transfer => "transfer",
            Self::Ready => "ready",
            Self::Finish => "finish",
            Self::Wait => "wait",
            Self::Step => "step",
        }
    }

    /// Whether a thread stands still meanwhile.
    pub(crate) fn is_wait(self) -> bool {
        matches!(self, Self::SlotWait | Self::DeviceWait | Self::Wait)
    }
}

/// Which batch: the epoch and the number in it, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchKey {
    pub(crate) epoch: usize,
    pub(crate) number: usize,
}
