//! How far an epoch has come, and where a loader stands in it.

/// An epoch, and how many units of its global order were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) epoch: usize,
    pub(crate) given: usize,
    /// Samples of the epoch that this process has skipped.
    pub(crate) skipped: usize,
}

impl Position {
    /// The beginning of an epoch.
    pub(crate) fn begin(epoch: usize) -> Self {
        Self { epoch, given: 0, skipped: 0 }
    }
}

/// How far an epoch has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct EpochProgress {
    /// Samples given, including those before the epoch was resumed.
    pub(crate) items: usize,
    /// Samples of the whole epoch.
    pub(crate) items_total: usize,
    /// Samples skipped, including those before the epoch was resumed.
    pub(crate) skipped: usize,
    pub(super) epoch: usize,
    /// The number of the epoch's first batch here. It is not 0 if the epoch was resumed.
    pub(super) first: usize,
    /// The number of the next batch.
    pub(super) next: usize,
    /// The number after that of the last batch.
    pub(super) end: usize,
    /// Units that all processes together gave before this epoch was resumed.
    pub(super) resumed_at: usize,
    /// Units per batch.
    pub(super) batch: usize,
    pub(super) world: usize,
    pub(super) shared: bool,
}

impl EpochProgress {
    /// Counts a batch that was given, or the error in its place. `skipped` is what the epoch has skipped so far.
    pub(crate) fn given(&mut self, items: usize, skipped: usize) {
        self.items += items;
        self.next += 1;
        self.skipped = skipped;
    }

    /// The number of the next batch.
    pub(crate) fn number(&self) -> usize {
        self.next
    }

    /// Whether other processes, or other devices of this one, have a share of the epoch.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns where the loader stands. This is right when all processes have come equally far.
    pub(crate) fn at(&self) -> Position {
        if self.next >= self.end {
            return Position::begin(self.epoch.saturating_add(1));
        }
        let given = (self.next - self.first).saturating_mul(self.batch).saturating_mul(self.world);
        Position { epoch: self.epoch, given: self.resumed_at.saturating_add(given), skipped: self.skipped }
    }
}
