//! The progress of an epoch, and the position of a loader in it.

use std::ops::Range;

/// An epoch, and how many units of its global order were delivered.
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

/// The largest number of samples of an epoch that is reported to Burn, also for an endless epoch: Burn adds the numbers of devices and
/// epochs.
const MOST_ITEMS: usize = usize::MAX >> 20;

/// The progress of an epoch.
#[derive(Debug, Clone, Default)]
pub(crate) struct EpochProgress {
    /// Samples delivered, including those before the epoch was resumed.
    pub(super) items: usize,
    /// Samples of the whole epoch. A batch sampler estimates this.
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
    /// Units that all processes together delivered before this epoch was resumed.
    pub(super) resumed_at: usize,
    /// Units per batch.
    pub(super) batch: usize,
    /// Whether units are samples.
    pub(super) by_samples: bool,
    /// Units that are left.
    pub(super) left: usize,
    pub(super) world: usize,
    /// Whether only the end of a stream says which batch is the last.
    pub(crate) is_open: bool,
    /// Whether the epoch ended early.
    pub(super) broken: bool,
}

impl EpochProgress {
    /// The progress of an epoch that could not begin. It is never complete.
    pub(crate) fn never(at: Position, items_total: usize) -> Self {
        let Position { epoch, given: resumed_at, skipped } = at;
        let one = Self { end: 1, batch: 1, left: 1, world: 1, broken: true, ..Self::default() };
        Self { items_total, skipped, epoch, resumed_at, ..one }
    }

    /// Counts a delivered batch, or the error in its place. `skipped` is the number of samples that the epoch has
    /// skipped so far.
    pub(crate) fn given(&mut self, items: usize, skipped: usize) {
        let units = self.batch.min(self.left);
        self.left -= units;
        self.items = self.items.saturating_add(if self.by_samples && !self.is_open { units } else { items });
        self.next += 1;
        self.skipped = skipped;
    }

    /// Notes that the stream has ended: the batch that was given last is the last.
    pub(crate) fn ends_here(&mut self) {
        if self.broken || self.next >= self.end {
            return;
        }
        (self.end, self.left, self.items_total, self.is_open) = (self.next, 0, self.items, false);
    }

    /// The number of units that this process was given, including those before the epoch was resumed.
    pub(crate) fn units(&self) -> usize {
        (self.next - self.first).saturating_mul(self.batch).saturating_add(self.resumed_at / self.world.max(1))
    }

    /// Notes that the epoch ended early. It is never complete.
    pub(crate) fn breaks_off(&mut self) {
        self.broken = true;
    }

    /// Returns the delivered samples, and those of the whole epoch. They are equal only after the last batch: then Burn
    /// applies the last gradients of the epoch. Burn also adds the numbers of devices and epochs.
    pub(crate) fn items(&self) -> (usize, usize) {
        let items_total = self.items_total.min(MOST_ITEMS);
        let all = self.items.max(items_total);
        match self.next >= self.end {
            _ if self.broken => (self.items.min(all.max(1) - 1), all.max(1)),
            true => (all, all),
            false => (self.items, items_total.max(self.items.saturating_add(1))),
        }
    }

    /// Whether there was a good sample so far.
    pub(crate) fn had_good(&self) -> bool {
        // The number of samples in batches is an estimate.
        self.items > self.skipped || (!self.by_samples && self.resumed_at > 0)
    }

    pub(crate) fn epoch(&self) -> usize {
        self.epoch
    }

    /// The numbers of the epoch's batches here.
    pub(crate) fn batches(&self) -> Range<usize> {
        self.first..self.end
    }

    /// The number of the next batch.
    pub(crate) fn number(&self) -> usize {
        self.next
    }

    /// Returns the least number of samples that are left.
    pub(crate) fn least_left(&self) -> usize {
        if self.by_samples { self.left } else { self.end.saturating_sub(self.next) }
    }

    /// Whether other processes, or other devices of this one, have a share of the epoch.
    pub(crate) fn is_shared(&self) -> bool {
        self.world > 1
    }

    /// Returns the position of the loader. It is correct when all processes have made equal progress.
    pub(crate) fn at(&self) -> Position {
        if self.next >= self.end {
            return Position::begin(self.epoch.saturating_add(1));
        }
        let given = (self.next - self.first).saturating_mul(self.batch).saturating_mul(self.world);
        Position { epoch: self.epoch, given: self.resumed_at.saturating_add(given), skipped: self.skipped }
    }
}
