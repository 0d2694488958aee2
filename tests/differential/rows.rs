//! Rows: each value of a data set, in several orders and as several types.

use crate::{
    exact::Exact,
    known::Known,
    manifest::{As, Column, Entry},
};
use burn::data::dataset::Dataset;
use burn_pinned::data::{Array, DataError, Rows, RowsBuilder};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::{collections::HashMap, path::Path};

/// Reads all of a data set and compares it.
pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let index = tempfile::tempdir().expect("a folder");
    let data = Data { entry, folder: index.path() };
    for column in &entry.columns {
        data.column(column).map_err(|error| format!("column `{}`: {error}", column.name))?;
    }
    for column in &entry.refused {
        match data.builder::<(Exact,)>().columns([column.as_str()]).open() {
            Err(DataError::Unsupported { .. }) => {}
            Err(other) => return Err(format!("column `{column}` is refused otherwise: {other}")),
            Ok(_) => return Err(format!("column `{column}` is not refused")),
        }
    }
    if entry.refused.is_empty() { data.whole() } else { Ok(()) }
}

/// A data set, and a folder for its index and its cache.
struct Data<'a> {
    entry: &'a Entry,
    folder: &'a Path,
}

impl Data<'_> {
    fn builder<T: DeserializeOwned>(&self) -> RowsBuilder<T> {
        let paths = self.entry.paths.clone();
        let rows = match self.entry.reader.as_str() {
            "parquet" => Rows::parquet(paths).memory(self.entry.memory.unwrap_or(512 << 20)),
            "jsonl" => Rows::jsonl(paths),
            "tar" => Rows::tar(paths),
            _ => Rows::mds(paths[0].as_path()).cache(self.folder.join("cache"), 64 << 20),
        };
        rows.index_dir(self.folder)
    }

    fn column(&self, column: &Column) -> Result<(), String> {
        let told = column.values();
        match column.reads_as {
            As::Any => {
                self.compare::<Exact>(&column.name, &told)?;
                Kind::of(&told).map_or(Ok(()), |kind| self.typed(&kind, &column.name, &told))
            }
            As::Array => self.compare::<Array<Exact>>(&column.name, &told),
            As::Text => self.compare::<Option<String>>(&column.name, &told),
            As::Bytes => self.compare::<Option<Bytes>>(&column.name, &told),
        }
    }

    fn typed(&self, kind: &Kind, name: &str, told: &[Exact]) -> Result<(), String> {
        let same = match kind {
            Kind::Bool => self.compare::<Option<bool>>(name, told),
            Kind::Int => self.compare::<Option<i128>>(name, told),
            Kind::F32 => self.compare::<Option<f32>>(name, told),
            Kind::F64 => self.compare::<Option<f64>>(name, told),
            Kind::Text => self.compare::<Option<String>>(name, told),
            Kind::Bytes => self.compare::<Option<Bytes>>(name, told),
            Kind::List(item) => match **item {
                Kind::Int => self.compare::<Option<Vec<Option<i128>>>>(name, told),
                Kind::F32 => self.compare::<Option<Vec<Option<f32>>>>(name, told),
                Kind::F64 => self.compare::<Option<Vec<Option<f64>>>>(name, told),
                Kind::Text => self.compare::<Option<Vec<Option<String>>>>(name, told),
                Kind::Bytes => self.compare::<Option<Vec<Option<Bytes>>>>(name, told),
                Kind::Bool | Kind::List(_) => Ok(()),
            },
        };
        same.map_err(|error| format!("as {kind:?}: {error}"))
    }

    /// Compares all values of a column: in an order that jumps and from behind, and then again with an index.
    fn compare<T: Known>(&self, name: &str, told: &[Exact]) -> Result<(), String> {
        let open = || self.builder::<(T,)>().columns([name]).open().map_err(|error| error.to_string());
        let rows = open()?;
        if rows.len() != told.len() {
            return Err(format!("it has {} rows, not {}", rows.len(), told.len()));
        }
        let jumps = (0..told.len()).map(|at| at * 7919 % told.len());
        for row in jumps.chain((0..told.len()).rev()) {
            equal(&rows, row, &told[row])?;
        }
        rows.index().map_err(|error| error.to_string())?;
        let rows = open()?;
        (0..told.len()).try_for_each(|row| equal(&rows, row, &told[row]).map_err(|error| format!("indexed: {error}")))
    }

    /// Compares rows with all their columns.
    fn whole(&self) -> Result<(), String> {
        match self.entry.reader.as_str() {
            "tar" => self.rows::<Bytes>(),
            _ => self.rows::<Exact>(),
        }
    }

    fn rows<T: Known>(&self) -> Result<(), String> {
        // Of a tar, the key is given to those alone that ask for it by name.
        let rows = self.builder::<HashMap<String, T>>().open().map_err(|error| error.to_string())?;
        let told: Vec<(&str, Vec<Exact>)> = self
            .entry
            .columns
            .iter()
            .filter(|column| column.name != "__key__")
            .map(|column| (&*column.name, plain(column)))
            .collect();
        for row in 0..rows.len() {
            let mut read = rows.get(row).map_err(|error| error.to_string())?;
            read.remove("__key__");
            read.remove("__url__");
            for (name, told) in &told {
                let value = read.remove(*name).map_or(Exact::Null, T::exact);
                same(row, &told[row], &value).map_err(|error| format!("all columns, `{name}`: {error}"))?;
            }
            if let Some(name) = read.keys().next() {
                return Err(format!("row {row} has a column `{name}`, which was not written"));
            }
        }
        Ok(())
    }
}

/// The values of a column as they are without a type: arrays without their shape.
fn plain(column: &Column) -> Vec<Exact> {
    let data = |value| match value {
        Exact::Struct(fields) => {
            fields.into_iter().find(|(name, _)| name == "data").map_or(Exact::Null, |(_, data)| data)
        }
        other => other,
    };
    let values = column.values();
    if column.reads_as == As::Array { values.into_iter().map(data).collect() } else { values }
}

fn equal<T: Known>(rows: &Rows<(T,)>, row: usize, told: &Exact) -> Result<(), String> {
    let (value,) = rows.get(row).map_err(|error| format!("{error} (right is {})", short(told)))?;
    same(row, told, &value.exact())
}

fn same(row: usize, told: &Exact, value: &Exact) -> Result<(), String> {
    if told == value { Ok(()) } else { Err(format!("row {row} is {}, not {}", short(value), short(told))) }
}

fn short(value: &Exact) -> String {
    let text = format!("{value:?}");
    text.char_indices().nth(300).map_or(text.clone(), |(end, _)| format!("{}..", &text[..end]))
}

/// The type that all values of a column have.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    F32,
    F64,
    Text,
    Bytes,
    List(Box<Kind>),
}

impl Kind {
    fn of(values: &[Exact]) -> Option<Self> {
        let mut kinds = values.iter().filter(|value| !matches!(value, Exact::Null)).map(Self::one);
        let first = kinds.next()??;
        kinds.all(|kind| kind.as_ref() == Some(&first)).then_some(first)
    }

    /// Of an empty list there is none.
    fn one(value: &Exact) -> Option<Self> {
        Some(match value {
            Exact::Null | Exact::Struct(_) => return None,
            Exact::Bool(_) => Self::Bool,
            Exact::Int(_) => Self::Int,
            Exact::F32(_) => Self::F32,
            Exact::F64(_) => Self::F64,
            Exact::Text(_) => Self::Text,
            Exact::Bytes(_) => Self::Bytes,
            Exact::List(items) => Self::List(Box::new(Self::of(items)?)),
        })
    }
}
