//! Long lists of indices in as few bytes as possible, and iterators that skip items without computing them.

use burn_augment::KeyedRng;
use rand::seq::SliceRandom;
use std::{ops::Range, sync::Arc};

/// A list of numbers, in 4 bytes each if all of them fit, otherwise in 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PackedList {
    Narrow(Vec<u32>),
    Wide(Vec<usize>),
}

impl PackedList {
    /// The numbers `0..len`.
    pub(crate) fn counting(len: usize) -> Self {
        match u32::try_from(len) {
            Ok(len) => Self::Narrow((0..len).collect()),
            Err(_) => Self::Wide((0..len).collect()),
        }
    }

    /// The numbers `0..len` in random order.
    pub(crate) fn shuffled(len: usize, rng: &mut KeyedRng) -> Self {
        let mut list = Self::counting(len);
        list.shuffle(0..len, rng);
        list
    }

    pub(crate) fn of(numbers: Vec<usize>) -> Self {
        let narrow = numbers.iter().all(|&number| u32::try_from(number).is_ok());
        if narrow {
            Self::Narrow(numbers.into_iter().map(|number| number as u32).collect())
        } else {
            Self::Wide(numbers)
        }
    }

    /// Adds a number. The first number that does not fit in 4 bytes changes the list to 8 bytes per number.
    pub(crate) fn push(&mut self, number: usize) {
        if let (Self::Narrow(list), Err(_)) = (&*self, u32::try_from(number)) {
            *self = Self::Wide(list.iter().map(|&number| number as usize).collect());
        }
        match self {
            Self::Narrow(list) => list.push(number as u32),
            Self::Wide(list) => list.push(number),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(list) => list.len(),
            Self::Wide(list) => list.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> usize {
        match self {
            Self::Narrow(list) => list[at] as usize,
            Self::Wide(list) => list[at],
        }
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> Vec<usize> {
        match self {
            Self::Narrow(list) => list[range].iter().map(|&number| number as usize).collect(),
            Self::Wide(list) => list[range].to_vec(),
        }
    }

    /// Shuffles a range. The order is the same with 4 and with 8 bytes per number.
    pub(crate) fn shuffle(&mut self, range: Range<usize>, rng: &mut KeyedRng) {
        match self {
            Self::Narrow(list) => list[range].shuffle(rng),
            Self::Wide(list) => list[range].shuffle(rng),
        }
    }

    /// Sorts a range by key. Numbers with equal keys keep their order.
    pub(crate) fn sort_by_key(&mut self, range: Range<usize>, key: impl Fn(usize) -> usize) {
        match self {
            Self::Narrow(list) => list[range].sort_by_key(|&number| key(number as usize)),
            Self::Wide(list) => list[range].sort_by_key(|&number| key(number)),
        }
    }

    pub(crate) fn swap(&mut self, a: usize, b: usize) {
        match self {
            Self::Narrow(list) => list.swap(a, b),
            Self::Wide(list) => list.swap(a, b),
        }
    }

    pub(crate) fn reverse(&mut self) {
        match self {
            Self::Narrow(list) => list.reverse(),
            Self::Wide(list) => list.reverse(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Returns the numbers in order. Skipping takes no time.
    pub(crate) fn indices(self: Arc<Self>) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(LazyMap::new(self.len(), move |at| Some(self.get(at))))
    }
}

/// Maps the positions `0..len` with `make`, up to the first `None`. `nth` computes only the item that it returns, so skipping takes as long
/// as one call of `make`.
pub(crate) struct LazyMap<F> {
    positions: Range<usize>,
    make: F,
}

impl<F> LazyMap<F> {
    pub(crate) fn new(len: usize, make: F) -> Self {
        Self { positions: 0..len, make }
    }
}

impl<T, F: FnMut(usize) -> Option<T>> Iterator for LazyMap<F> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.positions.next().and_then(&mut self.make)
    }

    fn nth(&mut self, n: usize) -> Option<T> {
        self.positions.nth(n).and_then(&mut self.make)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_lists_do_the_same() {
        let mut lists = [PackedList::counting(1000), PackedList::Wide((0..1000).collect())];
        for list in &mut lists {
            list.shuffle(0..900, &mut KeyedRng::for_order(3, 1));
            list.sort_by_key(100..400, |number| number % 7);
            list.swap(3, 700);
            list.reverse();
        }
        let [narrow, wide] = lists;
        assert!(matches!(narrow, PackedList::Narrow(_)) && matches!(wide, PackedList::Wide(_)));
        assert_eq!((narrow.len(), narrow.get(77)), (1000, wide.get(77)));
        assert_eq!(narrow.slice(90..300), wide.slice(90..300));
        assert!(narrow.iter().eq(wide.iter()));
        assert!(Arc::new(narrow).indices().eq(Arc::new(wide).indices()));
    }

    #[test]
    fn a_list_grows_wide_with_its_first_wide_number() {
        let mut list = PackedList::counting(2);
        list.push(7);
        assert!(matches!(list, PackedList::Narrow(_)));
        list.push(1 << 40);
        list.push(8);
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 7, 1 << 40, 8]);
    }

    #[test]
    fn lists_are_as_narrow_as_their_numbers() {
        assert!(matches!(PackedList::of(vec![0, u32::MAX as usize]), PackedList::Narrow(_)));
        assert!(matches!(PackedList::of(vec![0, u32::MAX as usize + 1]), PackedList::Wide(_)));
    }
}
