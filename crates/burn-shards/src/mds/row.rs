//! From the bytes of a row to its wanted values.

use super::{
    encoding::{Encoding, number},
    index_json::ShardColumns,
    ndarray::take,
};
use crate::{
    error::DataError,
    source::{
        Selection,
        cell::{Cell, Record},
    },
};
use std::{ops::Range, sync::Arc};

/// Reads the wanted columns of the rows of some shards.
#[derive(Debug, Clone)]
pub(super) struct RowReader {
    pub(super) columns: Arc<ShardColumns>,
    wanted: Vec<WantedColumn>,
}

#[derive(Debug, Clone)]
struct WantedColumn {
    /// The index of the column in a row.
    place: usize,
    name: Arc<str>,
    encoding: Encoding,
    /// The wanted fields of the column, if its values are structs.
    fields: Selection,
}

impl RowReader {
    /// Makes a reader of the wanted columns. `object` is for errors. Wanted columns that do not exist are left out.
    pub(super) fn new(object: &str, columns: &Arc<ShardColumns>, wanted: &Selection) -> Result<Self, DataError> {
        let column = |place: usize, fields: &Selection| {
            let (name, encoding) = (&*columns.names[place], &columns.encodings[place]);
            let encoding =
                Encoding::parse(encoding).map_err(|what| DataError::unsupported(object, Some(name), what))?;
            Ok(WantedColumn { place, name: name.into(), encoding, fields: fields.clone() })
        };
        let wanted: Result<_, DataError> = match wanted {
            Selection::All => (0..columns.names.len()).map(|place| column(place, wanted)).collect(),
            Selection::Some(names) => names
                .iter()
                .filter_map(|(name, fields)| Some((columns.names.iter().position(|it| **it == **name)?, fields)))
                .map(|(place, fields)| column(place, fields))
                .collect(),
        };
        Ok(Self { columns: Arc::clone(columns), wanted: wanted? })
    }

    /// A column that has different encodings in the two readers.
    pub(super) fn differs(&self, other: &Self) -> Option<Arc<str>> {
        let another = |column: &&WantedColumn| {
            other.wanted.iter().any(|it| it.name == column.name && it.encoding != column.encoding)
        };
        self.wanted.iter().find(another).map(|column| Arc::clone(&column.name))
    }

    /// The wanted columns, each with a value of its encoding.
    pub(super) fn sample(&self) -> Record {
        self.wanted.iter().map(|column| (Arc::clone(&column.name), column.encoding.sample())).collect()
    }

    /// Reads the wanted columns, in the wanted order. If most of a row is one file, its bytes are not copied. The error is the problem, and
    /// its column, if it is in one.
    pub(super) fn read(&self, mut row: Vec<u8>) -> Result<Record, (Option<String>, String)> {
        let ranges = self.ranges(&row).map_err(|problem| (None, problem))?;
        let large =
            |column: &WantedColumn| column.encoding == Encoding::Bytes && ranges[column.place].len() > row.len() / 2;
        let large = self.wanted.iter().position(large);
        let cell = |(n, column): (usize, &WantedColumn)| {
            let bytes = if Some(n) == large { &[] } else { row.get(ranges[column.place].clone()).unwrap_or_default() };
            let cell = column.encoding.read(bytes, &column.fields);
            cell.map(|cell| (Arc::clone(&column.name), cell))
                .map_err(|problem| (Some(column.name.to_string()), problem))
        };
        let mut record = self.wanted.iter().enumerate().map(cell).collect::<Result<Record, _>>()?;
        if let Some(n) = large {
            let Range { start, end } = ranges[self.wanted[n].place];
            row.truncate(end);
            row.drain(..start);
            record[n].1 = Cell::Bytes(row);
        }
        Ok(record)
    }

    /// The range of each column in a row. The ranges cover the row.
    fn ranges(&self, row: &[u8]) -> Result<Vec<Range<usize>>, String> {
        let (mut ranges, mut head) = (Vec::with_capacity(self.columns.sizes.len()), row);
        let mut at = self.columns.sizes.iter().filter(|size| size.is_none()).count() * 4;
        take(&mut &*row, at)?;
        for size in &self.columns.sizes {
            let size = match size {
                Some(size) => *size,
                None => number(&mut head)?.into(),
            };
            let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size)).filter(|end| *end <= row.len());
            let end = end.ok_or_else(|| format!("it has {} bytes, and its columns have more", row.len()))?;
            ranges.push(at..end);
            at = end;
        }
        if at == row.len() {
            return Ok(ranges);
        }
        Err(format!("it has {} bytes, and its columns have {at}", row.len()))
    }
}
