//! Which batch of an epoch has which samples: the sampler's order, this process's share of it, and where it is resumed.

use super::{
    distributed::Distributed,
    feed::{Feed, Units},
    progress::{EpochProgress, Position},
};
use crate::{
    fault::{BoxError, Error, catch, guard},
    order::sampler::{BatchSampler, EpochBatches, Positions, Sampler, check_same},
    vocabulary::{BatchKey, Place, Stage},
};
use std::{ops::Range, sync::Arc};

/// The sampler that orders an epoch.
#[derive(Debug, Clone)]
pub(crate) enum Sampling {
    /// Samples in order, cut into batches of one size.
    Samples { sampler: Arc<dyn Sampler>, batch_size: usize, drop_last: bool },
    /// Batches as the batch sampler makes them.
    Batches { sampler: Arc<dyn BatchSampler> },
}

impl Sampling {
    /// Returns texts for how batches are made and how epochs are ordered. They differ if the orders differ.
    pub(crate) fn fingerprint(&self) -> (String, String) {
        match self {
            Self::Samples { sampler, batch_size, drop_last } => {
                let last = if *drop_last { ", the last full" } else { "" };
                (format!("of {batch_size}{last}"), sampler.fingerprint())
            }
            Self::Batches { sampler } => ("the sampler's".into(), sampler.fingerprint()),
        }
    }
}

/// How a loader orders its epochs. The units of an order are samples, or batches of a [`BatchSampler`].
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) sampling: Sampling,
    pub(crate) dataset_len: usize,
    pub(crate) distributed: Distributed,
    /// How the loader was cut, if it is a slice of another one. Then `sampling` has the sampler of the slice.
    pub(crate) slice: Option<Slice>,
    /// Where the part that was cut begins in the order of the whole loader. No two parts draw the same random numbers.
    pub(crate) start: usize,
    /// The number of devices that the loader is going to be cut for.
    pub(crate) devices: usize,
    /// Where another loader stopped.
    pub(crate) resumed: Option<Position>,
    /// Whether the samples of an epoch are counted as it begins, since a share of them may be skipped. Else it is enough
    /// that a batch sampler estimates them.
    pub(crate) counted: bool,
}

/// What was cut for a part of a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slice {
    /// The dataset: its samples are shuffled among themselves.
    Members,
    /// The sampler's sequence, which must be the same in each epoch.
    Positions,
}

/// One epoch of this loader.
pub(crate) struct EpochOrder {
    pub(crate) feed: Feed,
    /// The numbers of its batches. They start at 0, unless the epoch is resumed.
    pub(crate) batches: Range<usize>,
    pub(crate) progress: EpochProgress,
}

impl Schedule {
    /// Returns how many units an epoch has for all processes together.
    fn units(&self, epoch: usize) -> usize {
        match &self.sampling {
            Sampling::Samples { sampler, .. } => sampler.len(self.dataset_len),
            Sampling::Batches { sampler } => sampler.batches(self.dataset_len, epoch).len,
        }
    }

    fn batches_of(&self, units: usize) -> usize {
        match self.sampling {
            Sampling::Samples { batch_size, drop_last: true, .. } => units / batch_size,
            Sampling::Samples { batch_size, .. } => units.div_ceil(batch_size),
            Sampling::Batches { .. } => units,
        }
    }

    /// Returns how many samples an epoch delivers. A batch sampler estimates this.
    pub(crate) fn items(&self) -> usize {
        match &self.sampling {
            Sampling::Samples { batch_size, drop_last, .. } => {
                let units = self.distributed.share(self.units(0));
                if *drop_last { units - units % batch_size } else { units }
            }
            Sampling::Batches { sampler } => sampler.num_items(self.dataset_len) / self.distributed.world(),
        }
    }

    /// Returns how many samples of the dataset an epoch of all processes does not have, at least, and how many of them only
    /// because they fill no batch or are too few for all processes.
    pub(crate) fn left_out(&self) -> (usize, usize) {
        let len = self.dataset_len;
        let (all, given, never) = match &self.sampling {
            Sampling::Samples { sampler, .. } => {
                let given = self.num_items().saturating_mul(self.distributed.world());
                (sampler.len(len), given, sampler.left_out(len))
            }
            Sampling::Batches { sampler } => {
                let all = sampler.num_items(len);
                (all, all.saturating_sub(self.uneven(&**sampler)), sampler.left_out(len))
            }
        };
        let rest = if all <= len { all.saturating_sub(given) } else { 0 }; // in a longer epoch these samples come elsewhere
        (never.max(len.saturating_sub(given)), rest)
    }

