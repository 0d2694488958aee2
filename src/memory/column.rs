//! Columns: what a sample has besides numbers. The values are in ordinary memory, beside the slots.

use crate::{fault::UserValues, picture_row::LongFiles};
use std::{
    any::{Any, type_name},
    mem,
};

/// The values of a column, one for each row.
#[derive(derive_more::Debug)]
#[debug("Column")]
pub(crate) struct Column(Box<dyn ColumnValues>);

/// What can be done with values of an unknown type.
trait ColumnValues: Any + Send + Sync {
    /// The name of the values' type.
    fn of(&self) -> &'static str;
    /// Moves all values of `other`, which are of the same type, to the end.
    fn append(&mut self, other: &mut dyn Any);
    /// Removes the rows at these positions, which are in order, and returns them.
    fn remove(&mut self, rows: &[usize]) -> Box<dyn ColumnValues>;
    /// Copies some rows.
    fn select(&self, rows: &mut dyn Iterator<Item = usize>) -> Box<dyn ColumnValues>;
}

/// A row has no value until it is written.
impl<T: Clone + Send + Sync + 'static> ColumnValues for UserValues<Option<T>> {
    fn of(&self) -> &'static str {
        type_name::<T>()
    }

    fn append(&mut self, other: &mut dyn Any) {
        if let Some(other) = other.downcast_mut::<Self>() {
            Vec::append(self, &mut *other);
        }
    }

    fn remove(&mut self, rows: &[usize]) -> Box<dyn ColumnValues> {
        let removed: Vec<_> = rows.iter().map(|row| self.get_mut(*row).and_then(Option::take)).collect();
        let mut row = 0..;
        self.retain(|_| row.next().is_some_and(|row| rows.binary_search(&row).is_err()));
        Box::new(Self::from(removed))
    }

    fn select(&self, rows: &mut dyn Iterator<Item = usize>) -> Box<dyn ColumnValues> {
        let mut selected = Self::default(); // if a clone panics, the clones before it are dropped one by one
        rows.for_each(|row| selected.push(self.get(row).cloned().flatten()));
        Box::new(selected)
    }
}

impl Column {
    /// A column of `rows` rows without values.
    pub(crate) fn new<T: Clone + Send + Sync + 'static>(rows: usize) -> Self {
        Self(Box::new(UserValues::from((0..rows).map(|_| None).collect::<Vec<Option<T>>>())))
    }

    /// The values, if this is their type.
    fn values<T: 'static>(&mut self) -> Option<&mut Vec<Option<T>>> {
        let values: &mut dyn Any = &mut *self.0;
        values.downcast_mut::<UserValues<Option<T>>>().map(|values| &mut **values)
    }

    /// The name of its values' type.
    pub(crate) fn of(&self) -> &'static str {
        self.0.of()
    }

    /// Sets the value of a row. Returns false if the column has another type.
    pub(crate) fn set<T: 'static>(&mut self, row: usize, value: T) -> bool {
        let place = self.values().and_then(|values| values.get_mut(row));
        place.map(|place| *place = Some(value)).is_some()
    }

    /// Takes all values; `None` if the column has another type.
    pub(crate) fn take<T: 'static>(&mut self) -> Option<Vec<T>> {
        self.values().map(|values| mem::take(values).into_iter().flatten().collect())
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut *other.0);
    }

    pub(crate) fn remove(&mut self, rows: &[usize]) {
        if !rows.is_empty() {
            drop(self.0.remove(rows));
        }
    }

    pub(crate) fn select(&self, mut rows: impl Iterator<Item = usize>) -> Self {
        Self(self.0.select(&mut rows))
    }
}

/// What the rows of a task have beside the slot.
#[derive(Debug, Default)]
pub(crate) struct RowExtras {
    /// Files that are longer than their rows.
    pub(crate) long: LongFiles,
    /// The columns of the layout; empty without columns.
    pub(crate) columns: Vec<Column>,
    /// A bit for each field with a value that does not fit the device's integers.
    pub(crate) beyond: u64,
}

/// Joins the columns of tasks, each with the first row of its task, to those of the whole batch, without the skipped rows.
pub(crate) fn join_columns(mut parts: Vec<(usize, Vec<Column>)>, skipped: &[usize]) -> Vec<Column> {
    parts.sort_unstable_by_key(|(first, _)| *first);
    let mut parts = parts.into_iter().map(|(_, columns)| columns);
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        all.iter_mut().zip(part).for_each(|(column, part)| column.append(part));
    }
    all.iter_mut().for_each(|column| column.remove(skipped));
    all
}
