//! Epochs with fewer samples than the dataset. Passes over the dataset continue from one epoch to the next.
//!
//! Nothing is planned: each index of an epoch is computed from its place. So an epoch costs the same at any place and of any length.

use super::Shuffle;
use burn_augment::{KeyedRng, for_loader::Purpose};

/// The longest order that is a table here. An epoch uses several tables and their inverses, and may be much shorter than they are.
const LONGEST_TABLE: usize = 1 << 16;

/// The samples of an epoch of `size` of `len` samples.
///
/// After any number of epochs, the counts of any two samples differ by at most one. No sample occurs twice in an epoch.
/// An epoch depends only on (seed, epoch) and these sizes.
pub(crate) enum ShortEpoch {
    /// At most half of the samples.
    Used(PassWindow),
    /// The windows are of the samples that are left out. The others come in the order of a shuffle.
    LeftOut { order: Shuffle, left_out: PassWindow, size: usize },
}

impl ShortEpoch {
    pub(crate) fn new(seed: u64, len: usize, size: usize, epoch: usize) -> Self {
        if 2 * size as u128 <= len as u128 {
            return Self::Used(PassWindow::new(seed, len, size, epoch, false));
        }
        // The window of epoch 0 begins at the end of the first pass, so that the epoch is the beginning of a shuffle.
        Self::LeftOut {
            order: drawn(seed, len, epoch),
            left_out: PassWindow::new(seed, len, len - size, epoch, true),
            size,
        }
    }

    /// Returns the index at a place of the epoch.
    pub(crate) fn index_at(&self, place: usize) -> usize {
        match self {
            Self::Used(part) => part.index_at(place),
            Self::LeftOut { order, left_out, size } => {
                // Each index that is left out stands for a place behind the epoch, which has another index.
                let mut index = order.at(place);
                while let Some(at) = left_out.place_in_window(index) {
                    index = order.at(size + at);
                }
                index
            }
        }
    }
}

fn drawn(seed: u64, len: usize, pass: usize) -> Shuffle {
    Shuffle::up_to(LONGEST_TABLE, len, &mut KeyedRng::for_order(seed, pass))
}

/// The window of an epoch, with at most half of the samples. Windows are laid end to end over consecutive passes.
pub(crate) struct PassWindow {
    /// The pass in which the window begins, and the next one if the window reaches it. None if the window is empty.
    passes: Vec<Pass>,
    /// The first place of the window in the first pass.
    first: usize,
    size: usize,
}

impl PassWindow {
    fn new(seed: u64, len: usize, size: usize, epoch: usize, reversed: bool) -> Self {
        let start = epoch as u128 * size as u128;
        let (pass, first) = ((start / len as u128) as usize, (start % len as u128) as usize);
        let count = if size == 0 { 0 } else { 1 + usize::from(first + size > len) };
        let passes = (pass..pass + count).map(|pass| Pass::new(seed, len, size, pass, reversed)).collect();
        Self { passes, first, size }
    }

    fn index_at(&self, place: usize) -> usize {
        let (place, len) = (self.first + place, self.passes[0].len);
        self.passes[place / len].at(place % len)
    }

    /// Returns the place of an index in the window, if it has the index.
    fn place_in_window(&self, index: usize) -> Option<usize> {
        self.passes.iter().enumerate().find_map(|(number, pass)| {
            let place = (number * pass.len + pass.place_in_pass(index)).checked_sub(self.first)?;
            (place < self.size).then_some(place)
        })
    }
}

/// The order of a pass. It begins with a head, the rest of the window in which the pass before ended. Then come whole windows, and a tail,
/// the beginning of the next window.
struct Pass {
    drawn: Shuffle,
    len: usize,
    tail: usize,
    before: Option<TailBefore>,
    reversed: bool,
}

/// The tail of the pass before. The head must not have its indices, since both are in one window. So each of them has a place of its own in
/// the whole windows, its slot.
struct TailBefore {
    drawn: Shuffle,
    len: usize,
    head: usize,
    /// Slot `n` is at the place `head + slots.at(n)`.
    slots: Shuffle,
}

impl Pass {
    fn new(seed: u64, len: usize, size: usize, number: usize, reversed: bool) -> Self {
        // How many indices of the window in which a pass begins are from the pass before.
        let begun = |pass: usize| (pass as u128 * len as u128 % size as u128) as usize;
        let (before, tail) = (begun(number), begun(number + 1));
        let before = (before > 0).then(|| {
            let head = size - before;
            let mut rng = KeyedRng::new(Purpose::Slots, seed, number, 0);
            let slots = Shuffle::up_to(LONGEST_TABLE, len - tail - head, &mut rng);
            TailBefore { drawn: drawn(seed, len, number - 1), len: before, head, slots }
        });
        Self { drawn: drawn(seed, len, number), len, tail, before, reversed }
    }

    /// The index at a place, as it was drawn.
    fn drawn_at(&self, place: usize) -> usize {
        self.drawn.at(self.turned(place))
    }

    fn place_drawn(&self, index: usize) -> usize {
        self.turned(self.drawn.place_of(index))
    }

    fn turned(&self, place: usize) -> usize {
        if self.reversed { self.len - 1 - place } else { place }
    }

