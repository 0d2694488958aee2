//! Which batch of an epoch has which samples: the sampler's order, this process's share of it, and where it is resumed.

use super::{
    distributed::Distributed,
    feed::{Feed, Units},
    progress::{EpochProgress, Position},
};
use crate::{
    fault::{BoxError, Error, guard},
    order::sampler::{BatchSampler, EpochBatches, Sampler},
    vocabulary::{BatchKey, Place, Stage},
};
use std::{ops::Range, sync::Arc};

/// What orders an epoch.
#[derive(Debug, Clone)]
pub(crate) enum Sampling {
    /// Samples in order, cut into batches of one size.
    Samples { sampler: Arc<dyn Sampler>, batch_size: usize, drop_last: bool },
    /// Batches as the batch sampler makes them.
    Batches { sampler: Arc<dyn BatchSampler> },
}

impl Sampling {
    /// Returns what makes batches and what orders epochs, in words that differ if the orders differ.
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
    /// The samples of each epoch's global order that belong to this loader, and to its twins in other processes.
    /// `None` means all.
    pub(crate) slice: Option<Range<usize>>,
    /// The number of devices that the loader is going to be cut for.
    pub(crate) devices: usize,
    /// Where another loader stopped.
    pub(crate) resumed: Option<Position>,
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

    /// Returns which of the global order's `units` belong to this loader and its twins in other processes.
    fn wanted(&self, units: usize) -> Range<usize> {
        let Some(slice) = &self.slice else { return 0..units };
        let at = |item: usize| match &self.sampling {
            Sampling::Samples { .. } => item.min(units),
            // Whole batches, in proportion to that part of the samples.
            Sampling::Batches { sampler } => {
                let items = sampler.num_items(self.dataset_len).max(1);
                (item.min(items) as u128 * units as u128 / items as u128) as usize
            }
        };
        at(slice.start)..at(slice.end)
    }

