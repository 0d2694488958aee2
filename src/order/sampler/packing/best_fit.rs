//! Packs documents into rows: the longest document first, each into the fullest row with enough free space.

use crate::fault::Error;

/// No row.
const NONE: u32 = u32::MAX;

/// Best-fit decreasing (D. S. Johnson, "Near-Optimal Bin Packing Algorithms", MIT, 1973), for rows of one length.
///
/// If two rows have the same free space, a document goes into the row that got a document most recently. So if the documents of some of the
/// rows are packed again in the same order, they fall into the same rows: the best row among all is also the best among these.
#[derive(Debug, Clone)]
pub(crate) struct BestFit {
    row_tokens: u32,
    /// A bit for each amount of free space that some row has.
    spaces: Vec<u64>,
    /// A bit for each word of `spaces` that is not 0.
    words: Vec<u64>,
    /// For each amount of free space, the row that reached it last.
    newest: Vec<u32>,
    /// For each row, the row that reached the same free space before it.
    older: Vec<u32>,
}

impl BestFit {
    /// Checks the length of a row, for the method `option`. The packer takes 4 bytes per token of a row.
    ///
    /// # Errors
    /// [`Error::Config`] if it is 0, or more than 2^24.
    pub(crate) fn check(option: &'static str, row_tokens: usize) -> Result<u32, Error> {
        let allowed = u32::try_from(row_tokens).ok().filter(|tokens| (1..=1 << 24).contains(tokens));
        allowed.ok_or_else(|| {
            let problem = format!("rows of {row_tokens} tokens cannot be packed");
            Error::config(option, problem, "let `row_tokens` be the tokens that the model sees at once, e.g. 2048")
        })
    }

    /// Makes a packer for rows of this many tokens.
    pub(crate) fn new(row_tokens: u32) -> Self {
        let spaces = row_tokens as usize / 64 + 1;
        let (spaces, words) = (vec![0; spaces], vec![0; spaces.div_ceil(64)]);
        Self { row_tokens, spaces, words, newest: vec![NONE; row_tokens as usize + 1], older: Vec::new() }
    }

    /// Packs documents of these lengths, each at most the length of a row. Documents without tokens get no row.
    ///
    /// Returns the documents from the longest to the shortest, as positions in `lengths`, with the row of each. Documents of equal length
    /// keep their order. Also returns the free tokens of each row.
    pub(crate) fn pack(&mut self, lengths: &[u32]) -> (Vec<(u32, u32)>, Vec<u32>) {
        // Keys that sort by length, the longest first, and then by position.
        let key = |(length, place): (&u32, u32)| (u64::from(!length) << 32) | u64::from(place);
        let mut sorted: Vec<u64> = lengths.iter().zip(0..).filter(|(length, _)| **length > 0).map(key).collect();
        sorted.sort_unstable();
        let (mut documents, mut free) = (Vec::with_capacity(sorted.len()), Vec::new());
        self.older.clear();
        for key in sorted {
            let (length, place) = ((!((key >> 32) as u32)).min(self.row_tokens), key as u32);
            let row = self.take(length).unwrap_or_else(|| {
                free.push(self.row_tokens);
                self.older.push(NONE);
                free.len() as u32 - 1
            });
            documents.push((place, row));
            free[row as usize] -= length;
            self.add(row, free[row as usize]);
        }
        for &space in &free {
            self.newest[space as usize] = NONE;
            self.clear(space);
        }
        (documents, free)
    }

    /// Takes a row with the least free space that is at least this length.
    fn take(&mut self, length: u32) -> Option<u32> {
        let word = length as usize / 64;
        let space = next_bit(&self.spaces[..=word], length as usize).or_else(|| {
            let word = next_bit(&self.words, word + 1)?;
            next_bit(&self.spaces, word * 64)
        })?;
        let row = self.newest[space];
        self.newest[space] = self.older[row as usize];
        if self.newest[space] == NONE {
            self.clear(space as u32);
        }
        Some(row)
    }

