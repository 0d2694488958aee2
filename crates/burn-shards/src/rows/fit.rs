//! Checks a row type against the files, as far as possible when they are opened.
//!
//! The check uses a schema or an index, or else the first good row of each file. A bad row is not an error here, but when it is read.

use super::{
    dataset::Rows,
    names::{missing, note, told},
};
use crate::{
    error::DataError,
    row::{self, Fault, RowError},
    source::{
        Selection,
        cell::{Cell, Record},
    },
    system::parallel::in_parallel,
};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashSet};

/// The number of rows that are tried in search of a good row, or of a name.
const ROWS_TRIED: usize = 1000;

impl<T: DeserializeOwned> Rows<T> {
    /// Finds columns that the row type needs and a file lacks, or has with another type.
    ///
    /// `of_all` says that all rows are read next. Then a name that no row has is an error, even if only the rows show the names.
    pub(crate) fn fit(&self, of_all: bool) -> Result<(), DataError> {
        self.source.check()?;
        let samples = self.source.samples();
        let Some((first, _)) = samples.first() else { return self.fit_rows(of_all) };
        let (mut names, mut known, mut wrong, mut before) = (BTreeMap::new(), Vec::new(), None, None);
        for (object, record) in &samples {
            // The column names of an object without rows count, but its types do not matter.
            if self.source.len() > 0 && !self.source.has_rows(*object) {
                note(&mut names, "", &self.reads, record);
                known.extend(row::names(record));
                continue;
            }
            if before.replace(record) == Some(record) {
                continue;
            }
            let error = self.shape.within(|columns| row::misfit::<T>(record, columns));
            note(&mut names, "", &self.reads, record);
            known.extend(row::names(record));
            wrong = wrong.or_else(|| Some((*object, error?)));
        }
        let there_is = self.source.there_is();
        known.extend(there_is.iter().map(|(name, _)| name.clone()));
        let missing = missing(&names, &self.optional);
        if !missing.is_empty() {
            let problem = format!("no file has the column {}", told(&missing, &known));
            return Err(DataError::Schema { object: self.source.objects().name(*first).into(), problem, there_is });
        }
        let Some((object, RowError { column, problem, fault })) = wrong else { return Ok(()) };
        let column = column.unwrap_or_default();
        // The list has the type from another file.
        let is_null = |(of, record): &(usize, Record)| {
            *of == object && record.iter().any(|(name, cell)| **name == *column && *cell == Cell::Null)
        };
        let word = there_is.iter().find(|(name, _)| *name == column).map(|(_, word)| word);
        let word = word.filter(|_| !samples.iter().any(is_null));
        let problem = match (fault, word) {
            (Fault::Missing, _) => problem,
            (Fault::Type(expected), Some(word)) => {
                format!("column `{column}`: invalid type: {word}, expected {expected}")
            }
            _ => format!("column `{column}`: {problem}"),
        };
        Err(DataError::Schema { object: self.source.objects().name(object).into(), problem, there_is })
    }

    /// As [`fit`](Self::fit), for formats without a schema: it tries rows. If the first rows lack a name, it warns.
    fn fit_rows(&self, of_all: bool) -> Result<(), DataError> {
        let (mut names, mut fit) = (BTreeMap::new(), HashSet::new());
        let (mut row, mut most, all) = (0, 1, self.source.len());
        loop {
            let is_missing = !missing(&names, &self.optional).is_empty();
            let end = if of_all && is_missing { all } else { all.min(ROWS_TRIED) };
            if row >= end || !(fit.is_empty() || is_missing) {
                break;
            }
            let run = self.source.run(row, most.min(end - row))?;
            let rows = run.len().max(1);
            for record in run.into_iter().flatten() {
                note(&mut names, "", &self.reads, &record);
                if self.attempt(record).is_ok() {
                    fit.insert(self.source.starts().find(row).0);
                }
            }
            (row, most) = (row + rows, (most * 8).min(ROWS_TRIED));
        }
        let firsts = self.source.starts().firsts();
        let others = firsts.iter().filter(|first| !fit.contains(&self.source.starts().find(**first).0));
        let unread = in_parallel(&others.copied().collect::<Vec<_>>(), |first| self.fit_from(*first))?;
        let none_is_good = unread.len() == firsts.len() && unread.iter().all(Option::is_some);
        if let (true, Some(Some(error))) = (none_is_good, unread.into_iter().next()) {
            return Err(error);
        }
        let missing = missing(&names, &self.optional);
        if !missing.is_empty() && row > 0 {
            let (object, told) = (self.source.objects().name(0), told(&missing, &self.known(0)));
            if of_all {
                let (object, problem) = (object.into(), format!("no row has the key {told}"));
                return Err(DataError::Schema { object, problem, there_is: self.source.there_is() });
            }
            log::warn!("none of the first {row} rows of {object} has the key {told}");
        }
        Ok(())
    }

    /// Searches an object, from its first row on, for a row that fits. If no row can be read, the error of a row is returned.
    fn fit_from(&self, first: usize) -> Result<Option<DataError>, DataError> {
        let object = self.source.starts().find(first).0;
        let (mut row, mut most, mut unread, mut wrong) = (first, 1, None, None);
        while row < self.source.len() && row - first < ROWS_TRIED && self.source.starts().find(row).0 == object {
            let run = self.source.run(row, most)?;
            let rows = run.len().max(1);
            for (at, record) in run.into_iter().enumerate() {
                match record {
                    Ok(record) => match self.attempt(record) {
                        Ok(()) => return Ok(None),
                        Err(error) => drop(wrong.get_or_insert((row + at, error))),
                    },
                    Err(error) => drop(unread.get_or_insert(error)),
                }
            }
            (row, most) = (row + rows, (most * 8).min(ROWS_TRIED));
        }
        match wrong {
            Some((row, error)) => Err(self.with_what_there_is(self.of_row(row, error.near(|| self.known(row))))),
            None => Ok(unread),
        }
    }

    /// The names of the columns, and of all fields of a row, including those that are not asked for.
    fn known(&self, row: usize) -> Vec<String> {
        let whole = self.source.select(&Selection::All, &Selection::All, &[]).and_then(|source| source.read(row));
        whole.map_or_else(|_| Vec::new(), |record| row::names(&record)).into_iter().chain(self.names()).collect()
    }

    /// Whether a row fits by its names and types. Its values may be bad.
    fn attempt(&self, record: Record) -> Result<(), RowError> {
        match self.shape.within(|columns| row::row::<T>(record, columns)) {
            Err(error) if error.fault != Fault::Value => Err(error),
            _ => Ok(()),
        }
    }

    /// Adds the existing columns to the error of a row.
    fn with_what_there_is(&self, error: DataError) -> DataError {
        match error {
            DataError::Row { object, row, column, problem, .. } => {
                let column = column.map_or_else(String::new, |column| format!(", column `{column}`"));
                let problem = format!("row {row}{column}: {problem}");
                DataError::Schema { object, problem, there_is: self.source.there_is() }
            }
            other => other,
        }
    }
}