    /// Returns how many samples are in the last batches of an epoch, which are too few for all processes and devices.
    fn uneven(&self, sampler: &dyn BatchSampler) -> usize {
        let shares = self.distributed.of_device(0, self.devices);
        let epoch = self.resumed.map_or(0, |at| at.epoch);
        let count = || {
            let EpochBatches { len, batches } = sampler.batches(self.dataset_len, epoch);
            batches.skip(shares.share(len) * shares.world()).map(|batch| batch.len()).sum()
        };
        // Where no batch is left over, no epoch is planned. A sampler that panics here does so again in the epoch.
        if shares.share(1) == 0 { catch(count).unwrap_or(0) } else { 0 }
    }

    /// How many batches an epoch has when it is not resumed and not cut for devices.
    fn batches(&self, epoch: usize) -> usize {
        self.batches_of(self.distributed.share(self.units(epoch)))
    }

    /// How many steps an epoch has when it is not resumed: its batches or, if the loader is going to be cut for devices,
    /// those of each device.
    pub(crate) fn steps(&self, epoch: usize) -> usize {
        if self.devices > 1 { self.of_device(0).batches(epoch) } else { self.batches(epoch) }
    }

    /// Returns the largest number of samples in a batch.
    pub(crate) fn max_batch_size(&self) -> usize {
        match &self.sampling {
            Sampling::Samples { batch_size, .. } => {
                (*batch_size).min(self.distributed.share(self.units(0))).max(1) // the epoch needs no larger slots
            }
            Sampling::Batches { sampler } => sampler.max_batch_size(self.dataset_len),
        }
    }

    /// Returns a number of batches that every epoch has at least, or `usize::MAX` if that cannot be known at no cost.
    pub(crate) fn fewest_batches(&self) -> usize {
        match self.sampling {
            Sampling::Samples { .. } => self.batches(0).max(1),
            Sampling::Batches { .. } => usize::MAX,
        }
    }

    /// The order of one of the devices that the loader is cut for. In a resumed epoch each device begins with its part
    /// of the number of skipped samples.
    fn of_device(&self, device: usize) -> Self {
        let resumed = self.resumed.map(|at| Position { skipped: part(at.skipped, device, self.devices), ..at });
        Self { distributed: self.distributed.of_device(device, self.devices), devices: 1, resumed, ..self.clone() }
    }

    /// Returns how many samples an epoch has for Burn, which may cut them for the devices: for a whole loader the
    /// samples of all devices together, for a slice its own. Each device has at least one sample, and the sum can be
    /// counted even if the epoch has no end.
    pub(crate) fn num_items(&self) -> usize {
        let items = self.items();
        if self.devices < 2 || (self.slice.is_some() && items >= self.devices) {
            return items;
        }
        let each = self.of_device(0).items().min(usize::MAX / self.devices);
        if each == 0 { items } else { self.devices * each }
    }

    /// Makes this the order of one of the devices, if `start` and `end` are where Burn cuts for it. Returns the number of
    /// that device.
    pub(crate) fn cut_for_device(&mut self, start: usize, end: usize) -> Option<u16> {
        let items = self.num_items();
        let each = items / self.devices;
        if self.devices < 2 || each == 0 {
            return None;
        }
        let device = start / each;
        let ends = if device + 1 == self.devices { items } else { start.saturating_add(each) };
        let is_cut = start.is_multiple_of(each) && end == ends && device < self.devices;
        let number = u16::try_from(device).ok().filter(|_| is_cut)?;
        *self = self.of_device(device);
        Some(number)
    }