    fn add(&mut self, row: u32, space: u32) {
        let space = space as usize;
        self.older[row as usize] = self.newest[space];
        self.newest[space] = row;
        self.spaces[space / 64] |= 1 << (space % 64);
        self.words[space / 4096] |= 1 << (space / 64 % 64);
    }

    fn clear(&mut self, space: u32) {
        let space = space as usize;
        self.spaces[space / 64] &= !(1 << (space % 64));
        if self.spaces[space / 64] == 0 {
            self.words[space / 4096] &= !(1 << (space / 64 % 64));
        }
    }
}

/// Returns the first bit that is set, from this one on.
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let first = words.get(from / 64)? & (u64::MAX << (from % 64));
    let rest = words.iter().copied().enumerate().skip(from / 64 + 1);
    let (word, bits) = [(from / 64, first)].into_iter().chain(rest).find(|(_, bits)| *bits != 0)?;
    Some(word * 64 + bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The same rule, in its simplest form.
    fn slowly(row_tokens: u32, lengths: &[u32]) -> Vec<(u32, u32)> {
        let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
        order.sort_by_key(|place| std::cmp::Reverse(lengths[*place as usize]));
        let (mut free, mut last) = (Vec::<u32>::new(), Vec::<usize>::new());
        let mut documents = Vec::new();
        for (time, place) in order.into_iter().enumerate() {
            let length = lengths[place as usize];
            let fits = (0..free.len()).filter(|row| free[*row] >= length);
            let row = fits.min_by_key(|row| (free[*row], std::cmp::Reverse(last[*row]))).unwrap_or_else(|| {
                free.push(row_tokens);
                last.push(0);
                free.len() - 1
            });
            free[row] -= length;
            last[row] = time;
            documents.push((place, row as u32));
        }
        documents
    }

    /// A length of a row, and lengths of documents that fit in it.
    fn lengths() -> impl Strategy<Value = (u32, Vec<u32>)> {
        let row = prop_oneof![1u32..70, Just(63), Just(64), Just(4096), 4000u32..10_000];
        row.prop_flat_map(|row| {
            let length = prop_oneof![1..=row, 1..=row.min(7), row.div_ceil(2)..=row];
            (Just(row), prop::collection::vec(length, 0..200))
        })
    }

    proptest! {
        #[test]
        fn it_is_best_fit_decreasing((row_tokens, lengths) in lengths()) {
            let mut fit = BestFit::new(row_tokens);
            let (documents, free) = fit.pack(&lengths);
            prop_assert_eq!(&documents, &slowly(row_tokens, &lengths));
            for (row, free) in free.iter().enumerate() {
                let own = documents.iter().filter(|(_, of)| *of as usize == row);
                let used: u32 = own.map(|(place, _)| lengths[*place as usize]).sum();
                prop_assert_eq!(used + free, row_tokens);
            }
            prop_assert_eq!(fit.pack(&lengths).0, documents, "nothing is left of the call before");
        }

        /// `PackTokens` packs a batch again that `PackingSampler` has cut out of a window.
        #[test]
        fn some_of_the_rows_are_packed_into_the_same_rows(
            (row_tokens, lengths) in lengths(),
            chosen in prop::collection::vec(any::<bool>(), 200),
        ) {
            let (mut documents, _) = BestFit::new(row_tokens).pack(&lengths);
            documents.retain(|(_, row)| chosen[*row as usize]);
            let again: Vec<u32> = documents.iter().map(|(place, _)| lengths[*place as usize]).collect();
            let (again, _) = BestFit::new(row_tokens).pack(&again);
            let rows = |row_of: &dyn Fn(usize) -> u32| -> BTreeSet<Vec<usize>> {
                let mut rows = std::collections::BTreeMap::<u32, Vec<usize>>::new();
                (0..documents.len()).for_each(|at| rows.entry(row_of(at)).or_default().push(at));
                rows.into_values().collect()
            };
            prop_assert!(again.iter().map(|(place, _)| *place).eq(0..documents.len() as u32));
            prop_assert_eq!(rows(&|at| again[at].1), rows(&|at| documents[at].1));
        }
    }
}