    /// Returns how many units of an epoch of `units` this process gets.
    fn mine(&self, units: usize) -> usize {
        self.distributed.share(self.wanted(units).len())
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
                let units = self.mine(self.units(0));
                if *drop_last { units - units % batch_size } else { units }
            }
            Sampling::Batches { sampler } => {
                let items = sampler.num_items(self.dataset_len);
                let items = self.slice.as_ref().map_or(items, |slice| slice.end.min(items) - slice.start.min(items));
                items / self.distributed.world()
            }
        }
    }

    /// How many batches an epoch has when it is not resumed and not cut for devices.
    fn batches(&self, epoch: usize) -> usize {
        self.batches_of(self.mine(self.units(epoch)))
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

    /// The order of one of the devices that the loader is cut for. A resumed device goes on with its part of what was
    /// skipped.
    fn of_device(&self, device: usize) -> Self {
        let resumed = self.resumed.map(|at| Position { skipped: part(at.skipped, device, self.devices), ..at });
        Self { distributed: self.distributed.of_device(device, self.devices), devices: 1, resumed, ..self.clone() }
    }

    /// Returns how many samples of an epoch each device has, for Burn. All of them together are no more than can be
    /// counted, even if the epoch has no end.
    fn items_of_device(&self) -> usize {
        self.of_device(0).items().min(usize::MAX / self.devices)
    }

    /// Returns how many samples an epoch has for Burn, which cuts them into equal slices, one for each device.
    pub(crate) fn items_to_cut(&self) -> usize {
        if self.devices > 1 { self.devices * self.items_of_device() } else { self.items() }
    }

    /// Makes this the order of one of the devices, if `start` and `end` are where Burn cuts for it. Returns the number of
    /// that device.
    pub(crate) fn cut_for_device(&mut self, start: usize, end: usize) -> Option<u16> {
        if self.devices < 2 {
            return None;
        }
        let each = self.items_of_device().max(1);
        let device = start / each;
        let is_cut = start.is_multiple_of(each) && Some(end) == start.checked_add(each) && device < self.devices;
        let number = u16::try_from(device).ok().filter(|_| is_cut)?;
        *self = self.of_device(device);
        Some(number)
    }

    /// Makes this the order of a part of the loader's samples, from `start` to `end`. It can still be cut for devices.
    pub(crate) fn cut(&mut self, start: usize, end: usize) {
        let Range { start: first, end: last } = self.slice.clone().unwrap_or(0..usize::MAX);
        // Each process has the same part of its own share.
        let at = |item: usize| first.saturating_add(item.saturating_mul(self.distributed.world())).min(last);
        self.slice = Some(at(start)..at(end).max(at(start)));
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
            Sampling::Batches { .. } => return Ok(()), // an epoch without batches is just empty
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
    pub(crate) fn begin(&self, epoch: usize) -> Position {
        self.resumed.filter(|at| at.epoch == epoch).unwrap_or_else(|| Position::begin(epoch))
    }

    /// Begins an epoch. This runs on the consumer's thread.
    pub(crate) fn epoch(&self, epoch: usize) -> Result<EpochOrder, Error> {
        let Position { given, skipped, .. } = self.begin(epoch);
        if given > 0 && self.slice.is_some() {
            let problem = "an epoch that was interrupted cannot be cut into slices";
            return Err(Error::config("resume", problem, "use `distributed` for several devices"));
        }
        let place = Place::batch(Stage::Sampler, BatchKey::new(epoch, 0));
        let schedule = self.clone();
        let planned = guard(place, || Ok::<_, BoxError>(schedule.units_from(epoch, given)))?;
        let Planned { units, wanted, count } = planned;
        let world = self.distributed.world();
        let (batch, repeats, by_samples) = match &self.sampling {
            Sampling::Samples { batch_size, sampler, .. } => (*batch_size, sampler.repeats(), true),
            Sampling::Batches { sampler } => (1, sampler.repeats(), false),
        };
        let mine = self.distributed.share(wanted.len());
        let batches = self.batches_of(mine);
        let promised = match self.sampling {
            Sampling::Samples { drop_last: true, batch_size, .. } => batches * batch_size,
            _ => mine,
        };
        let items = match self.sampling {
            Sampling::Samples { .. } => given / world,
            Sampling::Batches { .. } => (given / world).saturating_mul(self.items()) / count.div_ceil(world).max(1),
        };
        let first = wanted.start.saturating_add(self.distributed.rank());
        let feed = Feed { units, promised, asked: 0, given: 0, first, world, repeats };
        let number = given / batch.saturating_mul(world).max(1);
        let end = number.saturating_add(batches);
        let progress = EpochProgress {
            items,
            items_total: if by_samples { items.saturating_add(promised) } else { self.items() },
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
        };
        Ok(EpochOrder { feed, batches: number..end, progress })
    }

    /// Plans this process's units of an epoch of which `given` were given.
    fn units_from(&self, epoch: usize, given: usize) -> Planned {
        let len = self.dataset_len;
        match &self.sampling {
            Sampling::Samples { sampler, batch_size, .. } => {
                let again = Arc::clone(sampler);
                let (indices, count) = (sampler.indices(len, epoch), sampler.len(len));
                let (indices, wanted) = self.share_of(indices, count, given, move || again.indices(len, epoch));
                Planned { units: Units::Samples { indices, batch_size: *batch_size }, wanted, count }
            }
            Sampling::Batches { sampler } => {
                let again = Arc::clone(sampler);
                let EpochBatches { len: count, batches } = sampler.batches(len, epoch);
                let (batches, wanted) = self.share_of(batches, count, given, move || again.batches(len, epoch).batches);
                Planned { units: Units::Batches { batches, max: sampler.max_batch_size(len) }, wanted, count }
            }
        }
    }

    /// Returns this process's share of an epoch's units, of which `given` were given, and which of the units it is a
    /// share of. What comes again at the end is of the same slice.
    fn share_of<T: Send + 'static>(
        &self,
        units: Box<dyn Iterator<Item = T> + Send>,
        count: usize,
        given: usize,
        again: impl Fn() -> Box<dyn Iterator<Item = T> + Send> + Send + 'static,
    ) -> (Box<dyn Iterator<Item = T> + Send>, Range<usize>) {
        let wanted = self.wanted(count);
        let Range { start, end } = wanted;
        let again = move || Box::new(again().skip(start).take(end - start)) as Box<dyn Iterator<Item = T> + Send>;
        let wanted = start.max(given.min(end))..end;
        (self.distributed.units(units, wanted.clone(), again), wanted)
    }
}

/// The units of this process's share of an epoch, as the sampler has planned them.
struct Planned {
    units: Units,
    /// The units of the global order that all processes share.
    wanted: Range<usize>,
    /// How many units the whole epoch has.
    count: usize,
}

/// Returns the part of `all` that belongs to one of `parts`. All parts together are `all`.
pub(crate) fn part(all: usize, number: usize, parts: usize) -> usize {
    all / parts + usize::from(number < all % parts)
}
