//! Random permutations, also of more indices than a cache holds.

use super::packed::PackedList;
use crate::rng::KeyedRng;
use rand::{Rng, seq::SliceRandom};

/// From this length on, indices are scattered before they are shuffled. The order of an epoch depends on this number.
const LARGE: usize = 1 << 22;

/// Returns `0..len` in random order. `rng` must be at its start.
///
/// A shuffle swaps each index with one at a random place. If there are many indices, that place is not in the cache. So
/// the indices are first scattered to random buckets, and then each bucket is shuffled. The result is just as random,
/// and memory is written in order (P. Sanders, "Random Permutations on Distributed, External and Hierarchical Memory",
/// Information Processing Letters 67(6), 1998). For 10^8 indices this takes a third of the time.
pub(crate) fn permutation(len: usize, rng: &mut KeyedRng) -> PackedList {
    if len < LARGE {
        let mut list = PackedList::counting(len);
        list.shuffle(0..len, rng);
        return list;
    }
    match u32::try_from(len) {
        Ok(_) => PackedList::Narrow(scatter(len, rng, |index| index as u32)),
        Err(_) => PackedList::Wide(scatter(len, rng, |index| index)),
    }
}

/// One bucket for each value of a byte. They are few enough that the place of the next index in each is in the cache.
const BUCKETS: usize = 256;

fn scatter<T: Copy + Default>(len: usize, rng: &mut KeyedRng, of: impl Fn(usize) -> T) -> Vec<T> {
    let mut ends = [0; BUCKETS];
    for_each_byte(len, rng, |_, bucket| ends[bucket] += 1);
    for bucket in 1..BUCKETS {
        ends[bucket] += ends[bucket - 1];
    }
    let mut next = [0; BUCKETS]; // where each bucket starts
    next[1..].copy_from_slice(&ends[..BUCKETS - 1]);
    rng.seek(0); // makes the same bytes again, instead of keeping them in memory
    let mut list = vec![T::default(); len];
    for_each_byte(len, rng, |index, bucket| {
        list[next[bucket]] = of(index);
        next[bucket] += 1;
    });
    let mut rest = &mut list[..];
    let mut start = 0;
    for end in ends {
        let (bucket, after) = rest.split_at_mut(end - start);
        bucket.shuffle(rng);
        (rest, start) = (after, end);
    }
    list
}

/// Calls `then` with each index and a random byte.
fn for_each_byte(len: usize, rng: &mut KeyedRng, mut then: impl FnMut(usize, usize)) {
    let mut bytes = [0; 4096];
    for start in (0..len).step_by(bytes.len()) {
        rng.fill_bytes(&mut bytes);
        let end = len.min(start + bytes.len());
        (start..end).zip(bytes).for_each(|(index, byte)| then(index, usize::from(byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ChiSquared, ContinuousCDF};
    use std::collections::BTreeMap;

    #[test]
    fn scattered_indices_come_once_each() {
        for len in [0, 1, 2, 255, 4096, 4097, 100_000] {
            let mut narrow = scatter(len, &mut KeyedRng::for_order(1, 0), |index| index as u32);
            let wide = scatter(len, &mut KeyedRng::for_order(1, 0), |index| index);
            assert!(narrow.iter().map(|index| *index as usize).eq(wide));
            narrow.sort_unstable();
            assert!(narrow.into_iter().eq(0..len as u32));
        }
    }

    /// Uses Pearson's chi-square test. A correct shuffle would fail with one seed in a thousand.
    #[test]
    fn scattering_makes_all_orders_as_likely() {
        let mut counts = BTreeMap::<Vec<usize>, f64>::new();
        for seed in 0..24_000 {
            *counts.entry(scatter(4, &mut KeyedRng::for_order(seed, 0), |index| index)).or_default() += 1.0;
        }
        assert_eq!(counts.len(), 24);
        let statistic: f64 = counts.values().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        assert!(ChiSquared::new(23.0).unwrap().sf(statistic) > 0.001, "{statistic}");
    }

    #[test]
    fn large_permutations_are_scattered() {
        let list = permutation(LARGE, &mut KeyedRng::for_order(1, 0));
        assert!(list.iter().eq(scatter(LARGE, &mut KeyedRng::for_order(1, 0), |index| index)));
    }
}
