//! The times of one stage: a count, a sum and a histogram. Many threads update them without a lock.

use histogram::{AtomicHistogram, Config, Histogram};
use serde::{Deserialize, Serialize};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Whether this crate is built with the clocks and histograms of its statistics. To measure their cost, build it
/// without them by setting the environment variable `BURN_PINNED_UNTIMED`. See `benches/loaders.rs`.
pub(crate) const TIMED: bool = option_env!("BURN_PINNED_UNTIMED").is_none();

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Buckets are 6 % of their value wide, and go up to 2^44 ns, nearly five hours. A histogram takes 5 KB.
///
/// A recorder of `hdrhistogram` is as cheap, but its reader waits for every recording thread, so a snapshot would wait
/// for a worker with a slow sample. These are shared counters: recording is one atomic addition.
const BUCKETS: Config = match Config::new(4, 44) {
    Ok(config) => config,
    Err(_) => panic!("the bounds of the histograms are wrong"),
};
const LONGEST_TIME: u64 = (1 << 44) - 1;

/// The count, the sum and the histogram of a stage.
#[derive(derive_more::Debug)]
#[debug("StageCounters {{ count: {count:?}, busy_ns: {busy_ns:?}, .. }}")]
pub(crate) struct StageCounters {
    /// The number of events. The histogram may have only some of them.
    count: AtomicU64,
    busy_ns: AtomicU64,
    /// How many times in the histogram are means of several samples, and the most samples of such a mean.
    means: AtomicU64,
    group: AtomicU64,
    times: AtomicHistogram,
}

impl Default for StageCounters {
    fn default() -> Self {
        let times = AtomicHistogram::with_config(&BUCKETS);
        let [count, busy_ns, means, group] = [const { AtomicU64::new(0) }; 4];
        Self { count, busy_ns, means, group, times }
    }
}

impl StageCounters {
    /// Adds one event.
    pub(crate) fn add(&self, ns: u64) {
        self.add_time(ns);
        self.add_total(1, ns);
    }

    /// Adds a time only to the histogram.
    pub(crate) fn add_time(&self, ns: u64) {
        let _ = self.times.increment(ns.min(LONGEST_TIME)); // the time is in range
    }

    /// Adds the time of `samples` samples to the histogram, as one time: their mean.
    pub(crate) fn add_mean(&self, ns: u64, samples: u64) {
        self.add_time(ns / samples.max(1));
        if samples > 1 {
            self.means.fetch_add(1, Relaxed);
            self.group.fetch_max(samples, Relaxed);
        }
    }

    /// Adds events and their time without the histogram.
    pub(crate) fn add_total(&self, count: u64, ns: u64) {
        self.count.fetch_add(count, Relaxed);
        self.busy_ns.fetch_add(ns, Relaxed);
    }
}

/// How often a stage ran, and how long it took. Percentiles are at most 6 % too high. All values are 0 for a stage that
/// never ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StageStats {
    /// The number of runs: `read`, `augment` and `collate` count samples, `fill` counts tasks, and all others count
    /// batches.
    pub count: u64,
    /// The total time of all runs, over all threads.
    pub busy: Duration,
    /// The median time.
    pub p50: Duration,
    /// The 95th percentile of the times.
    pub p95: Duration,
    /// The 99th percentile of the times.
    pub p99: Duration,
    /// 1 if the percentiles are of single samples, batches or tasks. Otherwise they are of means of up to this many
    /// samples: samples that take less than 20 µs are timed in groups.
    pub group: u64,
}

impl StageStats {
    /// The mean time.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.busy.as_nanos() / u128::from(self.count.max(1))) as u64)
    }

    /// Returns the time that would be saved if no run took longer than the median.
    pub(super) fn above_median(&self) -> Duration {
        let medians = self.p50.as_secs_f64() * self.count as f64;
        Duration::from_secs_f64((self.busy.as_secs_f64() - medians).max(0.0))
    }

    /// Makes the statistics of a stage: the sum of the counters that recorded it. For samples, the histograms have only some of the times.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a StageCounters>) -> Self {
        let (mut count, mut busy_ns, mut times) = (0, 0, Histogram::with_config(&BUCKETS));
        let (mut means, mut group) = (0, 1);
        for part in parts {
            count += part.count.load(Relaxed);
            busy_ns += part.busy_ns.load(Relaxed);
            means += part.means.load(Relaxed);
            group = part.group.load(Relaxed).max(group);
            let _ = times.checked_add_assign(&part.times.load()); // same configuration, and no counter overflows
        }
        let at = |share| {
            let bucket = times.quantile_bucket(share).ok().flatten();
            Duration::from_nanos(bucket.map_or(0, |bucket| bucket.end()))
        };
        // A small number of groups, such as those of the first tasks, does not change a percentile.
        let all = times.as_slice().iter().sum::<u64>();
        let group = if means * 100 > all { group } else { all.min(1) };
        Self { count, busy: Duration::from_nanos(busy_ns), p50: at(0.5), p95: at(0.95), p99: at(0.99), group }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_bucket() {
        let stages = [StageCounters::default(), StageCounters::default()];
        for ns in 1..=10_000u64 {
            stages[ns as usize % 2].add_time(1000 * ns);
            stages[ns as usize % 2].add_total(1, 1000 * ns);
        }
        let stats = StageStats::of(&stages);
        assert_eq!((stats.count, stats.busy), (10_000, Duration::from_micros(50_005_000)));
        for (time, micros) in [(stats.p50, 5_000), (stats.p95, 9_500), (stats.p99, 9_900)] {
            let exact = Duration::from_micros(micros);
            assert!(time >= exact && time <= exact.mul_f64(1.07), "{time:?} for {exact:?}");
        }
    }

    #[test]
    fn percentiles_of_groups_say_so() {
        let stages = [StageCounters::default(), StageCounters::default()];
        (0..1000).for_each(|_| stages[0].add_mean(1_000, 1));
        (0..5).for_each(|_| stages[1].add_mean(32_000, 32));
        assert_eq!(StageStats::of(&stages).group, 1, "the groups of a first task");
        (0..6).for_each(|_| stages[1].add_mean(9_000, 9));
        assert_eq!(StageStats::of(&stages).group, 32);
    }

    #[test]
    fn a_stage_that_never_ran_is_zero_and_a_time_out_of_range_is_the_longest() {
        assert_eq!(StageStats::of([]), StageStats::default());
        let stage = StageCounters::default();
        assert_eq!(StageStats::of([&stage]), StageStats::default());
        stage.add(u64::MAX);
        let stats = StageStats::of([&stage]);
        assert!(stats.count == 1 && stats.p50 >= Duration::from_nanos(LONGEST_TIME), "{stats:?}");
    }
}
