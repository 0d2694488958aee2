//! Where the rows of a shard are: a table at its start. After it the shard describes its columns.

use super::index_json::ShardColumns;
use crate::{error::DataError, store::Objects};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// The number of bytes after the table that are read with it. They describe the shard's columns.
const BEHIND_TABLE: u64 = 4 << 10;

/// A shard. Its table is read with its first row.
#[derive(Debug)]
pub(super) struct MdsShard {
    /// The number of rows in `index.json`.
    rows: usize,
    columns: Arc<ShardColumns>,
    /// Where each row begins, and where the last one ends.
    table: OnceLock<Box<[u32]>>,
}

impl MdsShard {
    /// Checks that a shard is large enough for the table of `rows` rows.
    pub(super) fn new(
        objects: &Objects,
        object: usize,
        rows: u64,
        columns: &Arc<ShardColumns>,
    ) -> Result<Self, DataError> {
        let table = rows.checked_add(2).and_then(|numbers| numbers.checked_mul(4));
        match usize::try_from(rows) {
            Ok(rows) if table.is_some_and(|bytes| bytes <= objects.bytes(object)) => {
                Ok(Self { rows, columns: Arc::clone(columns), table: OnceLock::new() })
            }
            _ => {
                let problem = format!("it has {} bytes: too few for {rows} rows", objects.bytes(object));
                Err(DataError::damaged(objects.name(object), problem))
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns where a row is.
    pub(super) fn row(&self, objects: &Objects, object: usize, row: usize) -> Result<Range<u64>, DataError> {
        let table = match self.table.get() {
            Some(table) => table,
            // Several threads may read the table at the same time, and get the same bytes.
            None => {
                let table = self.read(objects, object)?;
                self.table.get_or_init(|| table)
            }
        };
        match table.get(row..).and_then(|table| table.first_chunk()) {
            Some([start, end]) => Ok(u64::from(*start)..u64::from(*end)),
            None => {
                Err(DataError::damaged(objects.name(object), format!("it has {} rows, and no row {row}", self.rows)))
            }
        }
    }

    fn read(&self, objects: &Objects, object: usize) -> Result<Box<[u32]>, DataError> {
        let begin = (self.rows as u64 + 2) * 4;
        let mut bytes = objects.read(object, 0..objects.bytes(object).min(begin + BEHIND_TABLE))?;
        let mut behind = bytes.split_off(begin as usize);
        let mut numbers = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let damaged = |problem: String| Err(DataError::damaged(objects.name(object), problem));
        let rows = numbers.next().unwrap_or(0);
        if rows as usize != self.rows {
            return damaged(format!("it has {rows} rows, and `index.json` says {}", self.rows));
        }
        let table: Box<[u32]> = numbers.collect();
        let last = table.last().copied().map_or(0, u64::from);
        let first = table.first().copied().map_or(0, u64::from);
        if first < begin || last > objects.bytes(object) || !table.is_sorted() {
            return damaged("the table of its rows makes no sense".into());
        }
        if behind.len() as u64 >= first - begin {
            behind.truncate((first - begin) as usize);
        } else {
            behind = objects.read(object, begin..first)?;
        }
        if ShardColumns::of_shard(&behind).is_some_and(|columns| columns != *self.columns) {
            return damaged("it says that it has other columns than `index.json` says".into());
        }
        Ok(table)
    }
}
