//! Several processes, each with its share of every epoch.

use crate::fault::Error;
use std::{iter, ops::Range};

/// The share of one process (rank) of a world of them: of an epoch's global order it has the units `rank`, `rank + world`,
/// `rank + 2 * world` and so on, samples or, with a [`BatchSampler`](crate::BatchSampler), whole batches. The order is that of one
/// loader alone, so every sampler works, and a shuffle is global: a rank sees other samples in each epoch.
///
/// ```
/// use burn_pinned::Distributed;
///
/// let share = Distributed::new(2, 8)?; // the third of eight processes
/// assert_eq!((share.rank(), share.world()), (2, 8));
/// assert!(Distributed::new(8, 8).is_err());
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// All processes must use the same seed, sampler and batch size. Where an epoch does not divide evenly, its first units are given
/// once more at its end, so that all ranks have equally many batches, as collective operations need; or the rest is left out
/// ([`drop_uneven`](Self::drop_uneven)). It is the scheme of PyTorch's `DistributedSampler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distributed {
    rank: usize,
    world: usize,
    drop_uneven: bool,
}

impl Distributed {
    /// The share of `rank`, which counts from 0, of `world` processes.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such rank.
    pub fn new(rank: usize, world: usize) -> Result<Self, Error> {
        if rank >= world {
            let problem = format!("rank {rank} of a world of {world}");
            return Err(Error::config("distributed", problem, "count ranks from 0 to one less than the world"));
        }
        Ok(Self { rank, world, drop_uneven: false })
    }

    /// Leaves out the last units of an epoch that do not make one for each rank, instead of giving the first ones again.
    pub fn drop_uneven(self) -> Self {
        Self { drop_uneven: true, ..self }
    }

    /// This process, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes there are.
    pub fn world(&self) -> usize {
        self.world
    }

    /// A process alone.
    pub(crate) fn alone() -> Self {
        Self { rank: 0, world: 1, drop_uneven: false }
    }

    /// How many of so many units each rank has.
    pub(crate) fn share(&self, units: usize) -> usize {
        if self.drop_uneven { units / self.world } else { units.div_ceil(self.world) }
    }

    /// This rank's of the units of an epoch with these numbers, and for the last of them maybe a unit of `again`, the units of a
    /// whole epoch. What is not wanted of `units` is passed over by `nth`, which may take no time.
    pub(crate) fn units<T: Send + 'static>(
        &self,
        units: Box<dyn Iterator<Item = T> + Send>,
        wanted: Range<usize>,
        again: impl Fn() -> Box<dyn Iterator<Item = T> + Send> + Send + 'static,
    ) -> Box<dyn Iterator<Item = T> + Send> {
        match (self.world, wanted.start) {
            (1, 0) => return units, // no call more for each unit
            (1, first) => return Box::new(units.skip(first)),
            _ => {}
        }
        let own = wanted.len().saturating_sub(self.rank).div_ceil(self.world);
        let mine = units.skip(wanted.start.saturating_add(self.rank)).step_by(self.world).take(own);
        // Where the epoch ends before this rank's last turn, that is one of the first units again; each epoch has one at least.
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

    /// What is passed over takes no time, where the sampler's `nth` takes none.
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
        assert_eq!(mine.last(), Some(1)); // four ranks, two units short: the first two once more
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
