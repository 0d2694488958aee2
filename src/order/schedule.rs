//! Which samples are in which batch of an epoch: from the sampler's order, this process's share, and the position of a
//! resume.

use super::{
    distributed::Distributed,
    feed::Feed,
    order_by::AnySampler,
    progress::{EpochProgress, Position},
};
use crate::{
    fault::{BoxError, Error, catch, guard},
    order::sampler::{BatchSampler, EpochBatches, SequentialSampler, check_same, in_batches},
    vocabulary::{BatchKey, Place, Stage},
};
use std::sync::Arc;

/// How a loader orders its epochs. The units of an order are samples or, with a [`BatchSampler`], batches.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) sampler: AnySampler,
    /// Units per batch: 1 with a batch sampler.
    pub(crate) batch: usize,
    /// Whether a last batch that is not full is dropped. For samplers of samples only.
    pub(crate) drop_last: bool,
    pub(crate) dataset_len: usize,
    pub(crate) distributed: Distributed,
    /// How the slice was cut, if the loader is a slice of another one. Then `sampler` is the sampler of the slice.
    pub(crate) slice: Option<Slice>,
    /// Where the slice begins in the order of the whole loader, so that no two slices draw the same random numbers.
    pub(crate) start: usize,
    /// The number of devices that the loader will be cut for.
    pub(crate) devices: usize,
    /// The position at which another loader stopped.
    pub(crate) resumed: Option<Position>,
    /// Whether the samples of an epoch are counted when it begins, because a share of them may be skipped. Otherwise
    /// the estimate of a batch sampler is enough.
    pub(crate) counted: bool,
}

/// What was cut to make a slice of a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slice {
    /// The dataset: the samples of the slice are shuffled among themselves.
    Members,
    /// The sampler's sequence, which must be the same in each epoch.
    Positions,
}

impl Schedule {
    /// The dataset's own order in batches of this number of samples, for one process and one device.
    pub(crate) fn sequential(dataset_len: usize, batch: usize) -> Self {
        Self {
            sampler: AnySampler::Samples(Arc::new(SequentialSampler)),
            batch,
            drop_last: false,
            dataset_len,
            distributed: Distributed::alone(),
            slice: None,
            start: 0,
            devices: 1,
            resumed: None,
            counted: false,
        }
    }

    /// Returns texts that describe how batches are made and how epochs are ordered. They differ if the orders differ.
    pub(crate) fn fingerprint(&self) -> (String, String) {
        match &self.sampler {
            AnySampler::Samples(sampler) => {
                let last = if self.drop_last { ", the last full" } else { "" };
                (format!("of {}{last}", self.batch), sampler.fingerprint())
            }
            AnySampler::Batches(sampler) => ("the sampler's".into(), sampler.fingerprint()),
        }
    }

    fn by_samples(&self) -> bool {
        matches!(self.sampler, AnySampler::Samples(_))
    }

    /// Returns how many of the last `units` units of an epoch this process delivers.
    fn promised(&self, units: usize) -> usize {
        let share = self.distributed.share(units);
        if self.drop_last { share - share % self.batch } else { share }
    }

    /// Returns how many samples an epoch delivers. A batch sampler estimates this.
    pub(crate) fn items(&self) -> usize {
        match &self.sampler {
            AnySampler::Samples(sampler) => self.promised(sampler.len(self.dataset_len)),
            AnySampler::Batches(sampler) => sampler.num_items(self.dataset_len) / self.distributed.world(),
        }
    }

