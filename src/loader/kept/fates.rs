//! What happened to each sample when a dataset was read: its row, or whether it was skipped, left out or replaced.

use crate::fault::{Error, Skips, UserValues};
use std::sync::Arc;

/// The rows of the samples. Good samples have rows in the dataset's order.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// The indices of samples without a row, in order, with their errors if they were listed.
    skipped: UserValues<(usize, Option<Arc<Error>>)>,
    /// The indices of those that are left out, in order.
    left_out: Vec<usize>,
    /// The indices of replaced samples, in order, and the samples that are in their rows.
    replaced: Vec<(usize, usize)>,
}

impl Fates {
    /// Notes the bad samples of a batch whose first sample has this index. Batches come in order.
    pub(super) fn note(&mut self, first: usize, skips: &Skips) {
        let errors = skips.skipped.iter().map(|position| (first + position, skips.error(*position).cloned()));
        self.skipped.extend(errors);
        self.left_out.extend(skips.left_out.iter().map(|position| first + position));
        let before = self.replaced.len();
        self.replaced.extend(skips.replaced.iter().map(|(position, index)| (first + position, *index)));
        self.replaced[before..].sort_unstable(); // replacements within a batch are in any order
    }

    /// The error of the first sample that has no row, if it was listed.
    pub(super) fn first_error(&self) -> Option<&Error> {
        self.skipped.iter().find_map(|(_, error)| error.as_deref())
    }

    /// Notes in `skips` what happened to the sample at a position of a batch. Returns its row and the index that is
    /// delivered there; `None` if it has no row.
    pub(super) fn of(&self, index: usize, position: usize, skips: &mut Skips) -> Option<(usize, usize)> {
        let row = match self.skipped.binary_search_by_key(&index, |(skipped, _)| *skipped) {
            Ok(at) => {
                skips.skip(position, self.skipped[at].1.clone());
                skips.left_out.extend(self.left_out.binary_search(&index).map(|_| position));
                return None;
            }
            Err(before) => index - before,
        };
        let Ok(at) = self.replaced.binary_search_by_key(&index, |(replaced, _)| *replaced) else {
            return Some((row, index));
        };
        let by = self.replaced[at].1;
        skips.replaced.push((position, by));
        Some((row, by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other_without_the_skipped() {
        let mut fates = Fates::default();
        let mut read = Skips::default();
        read.skip(1, Some(Arc::new(Error::Ended)));
        read.skip(2, None);
        read.replaced = vec![(3, 9), (0, 4)];
        fates.note(10, &read);
        let mut skips = Skips::default();
        let of: Vec<_> = (9..15).map(|index| fates.of(index, index - 9, &mut skips)).collect();
        assert_eq!(of, [Some((9, 9)), Some((10, 4)), None, None, Some((11, 9)), Some((12, 14))]);
        assert_eq!((&skips.skipped, &skips.replaced), (&vec![2, 3], &vec![(1, 4), (4, 9)]));
        assert!(skips.error(2).is_some() && skips.error(3).is_none());
    }
}