    /// Makes this the order of a part of the loader's samples, from `start` to `end`. It can still be cut for devices.
    ///
    /// An `end` at the end of the epoch includes all samples, also those that `drop_last` leaves out. Each process has
    /// its share of the part, which is `world` times as long.
    pub(crate) fn cut(&mut self, start: usize, end: usize) {
        let (len, world) = (self.dataset_len, self.distributed.world());
        let items = self.items().min(self.num_items());
        let first = match &mut self.sampling {
            Sampling::Samples { sampler, .. } => {
                let units = sampler.len(len);
                let at = |item: usize| if item < items { item.saturating_mul(world).min(units) } else { units };
                let part = at(start)..at(end).max(at(start));
                let first = part.start;
                if let Some(members) = sampler.part(len, part.clone()) {
                    (self.slice, *sampler) = (Some(Slice::Members), members);
                } else {
                    self.slice = Some(Slice::Positions);
                    *sampler = Arc::new(Positions::new(Arc::clone(sampler), part));
                }
                first
            }
            Sampling::Batches { sampler } => {
                let units = sampler.batches(len, 0).len;
                // Whole batches, in proportion to that part of the samples.
                let at = |item: usize| (item.min(items) as u128 * units as u128 / items.max(1) as u128) as usize;
                let part = at(start)..at(end).max(at(start));
                let first = part.start;
                self.slice = Some(Slice::Positions);
                *sampler = Arc::new(Positions::new(Arc::clone(sampler), part));
                first
            }
        };
        self.start = self.start.saturating_add(first); // a part may be cut again
    }

    /// Checks that a slice has the same samples in this epoch as in others.
    fn check_slice(&self, epoch: usize) -> Result<(), Error> {
        let len = self.dataset_len;
        match &self.sampling {
            _ if self.slice != Some(Slice::Positions) => Ok(()),
            Sampling::Samples { sampler, .. } if sampler.is_empty(len) => Ok(()),
            Sampling::Samples { sampler, .. } => check_same(epoch, |epoch| sampler.indices(len, epoch)),
            Sampling::Batches { sampler } => check_same(epoch, |epoch| sampler.batches(len, epoch).batches),
        }
    }

