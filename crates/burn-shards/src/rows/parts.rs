//! Which rows are in which part: what `Rows` and every data set of the loader are split by.

use super::picks::Picks;
use crate::{
    error::{BoxError, DataError},
    system::permutation::Permutation,
};
use std::collections::BTreeMap;

/// More rows are split without a list of them. It is part of the format: the parts of larger data sets are drawn in another way.
const LONGEST_LIST: usize = 1 << 16;

/// What is parted: rows of a source, and which of them there are, if there are not all.
#[derive(Debug)]
pub struct PartedRows<'a> {
    /// Those that there are.
    pub of: Option<&'a Picks>,
    /// How many there are.
    pub rows: usize,
}

/// A sample of a data set cannot be read before the training.
#[derive(Debug, thiserror::Error)]
#[error("sample {index}: {source}")]
pub struct SampleError {
    /// Which one.
    pub index: usize,
    /// What went wrong.
    pub source: BoxError,
}

impl PartedRows<'_> {
    /// Takes a share of all rows: the rest, and this part.
    pub fn split(&self, share: f64, seed: u64) -> Result<(Picks, Picks), DataError> {
        if let Some(order) = self.long_order(seed) {
            let taken = (self.rows as f64 * share + 0.5).floor() as u64;
            return self.parted(share, |row| order.place_of(row as u64) < taken);
        }
        self.split_by(&self.each_row("split", ())?, share, seed)
    }

    /// Takes the same share of the rows of each key: evenly spaced rows of an order that `seed` draws.
    pub fn split_by<K: Ord>(&self, keys: &[K], share: f64, seed: u64) -> Result<(Picks, Picks), DataError> {
        let (mut is_taken, before) = (vec![false; keys.len()], |rows: usize| (rows as f64 * share + 0.5).floor());
        for (place, row) in spread(keys, seed).into_iter().enumerate() {
            is_taken[row] = before(place + 1) > before(place);
        }
        self.parted(share, |row| is_taken[row])
    }

    /// Takes all rows of some keys: as many as fit in an order that `seed` draws, and then those that come closer to the share.
    pub fn split_groups<K: Ord>(&self, keys: &[K], share: f64, seed: u64) -> Result<(Picks, Picks), DataError> {
        let mut groups = BTreeMap::<&K, (usize, bool)>::new();
        keys.iter().for_each(|key| groups.entry(key).or_default().0 += 1);
        let mut order: Vec<(u64, &mut (usize, bool))> =
            groups.values_mut().enumerate().map(|(number, group)| (mixed(seed, number), group)).collect();
        order.sort_by_key(|(mixed, _)| *mixed);
        let (target, mut taken) = (self.rows as f64 * share, 0);
        let distance = |taken: usize| (taken as f64 - target).abs();
        for may_exceed in [false, true] {
            for (_, (rows, is_taken)) in order.iter_mut().filter(|(_, (_, is_taken))| !is_taken) {
                let with = taken + *rows;
                if (may_exceed || with as f64 <= target) && distance(with) < distance(taken) {
                    (taken, *is_taken) = (with, true);
                }
            }
        }
        self.parted(share, |row| groups[&keys[row]].1)
    }

    /// Deals the rows to `k` parts: for each the rest, and the part.
    pub fn folds(&self, k: usize, seed: u64) -> Result<Vec<(Picks, Picks)>, DataError> {
        if k < 2 || k > self.rows {
            let problem = format!("there cannot be {k} folds of {} rows", self.rows);
            return Err(DataError::option("folds", problem, "take 2 or more, such as 5"));
        }
        let order = self.long_order(seed);
        let mut fold = Vec::new();
        if order.is_none() {
            fold = self.each_row("folds", 0)?;
            for (place, row) in spread(&self.each_row("folds", ())?, seed).into_iter().enumerate() {
                fold[row] = place % k;
            }
        }
        let fold_of = |row| order.as_ref().map_or_else(|| fold[row], |order| order.place_of(row as u64) as usize % k);
        let parts = Picks::deal(self.of, self.rows, k, fold_of).map_err(|_| self.no_memory("folds"))?;
        Ok(parts.into_iter().map(|part| (part.others(self.of, self.rows), part)).collect())
    }

    /// Takes the rows with these numbers.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Result<Picks, DataError> {
        let mut wanted = self.each_row("select", false)?;
        for row in rows {
            let problem = || format!("row {row} of {} rows", self.rows);
            let place = wanted.get_mut(row);
            *place.ok_or_else(|| DataError::option("select", problem(), "rows are numbered from 0"))? = true;
        }
        self.picked("select", |row| wanted[row])
    }

    /// Takes the rows that are wanted, by their numbers here.
    pub(super) fn picked(&self, call: &'static str, is_wanted: impl Fn(usize) -> bool) -> Result<Picks, DataError> {
        let parts = Picks::deal(self.of, self.rows, 1, |row| usize::from(!is_wanted(row)));
        parts.ok().and_then(|mut parts| parts.pop()).ok_or_else(|| self.no_memory(call))
    }

    fn parted(&self, share: f64, is_taken: impl Fn(usize) -> bool) -> Result<(Picks, Picks), DataError> {
        let part = self.picked("split", is_taken)?;
        let rest = part.others(self.of, self.rows);
        if !rest.is_empty() && !part.is_empty() {
            return Ok((rest, part));
        }
        let problem = format!("a share of {share} parts {} rows into {} and {}", self.rows, rest.len(), part.len());
        let advice = "take a share between 0 and 1 that leaves rows to both: of a split by groups, a whole group";
        Err(DataError::option("split", problem, advice))
    }

    /// The random order of many rows, which needs no list of them.
    fn long_order(&self, seed: u64) -> Option<Permutation> {
        let mut round = 0;
        let key = || {
            round += 1;
            mixed(seed, round)
        };
        (self.rows > LONGEST_LIST).then(|| Permutation::new(self.rows as u64, key))
    }

    /// A value for each row. A damaged file may claim more rows than there can be.
    fn each_row<V: Clone>(&self, call: &'static str, value: V) -> Result<Vec<V>, DataError> {
        let mut values = Vec::new();
        values.try_reserve_exact(self.rows).map_err(|_| self.no_memory(call))?;
        values.resize(self.rows, value);
        Ok(values)
    }

    fn no_memory(&self, call: &'static str) -> DataError {
        DataError::option(call, format!("there is no memory for {} rows", self.rows), "look at the files' sizes")
    }
}

/// All rows, grouped by key, with each group in an order that `seed` draws.
fn spread<K: Ord>(keys: &[K], seed: u64) -> Vec<usize> {
    let mut order: Vec<(u64, usize)> = (0..keys.len()).map(|row| (mixed(seed, row), row)).collect();
    order.sort_unstable_by(|(one, row), (two, other)| (&keys[*row], one, row).cmp(&(&keys[*other], two, other)));
    order.into_iter().map(|(_, row)| row).collect()
}

/// A pseudo-random number from the seed and a row: SplitMix64 of the first, and then of both.
fn mixed(seed: u64, row: usize) -> u64 {
    fn step(state: u64) -> u64 {
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
    step(step(seed) ^ row as u64)
}
