//! Streams of independent draws. They need no memory, and skipping takes no time.

use super::packed::LazyMap;
use burn_augment::KeyedRng;
use rand::Rng;

/// `len` indices, each from one 64-bit random number.
pub(crate) fn draws(mut rng: KeyedRng, len: usize, pick: impl Fn(u64) -> usize) -> impl Iterator<Item = usize> {
    let mut drawn = 0;
    LazyMap::new(len, move |at| {
        if at != drawn {
            rng.seek(at as u64); // the generator counts, so the skipped draws are not made
        }
        drawn = at + 1;
        Some(pick(rng.next_u64()))
    })
}

/// Turns a 64-bit random number into a number below `n` and a remainder, which is again a 64-bit random number.
///
/// The number is the high word of `random * n` (D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS
/// 29(1), 2019), without the rejection: a draw always takes one random number. No probability is off by more than
/// 2^-64.
pub(crate) fn below(random: u64, n: usize) -> (usize, u64) {
    let product = u128::from(random) * n as u128;
    ((product >> 64) as usize, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(len: usize) -> impl Iterator<Item = usize> {
        draws(KeyedRng::for_order(1, 2), len, |random| random as usize)
    }

    proptest! {
        #[test]
        fn nth_skips(len in 0usize..300, skips in prop::collection::vec(0usize..80, 1..10)) {
            let all: Vec<usize> = drawn(len).collect();
            let (mut skipping, mut at) = (drawn(len), 0);
            for skip in skips {
                prop_assert_eq!(skipping.nth(skip), all.get(at + skip).copied());
                at = (at + skip + 1).min(len);
                prop_assert_eq!(skipping.size_hint(), (len - at, Some(len - at)));
            }
            prop_assert!(skipping.eq(all[at..].iter().copied()));
        }
    }

    #[test]
    fn a_far_draw_costs_no_more_than_a_near_one() {
        let mut endless = drawn(usize::MAX);
        assert!(endless.nth(usize::MAX / 2).is_some());
        assert_eq!(endless.nth(usize::MAX), None);
    }

    #[test]
    fn below_covers_its_range() {
        assert_eq!(below(0, 10), (0, 0));
        assert_eq!(below(u64::MAX, 10).0, 9);
        assert_eq!(below(1 << 63, 10), (5, 0));
        assert_eq!(below(u64::MAX, usize::MAX).0, usize::MAX - 1);
    }
}