    /// The slot of an index, if the tail of the pass before has it.
    fn slot_of(&self, before: &TailBefore, index: usize) -> Option<usize> {
        let number = self.turned(before.drawn.place_of(index)).checked_sub(self.len - before.len)?;
        Some(before.head + before.slots.at(number))
    }

    /// The index that has this slot, unless it is in the tail of this pass, which stays as drawn: the next pass is compared with it.
    fn owner_of(&self, before: &TailBefore, place: usize) -> Option<usize> {
        let number = before.slots.place_of(place.checked_sub(before.head)?);
        let index = (number < before.len).then(|| before.drawn.at(self.turned(self.len - before.len + number)))?;
        (self.place_drawn(index) < self.len - self.tail).then_some(index)
    }

    fn at(&self, place: usize) -> usize {
        let Some(before) = self.before.as_ref().filter(|_| place < self.len - self.tail) else {
            return self.drawn_at(place);
        };
        if let Some(index) = self.owner_of(before, place) {
            return index;
        }
        // An index of that tail goes to its slot. The index that was drawn there comes here. Slots are different, so no place comes twice,
        // and the loop ends: A. Garsia and S. Milne, "Method for constructing bijections for classical partition identities", 1981.
        let mut index = self.drawn_at(place);
        while let Some(slot) = self.slot_of(before, index) {
            index = self.drawn_at(slot);
        }
        index
    }

    fn place_in_pass(&self, index: usize) -> usize {
        let mut place = self.place_drawn(index);
        let Some(before) = self.before.as_ref().filter(|_| place < self.len - self.tail) else { return place };
        if let Some(slot) = self.slot_of(before, index) {
            return slot;
        }
        while let Some(owner) = self.owner_of(before, place) {
            place = self.place_drawn(owner);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn order(seed: u64, len: usize, size: usize, epoch: usize) -> Vec<usize> {
        let window = ShortEpoch::new(seed, len, size, epoch);
        (0..size).map(|place| window.index_at(place)).collect()
    }

    proptest! {
        /// Whatever the sizes: no sample twice in an epoch, and all samples equally often.
        #[test]
        fn epochs_go_on_where_those_before_ended(len in 1usize..60, part in 0usize..=60, seed: u64, epochs in 1usize..40) {
            let size = part.min(len);
            let mut times = vec![0; len];
            for epoch in 0..epochs {
                let order = order(seed, len, size, epoch);
                prop_assert_eq!(order.iter().collect::<HashSet<_>>().len(), size, "epoch {}", epoch);
                order.into_iter().for_each(|index| times[index] += 1);
            }
            let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", times);
        }

        /// Small windows laid end to end are permutations.
        #[test]
        fn each_pass_has_each_sample_once(len in 2usize..60, size in 1usize..30, seed: u64) {
            let size = size.min(len / 2);
            let order: Vec<usize> = (0..3 * len).flat_map(|epoch| order(seed, len, size, epoch)).collect();
            for pass in order.chunks_exact(len) {
                prop_assert_eq!(pass.iter().collect::<HashSet<_>>().len(), len);
            }
        }

        #[test]
        fn the_first_epoch_begins_the_whole_shuffle(len in 1usize..60, part in 0usize..=60, seed: u64) {
            let size = part.min(len);
            prop_assert!(order(seed, len, size, 0).into_iter().eq(drawn(seed, len, 0).indices().take(size)));
        }
    }

    /// Of all pairs of samples, and of all places, each is as likely as another.
    #[test]
    fn samples_meet_by_chance() {
        let mut pairs = [[0u32; 5]; 5];
        let mut first = [0u32; 5];
        for seed in 0..4000 {
            for epoch in 0..5 {
                let order = order(seed, 5, 2, epoch);
                pairs[order[0]][order[1]] += 1;
                first[order[0]] += 1;
            }
        }
        assert!(first.iter().all(|times| (3700..4300).contains(times)), "{first:?}");
        let of_two = (0..5).flat_map(|a| (0..5).filter(move |b| a != *b).map(move |b| (a, b)));
        assert!(of_two.into_iter().all(|(a, b)| (850..1150).contains(&pairs[a][b])), "{pairs:?}");
    }

    /// Of a data set without a table: no sample twice in an epoch that two passes share, and the passes are permutations.
    #[test]
    fn a_long_data_set_has_the_same_windows() {
        let len = LONGEST_TABLE + 1001;
        for size in [len / 3 + 5, len - len / 5] {
            let mut times = vec![0u8; len];
            for epoch in 0..6 {
                let order = order(3, len, size, epoch);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), size);
                order.into_iter().for_each(|index| times[index] += 1);
            }
            assert!(times.iter().max().unwrap() - times.iter().min().unwrap() <= 1, "{size}");
        }
    }

    /// The middle of an epoch of 10^11 samples costs no more than its beginning.
    #[test]
    fn any_place_of_any_length() {
        for size in [1 << 20, 30_000_000_000, 90_000_000_000] {
            let window = ShortEpoch::new(5, 100_000_000_000, size, 7);
            let some: HashSet<usize> = (0..1000).map(|n| window.index_at(n * (size / 1000))).collect();
            assert!(some.len() == 1000 && some.iter().all(|index| *index < 100_000_000_000));
        }
    }
}
