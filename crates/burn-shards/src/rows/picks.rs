//! Which rows of a source are in a part: a bit for each, and how many come before each block of bits.

use std::sync::Arc;

const WORD: usize = u64::BITS as usize;
/// The number of words of a block.
const BLOCK: usize = 8;

/// Some rows of a source, in order.
#[derive(Debug, Clone)]
pub struct Picks {
    bits: Arc<[u64]>,
    /// The number of picked rows before each block of bits, and of all.
    before: Arc<[usize]>,
}

impl Picks {
    /// Deals rows to `count` parts: those of `of`, or the rows `0..rows` of the source. `part_of` returns the part of a row, by its number
    /// among the dealt ones. A row of a part that does not exist is in none.
    ///
    /// # Errors
    /// If there is no memory for a bit for each row. A damaged file may claim more rows than there can be.
    pub(super) fn deal(
        of: Option<&Self>,
        rows: usize,
        count: usize,
        part_of: impl Fn(usize) -> usize,
    ) -> Result<Vec<Self>, std::collections::TryReserveError> {
        let words = of.map_or(rows.div_ceil(WORD), |of| of.bits.len());
        let mut parts = Vec::new();
        for _ in 0..count {
            let mut bits = Vec::new();
            bits.try_reserve_exact(words)?;
            bits.resize(words, 0u64);
            parts.push(bits);
        }
        let mut number = 0;
        for word in 0..words {
            let mut left = match of {
                Some(of) => of.bits[word],
                None => all_of(word, rows),
            };
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                if let Some(part) = parts.get_mut(part_of(number)) {
                    part[word] |= bit;
                }
                number += 1;
            }
        }
        Ok(parts.into_iter().map(Self::new).collect())
    }

    fn new(bits: Vec<u64>) -> Self {
        let mut before = vec![0];
        for block in bits.chunks(BLOCK) {
            before.push(before[before.len() - 1] + ones(block));
        }
        Self { bits: bits.into(), before: before.into() }
    }

    /// The number of picked rows.
    pub fn len(&self) -> usize {
        self.before[self.before.len() - 1]
    }

    /// Whether no row is picked.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the row with this number among the picked ones.
    pub fn nth(&self, index: usize) -> Option<usize> {
        if index >= self.len() {
            return None;
        }
        let block = self.before.partition_point(|before| *before <= index) - 1;
        let mut left = index - self.before[block];
        let mut word = block * BLOCK;
        while left >= self.bits[word].count_ones() as usize {
            left -= self.bits[word].count_ones() as usize;
            word += 1;
        }
        let mut bits = self.bits[word];
        (0..left).for_each(|_| bits &= bits - 1); // without its lowest bits
        Some(word * WORD + bits.trailing_zeros() as usize)
    }

    /// The other rows of `of`, or of the rows `0..rows` of the source.
    pub(super) fn others(&self, of: Option<&Self>, rows: usize) -> Self {
        let all = |word| of.map_or_else(|| all_of(word, rows), |of| of.bits[word]);
        Self::new(self.bits.iter().enumerate().map(|(word, bits)| all(word) & !bits).collect())
    }

    /// Returns how many picked rows come before a row of the source.
    pub(crate) fn before(&self, row: usize) -> usize {
        let (word, bit) = ((row / WORD).min(self.bits.len()), row % WORD);
        let block = word / BLOCK;
        let in_word = self.bits.get(row / WORD).map_or(0, |bits| (bits & ((1 << bit) - 1)).count_ones() as usize);
        self.before[block] + ones(&self.bits[block * BLOCK..word]) + in_word
    }

    /// A checksum of which rows are picked.
    pub(crate) fn checksum(&self) -> u32 {
        crc32fast::hash(bytemuck::cast_slice(&self.bits))
    }
}

/// The bits of a word of the rows `0..rows`.
fn all_of(word: usize, rows: usize) -> u64 {
    u64::MAX >> (WORD - WORD.min(rows - word * WORD))
}

fn ones(words: &[u64]) -> usize {
    words.iter().map(|bits| bits.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_rows_are_found_and_counted() {
        for rows in [0, 1, 63, 64, 65, 511, 512, 513, 5000] {
            for part_of in [(|row| row % 3) as fn(usize) -> usize, |_| 0, |_| 9, |row| usize::from(row % 700 > 600)] {
                let parts = Picks::deal(None, rows, 3, part_of).unwrap();
                for (part, picks) in parts.iter().enumerate() {
                    let wanted: Vec<usize> = (0..rows).filter(|row| part_of(*row) == part).collect();
                    assert_eq!(picks.len(), wanted.len());
                    assert!((0..wanted.len()).all(|index| picks.nth(index) == Some(wanted[index])));
                    assert_eq!(picks.nth(wanted.len()), None);
                    for row in [0, 1, 62, 63, 64, 65, 300, 511, 512, 513, 700, rows, rows + 1, rows + 5000] {
                        assert_eq!(
                            picks.before(row),
                            wanted.iter().filter(|wanted| **wanted < row).count(),
                            "{row} of {rows}"
                        );
                    }
                    let others = picks.others(None, rows);
                    assert_eq!(others.len(), rows - wanted.len());
                    assert!((0..others.len()).all(|index| others.nth(index).is_some_and(|row| part_of(row) != part)));
                    // A part of the part.
                    let again = Picks::deal(Some(picks), rows, 2, |number| number % 2).unwrap();
                    let odd: Vec<usize> = wanted.iter().copied().skip(1).step_by(2).collect();
                    assert!(
                        (0..odd.len()).all(|index| again[1].nth(index) == Some(odd[index]))
                            && again[1].len() == odd.len()
                    );
                }
            }
        }
    }

    #[test]
    fn more_rows_than_memory_are_an_error() {
        assert!(Picks::deal(None, usize::MAX, 1, |_| 0).is_err());
    }
}
