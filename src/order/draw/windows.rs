//! Epochs with fewer samples than the dataset. Passes over the dataset continue from one epoch to the next.

use super::PackedList;
use burn_augment::KeyedRng;

/// The samples of an epoch of `size` of `len` samples, in order.
///
/// After any number of epochs, the counts of any two samples differ by at most one. No sample occurs twice in an epoch.
/// An epoch depends only on (seed, epoch) and these sizes, so every epoch costs the same.
pub(crate) fn window(seed: u64, len: usize, size: usize, epoch: usize) -> PackedList {
    if 2 * size as u128 <= len as u128 {
        return PackedList::of(indices(len, size, epoch, &|pass| shuffled(seed, len, pass)));
    }
    // Most samples are used, so the windows hold the samples that are left out. The window of epoch 0 begins at the end of the first pass.
    let backwards = |pass| {
        let mut order = shuffled(seed, len, pass);
        order.reverse();
        order
    };
    let mut left_out = vec![false; len];
    indices(len, len - size, epoch, &backwards).into_iter().for_each(|index| left_out[index] = true);
    let (order, mut kept) = (shuffled(seed, len, epoch), PackedList::counting(0));
    order.iter().filter(|index| !left_out[*index]).for_each(|index| kept.push(index));
    kept
}

fn shuffled(seed: u64, len: usize, pass: usize) -> PackedList {
    PackedList::shuffled(len, &mut KeyedRng::for_order(seed, pass))
}

/// The indices in the window of an epoch. Windows of `size`, at most half of `len`, are laid end to end over consecutive permutations of
/// `0..len`. `drawn` draws the permutation of a pass.
fn indices(len: usize, size: usize, epoch: usize, drawn: &impl Fn(usize) -> PackedList) -> Vec<usize> {
    if size == 0 {
        return Vec::new();
    }
    let start = epoch as u128 * size as u128;
    let (number, first) = ((start / len as u128) as usize, (start % len as u128) as usize);
    let mut indices = pass(len, size, number, drawn).slice(first..len.min(first + size));
    if indices.len() < size {
        indices.extend(pass(len, size, number + 1, drawn).slice(0..size - indices.len()));
    }
    indices
}

/// The indices of a pass in order. The window in which the pass begins may have indices of the previous pass. If one of
/// them recurs in this window, it is swapped with an index after the window. The last window of the pass remains as
/// drawn, because the next pass is compared with it.
fn pass(len: usize, size: usize, number: usize, drawn: &impl Fn(usize) -> PackedList) -> PackedList {
    // How many indices of the window in which a pass begins are from the previous pass.
    let begun = |pass: usize| (pass as u128 * len as u128 % size as u128) as usize;
    let (mut order, before) = (drawn(number), begun(number));
    if before == 0 {
        return order;
    }
    let mut had = vec![false; len];
    drawn(number - 1).slice(len - before..len).into_iter().for_each(|index| had[index] = true);
    let mut behind = size - before..len - begun(number + 1);
    for place in 0..size - before {
        if had[order.get(place)]
            && let Some(other) = behind.find(|place| !had[order.get(*place)])
        {
            order.swap(place, other);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Whatever the sizes: no sample twice in an epoch, and all samples equally often.
        #[test]
        fn epochs_go_on_where_those_before_ended(len in 1usize..60, part in 0usize..=60, seed: u64, epochs in 1usize..40) {
            let size = part.min(len);
            let mut times = vec![0; len];
            for epoch in 0..epochs {
                let order: Vec<usize> = window(seed, len, size, epoch).iter().collect();
                prop_assert_eq!(order.len(), size);
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
            let order: Vec<usize> = (0..3 * len).flat_map(|epoch| window(seed, len, size, epoch).slice(0..size)).collect();
            for pass in order.chunks_exact(len) {
                prop_assert_eq!(pass.iter().collect::<HashSet<_>>().len(), len);
            }
        }

        #[test]
        fn the_first_epoch_begins_the_whole_shuffle(len in 1usize..60, part in 0usize..=60, seed: u64) {
            let size = part.min(len);
            prop_assert!(window(seed, len, size, 0).iter().eq(shuffled(seed, len, 0).iter().take(size)));
        }
    }

    /// Of all pairs of samples, and of all places, each is as likely as another.
    #[test]
    fn samples_meet_by_chance() {
        let mut pairs = [[0u32; 5]; 5];
        let mut first = [0u32; 5];
        for seed in 0..4000 {
            for epoch in 0..5 {
                let order = window(seed, 5, 2, epoch).slice(0..2);
                pairs[order[0]][order[1]] += 1;
                first[order[0]] += 1;
            }
        }
        assert!(first.iter().all(|times| (3700..4300).contains(times)), "{first:?}");
        let of_two = (0..5).flat_map(|a| (0..5).filter(move |b| a != *b).map(move |b| (a, b)));
        assert!(of_two.into_iter().all(|(a, b)| (850..1150).contains(&pairs[a][b])), "{pairs:?}");
    }
}
