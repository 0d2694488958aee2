//! Parts of the rows: splits for validation, folds, and parts that the user chooses.

use super::{dataset::Rows, picks::Picks};
use crate::{error::DataError, row::nearest, system::permutation::Permutation};
use bytes::Bytes;
use std::collections::BTreeMap;

/// More rows are split without a list of them. It is part of the format: the parts of larger data sets are drawn in another way.
const LONGEST_LIST: usize = 1 << 16;

impl<T> Rows<T> {
    /// Splits the rows at random into `(rest, part)`, where `part` has the given share. Both keep the order of the files.
    ///
    /// ```
    /// use burn::data::dataset::Dataset;
    /// use burn_shards::Rows;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # let line = |n| format!("{{\"text\": \"{n}\", \"label\": {}, \"user\": {}}}\n", u8::from(n % 4 == 0), n / 7);
    /// # std::fs::write(&path, (0..100).map(line).collect::<String>())?;
    ///
    /// let all = Rows::<(String,)>::jsonl(path).columns(["text"]).open()?;
    /// let (train, valid) = all.split(0.1, 42)?;
    /// assert_eq!((train.len(), valid.len()), (90, 10));
    /// // The same share of each label: 25 of 100 are 1.
    /// let (_, valid) = all.split_by("label", 0.2, 42)?;
    /// assert_eq!(valid.column::<u8>("label")?.iter().filter(|label| **label == 1).count(), 5);
    /// // All rows of a user are in the same part.
    /// let (train, valid) = all.split_groups("user", 0.2, 42)?;
    /// let users = train.column::<u64>("user")?;
    /// assert!(valid.column::<u64>("user")?.iter().all(|user| !users.contains(user)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The split depends only on `seed` and the number of rows, so it is the same in each process and on each machine. A part is a data set
    /// like any other: it has [`blocks`](Self::blocks), is read ahead, and can be split again. Parts share the open files and what is kept
    /// in memory.
    ///
    /// # Errors
    /// If the share is not between 0 and 1, or if one of the two would be empty.
    pub fn split(&self, share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        if let Some(order) = self.long_order(seed) {
            let taken = (self.rows() as f64 * share + 0.5).floor() as u64;
            return self.parted(share, |row| order.place_of(row as u64) < taken);
        }
        let keys = self.each_row("split", None)?;
        self.split_spread(&keys, share, seed)
    }

    /// As [`split`](Self::split), but stratified: `part` has the same share of each value of a column, such as a label. `T` need not have
    /// the column. It must have texts, integers, booleans or bytes. Only this column is read: see [`column`](Self::column).
    ///
    /// Of a value with `n` rows, `part` has `n * share`, rounded up or down.
    ///
    /// # Errors
    /// As for `split`; if the column cannot be read; or if it has floats, structs, or lists other than bytes.
    pub fn split_by(&self, column: &str, share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        self.split_spread(&self.keys(column)?, share, seed)
    }

    /// As [`split`](Self::split), but all rows with the same value of a column, such as a user or a patient, are in the same part. `part`
    /// has about the given share of the rows, as close as whole groups allow.
    ///
    /// # Errors
    /// As for [`split_by`](Self::split_by).
    pub fn split_groups(&self, column: &str, share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        let keys = self.keys(column)?;
        let mut groups = BTreeMap::<&Option<SplitKey>, (usize, bool)>::new();
        keys.iter().for_each(|key| groups.entry(key).or_default().0 += 1);
        let mut order: Vec<(u64, &mut (usize, bool))> =
            groups.values_mut().enumerate().map(|(number, group)| (mixed(seed, number), group)).collect();
        order.sort_by_key(|(mixed, _)| *mixed);
        let (target, mut taken) = (self.rows() as f64 * share, 0);
        for (_, (rows, is_taken)) in order {
            let distance = |taken: usize| (taken as f64 - target).abs();
            if distance(taken + *rows) < distance(taken) {
                (taken, *is_taken) = (taken + *rows, true);
            }
        }
        self.parted(share, |row| groups[&keys[row]].1)
    }

    /// The pairs `(rest, part)` for `k`-fold cross-validation: each row is in `part` of one pair, and in `rest` of all others. The parts
    /// differ in size by at most one row.
    ///
    /// ```
    /// use burn::data::dataset::Dataset;
    /// use burn_shards::Rows;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # std::fs::write(&path, (0..11).map(|n| format!("{{\"x\": {n}}}\n")).collect::<String>())?;
    ///
    /// let all = Rows::<(u8,)>::jsonl(path).columns(["x"]).open()?;
    /// for (train, valid) in all.folds(5, 42)? {
    ///     assert_eq!(train.len() + valid.len(), 11);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If `k` is less than 2, or more than the number of rows.
    pub fn folds(&self, k: usize, seed: u64) -> Result<Vec<(Self, Self)>, DataError> {
        if k < 2 || k > self.rows() {
            let problem = format!("there cannot be {k} folds of {} rows", self.rows());
            return Err(DataError::option("folds", problem, "take 2 or more, such as 5"));
        }
        let order = self.long_order(seed);
        let mut fold = Vec::new();
        if order.is_none() {
            fold = self.each_row("folds", 0)?;
            for (place, row) in spread(&self.each_row("folds", None)?, seed).into_iter().enumerate() {
                fold[row] = place % k;
            }
        }
        let fold_of = |row| order.as_ref().map_or_else(|| fold[row], |order| order.place_of(row as u64) as usize % k);
        let parts = self.dealt("folds", k, fold_of)?;
        Ok(parts.into_iter().map(|part| (self.without(&part), part)).collect())
    }

