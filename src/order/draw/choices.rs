//! The choices of a mixture: which of its parts gives the sample at each place. Any place can be entered.

use burn_augment::{KeyedRng, for_loader::Purpose};
use rand::{Rng, seq::SliceRandom};
use std::ops::Range;

/// The choices of this many places are in random order.
const BLOCK: u64 = 4096;
/// The golden section, as a fraction of 2^64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// An endless sequence of choices, in periods. In each period, each part is chosen as often as its quota says.
///
/// Each place of a period has a number of its own below the period's length, and each part has a range of numbers. From one place to the
/// next the number grows by the golden section of the period, modulo its length. So any stretch of places has numbers from everywhere, and
/// each part has its share of them (W. M. Schmidt, "Irregularities of distribution VII", Acta Arithmetica 21, 1972). Blocks of places are
/// shuffled. So neighbouring choices are random, and each block has each part in proportion.
#[derive(Debug)]
pub(crate) struct Choices {
    seed: u64,
    /// The number of places of a period.
    period: u64,
    step: u64,
    /// The number of the first place.
    first: u64,
    /// Where the numbers of each part end. They begin where those of the part before end.
    ends: Vec<u64>,
}

impl Choices {
    /// Takes the quota of each part. All quotas together are at most 2^63.
    pub(crate) fn new(seed: u64, quotas: &[u64]) -> Self {
        let ends = quotas.iter().scan(0, |end, quota| {
            *end += quota;
            Some(*end)
        });
        let ends: Vec<u64> = ends.collect();
        let period = ends.last().copied().unwrap_or(0).max(1);
        let of_period = |fraction: u64| ((u128::from(fraction) * u128::from(period)) >> 64) as u64;
        // Without a common divisor each place has a number of its own.
        let step = (of_period(GOLDEN)..period).find(|step| divisor(*step, period) == 1).unwrap_or(0);
        let first = of_period(KeyedRng::new(Purpose::Mixture, seed, 0, 0).next_u64());
        Self { seed, period, step, first, ends }
    }

    /// Walks along the choices from this place on.
    pub(crate) fn walk_from(self, place: u128) -> ChoiceWalk {
        let chosen = vec![0; self.ends.len()];
        let mut walk = ChoiceWalk { choices: self, block: 0..0, parts: Vec::new(), place: 0, chosen };
        walk.go_to(place);
        walk
    }

    /// The block that contains a place. The last block of a period may be shorter.
    fn block_of(&self, place: u128) -> Range<u128> {
        let in_period = (place % u128::from(self.period)) as u64;
        let (before, start) = (place - u128::from(in_period), in_period - in_period % BLOCK);
        before + u128::from(start)..before + u128::from(self.period.min(start + BLOCK))
    }

    /// The choices of a block.
    fn parts(&self, block: &Range<u128>) -> Vec<usize> {
        let (period, start) = (block.start / u128::from(self.period), block.start % u128::from(self.period));
        let mut number = ((start * u128::from(self.step) + u128::from(self.first)) % u128::from(self.period)) as u64;
        let mut parts: Vec<usize> = Vec::with_capacity(BLOCK as usize);
        for _ in block.clone() {
            parts.push(self.ends.partition_point(|end| *end <= number));
            let sum = number + self.step;
            number = sum.min(sum.wrapping_sub(self.period)); // modulo `period`
        }
        // The numbers of the whole sequence have the key of block 0.
        parts.shuffle(&mut KeyedRng::new(
            Purpose::Mixture,
            self.seed,
            period as usize,
            (start as u64 / BLOCK) as usize + 1,
        ));
        parts
    }

