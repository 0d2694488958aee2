//! Several processes, each with its share of every epoch.

use crate::fault::Error;
use std::{iter, ops::Range};

/// The share of every epoch for one process (rank) of a group of processes (world).
///
/// The rank gets the units `rank`, `rank + world`, `rank + 2 * world` and so on of an epoch's global order. A unit is a
/// sample or, with a [`BatchSampler`](crate::order::BatchSampler), a whole batch. The global order is the order of a
/// single loader, so every sampler works. A shuffle is global too: a rank sees different samples in each epoch.
///
/// ```
/// use burn_pinned::Distributed;
///
/// let share = Distributed::new(2, 8)?; // the third of eight processes
/// assert_eq!((share.rank(), share.world()), (2, 8));
/// let share = share.with_local_world(4)?; // four of them are on this host
/// assert!(Distributed::new(8, 8).is_err());
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// All processes must use the same seed, sampler and batch size. If an epoch does not divide evenly, its first units
/// are repeated at its end. So all ranks have the same number of batches, as collective operations require. With
/// [`drop_uneven`](Self::drop_uneven) the remainder is dropped instead. PyTorch's `DistributedSampler` works the same
/// way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distributed {
    rank: usize,
    world: usize,
    /// How many of the processes are on this host.
    local_world: usize,
    drop_uneven: bool,
}

impl Distributed {
    /// The share of process `rank` (from 0) of `world` processes.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such rank.
    pub fn new(rank: usize, world: usize) -> Result<Self, Error> {
        if rank >= world {
            let problem = format!("there is no rank {rank} in a world of {world} processes");
            return Err(Error::config("distributed", problem, "count ranks from 0 to one less than the world"));
        }
        Ok(Self { rank, world, local_world: 1, drop_uneven: false })
    }

    /// If the last units of an epoch are too few for all ranks, drops them instead of repeating the first ones.
    pub fn drop_uneven(self) -> Self {
        Self { drop_uneven: true, ..self }
    }

    /// Sets the number of processes on this host, including this one. Default: 1. [`from_env`](Self::from_env) gets it
    /// from most launchers. By default, each process then uses its part of the CPU threads for workers, and its part of
    /// the CPU cache for slots. The batches do not depend on it.
    ///
    /// # Errors
    /// [`Error::Config`] if it is 0, or more than `world`.
    pub fn with_local_world(self, processes: usize) -> Result<Self, Error> {
        if !(1..=self.world).contains(&processes) {
            let problem = format!("{processes} processes on this host, of {} in all", self.world);
            return Err(Error::config("distributed", problem, "count the processes on this host, this one included"));
        }
        Ok(Self { local_world: processes, ..self })
    }

    /// The number of processes on this host, as far as is known.
    pub fn local_world(&self) -> usize {
        self.local_world
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn world(&self) -> usize {
        self.world
    }

    /// Whether the last units of an epoch are left out if they are too few for all ranks.
    pub(crate) fn drops_uneven(&self) -> bool {
        self.drop_uneven
    }

    /// The number in the global order of a unit of this rank's share.
    pub(crate) fn unit(&self, number: usize) -> usize {
        number.saturating_mul(self.world).saturating_add(self.rank)
    }

    /// The share of one of the devices of this process.
    pub(crate) fn of_device(self, device: usize, devices: usize) -> Self {
        Self { rank: self.rank * devices + device, world: self.world * devices, ..self }
    }

    /// The share of a single process, which is the whole epoch.
    pub(crate) fn alone() -> Self {
        Self { rank: 0, world: 1, local_world: 1, drop_uneven: false }
    }

    /// Returns how many units each rank has if the epoch has `units`.
    pub(crate) fn share(&self, units: usize) -> usize {
        if self.drop_uneven { units / self.world } else { units.div_ceil(self.world) }
    }

    /// Returns this rank's share of those units of an epoch whose numbers are in `wanted`.
    ///
    /// `again` makes the units of a whole epoch: the last unit of the share may be one of the epoch's first ones.
    /// Unwanted units are skipped with `nth`, which may be free.
    pub(crate) fn units<T: Send + 'static>(
        &self,
        units: Box<dyn Iterator<Item = T> + Send>,
        wanted: Range<usize>,
        again: impl Fn() -> Box<dyn Iterator<Item = T> + Send> + Send + 'static,
    ) -> Box<dyn Iterator<Item = T> + Send> {
        match (self.world, wanted.start) {
            (1, 0) => return units, // avoids one more call for each unit
            (1, first) => return Box::new(units.skip(first)),
            _ => {}
        }
        let own = wanted.len().saturating_sub(self.rank).div_ceil(self.world);
        let mine = units.skip(wanted.start.saturating_add(self.rank)).step_by(self.world).take(own);
        // If the epoch ends before this rank's last turn, the rank gets one of the first units again. Each epoch has at
        // least one unit.
        let beyond = own.saturating_mul(self.world).saturating_add(self.rank).saturating_sub(wanted.len());
        let missing = iter::repeat_with(again)
            .take(self.world)
            .flatten()
            .skip(beyond)
            .take(self.share(wanted.len()).saturating_sub(own));
        Box::new(mine.chain(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    fn share(distributed: Distributed, units: usize) -> Vec<usize> {
        let again = move || Box::new(0..units) as Box<dyn Iterator<Item = usize> + Send>;
        distributed.units(again(), 0..units, again).take(distributed.share(units)).collect()
    }

    /// Skipped units take no time if the sampler's `nth` takes none.
    #[test]
    fn other_ranks_units_are_passed_over_at_once() {
        struct Counted(Range<usize>, Arc<AtomicUsize>);
        impl Iterator for Counted {
            type Item = usize;
            fn next(&mut self) -> Option<usize> {
                self.nth(0)
            }
            fn nth(&mut self, n: usize) -> Option<usize> {
                self.1.fetch_add(1, Relaxed);
                self.0.nth(n)
            }
        }
        let calls = Arc::<AtomicUsize>::default();
        let (len, given) = (4_000_002, 1_000_000);
        let units = Box::new(Counted(0..len, Arc::clone(&calls)));
        let mut mine = Distributed::new(3, 4).unwrap().units(units, given..len, move || Box::new(0..len));
        assert_eq!(mine.by_ref().take(5).collect::<Vec<_>>(), [3, 7, 11, 15, 19].map(|unit| given + unit));
        assert!(calls.load(Relaxed) < 20, "{calls:?}");
        assert_eq!(mine.last(), Some(1)); // four ranks, two units are missing: the first two come again
    }

    proptest! {
        #[test]
        fn shares_are_equal_and_together_everything(units in 1usize..200, world in 1usize..20) {
            let ranks = |uneven: fn(Distributed) -> Distributed| {
                (0..world).map(|rank| share(uneven(Distributed::new(rank, world).unwrap()), units)).collect::<Vec<_>>()
            };
            let (padded, dropped) = (ranks(|all| all), ranks(Distributed::drop_uneven));
            prop_assert!(padded.iter().all(|share| share.len() == units.div_ceil(world)));
            prop_assert!(dropped.iter().all(|share| share.len() == units / world));
            let mut seen = vec![0; units];
            padded.iter().flatten().for_each(|unit| seen[*unit] += 1);
            let extra = units.div_ceil(world) * world - units;
            prop_assert!(seen.iter().all(|times| *times >= 1));
            prop_assert_eq!(seen.iter().sum::<usize>(), units + extra);
            let mut all: Vec<usize> = dropped.into_iter().flatten().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..units / world * world).collect::<Vec<_>>());
        }
    }
}