    /// The random order of many rows, which needs no list of them.
    fn long_order(&self, seed: u64) -> Option<Permutation> {
        let mut round = 0;
        let key = || {
            round += 1;
            mixed(seed, round)
        };
        (self.rows() > LONGEST_LIST).then(|| Permutation::new(self.rows() as u64, key))
    }

    /// The rows with these numbers, each once and in the order of the files: a part that you choose, for example by a list of names.
    ///
    /// ```
    /// # use burn_shards::Rows;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # std::fs::write(&path, (0..11).map(|n| format!("{{\"year\": {}}}\n", 2010 + n)).collect::<String>())?;
    /// # let all = Rows::<(u16,)>::jsonl(path).columns(["year"]).open()?;
    /// let years = all.column::<u16>("year")?;
    /// let recent = all.select((0..years.len()).filter(|row| years[*row] > 2015))?;
    /// assert_eq!(recent.column::<u16>("year")?, [2016, 2017, 2018, 2019, 2020]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such row.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Result<Self, DataError> {
        let mut wanted = self.each_row("select", false)?;
        for row in rows {
            let problem = || format!("row {row} of {} rows", self.rows());
            let place = wanted.get_mut(row);
            *place.ok_or_else(|| DataError::option("select", problem(), "rows are numbered from 0"))? = true;
        }
        self.picked("select", |row| wanted[row])
    }

    /// A value for each row. A damaged file may claim more rows than there can be.
    fn each_row<V: Clone>(&self, call: &'static str, value: V) -> Result<Vec<V>, DataError> {
        let (rows, mut values) = (self.rows(), Vec::new());
        values.try_reserve_exact(rows).map_err(|_| no_memory(call, rows))?;
        values.resize(rows, value);
        Ok(values)
    }

    /// The values of a column. JSON lines have no schema, so a misspelt name is one that all rows lack.
    fn keys(&self, column: &str) -> Result<Vec<Option<SplitKey>>, DataError> {
        let keys: Vec<Option<SplitKey>> = self.column(column)?;
        if keys.iter().any(Option::is_some) {
            return Ok(keys);
        }
        let near = nearest(column, &self.names());
        let problem = format!("`{column}`{near} is null or missing in each row");
        Err(DataError::option("split", problem, "`there_is` lists the columns"))
    }

    /// Takes a share of each run of equal keys: evenly spaced rows of an order that `seed` draws.
    fn split_spread(&self, keys: &[Option<SplitKey>], share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        let (mut is_taken, before) = (vec![false; keys.len()], |rows: usize| (rows as f64 * share + 0.5).floor());
        for (place, row) in spread(keys, seed).into_iter().enumerate() {
            is_taken[row] = before(place + 1) > before(place);
        }
        self.parted(share, |row| is_taken[row])
    }

    fn parted(&self, share: f64, is_taken: impl Fn(usize) -> bool) -> Result<(Self, Self), DataError> {
        let part = self.picked("split", is_taken)?;
        let rest = self.without(&part);
        if rest.rows() > 0 && part.rows() > 0 {
            return Ok((rest, part));
        }
        let problem = format!("a share of {share} parts {} rows into {} and {}", self.rows(), rest.rows(), part.rows());
        let advice = "take a share between 0 and 1, such as 0.1; of a split by groups, there must be groups enough";
        Err(DataError::option("split", problem, advice))
    }

    /// The rows that are wanted, by their numbers here.
    pub(super) fn picked(&self, call: &'static str, is_wanted: impl Fn(usize) -> bool) -> Result<Self, DataError> {
        let mut parts = self.dealt(call, 1, |row| usize::from(!is_wanted(row)))?;
        Ok(parts.swap_remove(0))
    }

    /// Deals the rows to this many parts. `part_of` returns the part of a row.
    fn dealt(
        &self,
        call: &'static str,
        count: usize,
        part_of: impl Fn(usize) -> usize,
    ) -> Result<Vec<Self>, DataError> {
        let parts = Picks::deal(self.picks.as_ref(), self.rows(), count, part_of);
        let parts = parts.map_err(|_| no_memory(call, self.rows()))?;
        Ok(parts.into_iter().map(|picks| Self { picks: Some(picks), ..self.clone() }).collect())
    }

    /// The rows that are not in this part of them.
    fn without(&self, part: &Self) -> Self {
        let picks = part.picks.as_ref().map(|picks| picks.others(self.picks.as_ref(), self.rows()));
        Self { picks, ..self.clone() }
    }
}

fn no_memory(call: &'static str, rows: usize) -> DataError {
    DataError::option(call, format!("there is no memory for {rows} rows"), "look at the files' sizes")
}

/// A value to split by, such as a label or a user, of any ordered type. A null or missing value has no key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(untagged, expecting = "rows are parted by texts, integers, booleans or bytes, and it is none of them")]
enum SplitKey {
    Bool(bool),
    Int(i64),
    /// More than an `i64` holds.
    Unsigned(u64),
    Text(String),
    Bytes(Bytes),
}

/// All rows, grouped by key, with each group in an order that `seed` draws.
fn spread(keys: &[Option<SplitKey>], seed: u64) -> Vec<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_every_type_but_floats_and_structs() {
        let key = |json: &str| serde_json::from_str::<Option<SplitKey>>(json).map_err(|error| error.to_string());
        assert_eq!((key("null"), key("true")), (Ok(None), Ok(Some(SplitKey::Bool(true)))));
        assert_eq!(key("-7"), Ok(Some(SplitKey::Int(-7))));
        assert_eq!(key("18446744073709551615"), Ok(Some(SplitKey::Unsigned(u64::MAX))));
        assert_eq!(key("\"7\""), Ok(Some(SplitKey::Text("7".into()))));
        for wrong in ["0.5", "{\"a\": 1}", "[300]"] {
            assert!(key(wrong).unwrap_err().contains("rows are parted by texts, integers"), "{wrong}");
        }
    }
}