    /// Checks that there is anything to load.
    ///
    /// # Errors
    /// [`Error::Config`] if there is not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.devices > 1 {
            let one = self.of_device(0).check();
            return one.map_err(|error| {
                let problem = format!("an epoch is too short for {} devices ({error})", self.devices);
                Error::config("devices", problem, "use fewer devices, or a smaller `batch_size`")
            });
        }
        let units = match &self.sampling {
            Sampling::Samples { sampler, .. } => sampler.len(self.dataset_len),
            Sampling::Batches { sampler } if sampler.max_batch_size(self.dataset_len) == 0 => {
                let problem = "its largest batch has no samples";
                return Err(Error::config("batch_sampler", problem, "let `max_batch_size` be at least 1"));
            }
            Sampling::Batches { .. } => return Ok(()), // `check_batches` does it: to plan an epoch takes time
        };
        if units == 0 {
            return Err(Error::config("sampler", "its epoch is empty", "let `len` be at least 1"));
        }
        let share = self.distributed.share(units);
        if share == 0 {
            let problem = format!("{units} samples are fewer than the {} processes", self.distributed.world());
            return Err(Error::config("distributed", problem, "leave out `drop_uneven`, or use fewer processes"));
        }
        if let Sampling::Samples { batch_size, .. } = self.sampling
            && self.batches_of(share) == 0
        {
            let problem = format!("{share} samples do not fill one batch of {batch_size}");
            return Err(Error::config("drop_last", problem, "lower `batch_size` or keep the last batch"));
        }
        Ok(())
    }

    /// Returns where an epoch begins.
    pub(crate) fn start_of(&self, epoch: usize) -> Position {
        self.resumed.filter(|at| at.epoch == epoch).unwrap_or_else(|| Position::begin(epoch))
    }

    /// Begins an epoch. This runs on the consumer's thread, and so does the sampler.
    pub(crate) fn epoch(&self, epoch: usize) -> Result<EpochOrder, Error> {
        let place = Place::batch(Stage::Sampler, BatchKey::new(epoch, 0));
        guard(place, || Ok::<_, BoxError>(self.order(epoch)))?
    }

    fn order(&self, epoch: usize) -> Result<EpochOrder, Error> {
        let Position { given, skipped, .. } = self.start_of(epoch);
        if given > 0 && self.slice.is_some() {
            let problem = "an epoch that was interrupted cannot be cut into slices";
            return Err(Error::config("resume", problem, "use `distributed` for several devices"));
        }
        self.check_slice(epoch)?;
        let (batch, repeats, by_samples) = match &self.sampling {
            Sampling::Samples { batch_size, sampler, .. } => (*batch_size, sampler.repeats(), true),
            Sampling::Batches { sampler } => (1, sampler.repeats(), false),
        };
        let (units, count) = self.units_from(epoch, given);
        self.check_batches(count)?;
        let wanted = given.min(count)..count;
        let world = self.distributed.world();
        let mine = self.distributed.share(wanted.len());
        let batches = self.batches_of(mine);
        let promised = match self.sampling {
            Sampling::Samples { drop_last: true, batch_size, .. } => batches * batch_size,
            _ => mine,
        };
        let all = if by_samples { promised } else { self.samples_of(epoch) };
        let items = match self.sampling {
            Sampling::Samples { .. } => given / world,
            Sampling::Batches { .. } => (given / world).saturating_mul(all) / count.div_ceil(world).max(1),
        };
        let first = self.start.saturating_add(wanted.start).saturating_add(self.distributed.rank());
        let feed = Feed { units, promised, asked: 0, given: 0, first, world, repeats };
        let number = given / batch.saturating_mul(world).max(1);
        let end = number.saturating_add(batches);
        let progress = EpochProgress {
            items,
            items_total: if by_samples { items.saturating_add(all) } else { all },
            skipped,
            epoch,
            first: number,
            next: number,
            end,
            resumed_at: given,
            batch,
            by_samples,
            left: promised,
            world,
            broken: false,
        };
        Ok(EpochOrder { feed, batches: number..end, progress })
    }

    /// Returns how many samples this process has in the batches of an epoch: counted, or estimated by the batch sampler.
    fn samples_of(&self, epoch: usize) -> usize {
        let count = || match self.units_from(epoch, 0) {
            (Units::Batches { batches, .. }, count) => {
                batches.take(self.distributed.share(count)).map(|batch| batch.len()).sum()
            }
            (Units::Samples { .. }, count) => count,
        };
        // A sampler that panics here does so again in the epoch, at the batch's place.
        if self.counted { catch(count).unwrap_or_else(|_| self.items()) } else { self.items() }
    }

    /// Checks that this process has a batch of an epoch of `count` units, where only the epoch itself tells that.
    ///
    /// # Errors
    /// [`Error::Config`] if it has none, unless nothing of the epoch belongs to the loader.
    fn check_batches(&self, count: usize) -> Result<(), Error> {
        let world = self.distributed.world();
        match &self.sampling {
            Sampling::Batches { .. } if count == 0 && self.slice.is_none() => {
                let advice = "let each epoch have a batch: smaller batches, or none left out";
                Err(Error::config("order", "the batch sampler has no batches for this epoch", advice))
            }
            Sampling::Samples { .. }
                if count > 0 && self.slice.is_some() && self.batches_of(self.distributed.share(count)) == 0 =>
            {
                let problem = format!("its {count} samples make no batch");
                Err(Error::config("slice", problem, "make it longer, or keep the last batch"))
            }
            Sampling::Batches { .. } if count > 0 && self.distributed.share(count) == 0 => {
                let problem = format!("{count} batches are fewer than the {world} processes");
                Err(Error::config("distributed", problem, "leave out `drop_uneven`, or use fewer processes"))
            }
            _ => Ok(()),
        }
    }

    /// Plans this process's units of an epoch of which `given` were given. Returns them, and how many the whole epoch has.
    fn units_from(&self, epoch: usize, given: usize) -> (Units, usize) {
        let len = self.dataset_len;
        let wanted = |count: usize| given.min(count)..count;
        match &self.sampling {
            Sampling::Samples { sampler, batch_size, .. } => {
                let again = Arc::clone(sampler);
                let (indices, count) = (sampler.indices(len, epoch), sampler.len(len));
                let indices = self.distributed.units(indices, wanted(count), move || again.indices(len, epoch));
                (Units::Samples { indices, batch_size: *batch_size }, count)
            }
            Sampling::Batches { sampler } => {
                let again = Arc::clone(sampler);
                let EpochBatches { len: count, batches } = sampler.batches(len, epoch);
                let again = move || again.batches(len, epoch).batches;
                let batches = self.distributed.units(batches, wanted(count), again);
                (Units::Batches { batches, max: sampler.max_batch_size(len) }, count)
            }
        }
    }
}

/// Returns the part of `all` that belongs to one of `parts`. All parts together are `all`.
pub(crate) fn part(all: usize, number: usize, parts: usize) -> usize {
    all / parts + usize::from(number < all % parts)
}
