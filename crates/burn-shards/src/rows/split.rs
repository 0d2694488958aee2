//! Parts of the rows: splits for validation, folds, and parts that the user chooses.

use super::{dataset::Rows, parts::PartedRows, picks::Picks};
use crate::{error::DataError, row::nearest};
use bytes::Bytes;

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
        self.parted().split(share, seed).map(|parts| self.both(parts))
    }

    /// As [`split`](Self::split), but stratified: `part` has the same share of each value of a column, such as a label. `T` need not have
    /// the column. It must have texts, integers, booleans or bytes. Only this column is read: see [`column`](Self::column).
    ///
    /// Of a value with `n` rows, `part` has `n * share`, rounded up or down.
    ///
    /// # Errors
    /// As for `split`; if the column cannot be read; or if it has floats, structs, or lists other than bytes.
    pub fn split_by(&self, column: &str, share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        self.parted().split_by(&self.keys(column)?, share, seed).map(|parts| self.both(parts))
    }

    /// As [`split`](Self::split), but all rows with the same value of a column, such as a user or a patient, are in the same part. `part`
    /// has about the given share of the rows. All rows without a value are one group.
    ///
    /// # Errors
    /// As for [`split_by`](Self::split_by).
    pub fn split_groups(&self, column: &str, share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        self.parted().split_groups(&self.keys(column)?, share, seed).map(|parts| self.both(parts))
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
        let folds = self.parted().folds(k, seed)?;
        Ok(folds.into_iter().map(|parts| self.both(parts)).collect())
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
        self.parted().select(rows).map(|picks| self.with(picks))
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

    /// The rows that are wanted, by their numbers here.
    pub(super) fn picked(&self, call: &'static str, is_wanted: impl Fn(usize) -> bool) -> Result<Self, DataError> {
        self.parted().picked(call, is_wanted).map(|picks| self.with(picks))
    }

    fn parted(&self) -> PartedRows<'_> {
        PartedRows { of: self.picks.as_ref(), rows: self.rows() }
    }

    fn with(&self, picks: Picks) -> Self {
        Self { picks: Some(picks), ..self.clone() }
    }

    fn both(&self, (rest, part): (Picks, Picks)) -> (Self, Self) {
        (self.with(rest), self.with(part))
    }
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