    /// How often each part is chosen before a place where a block begins.
    fn chosen_before(&self, place: u128) -> Vec<u128> {
        let period = u128::from(self.period);
        let (periods, places) = (place / period, place % period);
        let (step, first) = (u128::from(self.step), u128::from(self.first));
        let all = floors(places, period, step, first);
        let mut before = 0;
        let chosen = self.ends.iter().map(|end| {
            // A number is below `end` if adding `period - end` does not change the quotient by the period.
            let end = u128::from(*end);
            let below = periods * end + all + places - floors(places, period, step, first + period - end);
            below - std::mem::replace(&mut before, below)
        });
        chosen.collect()
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The sum of `(step * n + first) / period`, rounded down, of all `n` below `count`: a sum of Euclid's algorithm, in as many steps (R.
/// Graham, D. Knuth, O. Patashnik, "Concrete Mathematics", 1989, section 3.5). All numbers are at most 2^64.
fn floors(mut count: u128, mut period: u128, mut step: u128, mut first: u128) -> u128 {
    let mut sum = 0;
    while count > 0 {
        sum += count * (count - 1) / 2 * (step / period) + count * (first / period);
        (step, first) = (step % period, first % period);
        let most = step * count + first;
        (count, first) = (most / period, most % period);
        (period, step) = (step, period);
    }
    sum
}

/// A walk along the choices of a mixture. What it skips costs no time.
#[derive(Debug)]
pub(crate) struct ChoiceWalk {
    choices: Choices,
    /// A block, and its choices.
    block: Range<u128>,
    parts: Vec<usize>,
    /// A place of the block, or its end.
    place: u128,
    /// How often each part is chosen before this place.
    chosen: Vec<u128>,
}

impl ChoiceWalk {
    /// Moves forwards to a place.
    pub(crate) fn go_to(&mut self, place: u128) {
        if !self.block.contains(&place) {
            let block = self.choices.block_of(place);
            if block.start == self.block.end {
                self.count_to(block.start);
            } else {
                self.chosen = self.choices.chosen_before(block.start);
            }
            (self.place, self.parts) = (block.start, self.choices.parts(&block));
            self.block = block;
        }
        self.count_to(place);
    }

    fn count_to(&mut self, place: u128) {
        let in_block = |place: u128| (place - self.block.start) as usize;
        self.parts[in_block(self.place)..in_block(place)].iter().for_each(|part| self.chosen[*part] += 1);
        self.place = place;
    }

    /// The part that is chosen at this place.
    pub(crate) fn part(&self) -> usize {
        self.parts[(self.place - self.block.start) as usize]
    }

    /// How often each part is chosen before this place.
    pub(crate) fn chosen(&self) -> &[u128] {
        &self.chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Wherever a walk begins and whatever it skips, it sees the same choices. Each period has the quotas.
        #[test]
        fn any_place_can_be_entered(
            quotas in prop::collection::vec(prop_oneof![Just(0u64), 1u64..30, 1u64..6000], 1..6),
            seed: u64, start in 0u64..10_000, steps in prop::collection::vec(1u64..9000, 1..5),
        ) {
            let period: u64 = quotas.iter().sum();
            prop_assume!(period > 0);
            let mut walk = Choices::new(seed, &quotas).walk_from(0);
            let mut chosen = vec![vec![0; quotas.len()]];
            let mut parts = Vec::new();
            for place in 0..50_000u128 {
                walk.go_to(place);
                parts.push(walk.part());
                let mut counts = walk.chosen().iter().map(|count| *count as u64).collect::<Vec<_>>();
                prop_assert_eq!(&counts, &chosen[place as usize]);
                counts[walk.part()] += 1;
                chosen.push(counts);
            }
            for (number, counts) in chosen.iter().step_by(period as usize).enumerate() {
                prop_assert!(counts.iter().eq(quotas.iter().map(|quota| quota * number as u64).collect::<Vec<_>>().iter()));
            }
            let mut place = start;
            let mut other = Choices::new(seed, &quotas).walk_from(u128::from(place));
            for step in steps {
                prop_assert_eq!(other.part(), parts[place as usize]);
                prop_assert!(other.chosen().iter().map(|count| *count as u64).eq(chosen[place as usize].iter().copied()));
                place += step;
                other.go_to(u128::from(place));
            }
        }
    }

    /// Also of parts that are seldom chosen, and of places that no count could reach.
    #[test]
    fn each_stretch_has_each_part_in_proportion() {
        let quotas = [1u64 << 61, 1 << 60, 1 << 50, 3 << 40, 1];
        let all: u64 = quotas.iter().sum();
        for start in [0, 1 << 20, 1 << 62, u128::from(all) - 9000, (1 << 90) + 7, 1 << 110] {
            let mut walk = Choices::new(5, &quotas).walk_from(start);
            let before = walk.chosen().to_vec();
            for places in [1u128 << 12, 1 << 16, 1 << 30, 1 << 45] {
                walk.go_to(start + places);
                for ((quota, after), before) in quotas.iter().zip(walk.chosen()).zip(&before) {
                    let (expected, found) = ((places as f64) * (*quota as f64) / all as f64, (after - before) as f64);
                    // Choices of a block that is cut are random.
                    assert!((found - expected).abs() < 100.0, "{found} of {expected} in {places} places from {start}");
                }
            }
        }
    }

    #[test]
    fn sums_of_floors_are_exact() {
        for (count, period, step, first) in
            [(0, 5, 3, 2), (1, 1, 0, 0), (1000, 17, 5, 30), (77, 100, 99, 99), (50, 3, 100, 8)]
        {
            let sum: u128 = (0..count).map(|n| (step * n + first) / period).sum();
            assert_eq!(floors(count, period, step, first), sum, "{count} {period} {step} {first}");
        }
        // The largest numbers do not overflow.
        let most = u128::from(u64::MAX) / 2;
        assert!(floors(most, most, most - 1, 2 * most - 1) > 0);
    }
}
