//! Long lists of indices in as few bytes as possible, and iterators that skip items without computing them.

use crate::fault::Error;
use burn_augment::KeyedRng;
use rand::seq::SliceRandom;
use std::{collections::TryReserveError, mem, ops::Range, sync::Arc};

/// A list of numbers, in 4 bytes each if all of them fit, otherwise in 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PackedList {
    Narrow(Vec<u32>),
    Wide(Vec<usize>),
}

impl PackedList {
    pub(crate) const EMPTY: Self = Self::Narrow(Vec::new());

    /// The numbers in order. All of them are below `below`.
    ///
    /// # Panics
    /// As [`reserved`].
    pub(crate) fn collect(below: usize, numbers: impl ExactSizeIterator<Item = usize>) -> Self {
        let len = numbers.len();
        if u32::try_from(below).is_ok() {
            let mut list = reserved(len);
            list.extend(numbers.map(|number| number as u32));
            return Self::Narrow(list);
        }
        let mut list = reserved(len);
        list.extend(numbers);
        Self::Wide(list)
    }

    /// The numbers that the method `option` is given.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no memory for them.
    pub(crate) fn given(option: &'static str, numbers: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        let numbers = numbers.into_iter();
        let mut list = Self::Narrow(listed(option, numbers.size_hint().0, [])?);
        for number in numbers {
            list.add(number).map_err(|error| no_memory(option, list.len(), &error))?;
        }
        Ok(list)
    }

    /// Adds a number. The first number that does not fit in 4 bytes changes the list to 8 bytes per number.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn add(&mut self, number: usize) -> Result<(), TryReserveError> {
        if let (Self::Narrow(list), Err(_)) = (&*self, u32::try_from(number)) {
            let mut wide = Vec::new();
            wide.try_reserve_exact(list.capacity().max(list.len() + 1))?;
            wide.extend(list.iter().map(|&number| number as usize));
            *self = Self::Wide(wide);
        }
        match self {
            Self::Narrow(list) => grown(list)?.push(number as u32),
            Self::Wide(list) => grown(list)?.push(number),
        }
        Ok(())
    }

    /// As [`add`](Self::add).
    ///
    /// # Panics
    /// As [`reserved`].
    pub(crate) fn push(&mut self, number: usize) {
        if let Err(error) = self.add(number) {
            panic!("there is no memory for the order of more than {} samples: {error}", self.len());
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

    /// Returns how many different numbers there are.
    pub(crate) fn different(&self) -> usize {
        match self {
            Self::Narrow(list) => different(list),
            Self::Wide(list) => different(list),
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

/// An empty list with room for `len` values.
///
/// # Panics
/// If there is no memory for them. The panic of a sampler is an error of its epoch, and a failed allocation would end the process.
pub(crate) fn reserved<T>(len: usize) -> Vec<T> {
    let mut list = Vec::new();
    if let Err(error) = list.try_reserve_exact(len) {
        panic!("there is no memory for the order of {len} samples: {error}");
    }
    list
}

/// A list of what the method `option` is given, with room for `len` values at first.
///
/// # Errors
/// [`Error::Config`] if there is no memory for it.
pub(crate) fn listed<T>(
    option: &'static str,
    len: usize,
    values: impl IntoIterator<Item = T>,
) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|error| no_memory(option, len, &error))?;
    for value in values {
        list.try_reserve(1).map_err(|error| no_memory(option, list.len(), &error))?;
        list.push(value);
    }
    Ok(list)
}

/// The list, with room for one more value.
fn grown<T>(list: &mut Vec<T>) -> Result<&mut Vec<T>, TryReserveError> {
    list.try_reserve(1)?;
    Ok(list)
}

/// The error of a method that has no memory for what it is given.
pub(crate) fn no_memory(option: &'static str, len: usize, error: &TryReserveError) -> Error {
    let problem = format!("there is no memory for {len} samples or more: {error}");
    Error::config(option, problem, "give the process more memory, or load the data set in parts")
}

fn different<T: Copy + Ord>(numbers: &[T]) -> usize {
    if numbers.is_sorted_by(|a, b| a < b) {
        return numbers.len(); // without a copy
    }
    let mut sorted = reserved(numbers.len());
    sorted.extend_from_slice(numbers);
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
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

/// Items that are read at growing places. The items between are skipped with `nth`, which may be free.
#[derive(Debug)]
pub(crate) struct Cursor<I> {
    items: I,
    next: usize,
}

impl<I: Iterator> Cursor<I> {
    pub(crate) fn new(items: I) -> Self {
        Self { items, next: 0 }
    }

    /// Returns the item at a place, which is after that of the call before.
    pub(crate) fn item(&mut self, place: usize) -> Option<I::Item> {
        self.items.nth(place - mem::replace(&mut self.next, place + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_lists_do_the_same() {
        let mut lists = [PackedList::collect(1000, 0..1000), PackedList::Wide((0..1000).collect())];
        for list in &mut lists {
            list.shuffle(0..900, &mut KeyedRng::for_order(3, 1));
            list.sort_by_key(100..400, |number| number % 7);
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
        let mut list = PackedList::collect(2, 0..2);
        list.push(7);
        assert!(matches!(list, PackedList::Narrow(_)));
        list.push(1 << 40);
        list.push(8);
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 7, 1 << 40, 8]);
    }

    #[test]
    fn lists_are_as_narrow_as_their_numbers() {
        let given = |numbers: &[usize]| PackedList::given("given", numbers.iter().copied()).unwrap();
        assert!(matches!(given(&[0, u32::MAX as usize]), PackedList::Narrow(_)));
        assert!(matches!(given(&[0, u32::MAX as usize + 1]), PackedList::Wide(_)));
        assert_eq!([&[3, 1, 3][..], &[1, 2, 1 << 40], &[]].map(|numbers| given(numbers).different()), [2, 3, 0]);
    }
}