    /// Returns how many samples of the dataset an epoch of all processes leaves out, at least, and how many of them only because they fill
    /// no batch or are too few for all processes.
    pub(crate) fn left_out(&self) -> (usize, usize) {
        let len = self.dataset_len;
        let (all, given, never) = match &self.sampler {
            AnySampler::Samples(sampler) => {
                let given = self.num_items().saturating_mul(self.distributed.world());
                (sampler.len(len), given, sampler.left_out(len))
            }
            AnySampler::Batches(sampler) => {
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
            let given = shares.share(len) * shares.world();
            if given == len {
                return 0;
            }
            batches.skip(given).map(|batch| batch.len()).sum()
        };
        // If no batch can be left over, no epoch is planned. A sampler that panics here will panic again in the epoch.
        if shares.share(1) == 0 { catch(count).unwrap_or(0) } else { 0 }
    }

    /// The number of batches of an epoch that is not resumed and not cut for devices.
    fn batches(&self, epoch: usize) -> usize {
        self.promised(self.sampler.units(self.dataset_len, epoch)).div_ceil(self.batch)
    }

    /// The number of steps of an epoch that is not resumed: its number of batches or, if the loader will be cut for
    /// devices, the number for each device.
    pub(crate) fn steps(&self, epoch: usize) -> usize {
        if self.devices > 1 { self.of_device(0).batches(epoch) } else { self.batches(epoch) }
    }

    /// Returns the largest number of samples in a batch.
    pub(crate) fn max_batch_size(&self) -> usize {
        match &self.sampler {
            AnySampler::Samples(sampler) => {
                self.batch.min(self.distributed.share(sampler.len(self.dataset_len))).max(1) // the epoch needs no larger slots
            }
            AnySampler::Batches(sampler) => sampler.max_batch_size(self.dataset_len),
        }
    }

    /// Returns a lower bound on the number of batches of every epoch, or `usize::MAX` if it is not known without cost.
    pub(crate) fn fewest_batches(&self) -> usize {
        match self.sampler {
            AnySampler::Samples(_) => self.batches(0).max(1),
            AnySampler::Batches(_) => usize::MAX,
        }
    }

    /// The order of one of the devices that the loader is cut for. In a resumed epoch, each device starts with its part
    /// of the number of skipped samples.
    fn of_device(&self, device: usize) -> Self {
        let resumed = self.resumed.map(|at| Position { skipped: part(at.skipped, device, self.devices), ..at });
        Self { distributed: self.distributed.of_device(device, self.devices), devices: 1, resumed, ..self.clone() }
    }

    /// Returns the number of samples of an epoch that is reported to Burn, which may cut it for the devices: for a
    /// whole loader the total of all devices, for a slice its own. Each device has at least one sample, and the sum
    /// does not overflow even if the epoch is endless.
    pub(crate) fn num_items(&self) -> usize {
        let items = self.items();
        if self.devices < 2 || (self.slice.is_some() && items >= self.devices) {
            return items;
        }
        let each = self.of_device(0).items().min(usize::MAX / self.devices);
        if each == 0 { items } else { self.devices * each }
    }

    /// Makes this the order of one of the devices, if Burn would cut at `start` and `end` for it. Returns the number of that device.
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
    /// An `end` at the end of the epoch includes all samples, even those that `drop_last` leaves out. The part is
    /// `world` times as long, and each process has its share of it.
    pub(crate) fn cut(&mut self, start: usize, end: usize) {
        let (len, world) = (self.dataset_len, self.distributed.world());
        let items = self.items().min(self.num_items());
        let (units, by_samples) = (self.sampler.units(len, 0), self.by_samples());
        let at = |item: usize| match by_samples {
            true if item < items => item.saturating_mul(world).min(units),
            true => units,
            // Whole batches, in proportion to the part of the samples.
            false => (item.min(items) as u128 * units as u128 / items.max(1) as u128) as usize,
        };
        let part = at(start)..at(end).max(at(start));
        self.start = self.start.saturating_add(part.start); // a part may be cut again
        let (sampler, of_members) = self.sampler.part(len, part);
        self.slice = Some(if of_members { Slice::Members } else { Slice::Positions });
        self.sampler = sampler;
    }

    /// Checks that a slice has the same samples in this epoch as in other epochs.
    fn check_slice(&self, epoch: usize) -> Result<(), Error> {
        let len = self.dataset_len;
        match &self.sampler {
            _ if self.slice != Some(Slice::Positions) => Ok(()),
            AnySampler::Samples(sampler) if sampler.is_empty(len) => Ok(()),
            AnySampler::Samples(sampler) => check_same(epoch, |epoch| sampler.indices(len, epoch)),
            AnySampler::Batches(sampler) => check_same(epoch, |epoch| sampler.batches(len, epoch).batches),
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
        match &self.sampler {
            AnySampler::Samples(sampler) => self.check_units(sampler.len(self.dataset_len)),
            AnySampler::Batches(sampler) if sampler.max_batch_size(self.dataset_len) == 0 => {
                let problem = "its largest batch has no samples";
                Err(Error::config("batch_sampler", problem, "let `max_batch_size` be at least 1"))
            }
            AnySampler::Batches(_) => Ok(()), // each epoch is checked as it begins: to plan one takes time
        }
    }

    /// Checks that this process has a batch of an epoch of this many units.
    ///
    /// # Errors
    /// [`Error::Config`] if it has none, except for a slice that has nothing of the epoch.
    fn check_units(&self, units: usize) -> Result<(), Error> {
        let (by_samples, is_slice, share) = (self.by_samples(), self.slice.is_some(), self.distributed.share(units));
        let (option, problem, advice) = match units {
            0 if is_slice => return Ok(()),
            0 if by_samples => ("sampler", "its epoch is empty".into(), "let `len` be at least 1"),
            0 => {
                let advice = "let each epoch have a batch: smaller batches, or none left out";
                ("order", "the batch sampler has no batches for this epoch".into(), advice)
            }
            _ if self.promised(units) > 0 => return Ok(()),
            _ if by_samples && is_slice => {
                ("slice", format!("its {units} samples make no batch"), "make it longer, or keep the last batch")
            }
            _ if share == 0 => {
                let (what, world) = (if by_samples { "samples" } else { "batches" }, self.distributed.world());
                let problem = format!("{units} {what} are fewer than the {world} processes");
                ("distributed", problem, "leave out `drop_uneven`, or use fewer processes")
            }
            _ => {
                let problem = format!("{share} samples do not fill one batch of {}", self.batch);
                ("drop_last", problem, "lower `batch_size` or keep the last batch")
            }
        };
        Err(Error::config(option, problem, advice))
    }

    /// Returns where an epoch begins.
    pub(crate) fn start_of(&self, epoch: usize) -> Position {
        self.resumed.filter(|at| at.epoch == epoch).unwrap_or_else(|| Position::begin(epoch))
    }

    /// Begins an epoch: returns its batches and its progress. This and the sampler run on the consumer's thread.
    pub(crate) fn epoch(&self, epoch: usize) -> Result<(Feed, EpochProgress), Error> {
        let place = Place::batch(Stage::Sampler, BatchKey::new(epoch, 0));
        guard(place, || Ok::<_, BoxError>(self.order(epoch)))?
    }

    fn order(&self, epoch: usize) -> Result<(Feed, EpochProgress), Error> {
        let Position { given, skipped, .. } = self.start_of(epoch);
        if given > 0 && self.slice.is_some() {
            let problem = "an epoch that was interrupted cannot be cut into slices";
            return Err(Error::config("resume", problem, "use `distributed` for several devices"));
        }
        self.check_slice(epoch)?;
        let (batch, by_samples, world) = (self.batch, self.by_samples(), self.distributed.world());
        let (max, repeats) = match &self.sampler {
            AnySampler::Samples(sampler) => (batch, sampler.repeats()),
            AnySampler::Batches(sampler) => (sampler.max_batch_size(self.dataset_len), sampler.repeats()),
        };
        let (batches, count) = self.batches_from(epoch, given);
        self.check_units(count)?;
        let start = given.min(count);
        let promised = self.promised(count - start);
        let all = if by_samples { promised } else { self.samples_of(epoch) };
        let items = match by_samples {
            true => given / world,
            false => (given / world).saturating_mul(all) / count.div_ceil(world).max(1),
        };
        let first = self.start.saturating_add(start).saturating_add(self.distributed.rank());
        let feed =
            Feed { batches, by_samples, batch, max, promised, asked: 0, given: 0, first, world, repeats, items: None };
        let number = given / batch.saturating_mul(world).max(1);
        let progress = EpochProgress {
            items,
            items_total: if by_samples { items.saturating_add(all) } else { all },
            skipped,
            epoch,
            first: number,
            next: number,
            end: number.saturating_add(promised.div_ceil(batch)),
            resumed_at: given,
            batch,
            by_samples,
            left: promised,
            world,
            is_open: false,
            broken: false,
        };
        Ok((feed, progress))
    }

    /// Returns how many samples this process has in the batches of an epoch: counted, or estimated by the batch sampler.
    fn samples_of(&self, epoch: usize) -> usize {
        let count = || {
            let (batches, count) = self.batches_from(epoch, 0);
            batches.take(self.promised(count)).map(|batch| batch.len()).sum()
        };
        // A sampler that panics here will panic again in the epoch, in place of the batch.
        if self.counted { catch(count).unwrap_or_else(|_| self.items()) } else { self.items() }
    }

    /// Plans this process's batches of an epoch of which `given` units were delivered. Returns them, and the number of units of the whole
    /// epoch.
    fn batches_from(&self, epoch: usize, given: usize) -> (Box<dyn Iterator<Item = Vec<usize>> + Send>, usize) {
        let len = self.dataset_len;
        match &self.sampler {
            AnySampler::Samples(sampler) => {
                let again = Arc::clone(sampler);
                let (indices, count) = (sampler.indices(len, epoch), sampler.len(len));
                let wanted = given.min(count)..count;
                let promised = self.promised(wanted.len());
                let indices = self.distributed.units(indices, wanted, move || again.indices(len, epoch));
                (Box::new(in_batches(indices, promised, self.batch)), count)
            }
            AnySampler::Batches(sampler) => {
                let again = Arc::clone(sampler);
                let EpochBatches { len: count, batches } = sampler.batches(len, epoch);
                let again = move || again.batches(len, epoch).batches;
                (self.distributed.units(batches, given.min(count)..count, again), count)
            }
        }
    }
}

/// The samples of one process in an epoch, in order, as its loader reads them. `given` samples of the global order were delivered before.
///
/// # Errors
/// Those of an epoch of a loader.
#[cfg(feature = "remote")]
pub fn samples_of(
    sampler: &Arc<dyn super::Sampler>,
    dataset_len: usize,
    batch: usize,
    distributed: Distributed,
    epoch: usize,
    given: usize,
) -> Result<Box<dyn Iterator<Item = usize> + Send>, Error> {
    let (sampler, resumed) = (AnySampler::Samples(Arc::clone(sampler)), Some(Position { epoch, given, skipped: 0 }));
    let schedule = Schedule { sampler, distributed, resumed, ..Schedule::sequential(dataset_len, batch) };
    Ok(schedule.epoch(epoch)?.0.samples())
}

/// Returns the size of part `number` when `all` is divided into `parts` parts.
pub(crate) fn part(all: usize, number: usize, parts: usize) -> usize {
    all / parts + usize::from(number < all % parts)
}
